#include <steptimer/step_summary.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::merge;
using steptimer::StepRecord;
using steptimer::StepSummary;
using steptimer::summary_of;

namespace {

StepRecord with_gap(std::uint64_t step, nanoseconds batch, nanoseconds wall) {
  StepRecord record;
  record.step = step;
  record.batch_time = batch;
  record.wall_gap = wall;
  record.data_time = wall > batch ? wall - batch : 0ns;
  record.host_batch_time = batch / 2;
  record.host_wall_gap = wall;
  record.items = 32;
  if (step % 4 != 0) record.device_drained = step % 2 == 0;
  if (step % 3 == 0) {
    record.fetch_time = wall;
    record.exposed_fetch = record.data_time;
  }
  return record;
}

StepRecord without_gap(std::uint64_t step, nanoseconds batch) {
  StepRecord record;
  record.step = step;
  record.batch_time = batch;
  record.items = 32;
  return record;
}

StepSummary sum(const std::vector<StepRecord>& records) {
  StepSummary summary;
  for (const StepRecord& record : records) summary = merge(summary, summary_of(record));
  return summary;
}

bool same(const StepSummary& a, const StepSummary& b) {
  return a.steps == b.steps && a.gaps == b.gaps && a.items == b.items && a.batch_total == b.batch_total &&
         a.data_total == b.data_total && a.wall_total == b.wall_total && a.batch_in_gaps == b.batch_in_gaps &&
         a.host_batch_in_gaps == b.host_batch_in_gaps && a.host_wall_total == b.host_wall_total &&
         a.batch_min == b.batch_min && a.batch_max == b.batch_max && a.data_min == b.data_min &&
         a.data_max == b.data_max && a.slowest_step == b.slowest_step && a.longest_wait_step == b.longest_wait_step &&
         a.items_in_gaps == b.items_in_gaps && a.device_steps == b.device_steps && a.drained_steps == b.drained_steps &&
         a.fetches == b.fetches && a.fetch_total == b.fetch_total && a.exposed_fetch_total == b.exposed_fetch_total;
}

}  // namespace

TEST_CASE("an empty summary claims nothing", "[case-11]") {
  const StepSummary empty;
  CHECK_FALSE(empty.batch_mean().has_value());
  CHECK_FALSE(empty.data_mean().has_value());
  CHECK_FALSE(empty.data_wait_percent().has_value());
  CHECK_FALSE(empty.host_data_wait_percent().has_value());
  CHECK_FALSE(empty.steps_per_second().has_value());
  CHECK_FALSE(empty.items_per_second().has_value());
}

TEST_CASE("data wait over many steps is the ratio of sums", "[case-07]") {
  // Two steps that became ready together: 20 of 50 ms and 60 of 70 ms. Not the last one's 14.3 %, not the
  // mean 37.1 %.
  const StepSummary both = sum({with_gap(0, 20ms, 50ms), with_gap(1, 60ms, 70ms)});
  CHECK(both.batch_mean() == nanoseconds(40ms));
  CHECK(both.data_mean() == nanoseconds(20ms));
  CHECK(both.data_wait_percent() == Approx(100.0 * 40 / 120));
}

TEST_CASE("a step without a gap adds its batch time and nothing to the share") {
  const StepSummary summary = sum({with_gap(0, 90ms, 100ms), without_gap(1, 5000ms)});
  CHECK(summary.steps == 2);
  CHECK(summary.gaps == 1);
  CHECK(summary.batch_total == nanoseconds(5090ms));
  CHECK(summary.batch_in_gaps == nanoseconds(90ms));
  CHECK(summary.data_wait_percent() == 10.0);
  CHECK(summary.host_data_wait_percent() == 55.0);
}

TEST_CASE("rates count the steps and items whose whole cycle is known") {
  const StepSummary summary = sum({with_gap(0, 90ms, 100ms), with_gap(1, 90ms, 100ms), without_gap(2, 90ms)});
  CHECK(summary.items == 96);
  CHECK(summary.steps_per_second() == Approx(10.0));
  CHECK(summary.items_per_second() == Approx(320.0));
}

TEST_CASE("extremes carry the step they belong to, the earliest of equals") {
  const StepSummary summary = sum({with_gap(4, 20ms, 25ms), with_gap(5, 30ms, 35ms), with_gap(6, 30ms, 31ms)});
  CHECK(summary.batch_min == nanoseconds(20ms));
  CHECK(summary.batch_max == nanoseconds(30ms));
  CHECK(summary.slowest_step == 5);
  CHECK(summary.data_min == nanoseconds(1ms));
  CHECK(summary.data_max == nanoseconds(5ms));
  CHECK(summary.longest_wait_step == 4);
}

