// The arithmetic that the accuracy benchmark judges by, on times that add up exactly.
#include "bench/support/device_truth.hpp"

#include <cmath>
#include <initializer_list>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using bench::Activity;
using bench::BusyTimes;
using bench::DeviceTrace;
using bench::DeviceTruth;
using bench::StepsOnDevice;

namespace {

constexpr std::uint32_t stream = 7;
constexpr std::uint32_t copy_stream = 8;

/// Three steps: calls 10 to 20, 30 to 40 and 50 to 60.
DeviceTrace three_steps(std::initializer_list<Activity> activities) {
  return {{{10, 1ms}, {20, 2ms}, {30, 3ms}, {40, 4ms}, {50, 5ms}, {60, 6ms}}, activities, 0};
}

DeviceTruth truth_of(const StepsOnDevice& device) {
  const BusyTimes others(device.outside);
  DeviceTruth truth;
  for (std::size_t n = 0; n + 1 < device.steps.size(); ++n) truth.add(device.steps[n], device.steps[n + 1], others);
  return truth;
}

}  // namespace

TEST_CASE("the device waited from the last end of a step's work to the first start of the next") {
  const StepsOnDevice device = bench::steps_of(three_steps({
      {100ms, 140ms, 11, stream, true},
      {140ms, 190ms, 12, stream, true},
      {200ms, 290ms, 31, stream, true},
      {300ms, 400ms, 51, stream, true},
  }));
  REQUIRE(device.steps.size() == 3);
  CHECK(device.steps[0].activities == 2);
  CHECK(device.steps[0].first_start == 100ms);
  CHECK(device.steps[0].last_end == 190ms);
  CHECK(device.outside.empty());
  const DeviceTruth truth = truth_of(device);
  CHECK(truth.gap == 20ms);
  CHECK(truth.cycle == 200ms);
  CHECK(truth.percent() == 10.0);
  CHECK(truth.outside_percent() == 0.0);
  CHECK(truth.cycle_ms() == 100.0);
}

TEST_CASE("records of the device come in any order, and a step's work may run side by side") {
  const StepsOnDevice device = bench::steps_of(three_steps({
      {300ms, 310ms, 51, stream, true},
      {205ms, 240ms, 32, copy_stream, true},
      {200ms, 230ms, 31, stream, true},
      {150ms, 160ms, 12, copy_stream, true},
      {100ms, 190ms, 11, stream, true},
  }));
  CHECK(device.steps[0].last_end == 190ms);
  CHECK(device.steps[0].stream == stream);
  CHECK(device.steps[1].last_end == 240ms);
  CHECK(truth_of(device).gap == 10ms + 60ms);
}

TEST_CASE("work of two steps that overlaps leaves no gap") {
  const StepsOnDevice device = bench::steps_of(three_steps({
      {100ms, 210ms, 11, stream, true},
      {200ms, 290ms, 31, copy_stream, true},
      {300ms, 310ms, 51, stream, true},
  }));
  CHECK(truth_of(device).gap == 10ms);
}

TEST_CASE("what is queued at a mark's own call or between two steps belongs to no step") {
  const StepsOnDevice device = bench::steps_of(three_steps({
      {100ms, 180ms, 11, stream, true},
      {180ms, 184ms, 25, stream, false},
      {182ms, 186ms, 24, copy_stream, false},
      {150ms, 160ms, 9, copy_stream, false},
      {195ms, 205ms, 26, copy_stream, false},
      {200ms, 300ms, 39, stream, true},
      {300ms, 310ms, 51, stream, true},
      {320ms, 330ms, 61, stream, true},
  }));
  CHECK(device.outside.size() == 5);
  const DeviceTruth truth = truth_of(device);
  CHECK(truth.gap == 20ms);
  CHECK(truth.outside == 6ms + 5ms);  // the two copies overlap, the third one ends after the gap
  CHECK(truth.outside_percent() == 5.5);
}

TEST_CASE("busy times count once, and only within the span asked for") {
  const BusyTimes times({{10ms, 20ms}, {15ms, 17ms}, {20ms, 30ms}, {50ms, 60ms}});
  CHECK(times.within(0ms, 100ms) == 30ms);
  CHECK(times.within(12ms, 55ms) == 23ms);
  CHECK(times.within(30ms, 50ms) == 0ms);
  CHECK(times.within(60ms, 70ms) == 0ms);
  CHECK(times.within(55ms, 55ms) == 0ms);
  CHECK(times.within(55ms, 40ms) == 0ms);
}

TEST_CASE("kernels on the step's stream between two steps are told from a loader's copies") {
  const auto with = [](Activity other) {
    return bench::steps_of(three_steps(
        {{100ms, 190ms, 11, stream, true}, {200ms, 290ms, 31, stream, true}, {300ms, 310ms, 51, stream, true}, other}));
  };
  CHECK(bench::other_kernels_between(with({191ms, 192ms, 25, stream, true}), 0));
  CHECK_FALSE(bench::other_kernels_between(with({191ms, 192ms, 25, stream, true}), 1));
  CHECK_FALSE(bench::other_kernels_between(with({191ms, 192ms, 25, copy_stream, true}), 0));
  CHECK_FALSE(bench::other_kernels_between(with({191ms, 192ms, 25, stream, false}), 0));
  CHECK_FALSE(bench::other_kernels_between(with({311ms, 312ms, 61, stream, true}), 1));
}

TEST_CASE("other kernels are found in whatever order the device reports them") {
  const StepsOnDevice device = bench::steps_of(three_steps({
      {320ms, 330ms, 61, stream, true},
      {293ms, 294ms, 45, stream, true},
      {195ms, 196ms, 29, copy_stream, false},
      {191ms, 192ms, 21, copy_stream, false},
      {50ms, 60ms, 9, stream, true},
      {300ms, 310ms, 51, stream, true},
      {200ms, 290ms, 31, stream, true},
      {100ms, 190ms, 11, stream, true},
  }));
  CHECK_FALSE(bench::other_kernels_between(device, 0));
  CHECK(bench::other_kernels_between(device, 1));
}

TEST_CASE("a trace that cannot be trusted is refused") {
  DeviceTrace trace = three_steps({});
  trace.dropped = 1;
  CHECK_THROWS_AS(bench::steps_of(trace), bench::WitnessError);
  trace = three_steps({});
  trace.marks.pop_back();
  CHECK_THROWS_AS(bench::steps_of(trace), bench::WitnessError);
  trace = three_steps({});
  trace.marks[2].call = 15;
  CHECK_THROWS_AS(bench::steps_of(trace), bench::WitnessError);
  CHECK_THROWS_AS(bench::steps_of(three_steps({{0ms, 190ms, 11, stream, true}})), bench::WitnessError);
  CHECK_THROWS_AS(bench::steps_of(three_steps({{100ms, 0ms, 11, stream, true}})), bench::WitnessError);
  const StepsOnDevice device = bench::steps_of(three_steps({{100ms, 190ms, 11, stream, true}}));
  CHECK_THROWS_AS(truth_of(device), bench::WitnessError);
}

TEST_CASE("without a gap the truth is not a number") {
  CHECK(std::isnan(DeviceTruth{}.percent()));
  CHECK(std::isnan(DeviceTruth{}.cycle_ms()));
}
