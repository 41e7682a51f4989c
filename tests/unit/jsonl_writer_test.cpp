#include <steptimer/jsonl_writer.hpp>

#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "support/sample_records.hpp"

namespace {

std::string line_of(const steptimer::StepRecord& record) {
  std::ostringstream out;
  steptimer::JsonlWriter jsonl(out);
  jsonl(record);
  return out.str();
}

}  // namespace

TEST_CASE("a record is one JSON object on a line") {
  CHECK(line_of(record_with_gap()) ==
        R"({"step":41,"host_start_s":1234.567890123,"batch_time_s":0.090000001,"wall_gap_s":0.100000000,)"
        R"("data_time_s":0.009999999,"data_wait_percent":9.999999,"host_batch_time_s":0.005000000,)"
        R"("host_wall_gap_s":0.125000000,"host_data_wait_percent":96.000000,"items":32,"warmup":false,)"
        R"("fetch_time_s":null,"exposed_fetch_s":null,"device_drained":null,"steps_ahead":0,"phases":[]})"
        "\n");
}

TEST_CASE("what is absent is null") {
  CHECK(line_of(record_without_gap()) ==
        R"({"step":42,"host_start_s":1234.667890123,"batch_time_s":0.000000007,"wall_gap_s":null,)"
        R"("data_time_s":null,"data_wait_percent":null,"host_batch_time_s":0.000000001,)"
        R"("host_wall_gap_s":null,"host_data_wait_percent":null,"items":0,"warmup":true,)"
        R"("fetch_time_s":null,"exposed_fetch_s":null,"device_drained":null,"steps_ahead":0,"phases":[]})"
        "\n");
}

TEST_CASE("fetch, drain and phases are at the end of a line, names made safe for JSON") {
  const std::string line = line_of(record_with_everything());
  CHECK(line.substr(line.find(",\"fetch")) ==
        R"(,"fetch_time_s":0.020000000,"exposed_fetch_s":0.009000000,"device_drained":false,"steps_ahead":3,)"
        R"("phases":[{"name":"","time_s":0.030000000},{"name":"a\"b\u005cc dé","time_s":0.060000001}]})"
        "\n");
}

TEST_CASE("the longest line is whole, of a phase's name the first 40 bytes") {
  const std::string line = line_of(record_of_extremes());
  CHECK(line.size() < 4000);
  CHECK(line.substr(line.size() - 41) == R"(\"\"\"","time_s":9223372036.854775807}]})"
                                         "\n");
  CHECK(line.find("cut off") == std::string::npos);
}

TEST_CASE("a JSON Lines file without a record is empty") {
  std::ostringstream out;
  { steptimer::JsonlWriter jsonl(out); }
  CHECK(out.str().empty());
}
