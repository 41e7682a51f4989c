#include <steptimer/diagnosis.hpp>
#include <steptimer/format.hpp>
#include <steptimer/job_summary.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using steptimer::StepCounts;
using steptimer::StepDistribution;
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

TEST_CASE("rates stay readable from steps of minutes to items by the billion") {
  const auto rates = [](std::chrono::nanoseconds cycle, std::uint64_t items) {
    StepRecord record = record_of(cycle, 0ns);
    record.items = items;
    const std::string line = fmt::format("{}", steptimer::summary_of(record));
    const std::size_t begin = line.find(" | ", line.find("batch ")) + 3;
    return line.substr(begin, line.rfind(" | ") - begin);
  };
  CHECK(rates(41s, 8) == "41.0 s/step | 5.1 s/item");
  CHECK(rates(5000s, 0) == "5000 s/step");
  CHECK(rates(1s, 1) == "1.0 steps/s | 1.0 items/s");
  CHECK(rates(1s, 999) == "1.0 steps/s | 999.0 items/s");
  CHECK(rates(2s, 1999) == "2.0 s/step | 999.5 items/s");
  CHECK(rates(1s, 3162) == "1.0 steps/s | 3162 items/s");
  CHECK(rates(1ms, 1000000) == "1000 steps/s | 1000000000 items/s");
  CHECK(rates(1ns, (std::numeric_limits<std::uint64_t>::max)()) == "1000000000 steps/s | 1.84e+28 items/s");
}

