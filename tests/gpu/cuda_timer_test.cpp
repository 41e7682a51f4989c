// What a CudaTimer measures and leaves alone: the same tests on the fake runtime, where times are exact, and on a GPU.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>

#include "support/catch.hpp"
#include "support/counts.hpp"
#include "support/device_work.hpp"
#include "support/recorded_steps.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::CudaTimer;
using steptimer::StepTimerOptions;
using steptimer::TimerState;

namespace {

/// A duration for the fake, where waiting is free, and one for a GPU, where it is not.
nanoseconds either(nanoseconds on_the_fake, nanoseconds on_a_device) {
  return device_work::exact() ? on_the_fake : on_a_device;
}

/// Exact on the fake. On a device work takes as long as asked for or longer.
void check_time(nanoseconds measured, nanoseconds expected) {
  if (device_work::exact())
    CHECK(measured.count() == expected.count());
  else
    CHECK(measured.count() >= (expected - 50us).count());
}

void check_time(std::optional<nanoseconds> measured, nanoseconds expected) {
  REQUIRE(measured.has_value());
  check_time(*measured, expected);
}

void run_step(CudaTimer& timer, cudaStream_t stream, nanoseconds work) {
  timer.on_batch_start();
  device_work::work(stream, work);
  timer.on_batch_end();
}

double percent(nanoseconds part, nanoseconds rest) {
  const double whole = static_cast<double>((part + rest).count());
  return whole > 0 ? 100.0 * static_cast<double>(part.count()) / whole : 0.0;
}

nanoseconds since(std::chrono::steady_clock::time_point start) { return std::chrono::steady_clock::now() - start; }

/// A graph captured on `stream`: two kernels, and what `inside` does between them.
struct Captured {
  cudaError_t begin = cudaErrorUnknown;
  cudaError_t end = cudaErrorUnknown;
  std::size_t nodes = 0;
  cudaGraph_t graph = nullptr;

  Captured(cudaStream_t stream, cudaStreamCaptureMode mode, const std::function<void()>& inside,
           nanoseconds work = 1us) {
    begin = cudaStreamBeginCapture(stream, mode);
    device_work::work(stream, work / 2);
    inside();
    device_work::work(stream, work - work / 2);
    end = cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphGetNodes(graph, nullptr, &nodes);
  }
  ~Captured() {
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  void check_as_without_timer() const {
    CHECK(begin == cudaSuccess);
    CHECK(end == cudaSuccess);
    CHECK(nodes == 2);
  }
};

/// Everything that can be done to a timer with steps in flight.
struct Entry {
  const char* name;
  std::function<void(std::unique_ptr<CudaTimer>&)> call;
};

std::vector<Entry> entries(cudaStream_t stream) {
  using Timer = std::unique_ptr<CudaTimer>;
  return {
      {"the hooks",
       [](Timer& t) {
         for (int i = 0; i < 3; ++i) {
           t->on_batch_start();
           t->on_batch_end();
         }
       }},
      {"a scope", [](Timer& t) { const auto scope = t->step(1); }},
      {"unbalanced hooks",
       [](Timer& t) {
         t->on_batch_start();
         t->on_batch_start();
         t->on_batch_end();
         t->on_batch_end();
       }},
      {"poll", [](Timer& t) { t->poll(); }},
      {"pause and poll",
       [](Timer& t) {
         t->pause();
         t->poll();
       }},
      {"finish without time", [](Timer& t) { t->finish(0ns); }},
      {"results",
       [](Timer& t) {
         t->last();
         t->window();
         t->total();
         t->counts();
         t->status();
       }},
      {"release", [](Timer& t) { t->release(); }},
      {"reset", [](Timer& t) { t->reset(); }},
      {"move construction", [](Timer& t) { t = std::make_unique<CudaTimer>(std::move(*t)); }},
      {"move assignment", [stream](Timer& t) { *t = CudaTimer{stream}; }},
      {"destruction", [](Timer& t) { t.reset(); }},
  };
}

long resident_kilobytes() {
  std::ifstream file("/proc/self/statm");
  long size = 0;
  long resident = 0;
  return file >> size >> resident ? resident * 4 : 0;
}

}  // namespace

// --- what is measured

TEST_CASE("work still queued when the end hook runs is batch time, not data wait", "[case-01]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};

  for (int i = 0; i < 2; ++i) {
    timer.on_batch_start();
    device_work::work(stream, 90ms);
    device_work::host_sleep(5ms);
    timer.on_batch_end();
    CHECK(timer.poll() == 0);
    CHECK(recorded.size() == static_cast<std::size_t>(i));
    device_work::host_sleep(95ms);
  }
  CHECK(timer.finish());
  REQUIRE(recorded.size() == 2);
  check_time(recorded[0].batch_time, 90ms);
  check_time(recorded[0].wall_gap, 100ms);
  if (device_work::exact()) {
    CHECK(*recorded[0].data_time == 10ms);
    CHECK(*recorded[0].data_wait_percent() == Approx(10.0));
  }
  CHECK(*recorded[0].data_wait_percent() < 50.0);
  CHECK(*recorded[0].host_data_wait_percent() > (device_work::exact() ? 0.0 : 80.0));
  check_time(recorded[1].batch_time, 90ms);
  CHECK_FALSE(recorded[1].wall_gap.has_value());
  CHECK(recorded.warnings().empty());
  recorded.check_gaps();
}

TEST_CASE("steps that read the loss: each alone and all together show the wait that was built in",
          "[timing][case-03]") {
  const int every = GENERATE(1, 10, 50);
  const bool inside_the_step = GENERATE(true, false);
  INFO("the loss is read every " << every << " steps, " << (inside_the_step ? "inside" : "after") << " the step");
  constexpr nanoseconds load = 500us;
  constexpr nanoseconds compute = 9ms;
  const int steps = every == 1 ? 20 : (every == 10 ? 40 : 100);

  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  StepTimerOptions options;
  options.window = static_cast<std::size_t>(every);
  CudaTimer timer{stream.get(), recorded.options(options)};

  // Where the device is free again, by the host's clock: what a step's wait really is.
  using Clock = std::chrono::steady_clock;
  std::vector<nanoseconds> built_in;
  Clock::time_point free_at{};
  bool was_read = false;
  for (int i = 0; i <= steps; ++i) {
    device_work::host_sleep(load);
    const Clock::time_point start = Clock::now();
    if (i > 0) {
      const nanoseconds measured_wait = (std::max)(nanoseconds{0}, nanoseconds{start - free_at});
      built_in.push_back(device_work::exact() ? (was_read ? load : 0ns) : measured_wait);
    }
    if (i == steps) break;
    timer.on_batch_start();
    free_at = (std::max)(free_at, Clock::now()) + compute;
    device_work::work(stream, compute);
    was_read = i % every == every - 1;
    if (was_read && inside_the_step) {
      CHECK(device_work::wait_for(stream) == cudaSuccess);
      free_at = Clock::now();
    }
    timer.on_batch_end();
    if (was_read && !inside_the_step) {
      CHECK(device_work::wait_for(stream) == cudaSuccess);
      free_at = Clock::now();
    }
  }
  timer.on_batch_start();
  timer.on_batch_end();
  device_work::wait_for(stream);
  CHECK(timer.finish());

  REQUIRE(recorded.size() == static_cast<std::size_t>(steps) + 1);
  double worst = 0;
  std::size_t far_off = 0;
  nanoseconds waited{0};
  nanoseconds computed{0};
  for (std::size_t i = 0; i < built_in.size(); ++i) {
    REQUIRE(recorded[i].data_time.has_value());
    const double off = std::abs(*recorded[i].data_wait_percent() - percent(built_in[i], compute));
    worst = (std::max)(worst, off);
    far_off += off > 1.0 ? 1u : 0u;
    waited += built_in[i];
    computed += compute;
  }
  // One point of this cycle is 0.1 ms, and at times the host is that late to hear that the device is free.
  INFO(far_off << " of " << built_in.size() << " steps are off by more than a point, the worst by " << worst);
  CHECK(far_off <= built_in.size() / 20);
  CHECK(worst <= 5.0);
  CHECK(std::abs(*timer.total().data_wait_percent() - percent(waited, computed)) <= 1.0);
  if (device_work::exact()) {
    CHECK(worst < 1e-4);
    CHECK(timer.total().data_total == waited);
    CHECK(timer.counts().clamped == 0);
  }
  recorded.check_gaps();
}

TEST_CASE("a device that is always busy waits for no data, whichever call lets the host wait", "[case-03]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  cudaEvent_t before_last = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&before_last, cudaEventDisableTiming) == cudaSuccess);

  // Nine gaps of 1 ms on the host, then one that waits for the step before: the device always has work.
  constexpr int steps = 50;
  for (int i = 0; i < steps; ++i) {
    timer.on_batch_start();
    if (i % 10 == 9) CHECK(cudaEventRecord(before_last, stream) == cudaSuccess);
    device_work::work(stream, 10ms);
    timer.on_batch_end();
    if (i % 10 == 9)
      CHECK(cudaEventSynchronize(before_last) == cudaSuccess);
    else
      device_work::host_sleep(1ms);
  }
  device_work::wait_for(stream);
  CHECK(timer.finish());
  CHECK(cudaEventDestroy(before_last) == cudaSuccess);

  REQUIRE(recorded.size() == steps);
  CHECK(std::none_of(recorded.records().begin(), recorded.records().end(),
                     [](const auto& r) { return r.data_time.value_or(0ns) > 100us; }));
  CHECK(*timer.total().data_wait_percent() < 1.0);
  if (device_work::exact()) CHECK(timer.total().data_total == 0ns);
  recorded.check_gaps();
}

TEST_CASE("samples that become ready in one poll are all counted", "[case-07]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  {
    device_work::Gate gate(stream);
    run_step(timer, stream, 20ms);
    device_work::work(stream, 30ms);  // not the timer's: time between the steps
    run_step(timer, stream, 60ms);
    device_work::work(stream, 10ms);
    timer.on_batch_start();
    CHECK(timer.poll() == 0);
    gate.open();
  }
  CHECK(device_work::wait_for(stream) == cudaSuccess);
  CHECK(timer.poll() == 2);
  timer.on_batch_end();

