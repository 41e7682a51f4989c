#include <steptimer/csv_writer.hpp>

#include <chrono>
#include <locale>
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "support/sample_records.hpp"

using namespace std::chrono_literals;

namespace {

const std::string header =
    "step,host_start_s,batch_time_s,wall_gap_s,data_time_s,data_wait_percent,host_batch_time_s,host_wall_gap_s,"
    "host_data_wait_percent,items,warmup,fetch_time_s,exposed_fetch_s,device_drained,steps_ahead\n";

std::string row_of(const steptimer::StepRecord& record) {
  std::ostringstream out;
  steptimer::CsvWriter csv(out);
  csv(record);
  return out.str().substr(header.size());
}

/// What no machine-read file should show.
struct Foreign : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\1"; }
  std::string do_truename() const override { return "wahr"; }
};

}  // namespace

TEST_CASE("a CSV file begins with its header, also one without a record") {
  std::ostringstream out;
  { steptimer::CsvWriter csv(out); }
  CHECK(out.str() == header);
}

TEST_CASE("a record is one row, to the nanosecond") {
  CHECK(row_of(record_with_gap()) ==
        "41,1234.567890123,0.090000001,0.100000000,0.009999999,9.999999,0.005000000,0.125000000,96.000000,32,0,,,,0\n");
}

TEST_CASE("fetch and drain are at the end of a row") {
  CHECK(row_of(record_with_everything()) ==
        "41,1234.567890123,0.090000001,0.100000000,0.009999999,9.999999,0.005000000,0.125000000,96.000000,32,0,"
        "0.020000000,0.009000000,0,3\n");
}

TEST_CASE("what is absent is an empty field") {
  CHECK(row_of(record_without_gap()) == "42,1234.667890123,0.000000007,,,,0.000000001,,,0,1,,,,0\n");
  CHECK(row_of({}) == "0,0.000000000,0.000000000,,,,0.000000000,,,0,0,,,,0\n");
}

TEST_CASE("the longest row is whole") {
  const std::string most = "9223372036.854775807";
  CHECK(row_of(record_of_extremes()) == "18446744073709551615," + most + "," + most + "," + most + "," + most +
                                            ",100.000000," + most + "," + most + ",0.000000,18446744073709551615,0," +
                                            most + "," + most + ",1,4294967295\n");
}

TEST_CASE("a time below zero, in a record made by hand, keeps its digits") {
  steptimer::StepRecord record;
  record.batch_time = -1ns;
  record.host_batch_time = (std::chrono::nanoseconds::min)();
  CHECK(row_of(record) == "0,0.000000000,-0.000000001,,,,-9223372036.854775808,,,0,0,,,,0\n");
}

TEST_CASE("every digit of a time is in its place") {
  for (std::int64_t time = 1; time <= 100000000; time *= 10) {
    steptimer::StepRecord record;
    record.batch_time = std::chrono::nanoseconds{time};
    const std::string digits = std::to_string(time);
    const std::string seconds = "0." + std::string(9 - digits.size(), '0') + digits;
    CHECK(row_of(record) == "0,0.000000000," + seconds + ",,,,0.000000000,,,0,0,,,,0\n");
  }
}

TEST_CASE("the locale of the stream and of the program changes nothing in a CSV file") {
  std::ostringstream plain;
  std::ostringstream foreign;
  foreign.imbue(std::locale(std::locale::classic(), new Foreign));
  const std::locale before = std::locale::global(foreign.getloc());
  {
    steptimer::CsvWriter to_plain(plain);
    steptimer::CsvWriter to_foreign(foreign);
    for (const steptimer::StepRecord& record : sample_records()) {
      to_plain(record);
      to_foreign(record);
    }
  }
  std::locale::global(before);
  CHECK(foreign.str() == plain.str());
  CHECK(plain.str().find("1234.567890123") != std::string::npos);
}

TEST_CASE("a percentage is rounded to the nearest") {
  steptimer::StepRecord record;
  record.batch_time = 1ns;
  record.data_time = 2ns;
  CHECK(row_of(record).find(",66.666667,") != std::string::npos);
}
