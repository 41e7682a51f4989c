#include <steptimer/format.hpp>

#include <chrono>
#include <string>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using steptimer::StepRecord;
using steptimer::StepSummary;

namespace {
StepRecord record_of(std::chrono::nanoseconds batch, std::chrono::nanoseconds data) {
  StepRecord record;
  record.step = 41;
  record.batch_time = batch;
  record.data_time = data;
  record.wall_gap = batch + data;
  return record;
}
}  // namespace

TEST_CASE("a record reads as one line") {
  CHECK(fmt::format("{}", record_of(90ms, 10ms)) == "step 41 | data_wait 10.0 % | data 10.0 ms | batch 90.0 ms");
}

TEST_CASE("what is absent is n/a, and nothing reads nan or inf", "[case-13]") {
  CHECK(fmt::format("{}", StepRecord{}) == "step 0 | data_wait n/a | data n/a | batch 0 ns");
  CHECK(fmt::format("{}", StepSummary{}) == "data_wait n/a | data n/a | batch n/a | n/a steps/s | 0 steps");
  CHECK(fmt::format("{}", record_of(0ns, 0ns)) == "step 41 | data_wait n/a | data 0 ns | batch 0 ns");
  StepSummary of_no_length;
  for (int i = 0; i < 5; ++i) of_no_length = merge(of_no_length, steptimer::summary_of(record_of(0ns, 0ns)));
  CHECK(fmt::format("{}", of_no_length) == "data_wait n/a | data 0 ns | batch 0 ns | n/a steps/s | 5 steps");
}

TEST_CASE("a warm-up step says so") {
  StepRecord record = record_of(90ms, 10ms);
  record.warmup = true;
  CHECK(fmt::format("{}", record) == "step 41 | data_wait 10.0 % | data 10.0 ms | batch 90.0 ms | warm-up");
}

TEST_CASE("a summary reads as one line, with items where they were counted") {
  StepRecord record = record_of(90ms, 10ms);
  StepSummary summary = steptimer::summary_of(record);
  CHECK(fmt::format("{}", summary) == "data_wait 10.0 % | data 10.0 ms | batch 90.0 ms | 10.0 steps/s | 1 steps");
  record.items = 32;
  summary = merge(summary, steptimer::summary_of(record));
  CHECK(fmt::format("{}", summary) ==
        "data_wait 10.0 % | data 10.0 ms | batch 90.0 ms | 10.0 steps/s | 160.0 items/s | 2 steps");
}

TEST_CASE("units keep three digits readable from ns to s") {
  const auto batch = [](std::chrono::nanoseconds time) {
    StepRecord record;
    record.batch_time = time;
    const std::string line = fmt::format("{}", record);
    return line.substr(line.rfind("batch ") + 6);
  };
  CHECK(batch(7ns) == "7 ns");
  CHECK(batch(999ns) == "999 ns");
  CHECK(batch(1000ns) == "1.00 us");
  CHECK(batch(12345ns) == "12.3 us");
  CHECK(batch(123456ns) == "123 us");
  CHECK(batch(999499ns) == "999 us");
  CHECK(batch(999500ns) == "1.00 ms");
  CHECK(batch(1s) == "1.00 s");
  CHECK(batch(100h) == "360000 s");
}

TEST_CASE("width, fill and alignment are honoured") {
  const std::string line = fmt::format("{}", StepRecord{});
  CHECK(fmt::format("{:>60}", StepRecord{}) == std::string(60 - line.size(), ' ') + line);
  CHECK(fmt::format("{:*<60}", StepRecord{}) == line + std::string(60 - line.size(), '*'));
}
