#include <steptimer/step_window.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::ExactDurations;
using steptimer::StepRecord;
using steptimer::StepWindow;

static_assert(!std::is_copy_constructible_v<StepWindow>, "as on_record it would fill a copy");

namespace {
StepRecord record_of(std::uint64_t step, nanoseconds batch, std::optional<nanoseconds> data = std::nullopt) {
  StepRecord record;
  record.step = step;
  record.batch_time = batch;
  record.data_time = data;
  if (data) record.wall_gap = batch + *data;
  return record;
}
}  // namespace

TEST_CASE("an empty window claims nothing") {
  StepWindow window(5);
  const ExactDurations times = window.batch_time();
  CHECK(times.count() == 0);
  CHECK_FALSE(times.p50().has_value());
  CHECK_FALSE(times.shortest().has_value());
  CHECK_FALSE(times.longest().has_value());
  CHECK_FALSE(times.longest_step().has_value());
  window.add(record_of(0, 1ms));
  CHECK(window.batch_time().count() == 1);
  CHECK(window.data_time().count() == 0);
}

TEST_CASE("a window of no steps stays empty") {
  StepWindow window(0);
  window.add(record_of(0, 1ms));
  CHECK(window.batch_time().count() == 0);
}

TEST_CASE("a window keeps the last steps and no warm-up") {
  StepWindow window(3);
  StepRecord warmup = record_of(0, 900s, 900s);
  warmup.warmup = true;
  window.add(warmup);
  CHECK(window.batch_time().count() == 0);
  for (std::uint64_t step = 1; step <= 5; ++step) window(record_of(step, 10ms - step * 1ms, step * 1ms));
  const ExactDurations batch = window.batch_time();
  CHECK(batch.count() == 3);
  CHECK(batch.longest() == 7ms);
  CHECK(batch.longest_step() == 3u);
  CHECK(batch.shortest() == 5ms);
  CHECK(window.data_time().longest_step() == 5u);
}

TEST_CASE("the quantiles of a window are exact") {
  std::mt19937_64 random(5);
  for (const std::size_t size : {1u, 2u, 7u, 100u, 1000u}) {
    StepWindow window(size);
    std::vector<std::int64_t> values;
    for (std::uint64_t step = 0; step < 3 * size; ++step) {
      const auto batch = static_cast<std::int64_t>(random() >> (1 + random() % 62));
      window.add(record_of(step, nanoseconds{batch}));
      if (step >= 2 * size) values.push_back(batch);
    }
    std::sort(values.begin(), values.end());
    const ExactDurations times = window.batch_time();
    for (std::size_t percent = 1; percent <= 100; ++percent) {
      const std::size_t rank = (percent * size + 99) / 100;
      INFO(size << " steps, " << percent << " %");
      REQUIRE(times.quantile(static_cast<double>(percent) / 100) == nanoseconds{values[rank - 1]});
    }
  }
}

TEST_CASE("the worst step of a window is the earliest of equals") {
  StepWindow window(4);
  for (const std::uint64_t step : {8u, 9u, 10u}) window.add(record_of(step, step == 8 ? 1ms : 2ms));
  CHECK(window.batch_time().longest_step() == 9u);
}

TEST_CASE("a window asked for no share answers nothing") {
  StepWindow window(1);
  window.add(record_of(0, 1ms));
  CHECK_FALSE(window.batch_time().quantile(1.5).has_value());
  CHECK_FALSE(window.batch_time().quantile(-0.5).has_value());
}

TEST_CASE("a reference to a window serves as on_record") {
  StepWindow window(2);
  const std::function<void(const StepRecord&)> on_record = std::ref(window);
  on_record(record_of(1, 3ms));
  CHECK(window.batch_time().p99() == 3ms);
}