  REQUIRE(recorded.size() == 2);
  check_time(recorded[0].batch_time, 20ms);
  check_time(recorded[0].wall_gap, 50ms);
  check_time(recorded[1].batch_time, 60ms);
  check_time(recorded[1].wall_gap, 70ms);
  const auto total = timer.total();
  CHECK(total.steps == 2);
  CHECK(total.gaps == 2);
  check_time(total.batch_mean(), 40ms);
  check_time(total.wall_total, 120ms);
  CHECK(*total.data_wait_percent() > 30.0);
  if (device_work::exact()) CHECK(*total.data_wait_percent() == Approx(100.0 / 3));
  recorded.check();
}

TEST_CASE("a pause keeps validation out of the data time", "[case-09]") {
  const bool paused = GENERATE(true, false);
  INFO((paused ? "with" : "without") << " pause()");
  const nanoseconds compute = either(90ms, 9ms);
  const nanoseconds load = either(10ms, 2ms);
  const nanoseconds validation = either(60s, 200ms);
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};

  for (int i = 0; i < 10; ++i) {
    run_step(timer, stream, compute);
    device_work::wait_for(stream);
    if (i == 4) {
      if (paused) timer.pause();
      device_work::work(stream, validation);
      device_work::wait_for(stream);
    }
    device_work::host_sleep(load);
  }
  CHECK(timer.finish());

  REQUIRE(recorded.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    INFO("step " << i);
    check_time(recorded[i].batch_time, compute);
    CHECK(recorded[i].batch_time < validation);
    if (i == 9 || (i == 4 && paused)) {
      CHECK_FALSE(recorded[i].data_time.has_value());
    } else if (i == 4) {
      check_time(recorded[i].data_time, validation + load);  // nobody said so, and it shows
    } else {
      check_time(recorded[i].data_time, load - 20us * (device_work::exact() ? 0 : 1));
      CHECK(*recorded[i].data_time < validation);
    }
  }
  CHECK(timer.total().gaps == (paused ? 8u : 9u));
  CHECK(timer.total().steps == 10);
  if (paused) recorded.check_gaps();
}

TEST_CASE("a pause inside a step leaves that step without a gap", "[case-09]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  run_step(timer, stream, 1ms);
  timer.on_batch_start();
  timer.pause();
  device_work::work(stream, 2ms);
  timer.on_batch_end();
  device_work::host_sleep(5ms);
  run_step(timer, stream, 1ms);
  device_work::wait_for(stream);
  CHECK(timer.finish());
  REQUIRE(recorded.size() == 3);
  CHECK(recorded[0].data_time.has_value());
  check_time(recorded[1].batch_time, 2ms);
  CHECK_FALSE(recorded[1].data_time.has_value());
  CHECK_FALSE(recorded[2].data_time.has_value());
  recorded.check_gaps();
}

TEST_CASE("the last step is not lost", "[case-11]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};

  SECTION("no step: nothing is made up") {
    CHECK(timer.poll() == 0);
    CHECK(timer.finish());
    CHECK(timer.finish(0ns));
    CHECK_FALSE(timer.last().has_value());
    CHECK_FALSE(timer.data_wait_percent().has_value());
    CHECK_FALSE(timer.total().data_wait_percent().has_value());
    CHECK_FALSE(timer.total().batch_mean().has_value());
    CHECK(timer.total().steps == 0);
    CHECK(timer.counts() == steptimer::StepCounts{});
  }
  SECTION("three steps and no fourth start") {
    for (int i = 0; i < 3; ++i) {
      run_step(timer, stream, 5ms);
      device_work::host_sleep(8ms);
    }
    CHECK(device_work::wait_for(stream) == cudaSuccess);
    timer.poll();
    CHECK(recorded.size() == 2);
    CHECK(timer.finish(0ns));
    CHECK(timer.total().steps == 3);
    CHECK(timer.total().gaps == 2);
    check_time(timer.total().batch_total, 15ms);
    CHECK_FALSE(timer.last()->data_time.has_value());
    recorded.check_gaps();
  }
  SECTION("one step alone") {
    run_step(timer, stream, 5ms);
    device_work::wait_for(stream);
    CHECK(timer.finish(0ns));
    REQUIRE(recorded.size() == 1);
    check_time(recorded[0].batch_time, 5ms);
  }
  CHECK(recorded.warnings().empty());
}

