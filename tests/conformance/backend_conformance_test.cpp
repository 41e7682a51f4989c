// What every Backend owes its users, as one body of tests over all of them.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>

#include "fake_cuda/fake_cuda.hpp"
#include "support/catch.hpp"
#include "support/counts.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::StepCounts;
using steptimer::StepRecord;
using steptimer::StepTimer;
using steptimer::StepTimerOptions;
using steptimer::TimerState;

namespace {

/// How a test makes a backend of each kind busy. Times are lower bounds where the clock is real.
struct Cpu {
  static constexpr bool measures = true;
  static constexpr bool exact = false;
  using Backend = steptimer::CpuBackend;
  Backend backend() { return {}; }
  static void spend(nanoseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) {
    }
  }
  void work(nanoseconds time) { spend(time); }
  void wait(nanoseconds time) { spend(time); }
};

struct Manual {
  static constexpr bool measures = true;
  static constexpr bool exact = true;
  using Backend = steptimer::ManualBackend;
  Backend timeline;
  Backend backend() { return timeline; }
  void work(nanoseconds time) { timeline.launch(time); }
  void wait(nanoseconds time) {
    timeline.synchronize();
    timeline.advance(time);
  }
};

struct Cuda {
  static constexpr bool measures = true;
  static constexpr bool exact = true;
  using Backend = steptimer::CudaBackend;
  Cuda() {
    fake_cuda::reset(1);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  }
  cudaStream_t stream = nullptr;
  Backend backend() { return stream; }
  void work(nanoseconds time) { fake_cuda::work(stream, time); }
  void wait(nanoseconds time) {
    fake_cuda::finish_all();
    fake_cuda::advance(time);
  }
};

struct Null {
  static constexpr bool measures = false;
  static constexpr bool exact = true;
  using Backend = steptimer::NullBackend;
  Backend backend() { return {}; }
  void work(nanoseconds) {}
  void wait(nanoseconds) {}
};

template <class Device>
using TimerOf = StepTimer<typename Device::Backend>;

/// One step of 2 ms, and 1 ms until whatever comes next.
template <class Device>
void step(TimerOf<Device>& timer, Device& device) {
  timer.on_batch_start();
  device.work(2ms);
  timer.on_batch_end(8);
  device.wait(1ms);
}

/// Exactly that long where time is the test's own, at least that long where it is real.
template <class Device>
bool lasted(nanoseconds time, nanoseconds expected) {
  return Device::exact ? time == expected : time >= expected;
}

/// What counts say where nothing is measured: nothing.
template <class Device>
StepCounts expect(StepCounts counts) {
  return Device::measures ? counts : StepCounts{};
}

StepCounts counts_of(std::uint64_t started, std::uint64_t measured) {
  StepCounts counts;
  counts.started = started;
  counts.measured = measured;
  return counts;
}

}  // namespace

TEMPLATE_TEST_CASE("steps become records in order, with their times", "", Cpu, Manual, Cuda, Null) {
  TestType device;
  std::vector<StepRecord> records;
  StepTimerOptions options;
  options.on_record = [&](const StepRecord& record) { records.push_back(record); };
  TimerOf<TestType> timer(device.backend(), options);
  for (int i = 0; i < 3; ++i) step(timer, device);
  CHECK(timer.finish());

  CHECK(timer.counts() == expect<TestType>(counts_of(3, 3)));
  CHECK(records.size() == timer.counts().measured);
  CHECK(timer.total().steps == timer.counts().measured);
  CHECK(timer.status().state == (TestType::measures ? TimerState::ok : TimerState::disabled));
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i].step == i);
    CHECK(records[i].items == 8);
    CHECK(lasted<TestType>(records[i].batch_time, 2ms));
    CHECK(records[i].data_time.has_value() == (i < 2));
    if (i < 2) {
      CHECK(lasted<TestType>(*records[i].data_time, 1ms));
      CHECK(*records[i].wall_gap == records[i].batch_time + *records[i].data_time);
    }
  }
}

TEMPLATE_TEST_CASE("after finish nothing is pending and the timer goes on", "", Cpu, Manual, Cuda, Null) {
  TestType device;
  TimerOf<TestType> timer(device.backend());
  for (int round = 1; round <= 3; ++round) {
    step(timer, device);
    CHECK(timer.finish(1s));
    const auto rounds = static_cast<std::uint64_t>(round);
    CHECK(timer.counts() == expect<TestType>(counts_of(rounds, rounds)));
    CHECK(timer.total().gaps == 0);
  }
}

TEMPLATE_TEST_CASE("misuse has the same outcome everywhere", "", Cpu, Manual, Cuda, Null) {
  TestType device;
  int warnings = 0;
  StepTimerOptions options;
  options.on_warning = [&](std::string_view) { ++warnings; };
  TimerOf<TestType> timer(device.backend(), options);
  timer.on_batch_start();
  timer.on_batch_start();
  for (int i = 0; i < 3; ++i) timer.on_batch_end();
  timer.pause();
  timer.on_batch_start();
  timer.pause();
  timer.on_batch_end();
  device.wait(1ms);
  CHECK(timer.finish());
  StepCounts counts = counts_of(3, 2);
  counts.dropped = 1;
  counts.ignored_ends = 2;
  CHECK(timer.counts() == expect<TestType>(counts));
  CHECK(warnings == (TestType::measures ? 2 : 0));
}

TEMPLATE_TEST_CASE("a timer can be released, reset, moved, and used after each", "", Cpu, Manual, Cuda, Null) {
  TestType device;
  TimerOf<TestType> timer(device.backend());
  step(timer, device);
  step(timer, device);
  timer.release();
  step(timer, device);
  CHECK(timer.finish());
  CHECK(timer.counts() == expect<TestType>(counts_of(3, 3)));

  step(timer, device);
  timer.reset();
  CHECK(timer.counts() == StepCounts{});
  step(timer, device);
  TimerOf<TestType> moved = std::move(timer);
  step(moved, device);
  CHECK(moved.finish());
  CHECK(moved.counts() == expect<TestType>(counts_of(2, 2)));
  timer = std::move(moved);
  CHECK(timer.total().steps == (TestType::measures ? 2u : 0u));
}

TEMPLATE_TEST_CASE("a timer that is off calls nobody and counts nothing", "", Cpu, Manual, Cuda, Null) {
  TestType device;
  StepTimerOptions options;
  options.enabled = false;
  int calls = 0;
  options.on_record = [&](const StepRecord&) { ++calls; };
  TimerOf<TestType> timer(device.backend(), options);
  for (int i = 0; i < 3; ++i) step(timer, device);
  CHECK(timer.finish());
  CHECK(timer.counts() == StepCounts{});
  CHECK(timer.status().state == TimerState::disabled);
  CHECK(calls == 0);
}