TEST_CASE("items of steps without a next start have no rate") {
  StepRecord with_gap = record_of(90ms, 10ms), without;
  without.items = 32;
  const StepSummary summary = merge(steptimer::summary_of(with_gap), steptimer::summary_of(without));
  CHECK(fmt::format("{}", summary).find("| 10.0 steps/s | 0.0 items/s |") != std::string::npos);
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
  CHECK(batch(9994ns) == "9.99 us");
  CHECK(batch(9996ns) == "10.0 us");
  CHECK(batch(12345ns) == "12.3 us");
  CHECK(batch(99940ns) == "99.9 us");
  CHECK(batch(99960ns) == "100 us");
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

TEST_CASE("an h adds what a host clock alone would have claimed") {
  StepRecord record = record_of(90ms, 10ms);
  record.host_batch_time = 5ms;
  record.host_wall_gap = 100ms;
  CHECK(fmt::format("{:h}", record) == "step 41 | data_wait 10.0 % (host clock 95.0 %) | data 10.0 ms | batch 90.0 ms");
  CHECK(fmt::format("{:h}", steptimer::summary_of(record)) ==
        "data_wait 10.0 % (host clock 95.0 %) | data 10.0 ms | batch 90.0 ms | 10.0 steps/s | 1 steps");
  CHECK(fmt::format("{:h}", StepRecord{}) == "step 0 | data_wait n/a (host clock n/a) | data n/a | batch 0 ns");
}

TEST_CASE("an h stands behind what fmt knows, and is a fill where fmt takes it for one") {
  const std::string plain = fmt::format("{}", StepRecord{});
  const std::string with_host = fmt::format("{:h}", StepRecord{});
  CHECK(fmt::format("[{:>100h}] {}", StepRecord{}, 7) ==
        "[" + std::string(100 - with_host.size(), ' ') + with_host + "] 7");
  CHECK(fmt::format("{:*^100h}", StepRecord{}).find(with_host) != std::string::npos);
  CHECK(fmt::format("{:h>100}", StepRecord{}) == std::string(100 - plain.size(), 'h') + plain);
  CHECK(fmt::format("{:h>100h}", StepRecord{}) == std::string(100 - with_host.size(), 'h') + with_host);
  CHECK(fmt::format("{0:>{1}}|{0:h}", StepRecord{}, 100) ==
        std::string(100 - plain.size(), ' ') + plain + "|" + with_host);
  CHECK(fmt::format("{:>{width}}", StepRecord{}, fmt::arg("width", 100)) ==
        std::string(100 - plain.size(), ' ') + plain);
}

TEST_CASE("a format that says nothing sensible is refused, as fmt refuses it") {
  for (const char* format : {"{:hh}", "{:xh}", "{:sxh}", "{:h{}}", "{:>{}h}", "{:h5}"}) {
    INFO(format);
    CHECK_THROWS_AS(fmt::format(fmt::runtime(format), StepRecord{}, 100), fmt::format_error);
  }
  CHECK_THROWS_AS(fmt::format(fmt::runtime("{:h}"), StepCounts{}), fmt::format_error);
  CHECK_THROWS_AS(fmt::format(fmt::runtime("{:h}"), StepDistribution{}), fmt::format_error);
}

TEST_CASE("counts read as the sum that they are, without what there is none of") {
  CHECK(fmt::format("{}", StepCounts{}) == "0 started = 0 measured");
  StepCounts counts;
  counts.started = 100;
  counts.measured = 97;
  counts.pending = 2;
  counts.stale = 1;
  counts.ignored_ends = 3;
  CHECK(fmt::format("{}", counts) == "100 started = 97 measured + 2 pending + 1 stale | 3 ignored ends");
  counts.ignored_marks = 4;
  CHECK(fmt::format("{}", counts) ==
        "100 started = 97 measured + 2 pending + 1 stale | 3 ignored ends | 4 ignored marks");
  counts = {21, 1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(fmt::format("{}", counts) ==
        "21 started = 1 measured + 2 pending + 3 not sampled + 4 stale + 5 dropped + 6 failed | 7 ignored ends | 8 "
        "clamped");
  CHECK(fmt::format("{:>30}", StepCounts{}) == std::string(8, ' ') + "0 started = 0 measured");
}

TEST_CASE("a distribution reads as quantiles and the worst step") {
  StepDistribution distribution;
  CHECK(fmt::format("{}", distribution) ==
        "batch p50 n/a, p95 n/a, p99 n/a, worst n/a | data p50 n/a, p95 n/a, p99 n/a, worst n/a | 0 steps");
  for (std::uint64_t step = 0; step < 100; ++step) {
    const bool slow = step % 50 == 41;
    StepRecord record = record_of(step == 41 ? 2s : slow ? 99ns : step % 10 == 0 ? 95ns : 90ns, step == 70 ? 1s : 10ns);
    record.step = step;
    distribution.add(record);
  }
  CHECK(fmt::format("{}", distribution) ==
        "batch p50 90 ns, p95 95 ns, p99 99 ns, worst 2.00 s in step 41 | data p50 10 ns, p95 10 ns, p99 10 ns, worst "
        "1.00 s after step 70 | 100 steps");
}

TEST_CASE("a diagnosis reads as its advice, with width and alignment") {
  const steptimer::Diagnosis none = diagnose(steptimer::StepSummary{});
  CHECK(fmt::format("{}", none) == none.advice);
  CHECK(fmt::format("{:>200}", none).size() == 200);
}

TEST_CASE("a job reads as one line: its wait, and whom all wait for") {
  steptimer::JobSteps job(4, 200);
  for (std::uint64_t step = 0; step < 100; ++step) {
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      steptimer::StepRecord record;
      record.step = step;
      record.data_time = rank == 2 ? 5ms : 0ms;
      record.wall_gap = 15ms;
      record.batch_time = *record.wall_gap - *record.data_time;
      if (step < 98 || rank != 1) job.add(rank, record);
    }
  }
  CHECK(
      fmt::format("{}", job.summary()) ==
      "job data_wait 33.3 % | stall 5.00 ms | cycle 15.0 ms | batch 10.0 ms to 15.0 ms | all wait for rank 2 in 98 of "
      "98 steps | 4 ranks | 98 steps | 2 left out");
  CHECK(fmt::format("{}", steptimer::JobSteps(1, 10).summary()) ==
        "job data_wait n/a | stall n/a | cycle n/a | batch n/a to n/a | no rank to blame | 1 rank | 0 steps");
  CHECK(fmt::format("{:>200}", job.summary()).size() == 200);
}