TEST_CASE("a cold first step counts as warm-up and is still to be read", "[case-12]") {
  const nanoseconds cold = either(5s, 200ms);
  const nanoseconds warm = either(10ms, 1ms);
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  StepTimerOptions options;
  options.warmup_steps = 1;
  CudaTimer timer{stream.get(), recorded.options(options)};

  for (int first = 0; first < 100; first += 5) {  // results come late, five at a time
    device_work::Gate gate(stream);
    for (int i = first; i < first + 5; ++i) run_step(timer, stream, i == 0 ? cold : warm);
    gate.open();
    CHECK(device_work::wait_for(stream) == cudaSuccess);
    timer.poll();
    if (first == 0) CHECK(recorded.size() == 4);
  }
  CHECK(timer.finish());

  REQUIRE(recorded.size() == 100);
  CHECK(recorded[0].warmup);
  check_time(recorded[0].batch_time, cold);
  CHECK(std::none_of(recorded.records().begin() + 1, recorded.records().end(), [](const auto& r) { return r.warmup; }));
  CHECK(timer.total().steps == 99);
  check_time(timer.total().batch_mean(), warm);
  CHECK(*timer.total().batch_mean() < cold / 40);
  CHECK(timer.total().batch_max < cold);
  recorded.check();
}

TEST_CASE("only every n-th step is measured, with the gap to the step right after it") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  StepTimerOptions options;
  options.sample_every = 3;
  CudaTimer timer{stream.get(), recorded.options(options)};
  for (int i = 0; i < 20; ++i) {
    run_step(timer, stream, i % 3 == 0 ? 4ms : 1ms);
    device_work::wait_for(stream);
    device_work::host_sleep(2ms);
  }
  CHECK(timer.finish());
  REQUIRE(recorded.size() == 7);
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(recorded[i].step == 3 * i);
    check_time(recorded[i].batch_time, 4ms);
    check_time(recorded[i].wall_gap, 6ms);
  }
  CHECK(timer.counts().not_sampled == 13);
  CHECK(timer.counts().measured == 7);
  CHECK(adds_up(timer.counts()));
  recorded.check_gaps();
}

TEST_CASE("unbalanced calls cost the steps they concern and nothing else", "[case-44]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  const auto wait = [] { device_work::host_sleep(20ms); };
  timer.on_batch_start();
  wait();
  timer.on_batch_start();
  wait();
  timer.on_batch_end();
  wait();
  timer.on_batch_end();
  wait();
  timer.on_batch_end();
  wait();
  timer.on_batch_start();
  wait();
  timer.on_batch_end();
  wait();
  CHECK(timer.finish());

  REQUIRE(recorded.size() == 2);
  CHECK(recorded[0].step == 1);
  check_time(recorded[0].batch_time, 20ms);
  check_time(recorded[0].wall_gap, 80ms);
  CHECK(recorded[1].step == 2);
  check_time(recorded[1].batch_time, 20ms);
  CHECK_FALSE(recorded[1].wall_gap.has_value());
  CHECK(timer.counts().dropped == 1);
  CHECK(timer.counts().ignored_ends == 2);
  CHECK(adds_up(timer.counts()));
  CHECK(recorded.warnings().size() == 2);
  CHECK(timer.status().state == TimerState::ok);
  recorded.check_gaps();
}

// --- a device that is behind

TEST_CASE("steps that run ahead of the device come out in order with their own times", "[deep-queue][case-35]") {
  struct Ahead {
    std::size_t steps;
    nanoseconds work;
  };
  // Three commands a step, and no more of them than fit in a stream's queue.
  const auto ahead = GENERATE(Ahead{8, 10ms}, Ahead{64, 1ms}, Ahead{280, 200us});
  INFO(ahead.steps << " steps ahead");
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  for (int round = 0; round < 2; ++round) {  // the second time with events that have served before
    device_work::Gate gate(stream);
    for (std::size_t i = 0; i < ahead.steps; ++i) run_step(timer, stream, ahead.work);
    CHECK(timer.poll() == 0);
    CHECK(timer.counts().pending == ahead.steps);
    gate.open();
    CHECK(device_work::wait_for(stream) == cudaSuccess);
    CHECK(timer.finish());
  }
  REQUIRE(recorded.size() == 2 * ahead.steps);
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    INFO("step " << i);
    CHECK(recorded[i].step == i);
    check_time(recorded[i].batch_time, ahead.work);
    CHECK(recorded[i].batch_time < 60ms);
    CHECK(recorded[i].data_time.value_or(0ns) <= 1ms);
  }
  CHECK(timer.counts().clamped == 0);
  recorded.check_gaps();
}

TEST_CASE("asking for a step that is not ready is no error, however often", "[case-17][case-19]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  device_work::Gate gate(stream);
  run_step(timer, stream, 20ms);
  timer.on_batch_start();
  std::size_t records = 0;
  for (int i = 0; i < 10'000; ++i) records += timer.poll();
  CHECK(records == 0);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(timer.counts().pending == 2);
  gate.open();
  CHECK(device_work::wait_for(stream) == cudaSuccess);
  CHECK(timer.poll() == 1);
  timer.on_batch_end();
  REQUIRE(recorded.size() == 1);
  check_time(recorded[0].batch_time, 20ms);
  CHECK(recorded.warnings().empty());
  CHECK(timer.status().state == TimerState::ok);
  CHECK(timer.status().error_code == 0);
}

TEST_CASE("nothing waits for a device that stands still", "[case-11]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  for (const Entry& entry : entries(stream)) {
    INFO(entry.name);
    const RecordedSteps recorded;
    auto timer = std::make_unique<CudaTimer>(stream.get(), recorded.options());
    for (int i = 0; i < 2; ++i) run_step(*timer, stream, 0ns);  // so that there are finished events as well
    device_work::wait_for(stream);
    device_work::Gate gate(stream);
    for (int i = 0; i < 3; ++i) run_step(*timer, stream, 0ns);
    timer->on_batch_start();
    const auto start = std::chrono::steady_clock::now();
    entry.call(timer);
    CHECK(since(start) < 1s);
    CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
    (void)cudaGetLastError();
    gate.open();
    CHECK(device_work::wait_for(stream) == cudaSuccess);
    if (timer == nullptr) continue;
    CHECK(timer->finish(5s));
    CHECK(adds_up(timer->counts()));
    recorded.check();
  }
}

