#include <steptimer/step_distribution.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <steptimer/step_timer_options.hpp>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::DurationDistribution;
using steptimer::merge;
using steptimer::StepDistribution;
using steptimer::StepRecord;

static_assert(std::is_trivially_copyable_v<StepDistribution> && std::is_standard_layout_v<StepDistribution>);
static_assert(!std::is_copy_constructible_v<StepDistribution>, "as on_record it would fill a copy");

namespace {

StepRecord record_of(std::uint64_t step, nanoseconds batch, std::optional<nanoseconds> data) {
  StepRecord record;
  record.step = step;
  record.batch_time = batch;
  record.data_time = data;
  if (data) record.wall_gap = batch + *data;
  return record;
}

DurationDistribution distribution_of(const std::vector<std::int64_t>& values) {
  DurationDistribution distribution;
  std::uint64_t step = 0;
  for (const std::int64_t value : values) distribution.add(nanoseconds{value}, step++);
  return distribution;
}

/// The value at place ceil(thousandths * n / 1000), in whole numbers.
std::int64_t exact_quantile(const std::vector<std::int64_t>& sorted, std::size_t thousandths) {
  const std::size_t rank = (thousandths * sorted.size() + 999) / 1000;
  return sorted[rank == 0 ? 0 : rank - 1];
}

/// How far off a quantile may be: half a bucket, a 128th of the value and what rounding to whole nanoseconds leaves.
bool within_stated_error(std::int64_t found, std::int64_t exact) {
  if (exact < 128) return found == exact;
  return std::abs(static_cast<double>(found) - static_cast<double>(exact)) <= static_cast<double>(exact) / 128;
}

bool same_bytes(const StepDistribution& a, const StepDistribution& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

TEST_CASE("an empty distribution claims nothing") {
  const StepDistribution empty;
  for (const DurationDistribution* times : {&empty.batch_time, &empty.data_time}) {
    CHECK(times->count() == 0);
    CHECK_FALSE(times->shortest().has_value());
    CHECK_FALSE(times->longest().has_value());
    CHECK_FALSE(times->longest_step().has_value());
    CHECK_FALSE(times->p50().has_value());
    CHECK_FALSE(times->p95().has_value());
    CHECK_FALSE(times->p99().has_value());
  }
}

TEST_CASE("quantiles are those of the nearest rank") {
  DurationDistribution times;
  for (std::int64_t i = 1; i <= 100; ++i) times.add(nanoseconds{i}, 0);  // exact below 128 ns
  for (int percent = 1; percent <= 100; ++percent) {
    INFO(percent);
    CHECK(times.quantile(percent / 100.0) == nanoseconds{percent});
  }
  CHECK(times.quantile(0.0) == nanoseconds{1});
  CHECK(times.quantile(1e-300) == nanoseconds{1});
  CHECK(times.quantile(0.501) == nanoseconds{51});
  CHECK(times.p50() == nanoseconds{50});
  CHECK(times.p95() == nanoseconds{95});
  CHECK(times.p99() == nanoseconds{99});
}

TEST_CASE("no quantile is made up for what is no share") {
  const DurationDistribution times = distribution_of({1, 2, 3});
  CHECK_FALSE(times.quantile(-0.01).has_value());
  CHECK_FALSE(times.quantile(1.01).has_value());
  CHECK_FALSE(times.quantile(std::numeric_limits<double>::quiet_NaN()).has_value());
  CHECK_FALSE(times.quantile(std::numeric_limits<double>::infinity()).has_value());
}

TEST_CASE("one duration is every quantile, exactly") {
  const auto value = GENERATE(std::int64_t{0}, 1, 127, 128, 129, 123456789, (std::numeric_limits<std::int64_t>::max)());
  const DurationDistribution times = distribution_of({value});
  for (const double p : {0.0, 0.01, 0.5, 0.99, 1.0}) CHECK(times.quantile(p) == nanoseconds{value});
}

TEST_CASE("two durations: the shortest and the longest are exact") {
  const DurationDistribution times = distribution_of({1000001, 3000007});
  CHECK(times.quantile(0.5) == nanoseconds{1000001});
  CHECK(times.quantile(0.51) == nanoseconds{3000007});
}

TEST_CASE("the longest is exact, however many there are") {
  DurationDistribution times = distribution_of({1000001});
  for (int power = 0; power < 53; ++power) times.add(DurationDistribution(times));
  times.add(3000007ns, 1);
  CHECK(times.count() == (std::uint64_t{1} << 53) + 1);  // no double is equal to it
  CHECK(times.quantile(1.0) == 3000007ns);
}

TEST_CASE("every bucket's edges are within the stated error", "[property]") {
  // Each value stands between two far ones, so that neither is the shortest or the longest.
  constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();
  const auto check = [](std::int64_t value) {
    const DurationDistribution times = distribution_of({0, value, most});
    const auto found = times.quantile(0.5);
    REQUIRE(found.has_value());
    INFO(value << " was found as " << found->count());
    REQUIRE(within_stated_error(found->count(), value));
  };
  for (std::int64_t value = 0; value < 1100; ++value) check(value);
  for (int power = 10; power < 63; ++power) {
    const std::int64_t octave = std::int64_t{1} << power;
    for (const std::int64_t part : {0, 1, 31, 63}) {
      const std::int64_t edge = octave + part * (octave / 64);
      for (const std::int64_t beside : {-1, 0, 1}) check(edge + beside);
    }
  }
  check(most - 1);
}

TEST_CASE("quantiles of many distributions are within the stated error of the exact ones", "[property]") {
  std::mt19937_64 random(11);
  const auto uniform = [&] { return std::uniform_real_distribution<double>(1e-12, 1.0)(random); };
  const std::vector<std::pair<std::string, std::function<double()>>> kinds = {
      {"uniform", [&] { return 1e6 * uniform(); }},
      {"exponential", [&] { return -2e5 * std::log(uniform()); }},
      {"lognormal", [&] { return std::lognormal_distribution<double>(15.0, 1.5)(random); }},
      {"heavy tail", [&] { return 1e3 * std::pow(uniform(), -2.0); }},
      {"two groups", [&] { return uniform() < 0.96 ? 1.9e5 + 1e4 * uniform() : 4e9 + 1e9 * uniform(); }},
      {"mostly zero", [&] { return uniform() < 0.9 ? 0.0 : 1e7 * uniform(); }},
      {"all the same", [] { return 1000007.0; }},
      {"every scale", [&] { return std::pow(2.0, 62.9 * uniform()); }},
      {"huge", [&] { return 9.2e18 * uniform(); }},
  };
  for (const auto& [name, draw] : kinds) {
    for (const std::size_t size : {3u, 10u, 997u, 20000u}) {
      std::vector<std::int64_t> values;
      for (std::size_t i = 0; i < size; ++i) values.push_back(static_cast<std::int64_t>((std::min)(draw(), 9.2e18)));
      const DurationDistribution times = distribution_of(values);
      std::sort(values.begin(), values.end());
      for (const std::size_t thousandths : {0u, 1u, 10u, 250u, 500u, 900u, 950u, 990u, 999u, 1000u}) {
        const std::int64_t exact = exact_quantile(values, thousandths);
        const auto found = times.quantile(static_cast<double>(thousandths) / 1000.0);
        INFO(name << ", " << size << " values, quantile " << thousandths << "/1000: " << exact);
        REQUIRE(found.has_value());
        REQUIRE(within_stated_error(found->count(), exact));
      }
      CHECK(times.shortest() == nanoseconds{values.front()});
      CHECK(times.longest() == nanoseconds{values.back()});
    }
  }
}

TEST_CASE("nothing is counted out of existence: quantiles never leave shortest and longest") {
  const DurationDistribution times = distribution_of({1048576 + 16000, 1048576 + 16001, 1048576 + 16002});
  CHECK(times.p50() >= times.shortest());
  CHECK(times.p50() <= times.longest());
}

TEST_CASE("a duration below zero counts as zero") {
  const DurationDistribution times = distribution_of({-5, -5, 7});
  CHECK(times.shortest() == 0ns);
  CHECK(times.p50() == 0ns);
  CHECK(times.longest() == 7ns);
}

TEST_CASE("a record adds its batch time, its data time where it has one, and nothing in the warm-up") {
  StepDistribution distribution;
  StepRecord warmup = record_of(0, 900s, 900s);
  warmup.warmup = true;
  distribution.add(warmup);
  distribution(record_of(1, 90ns, 10ns));
  distribution(record_of(2, 80ns, std::nullopt));
  distribution(record_of(3, 70ns, 0ns));
  CHECK(distribution.batch_time.count() == 3);
  CHECK(distribution.data_time.count() == 2);
  CHECK(distribution.batch_time.p50() == 80ns);
  CHECK(distribution.data_time.p50() == 0ns);
  CHECK(distribution.batch_time.longest() == 90ns);
  CHECK(distribution.data_time.longest() == 10ns);
}

TEST_CASE("the worst step is named, the earliest of equals") {
  StepDistribution distribution;
  distribution.add(record_of(4, 20ms, 5ms));
  distribution.add(record_of(6, 30ms, 1ms));
  distribution.add(record_of(5, 30ms, 5ms));
  CHECK(distribution.batch_time.longest_step() == 5u);
  CHECK(distribution.data_time.longest_step() == 4u);
}

TEST_CASE("a reference to a distribution serves as on_record") {
  StepDistribution distribution;
  steptimer::StepTimerOptions options;
  options.on_record = std::ref(distribution);
  options.on_record(record_of(7, 1ms, 2ms));
  CHECK(distribution.batch_time.longest_step() == 7u);
}

TEST_CASE("merged distributions are, bit by bit, the one of all their records", "[property]") {
  std::mt19937_64 random(3);
  const auto draw = [&] {
    const nanoseconds batch{static_cast<std::int64_t>(random() % 4) << (random() % 61)};
    const std::optional<nanoseconds> data{nanoseconds{static_cast<std::int64_t>(random() % 3)}};
    return record_of(random() % 9, batch, random() % 3 == 0 ? std::nullopt : data);
  };
  for (int round = 0; round < 200; ++round) {
    StepDistribution whole;
    StepDistribution parts[3];
    const std::uint64_t size = random() % 20;
    for (std::uint64_t i = 0; i < size; ++i) {
      const StepRecord record = draw();
      whole.add(record);
      parts[random() % 3].add(record);
    }
    const auto& [a, b, c] = parts;
    REQUIRE(same_bytes(merge(merge(a, b), c), whole));
    REQUIRE(same_bytes(merge(a, merge(b, c)), whole));
    REQUIRE(same_bytes(merge(merge(c, a), b), whole));
    REQUIRE(same_bytes(merge(b, a), merge(a, b)));
    REQUIRE(same_bytes(merge(whole, StepDistribution{}), whole));
    REQUIRE(same_bytes(merge(StepDistribution{}, whole), whole));
  }
}

TEST_CASE("a distribution survives being sent as bytes") {
  StepDistribution sent;
  for (std::uint64_t i = 0; i < 1000; ++i) sent.add(record_of(i, nanoseconds{i * i * 997}, nanoseconds{i}));
  std::vector<unsigned char> bytes(sizeof sent);
  std::memcpy(bytes.data(), &sent, sizeof sent);
  StepDistribution received;
  std::memcpy(&received, bytes.data(), sizeof received);
  CHECK(received.batch_time.p99() == sent.batch_time.p99());
  CHECK(received.data_time.longest_step() == 999u);
}