TEST_CASE("merge gives the same in any order and grouping") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<StepRecord> records;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const nanoseconds batch{static_cast<std::int64_t>(random() % 4)};
      const nanoseconds wall{static_cast<std::int64_t>(random() % 6)};
      records.push_back(random() % 3 == 0 ? without_gap(random() % 20, batch) : with_gap(random() % 20, batch, wall));
    }
    const StepSummary expected = sum(records);
    std::shuffle(records.begin(), records.end(), random);
    const auto cut = static_cast<std::ptrdiff_t>(random() % 13);
    const StepSummary left = sum({records.begin(), records.begin() + cut});
    const StepSummary right = sum({records.begin() + cut, records.end()});
    REQUIRE(same(merge(left, right), expected));
    REQUIRE(same(merge(right, left), expected));
  }
}

TEST_CASE("an empty summary is neutral in merge") {
  const StepSummary summary = sum({with_gap(3, 20ms, 25ms)});
  CHECK(same(merge(summary, {}), summary));
  CHECK(same(merge({}, summary), summary));
  CHECK(same(merge(StepSummary{}, StepSummary{}), {}));
}

TEST_CASE("20 million steps of 1 ms are exactly 20,000 s", "[case-40]") {
  const StepSummary one = summary_of(with_gap(0, 1ms, 1ms));
  StepSummary summary;
  for (int i = 0; i < 20000000; ++i) summary = merge(summary, one);
  CHECK(summary.steps == 20000000);
  CHECK(summary.batch_total == nanoseconds(20000s));
  CHECK(summary.wall_total == nanoseconds(20000s));
}

TEST_CASE("no sum over 20 million steps loses a nanosecond, added one by one or merged from parts", "[case-40]") {
  constexpr std::int64_t steps = 20000000;
  const bool by_halves = GENERATE(false, true);
  StepRecord record = with_gap(0, 1ms, 3ms + 7ns);
  record.host_batch_time = 1ns;
  StepSummary parts[2];
  for (std::int64_t i = 0; i < steps; ++i) {
    record.step = static_cast<std::uint64_t>(i);
    steptimer::detail::add_record(parts[by_halves && i % 2 == 1 ? 1 : 0], record);
  }
  const StepSummary summary = merge(parts[1], parts[0]);
  CHECK(summary.steps == steps);
  CHECK(summary.gaps == steps);
  CHECK(summary.items == 32 * steps);
  CHECK(summary.batch_total == nanoseconds(20000s));
  CHECK(summary.batch_in_gaps == nanoseconds(20000s));
  CHECK(summary.data_total == nanoseconds(40000s) + 7ns * steps);
  CHECK(summary.wall_total == nanoseconds(60000s) + 7ns * steps);
  CHECK(summary.host_batch_in_gaps == 1ns * steps);
  CHECK(summary.host_wall_total == nanoseconds(60000s) + 7ns * steps);
  CHECK(summary.batch_mean() == nanoseconds(1ms));
  CHECK(summary.data_mean() == nanoseconds(2ms + 7ns));
  CHECK(summary.slowest_step == 0);
  CHECK(summary.data_wait_percent() == Approx(100.0 * 2000007 / 3000007).epsilon(1e-12));
}

TEST_CASE("sums beyond 292 years stay at the largest value", "[case-40]") {
  const nanoseconds most = (nanoseconds::max)();
  const StepSummary huge = summary_of(with_gap(0, most, most));
  const StepSummary both = merge(huge, huge);
  CHECK(both.batch_total == most);
  CHECK(both.wall_total == most);
  CHECK(both.data_wait_percent() == 0.0);
}

TEST_CASE("a summary survives being sent as bytes") {
  const StepSummary sent = sum({with_gap(0, 90ms, 100ms), without_gap(1, 90ms)});
  unsigned char bytes[sizeof(StepSummary)];
  std::memcpy(bytes, &sent, sizeof sent);
  StepSummary received;
  std::memcpy(&received, bytes, sizeof received);
  CHECK(same(received, sent));
}

TEST_CASE("items per second of a summary made by hand, in which every step has a gap") {
  StepSummary summary;
  summary.steps = summary.gaps = 10;
  summary.items = 320;
  summary.wall_total = 1s;
  CHECK(summary.items_per_second() == 320.0);
}

TEST_CASE("no share is above 100 percent, however long the run") {
  StepRecord record;
  record.wall_gap = record.data_time = nanoseconds{360292951651163};
  CHECK(record.data_wait_percent() == 100.0);
  record.batch_time = record.data_time.emplace((nanoseconds::max)());
  CHECK(record.data_wait_percent() <= 100.0);
}