TEST_CASE("while the device stands still for 200 ms no hook takes one", "[timing][case-35]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  CudaTimer timer{stream.get()};
  run_step(timer, stream, 0ns);
  device_work::wait_for(stream);
  device_work::Gate gate(stream);
  nanoseconds longest{0};
  int slow = 0;
  const auto timed = [&](auto&& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const nanoseconds took = since(start);
    longest = (std::max)(longest, took);
    slow += took > 1ms ? 1 : 0;
  };
  const auto closed = std::chrono::steady_clock::now();
  int steps = 0;
  for (; steps < 200 && (device_work::exact() || since(closed) < 200ms); ++steps) {
    timed([&] { timer.on_batch_start(); });
    timed([&] { timer.on_batch_end(); });
    timed([&] { timer.poll(); });
    device_work::host_sleep(1ms);
  }
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  (void)cudaGetLastError();
  INFO(slow << " of " << 3 * steps << " calls took more than 1 ms, the longest " << longest.count() << " ns");
  CHECK(longest < 200ms);                       // none has waited for the gate
  if (!device_work::exact()) CHECK(slow <= 3);  // another process may have had the core for a while
  gate.open();
  device_work::wait_for(stream);
  CHECK(timer.finish());
  CHECK(timer.counts().measured == static_cast<std::uint64_t>(steps) + 1);
}

TEST_CASE("the first hooks do not wait either") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  device_work::Gate gate(stream);
  const auto start = std::chrono::steady_clock::now();
  CudaTimer timer{stream.get(), recorded.options()};
  for (int i = 0; i < 3; ++i) run_step(timer, stream, 0ns);
  CHECK(since(start) < 1s);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  gate.open();
  CHECK(device_work::wait_for(stream) == cudaSuccess);
  CHECK(timer.finish());
  CHECK(recorded.size() == 3);
}

TEST_CASE("finish waits as long as it may and no longer", "[case-11]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  device_work::Gate gate(stream);
  for (int i = 0; i < 3; ++i) run_step(timer, stream, 0ns);
  timer.on_batch_start();

  auto start = std::chrono::steady_clock::now();
  CHECK_FALSE(timer.finish(0ns));
  CHECK_FALSE(timer.finish(-1s));
  CHECK_FALSE(timer.finish((nanoseconds::min)()));
  CHECK(since(start) < 1s);
  start = std::chrono::steady_clock::now();
  CHECK_FALSE(timer.finish(30ms));
  CHECK(since(start) >= 30ms);
  CHECK(since(start) < 5s);
  CHECK(timer.counts().pending == 3);
  CHECK(timer.counts().dropped == 1);  // the step that was open

  std::thread opener([&] {
    std::this_thread::sleep_for(30ms);
    gate.open();
  });
  const bool all = timer.finish();  // no limit: waits for the gate
  opener.join();
  CHECK(all);
  CHECK(recorded.size() == 3);
  CHECK(timer.counts().pending == 0);
  CHECK(timer.finish(0ns));
}

TEST_CASE("beyond max_in_flight steps are skipped and counted, and those before keep their times") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  StepTimerOptions options;
  options.max_in_flight = 4;
  CudaTimer timer{stream.get(), recorded.options(options)};
  {
    device_work::Gate gate(stream);
    for (int i = 0; i < 10; ++i) run_step(timer, stream, 2ms);
    CHECK(timer.counts().pending == 4);
    CHECK(timer.counts().stale == 6);
    CHECK(adds_up(timer.counts()));
    CHECK(recorded.warnings().size() == 1);
    gate.open();
  }
  CHECK(device_work::wait_for(stream) == cudaSuccess);
  CHECK(timer.poll() == 4);
  for (int i = 0; i < 2; ++i) {
    run_step(timer, stream, 2ms);
    device_work::wait_for(stream);
  }
  CHECK(timer.finish());
  REQUIRE(recorded.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(recorded[i].step == (i < 4 ? i : i + 6));
    check_time(recorded[i].batch_time, 2ms);
    if (i < 4) check_time(recorded[i].wall_gap, 2ms);
  }
  CHECK(timer.counts().stale == 6);
  CHECK(recorded.warnings().size() == 1);
  recorded.check_gaps();
}

TEST_CASE("a timer moved with steps in flight goes on where it was", "[case-22]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  const RecordedSteps of_the_other;
  {
    CudaTimer first{stream.get(), recorded.options()};
    device_work::Gate gate(stream);
    for (int i = 0; i < 3; ++i) run_step(first, stream, 5ms);
    first.on_batch_start();
    CudaTimer second{std::move(first)};
    device_work::work(stream, 5ms);
    second.on_batch_end();
    CHECK(second.counts().pending == 4);
    CHECK(first.status().state == TimerState::disabled);  // NOLINT: that is what a moved-from timer is
    run_step(first, stream, 0ns);
    CHECK(first.poll() == 0);
    CHECK(first.finish());

    CudaTimer third{stream.get(), of_the_other.options()};
    for (int i = 0; i < 3; ++i) run_step(third, stream, 1ms);
    third = std::move(second);
    CHECK(third.counts().pending == 4);
    auto& itself = third;
    third = std::move(itself);
    CHECK(third.counts().pending == 4);
    gate.open();
    CHECK(device_work::wait_for(stream) == cudaSuccess);
    CHECK(third.poll() == 3);

    {
      device_work::Gate second_gate(stream);
      for (int i = 0; i < 8; ++i) run_step(third, stream, 1ms);
      third.reset();  // with steps in flight
      CHECK(third.counts() == steptimer::StepCounts{});
      CHECK(third.total().steps == 0);
      second_gate.open();
    }
    for (int i = 0; i < 8; ++i) run_step(third, stream, 2ms);
    device_work::wait_for(stream);
    CHECK(third.finish());
    CHECK(third.total().steps == 8);
    check_time(third.total().batch_min, 2ms);
    run_step(third, stream, 1ms);
  }
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(of_the_other.size() == 0);
  REQUIRE(recorded.size() == 3 + 8);
  for (std::size_t i = 0; i < 3; ++i) check_time(recorded[i].batch_time, 5ms);
  for (std::size_t i = 3; i < 11; ++i) CHECK(recorded[i].step == i - 3);
  CHECK(recorded.warnings().empty());
}

TEST_CASE("a released timer can be used again") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  for (int i = 0; i < 2; ++i) run_step(timer, stream, 1ms);
  device_work::wait_for(stream);
  timer.release();  // measures what is finished
  CHECK(recorded.size() == 2);
  {
    device_work::Gate gate(stream);
    for (int i = 0; i < 3; ++i) run_step(timer, stream, 1ms);
    timer.on_batch_start();
    timer.release();
    CHECK(timer.counts().stale == 3);
    CHECK(timer.counts().dropped == 1);
    CHECK(timer.counts().pending == 0);
    gate.open();
  }
  device_work::wait_for(stream);
  for (int i = 0; i < 3; ++i) run_step(timer, stream, 3ms);
  device_work::wait_for(stream);
  CHECK(timer.finish());
  REQUIRE(recorded.size() == 5);
  CHECK(recorded[2].step == 6);
  for (std::size_t i = 2; i < 5; ++i) check_time(recorded[i].batch_time, 3ms);
  CHECK(adds_up(timer.counts()));
  CHECK(timer.status().state == TimerState::ok);
  timer.release();
  timer.release();
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

// --- what is left alone

TEST_CASE("a capture that contains the hooks ends as it would without them", "[case-23]") {
  const auto mode =
      GENERATE(cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed);
  const bool start_inside = GENERATE(true, false);
  const bool end_inside = GENERATE(true, false);
  INFO("capture mode " << mode << ", start hook " << (start_inside ? "inside" : "before") << ", end hook "
                       << (end_inside ? "inside" : "after"));
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  for (int i = 0; i < 2; ++i) run_step(timer, stream, 1ms);

  if (!start_inside) timer.on_batch_start();
  const Captured captured(
      stream, mode,
      [&] {
        if (start_inside) timer.on_batch_start();
        timer.poll();
        if (end_inside) timer.on_batch_end();
        timer.poll();
      },
      10ms);
  if (!end_inside) timer.on_batch_end();
  captured.check_as_without_timer();
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  REQUIRE(captured.graph != nullptr);

  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, captured.graph, 0) == cudaSuccess);
  for (int i = 0; i < 3; ++i) {
    timer.on_batch_start();
    CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
    timer.on_batch_end();
  }
  CHECK(device_work::wait_for(stream) == cudaSuccess);
  CHECK(timer.finish());
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == cudaSuccess);

  // Both hooks around the capture are an ordinary step, in which nothing ran; a hook inside it costs that step.
  const bool refused = start_inside || end_inside;
  CHECK(timer.counts().failed == (refused ? 1u : 0u));
  CHECK(timer.counts().measured == (refused ? 5u : 6u));
  CHECK(adds_up(timer.counts()));
  REQUIRE(recorded.size() == (refused ? 5u : 6u));
  for (std::size_t i = recorded.size() - 3; i < recorded.size(); ++i) {
    CHECK(recorded[i].step == i + (refused ? 1u : 0u));
    check_time(recorded[i].batch_time, 10ms);
    CHECK(recorded[i].batch_time < 60ms);
  }
  check_time(recorded[1].batch_time, 1ms);
  CHECK(recorded[1].data_time.has_value() == !start_inside);
  CHECK(recorded.warnings().size() == (refused ? 1u : 0u));
  if (refused) CHECK(recorded.warnings().at(0).find("graph is being captured") != std::string::npos);
  CHECK(timer.status().state == TimerState::ok);
  recorded.check();
}

TEST_CASE("a capture elsewhere ends as it would without a timer", "[case-24]") {
  const auto mode =
      GENERATE(cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed);
  const bool same_stream = GENERATE(false, true);
  const bool same_thread = GENERATE(true, false);
  INFO("capture mode " << mode << ", " << (same_stream ? "the timer's" : "another") << " stream, "
                       << (same_thread ? "the timer's" : "another") << " thread");
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const device_work::Stream other_stream;

  for (const Entry& entry : entries(stream)) {
    INFO(entry.name);
    const RecordedSteps recorded;
    auto timer = std::make_unique<CudaTimer>(stream.get(), recorded.options());
    // One step that is measured, one that is done, and one that the device has yet to reach.
    for (int i = 0; i < 2; ++i) run_step(*timer, stream, 0ns);
    device_work::wait_for(stream);
    device_work::Gate gate(stream);
    run_step(*timer, stream, 0ns);

    cudaError_t error_after = cudaErrorUnknown;
    const auto calls = [&] {
      entry.call(timer);
      error_after = cudaPeekAtLastError();
    };
    const Captured captured(same_stream ? stream.get() : other_stream.get(), mode, [&] {
      if (same_thread)
        calls();
      else
        std::thread(calls).join();
    });
    captured.check_as_without_timer();
    CHECK(error_after == cudaSuccess);
    CHECK(cudaPeekAtLastError() == cudaSuccess);

    gate.open();
    CHECK(device_work::wait_for(stream) == cudaSuccess);
    if (timer == nullptr) continue;
    CHECK(timer->finish(5s));
    CHECK(adds_up(timer->counts()));
    if (!same_stream) CHECK(timer->counts().failed == 0);
    CHECK(timer->status().state == TimerState::ok);
    recorded.check();
    const auto measured = timer->counts().measured;
    run_step(*timer, stream, 1ms);
    device_work::wait_for(stream);
    CHECK(timer->finish(5s));
    CHECK(timer->counts().measured == measured + 1);
  }
}

TEST_CASE("a capture that has reached the timer's stream through an event ends as it would without the timer",
          "[case-23]") {
  const auto mode =
      GENERATE(cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed);
  const bool same_thread = GENERATE(true, false);
  INFO("capture mode " << mode << ", " << (same_thread ? "the timer's" : "another") << " thread");
  REQUIRE(device_work::begin());
  const device_work::Stream origin;
  const device_work::Stream stream;
  cudaEvent_t fork = nullptr;
  cudaEvent_t join = nullptr;
  for (cudaEvent_t* event : {&fork, &join})
    REQUIRE(cudaEventCreateWithFlags(event, cudaEventDisableTiming) == cudaSuccess);
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  for (int i = 0; i < 2; ++i) run_step(timer, stream, 1ms);
  device_work::wait_for(stream);

  const auto hooks = [&] {
    timer.on_batch_start();
    timer.on_batch_end();
    timer.poll();
  };
  const Captured captured(origin, mode, [&] {
    CHECK(cudaEventRecord(fork, origin) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(stream, fork, 0) == cudaSuccess);
    if (same_thread)
      hooks();
    else
      std::thread(hooks).join();
    device_work::work(stream, 1us);
    CHECK(cudaEventRecord(join, stream) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(origin, join, 0) == cudaSuccess);
  });
  CHECK(captured.begin == cudaSuccess);
  CHECK(captured.end == cudaSuccess);
  CHECK(captured.nodes == 3);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  for (cudaEvent_t event : {fork, join}) CHECK(cudaEventDestroy(event) == cudaSuccess);

  CHECK(timer.counts().failed == 1);
  run_step(timer, stream, 1ms);
  device_work::wait_for(stream);
  CHECK(timer.finish());
  CHECK(recorded.size() == 3);
  CHECK(adds_up(timer.counts()));
  recorded.check();
}

TEST_CASE("a capture on one GPU ends as it would without a timer on another", "[case-24][case-29]") {
  if (!device_work::begin(2)) {
    SUCCEED("skipped: there is one device");
    return;
  }
  const auto mode =
      GENERATE(cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed);
  const bool same_thread = GENERATE(true, false);
  const int timed = GENERATE(0, 1);
  const int captured_device = 1 - timed;
  INFO("capture mode " << mode << " on device " << captured_device << ", " << (same_thread ? "the timer's" : "another")
                       << " thread");
  const auto make_current = [](int device) { REQUIRE(cudaSetDevice(device) == cudaSuccess); };
  make_current(captured_device);
  const device_work::Stream other_stream;
  make_current(timed);
  const device_work::Stream stream;

  for (const Entry& entry : entries(stream)) {
    INFO(entry.name);
    make_current(timed);
    const RecordedSteps recorded;
    auto timer = std::make_unique<CudaTimer>(stream.get(), recorded.options());
    for (int i = 0; i < 2; ++i) run_step(*timer, stream, 0ns);
    device_work::wait_for(stream);
    device_work::Gate gate(stream);
    run_step(*timer, stream, 0ns);

    make_current(captured_device);
    cudaError_t error_after = cudaErrorUnknown;
    int device_before = -1;
    int device_after = -1;
    const auto calls = [&] {
      cudaGetDevice(&device_before);
      entry.call(timer);
      error_after = cudaPeekAtLastError();
      cudaGetDevice(&device_after);
    };
    const Captured captured(other_stream, mode, [&] {
      if (same_thread)
        calls();
      else
        std::thread(calls).join();
    });
    captured.check_as_without_timer();
    CHECK(error_after == cudaSuccess);
    CHECK(device_after == device_before);

    gate.open();
    CHECK(device_work::wait_for(stream) == cudaSuccess);
    if (timer == nullptr) continue;
    CHECK(timer->finish(5s));
    CHECK(adds_up(timer->counts()));
    CHECK(timer->counts().failed == 0);
    CHECK(timer->status().state == TimerState::ok);
    recorded.check();
  }
  make_current(0);
}

TEST_CASE("a timer's first step while a capture runs elsewhere", "[case-24]") {
  const auto mode =
      GENERATE(cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed);
  const bool same_thread = GENERATE(true, false);
  INFO("capture mode " << mode << ", " << (same_thread ? "the timer's" : "another") << " thread");
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const device_work::Stream other_stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  bool finished = false;
  const auto steps = [&] {
    for (int i = 0; i < 3; ++i) run_step(timer, stream, 0ns);
    finished = timer.finish(5s);
  };
  const Captured captured(other_stream, mode, [&] {
    if (same_thread)
      steps();
    else
      std::thread(steps).join();
  });
  captured.check_as_without_timer();
  CHECK(finished);
  CHECK(recorded.size() == 3);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("a timer on the legacy stream leaves the capture of a blocking stream alone", "[case-24]") {
  const auto mode =
      GENERATE(cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed);
  const bool same_thread = GENERATE(true, false);
  INFO("capture mode " << mode << ", " << (same_thread ? "the timer's" : "another") << " thread");
  REQUIRE(device_work::begin());
  const device_work::Stream blocking(cudaStreamDefault);
  const RecordedSteps recorded;
  CudaTimer timer{cudaStreamLegacy, recorded.options()};
  run_step(timer, cudaStreamLegacy, 1ms);
  cudaError_t error_after = cudaErrorUnknown;
  const auto calls = [&] {
    timer.on_batch_start();
    timer.on_batch_end();
    timer.poll();
    timer.finish(0ns);
    error_after = cudaPeekAtLastError();
  };
  const Captured captured(blocking, mode, [&] {
    if (same_thread)
      calls();
    else
      std::thread(calls).join();
  });
  captured.check_as_without_timer();
  CHECK(error_after == cudaSuccess);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(timer.counts().failed == 1);
  REQUIRE(recorded.warnings().size() == 1);
  CHECK(recorded.warnings().front().find("graph is being captured") != std::string::npos);
  run_step(timer, cudaStreamLegacy, 1ms);
  device_work::wait_for(cudaStreamLegacy);
  CHECK(timer.finish());
  CHECK(timer.counts().measured == 2);
  CHECK(adds_up(timer.counts()));
}

TEST_CASE("hooks on one stream do not hold up others", "[case-32]") {
  const bool on_legacy_stream = GENERATE(false, true);
  INFO("the timer is on " << (on_legacy_stream ? "the legacy stream: the control" : "a stream of its own"));
  REQUIRE(device_work::begin());
  const device_work::Stream own;
  const device_work::Stream a(cudaStreamDefault);
  const device_work::Stream b(cudaStreamDefault);
  cudaEvent_t begin = nullptr;
  cudaEvent_t end_a = nullptr;
  cudaEvent_t end_b = nullptr;
  for (cudaEvent_t* event : {&begin, &end_a, &end_b}) REQUIRE(cudaEventCreate(event) == cudaSuccess);
  CudaTimer timer{on_legacy_stream ? cudaStreamLegacy : own.get()};
  timer.on_batch_start();
  timer.on_batch_end();

  CHECK(cudaEventRecord(begin, a) == cudaSuccess);
  device_work::work(a, 50ms);
  timer.on_batch_start();
  timer.on_batch_end();
  device_work::work(b, 50ms);
  CHECK(cudaEventRecord(end_a, a) == cudaSuccess);
  CHECK(cudaEventRecord(end_b, b) == cudaSuccess);
  device_work::wait_for(a);
  device_work::wait_for(b);
  float until_a = 0;
  float until_b = 0;
  CHECK(cudaEventElapsedTime(&until_a, begin, end_a) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&until_b, begin, end_b) == cudaSuccess);
  for (cudaEvent_t event : {begin, end_a, end_b}) CHECK(cudaEventDestroy(event) == cudaSuccess);

  const double milliseconds = static_cast<double>((std::max)(until_a, until_b));
  if (on_legacy_stream)
    CHECK(milliseconds >= 99.0);
  else
    CHECK(milliseconds < 90.0);
  if (device_work::exact()) CHECK(milliseconds == Approx(on_legacy_stream ? 100.0 : 50.0));
}

TEST_CASE("whatever is done to a timer between two launches, blocking streams run side by side", "[case-32]") {
  REQUIRE(device_work::begin());
  const device_work::Stream own;
  const device_work::Stream a(cudaStreamDefault);
  const device_work::Stream b(cudaStreamDefault);
  cudaEvent_t begin = nullptr;
  cudaEvent_t end_a = nullptr;
  cudaEvent_t end_b = nullptr;
  for (cudaEvent_t* event : {&begin, &end_a, &end_b}) REQUIRE(cudaEventCreate(event) == cudaSuccess);
  const RecordedSteps recorded;
  for (const bool is_new : {false, true}) {
    for (const Entry& entry : entries(own)) {
      INFO(entry.name << (is_new ? " of a new timer" : " with steps in flight"));
      auto timer = std::make_unique<CudaTimer>(own.get(), recorded.options());
      for (int i = 0; i < 2 && !is_new; ++i) run_step(*timer, own, 1us);
      CHECK(cudaEventRecord(begin, a) == cudaSuccess);
      device_work::work(a, 30ms);
      entry.call(timer);
      device_work::work(b, 30ms);
      CHECK(cudaEventRecord(end_a, a) == cudaSuccess);
      CHECK(cudaEventRecord(end_b, b) == cudaSuccess);
      for (const auto& stream : {a.get(), b.get(), own.get()}) CHECK(device_work::wait_for(stream) == cudaSuccess);
      float until_a = 0;
      float until_b = 0;
      CHECK(cudaEventElapsedTime(&until_a, begin, end_a) == cudaSuccess);
      CHECK(cudaEventElapsedTime(&until_b, begin, end_b) == cudaSuccess);
      const double milliseconds = static_cast<double>((std::max)(until_a, until_b));
      CHECK(milliseconds < 55.0);  // one after the other they take 60
      if (device_work::exact()) CHECK(milliseconds == Approx(30.0));
    }
  }
  for (cudaEvent_t event : {begin, end_a, end_b}) CHECK(cudaEventDestroy(event) == cudaSuccess);
}

TEST_CASE("an error of the caller's stays pending, and no step is lost by it", "[case-19]") {
  const bool behind = GENERATE(false, true);
  const int error_at = GENERATE(0, 3);
  INFO("the device " << (behind ? "is behind" : "keeps up") << ", error pending from step " << error_at);
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  constexpr cudaError_t theirs = cudaErrorInvalidDevice;
  {
    auto gate = std::make_unique<device_work::Gate>(stream);
    if (!behind) gate->open();
    for (int i = 0; i < 12; ++i) {
      if (i == error_at) CHECK(cudaSetDevice(-1) == theirs);
      const cudaError_t expected = i < error_at ? cudaSuccess : theirs;
      timer.on_batch_start();
      CHECK(cudaPeekAtLastError() == expected);
      device_work::work(stream, 2ms);
      timer.on_batch_end();
      CHECK(cudaPeekAtLastError() == expected);
      timer.poll();
      CHECK(cudaPeekAtLastError() == expected);
      if (!behind) device_work::wait_for(stream);
    }
    timer.finish(0ns);
    CHECK(cudaPeekAtLastError() == theirs);
    gate->open();
  }
  device_work::wait_for(stream);
  timer.poll();
  CHECK(cudaGetLastError() == theirs);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(timer.finish());
  REQUIRE(recorded.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) check_time(recorded[i].batch_time, 2ms);
  CHECK(timer.total().gaps == 11);
  CHECK(recorded.warnings().empty());
  recorded.check_gaps();
}

TEST_CASE("an error that the caller never reads does not stop a timer that has seen this runtime to be clean") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  StepTimerOptions options;
  options.max_in_flight = 8;
  CudaTimer timer{stream.get(), recorded.options(options)};
  {
    device_work::Gate gate(stream);
    run_step(timer, stream, 1ms);
    timer.on_batch_start();
    CHECK(timer.poll() == 0);  // not ready, and no error is left behind
    gate.open();
  }
  timer.on_batch_end();
  CHECK(cudaSetDevice(-1) == cudaErrorInvalidDevice);
  for (int i = 0; i < 30; ++i) {
    run_step(timer, stream, 1ms);
    device_work::wait_for(stream);
  }
  timer.finish(0ns);
  CHECK(timer.counts().measured == 32);
  CHECK(timer.counts().stale == 0);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  recorded.check();
}

TEST_CASE("a timer may outlive its stream as long as it is not asked to mark") {
  REQUIRE(device_work::begin());
  const RecordedSteps recorded;
  {
    auto stream = std::make_unique<device_work::Stream>();
    CudaTimer timer{stream->get(), recorded.options()};
    for (int i = 0; i < 3; ++i) run_step(timer, *stream, 1ms);
    device_work::wait_for(*stream);
    stream.reset();
    CHECK(timer.finish());
    CHECK(recorded.size() == 3);
  }
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

// --- streams, threads and devices

TEST_CASE("the default streams can be timed under each of their names") {
  const cudaStream_t stream = GENERATE(as<cudaStream_t>{}, nullptr, cudaStreamLegacy, cudaStreamPerThread);
  INFO("stream handle " << reinterpret_cast<std::uintptr_t>(stream));
  REQUIRE(device_work::begin());
  const RecordedSteps recorded;
  CudaTimer timer{stream, recorded.options()};
  for (int i = 0; i < 4; ++i) {
    run_step(timer, stream, 3ms);
    device_work::wait_for(stream);
    device_work::host_sleep(2ms);
  }
  CHECK(timer.finish());
  REQUIRE(recorded.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    check_time(recorded[i].batch_time, 3ms);
    if (i < 3) check_time(recorded[i].wall_gap, 5ms);
  }
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  recorded.check_gaps();
}

TEST_CASE("work on another stream is not batch time") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const device_work::Stream other;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  timer.on_batch_start();
  device_work::work(other, 200ms);
  device_work::work(stream, 1ms);
  timer.on_batch_end();
  device_work::wait_for(stream);
  CHECK(timer.finish());
  REQUIRE(recorded.size() == 1);
  check_time(recorded[0].batch_time, 1ms);
  CHECK(recorded[0].batch_time < 100ms);
  device_work::wait_for(other);
}

TEST_CASE("a timer may be handed from thread to thread") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  const auto steps = [&] {
    for (int i = 0; i < 3; ++i) {
      run_step(timer, stream, 1ms);
      device_work::wait_for(stream);
    }
  };
  steps();
  std::thread(steps).join();
  timer.on_batch_start();
  std::thread([&] { timer.on_batch_end(); }).join();
  steps();
  bool finished = false;
  std::thread([&] { finished = timer.finish(); }).join();
  CHECK(finished);
  CHECK(recorded.size() == 10);
  CHECK(timer.counts().measured == 10);
  recorded.check_gaps();
}

TEST_CASE("timers on several threads share nothing") {
  REQUIRE(device_work::begin());
  constexpr int threads = 4;
  constexpr int steps = 50;
  std::vector<RecordedSteps> recorded(threads);
  std::vector<std::thread> running;
  std::vector<steptimer::StepCounts> counts(threads);
  for (std::size_t n = 0; n < threads; ++n) {
    running.emplace_back([&, n] {
      const device_work::Stream stream;
      CudaTimer timer{stream.get(), recorded[n].options()};
      for (int i = 0; i < steps; ++i) {
        run_step(timer, stream, 100us);
        if (i % 10 == 9) device_work::wait_for(stream);
      }
      device_work::wait_for(stream);
      timer.finish(5s);
      counts[n] = timer.counts();
    });
  }
  for (auto& thread : running) thread.join();
  for (std::size_t n = 0; n < threads; ++n) {
    CHECK(counts[n].measured == steps);
    CHECK(adds_up(counts[n]));
    CHECK(recorded[n].size() == steps);
    recorded[n].check();
    CHECK(recorded[n].warnings().empty());
  }
}

TEST_CASE("a timer works from whatever device is current, and changes it not", "[case-29]") {
  if (!device_work::begin(2)) {
    SUCCEED("skipped: there is one device");
    return;
  }
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const device_work::Stream on_device_1;
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  const device_work::Stream on_device_0;
  const RecordedSteps recorded_1;
  const RecordedSteps recorded_0;
  CudaTimer timer_1{on_device_1.get(), recorded_1.options()};
  CudaTimer timer_0{on_device_0.get(), recorded_0.options()};
  const auto check_left_alone = [] {
    int device = -1;
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    CHECK(device == 0);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  };
  const auto work_on_1 = [&] {  // a launch needs its stream's device to be current
    CHECK(cudaSetDevice(1) == cudaSuccess);
    device_work::work(on_device_1, 10ms);
    CHECK(cudaSetDevice(0) == cudaSuccess);
  };
  for (int i = 0; i < 10; ++i) {
    timer_1.on_batch_start();
    check_left_alone();
    work_on_1();
    timer_1.on_batch_end();
    check_left_alone();
    run_step(timer_0, on_device_0, 5ms);
    check_left_alone();
  }
  device_work::wait_for(on_device_0);
  device_work::wait_for(on_device_1);
  CHECK(timer_1.finish());
  CHECK(timer_0.finish());
  check_left_alone();
  REQUIRE(recorded_1.size() == 10);
  REQUIRE(recorded_0.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    check_time(recorded_1[i].batch_time, 10ms);
    check_time(recorded_0[i].batch_time, 5ms);
  }
  recorded_1.check_gaps();
  recorded_0.check_gaps();
}

TEST_CASE("threads to which any device is current may use a timer, and destroy it", "[case-29]") {
  if (!device_work::begin(2)) {
    SUCCEED("skipped: there is one device");
    return;
  }
  const int timed = GENERATE(0, 1);
  const int current = GENERATE(0, 1);
  INFO("the stream is of device " << timed << ", device " << current << " is current");
  REQUIRE(cudaSetDevice(timed) == cudaSuccess);
  const device_work::Stream stream;
  const RecordedSteps recorded;

  for (const Entry& entry : entries(stream)) {
    INFO(entry.name);
    auto timer = std::make_unique<CudaTimer>(stream.get(), recorded.options());
    for (int i = 0; i < 3; ++i) run_step(*timer, stream, 1us);
    timer->on_batch_start();
    int device_after = -1;
    cudaError_t error_after = cudaErrorUnknown;
    std::thread([&] {
      cudaSetDevice(current);
      entry.call(timer);
      error_after = cudaPeekAtLastError();
      cudaGetDevice(&device_after);
    }).join();
    CHECK(device_after == current);
    CHECK(error_after == cudaSuccess);
    CHECK(device_work::wait_for(stream) == cudaSuccess);
    if (timer == nullptr) continue;
    run_step(*timer, stream, 1us);
    device_work::wait_for(stream);
    CHECK(timer->finish(5s));
    CHECK(timer->counts().failed == 0);
    CHECK(adds_up(timer->counts()));
  }
  CHECK(recorded.size() > 0);
  for (const auto& record : recorded.records()) CHECK(record.batch_time < 1s);
  CHECK(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("a thread for each device, each with a timer of its own", "[case-29]") {
  if (!device_work::begin(2)) {
    SUCCEED("skipped: there is one device");
    return;
  }
  const RecordedSteps recorded[2];
  const auto train = [&recorded](int device, nanoseconds step) {
    cudaSetDevice(device);
    const device_work::Stream stream;
    CudaTimer timer{stream.get(), recorded[device].options()};
    for (int i = 0; i < 10; ++i) run_step(timer, stream, step);
    device_work::wait_for(stream);
    timer.finish();
  };
  if (device_work::exact()) {  // the fake's time is one for all threads
    train(1, 3ms);
    train(0, 5ms);
  } else {
    std::thread other(train, 1, 3ms);
    train(0, 5ms);
    other.join();
  }
  for (int device = 0; device < 2; ++device) {
    INFO("device " << device);
    REQUIRE(recorded[device].size() == 10);
    for (std::size_t i = 0; i < 10; ++i) check_time(recorded[device][i].batch_time, device == 0 ? 5ms : 3ms);
    recorded[device].check();
    CHECK(recorded[device].warnings().empty());
  }
  CHECK(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("stream 0 stays that of the device that was current at the first step", "[case-29]") {
  if (!device_work::begin(2)) {
    SUCCEED("skipped: there is one device");
    return;
  }
  const RecordedSteps recorded;
  CudaTimer timer{0, recorded.options()};
  run_step(timer, nullptr, 5ms);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  timer.on_batch_start();
  CHECK(cudaSetDevice(0) == cudaSuccess);
  device_work::work(nullptr, 5ms);
  CHECK(cudaSetDevice(1) == cudaSuccess);
  timer.on_batch_end();
  int device = -1;
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(device == 1);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  device_work::wait_for(nullptr);
  CHECK(timer.finish());
  REQUIRE(recorded.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) check_time(recorded[i].batch_time, 5ms);
}

TEST_CASE("a timer makes no context on a device that is not its own", "[case-29]") {
  if (!device_work::begin(2)) {
    SUCCEED("skipped: there is one device");
    return;
  }
  bool known = false;
  const bool before = device_work::has_context(1, known);
  if (!known) {
    SUCCEED("skipped: this driver does not tell");
    return;
  }
  const device_work::Stream stream;
  CudaTimer timer{stream.get()};
  for (int i = 0; i < 3; ++i) run_step(timer, stream, 1ms);
  device_work::wait_for(stream);
  timer.finish();
  timer.release();
  CHECK(device_work::has_context(1, known) == before);
}

// --- for a long time

TEST_CASE("a long run takes no more memory than a short one", "[case-37]") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const int steps = device_work::exact() ? 2'000 : 100'000;  // the fake keeps a log of all calls
  std::uint64_t records = 0;
  std::size_t warnings = 0;
  StepTimerOptions options;
  options.on_record = [&](const steptimer::StepRecord&) { ++records; };
  options.on_warning = [&](std::string_view) { ++warnings; };
  CudaTimer timer{stream.get(), options};
  long warm = 0;
  for (int i = 0; i < steps; ++i) {
    run_step(timer, stream, 1us);
    if (i % 100 == 99) device_work::wait_for(stream);
    if (i == steps / 10) warm = resident_kilobytes();
  }
  device_work::wait_for(stream);
  CHECK(timer.finish());
  const long growth = resident_kilobytes() - warm;
  CHECK(records == static_cast<std::uint64_t>(steps));
  CHECK(warnings == 0);
  CHECK(timer.total().steps == static_cast<std::uint64_t>(steps));
  if (!device_work::exact()) CHECK(growth < 5'000);
}

TEST_CASE("in a loop that hardly does anything the data time stays within the host's own gap") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const nanoseconds compute = GENERATE(as<nanoseconds>{}, 0ns, 20us, 100us);
  const nanoseconds load = GENERATE(as<nanoseconds>{}, 0ns, 50us);
  INFO("compute " << compute.count() << " ns, load " << load.count() << " ns");
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  constexpr int steps = 1'000;
  for (int i = 0; i < steps; ++i) {
    if (load > 0ns) device_work::host_sleep(load);
    run_step(timer, stream, compute);
    if (i % 200 == 199) device_work::wait_for(stream);
  }
  device_work::wait_for(stream);
  CHECK(timer.finish());
  CHECK(recorded.size() == steps);
  if (device_work::exact()) {  // after a wait the whole load shows, else what of it the device did not cover
    constexpr int waits = steps / 200 - 1;
    const nanoseconds expected = load * waits + (std::max)(nanoseconds{0}, load - compute) * (steps - 1 - waits);
    CHECK(timer.total().data_total.count() == expected.count());
  }
  recorded.check_gaps();
}
