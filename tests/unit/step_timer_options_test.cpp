// Every option, at ordinary values and at its extremes.
#include <steptimer/step_timer_options.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <steptimer/manual_backend.hpp>
#include <steptimer/step_timer.hpp>

#include "support/catch.hpp"
#include "support/counts.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::ManualBackend;
using steptimer::StepCounts;
using steptimer::StepRecord;
using steptimer::StepTimer;
using steptimer::StepTimerOptions;
using steptimer::TimerState;

namespace {

constexpr std::uint64_t most = (std::numeric_limits<std::uint64_t>::max)();

void step(StepTimer<ManualBackend>& timer, ManualBackend& device, nanoseconds work = 10ms, nanoseconds cycle = 20ms) {
  timer.on_batch_start();
  device.launch(work);
  timer.on_batch_end(1);
  device.advance(cycle);
}

}  // namespace

TEST_CASE("a disabled timer counts nothing and says so") {
  ManualBackend device;
  StepTimerOptions options;
  options.enabled = false;
  int calls = 0;
  options.on_record = [&](const StepRecord&) { ++calls; };
  options.on_warning = [&](std::string_view) { ++calls; };
  StepTimer<ManualBackend> timer(device, options);
  for (int i = 0; i < 3; ++i) step(timer, device);
  timer.on_batch_end();
  { const auto scope = timer.step(); }
  timer.pause();
  timer.release();
  timer.reset();
  CHECK(timer.poll() == 0);
  CHECK(timer.finish());
  CHECK(timer.counts() == StepCounts{});
  CHECK(timer.status().state == TimerState::disabled);
  CHECK(calls == 0);
}

TEST_CASE("warm-up steps are in records and in no summary, by ordinal, however late they are measured", "[case-12]") {
  ManualBackend device;
  StepTimerOptions options;
  options.warmup_steps = 1;
  std::vector<StepRecord> records;
  options.on_record = [&](const StepRecord& record) { records.push_back(record); };
  StepTimer<ManualBackend> timer(device, options);
  step(timer, device, 5s, 0ns);
  for (int i = 1; i < 100; ++i) {
    step(timer, device, 10ms, 0ns);
    if (i % 5 == 0) {
      device.advance(50ms);
      timer.poll();
    }
  }
  timer.finish();
  REQUIRE(records.size() == 100);
  CHECK(records[0].warmup);
  CHECK(records[0].batch_time == nanoseconds(5s));
  CHECK_FALSE(records[1].warmup);
  CHECK(timer.total().steps == 99);
  CHECK(timer.total().batch_mean() == nanoseconds(10ms));
  CHECK(timer.window().steps == 99);
}

TEST_CASE("a warm-up step is still the last one", "[case-12]") {
  ManualBackend device;
  StepTimerOptions options;
  options.warmup_steps = most;
  StepTimer<ManualBackend> timer(device, options);
  step(timer, device);
  timer.finish();
  CHECK(timer.last()->warmup);
  CHECK(timer.total().steps == 0);
  CHECK(timer.window().steps == 0);
}

TEST_CASE("the window holds the last steps, the total all of them") {
  ManualBackend device;
  StepTimerOptions options;
  options.window = 3;
  StepTimer<ManualBackend> timer(device, options);
  for (int i = 1; i <= 5; ++i) step(timer, device, i * 10ms, 100ms);
  timer.finish();
  CHECK(timer.window().steps == 3);
  CHECK(timer.window().batch_total == nanoseconds(120ms));
  CHECK(timer.window().batch_min == nanoseconds(30ms));
  CHECK(timer.total().batch_total == nanoseconds(150ms));
}

TEST_CASE("a window of 0 is empty, one of the largest size holds all") {
  ManualBackend device;
  StepTimerOptions options;
  options.window = GENERATE(std::size_t{0}, (std::numeric_limits<std::size_t>::max)());
  StepTimer<ManualBackend> timer(device, options);
  for (int i = 0; i < 300; ++i) step(timer, device);
  timer.finish();
  CHECK(timer.window().steps == (options.window == 0 ? 0u : 300u));
  CHECK(timer.total().steps == 300);
}

TEST_CASE("beyond max_in_flight new steps are stale, and measuring resumes when the device catches up") {
  ManualBackend device;
  StepTimerOptions options;
  options.max_in_flight = 4;
  std::vector<StepRecord> records;
  options.on_record = [&](const StepRecord& record) { records.push_back(record); };
  int warnings = 0;
  options.on_warning = [&](std::string_view) { ++warnings; };
  StepTimer<ManualBackend> timer(device, options);
  for (int i = 0; i < 10; ++i) step(timer, device, 10ms, 0ns);
  StepCounts expected;
  expected.started = 10;
  expected.pending = 4;
  expected.stale = 6;
  CHECK(timer.counts() == expected);
  CHECK(warnings == 1);
  device.synchronize();
  for (int i = 0; i < 3; ++i) step(timer, device, 10ms, 20ms);
  timer.finish();
  CHECK(timer.counts().stale == 7);  // the first start after the wait finds the four still unread
  CHECK(timer.counts().measured == 6);
  REQUIRE(records.size() == 6);
  CHECK(records[3].step == 3);
  CHECK(records[3].wall_gap == nanoseconds(10ms));  // its gap ends at the start of step 4, which is stale
  CHECK(records[4].step == 11);
  CHECK(adds_up(timer.counts()));
}

TEST_CASE("max_in_flight at its extremes") {
  ManualBackend device;
  StepTimerOptions options;
  const auto measured_of_ten = [&] {
    options.on_warning = [](std::string_view) {};
    StepTimer<ManualBackend> timer(device, options);
    for (int i = 0; i < 10; ++i) step(timer, device);
    timer.finish();
    CHECK(adds_up(timer.counts()));
    CHECK(timer.counts().measured + timer.counts().stale == 10);
    return timer.counts().measured;
  };
  options.max_in_flight = 0;
  CHECK(measured_of_ten() == 0);
  options.max_in_flight = 1;
  CHECK(measured_of_ten() == 5);
  options.max_in_flight = 2;
  CHECK(measured_of_ten() == 10);
  options.max_in_flight = (std::numeric_limits<std::size_t>::max)();
  CHECK(measured_of_ten() == 10);
}

TEST_CASE("sampling measures every n-th step, with its gap to the very next start") {
  ManualBackend device;
  StepTimerOptions options;
  options.sample_every = 3;
  std::vector<StepRecord> records;
  options.on_record = [&](const StepRecord& record) { records.push_back(record); };
  StepTimer<ManualBackend> timer(device, options);
  for (int i = 0; i < 10; ++i) step(timer, device, 10ms, 20ms);
  timer.finish();
  StepCounts expected;
  expected.started = 10;
  expected.measured = 4;
  expected.not_sampled = 6;
  CHECK(timer.counts() == expected);
  REQUIRE(records.size() == 4);
  for (std::uint64_t i = 0; i < 4; ++i) {
    CHECK(records[i].step == 3 * i);
    CHECK(records[i].batch_time == nanoseconds(10ms));
    if (i < 3) CHECK(records[i].wall_gap == nanoseconds(20ms));
  }
}

TEST_CASE("sample_every of 0 and 1 measures all, of the largest value the first alone") {
  ManualBackend device;
  StepTimerOptions options;
  options.sample_every = GENERATE(std::uint64_t{0}, std::uint64_t{1}, most);
  StepTimer<ManualBackend> timer(device, options);
  for (int i = 0; i < 5; ++i) step(timer, device);
  timer.finish();
  CHECK(timer.counts().measured == (options.sample_every == most ? 1u : 5u));
  CHECK(adds_up(timer.counts()));
}

TEST_CASE("on_record sees a timer that already counts the record") {
  ManualBackend device;
  StepTimer<ManualBackend>* self = nullptr;
  std::vector<std::uint64_t> measured;
  StepTimerOptions options;
  options.on_record = [&](const StepRecord& record) {
    measured.push_back(self->counts().measured);
    CHECK(self->last()->step == record.step);
    CHECK(adds_up(self->counts()));
  };
  StepTimer<ManualBackend> timer(device, options);
  self = &timer;
  for (int i = 0; i < 3; ++i) step(timer, device);
  timer.finish();
  CHECK(measured == std::vector<std::uint64_t>{1, 2, 3});
}

TEST_CASE("on_record may call anything of the timer but a move") {
  ManualBackend device;
  StepTimer<ManualBackend>* self = nullptr;
  const int what = GENERATE(range(0, 8));
  int calls = 0;
  StepTimerOptions options;
  options.on_warning = [](std::string_view) {};
  options.on_record = [&](const StepRecord&) {
    if (++calls > 20) return;
    switch (what) {
      case 0: CHECK(self->poll() == 0); break;
      case 1: (void)self->finish(); break;
      case 2: self->reset(); break;
      case 3: self->release(); break;
      case 4: self->on_batch_start(); break;
      case 5: self->on_batch_end(); break;
      case 6: self->pause(); break;
      case 7: {
        const auto scope = self->step();
        break;
      }
      default: break;
    }
    CHECK(adds_up(self->counts()));
  };
  StepTimer<ManualBackend> timer(device, options);
  self = &timer;
  for (int i = 0; i < 5; ++i) step(timer, device, 10ms, 0ns);
  device.advance(1s);
  timer.poll();
  for (int i = 0; i < 5; ++i) step(timer, device);
  timer.finish();
  CHECK(calls > 0);
  CHECK(adds_up(timer.counts()));
  CHECK(timer.counts().pending <= 1);  // a step that on_record opened last
}

TEST_CASE("an on_record that throws is called no more; measuring goes on") {
  ManualBackend device;
  int calls = 0;
  std::vector<std::string> warnings;
  StepTimerOptions options;
  options.on_record = [&](const StepRecord&) {
    ++calls;
    throw std::runtime_error("disk full");
  };
  options.on_warning = [&](std::string_view text) { warnings.emplace_back(text); };
  StepTimer<ManualBackend> timer(device, options);
  for (int i = 0; i < 5; ++i) step(timer, device);
  timer.finish();
  CHECK(calls == 1);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("steptimer: on_record threw") == 0);
  CHECK(timer.counts().measured == 5);
}

TEST_CASE("an on_warning that throws is called no more") {
  ManualBackend device;
  int calls = 0;
  StepTimerOptions options;
  options.on_warning = [&](std::string_view) {
    ++calls;
    throw 1;
  };
  StepTimer<ManualBackend> timer(device, options);
  timer.on_batch_end();
  timer.on_batch_start();
  timer.on_batch_start();
  CHECK(calls == 1);
  CHECK(timer.counts().ignored_ends == 1);
  CHECK(timer.counts().dropped == 1);
}

TEST_CASE("each kind of trouble is told once a timer") {
  ManualBackend device;
  std::vector<std::string> warnings;
  StepTimerOptions options;
  options.on_warning = [&](std::string_view text) { warnings.emplace_back(text); };
  StepTimer<ManualBackend> timer(device, options);
  for (int i = 0; i < 3; ++i) {
    timer.on_batch_end();
    timer.on_batch_start();
    timer.on_batch_start();
    timer.on_batch_end();
  }
  CHECK(warnings.size() == 2);
}

TEST_CASE("a step that on_record starts during release is dropped, and the timer goes on") {
  ManualBackend device;
  StepTimer<ManualBackend>* self = nullptr;
  StepTimerOptions options;
  options.on_record = [&](const StepRecord& record) {
    if (record.step == 0) self->on_batch_start();
  };
  StepTimer<ManualBackend> timer(device, options);
  self = &timer;
  step(timer, device);
  timer.release();
  CHECK(timer.counts().dropped == 1);
  CHECK(timer.counts().pending == 0);
  step(timer, device);
  CHECK(timer.finish());
  CHECK(timer.counts().measured == 2);
  CHECK(adds_up(timer.counts()));
}

TEST_CASE("finish does not wait for steps that on_record goes on making") {
  ManualBackend device;
  StepTimer<ManualBackend>* self = nullptr;
  StepTimerOptions options;
  options.on_record = [&](const StepRecord&) {
    self->on_batch_start();
    self->on_batch_end();
    self->pause();
  };
  StepTimer<ManualBackend> timer(device, options);
  self = &timer;
  step(timer, device);
  CHECK_FALSE(timer.finish());
  CHECK(adds_up(timer.counts()));
}

TEST_CASE("an on_warning that calls back and throws in the nested call is left alone") {
  ManualBackend device;
  StepTimer<ManualBackend>* self = nullptr;
  int depth = 0;
  const std::vector<int> big(100, 7);  // so that the function lives on the heap
  int sum = 0;
  StepTimerOptions options;
  options.on_warning = [&self, &depth, &sum, big](std::string_view) {
    if (depth++ > 0) throw std::runtime_error("nested");
    self->on_batch_end();
    self->on_batch_end();
    for (const int value : big) sum += value;
  };
  StepTimer<ManualBackend> timer(device, options);
  self = &timer;
  timer.on_batch_start();
  timer.on_batch_start();
  CHECK(sum == 700);
  CHECK(depth == 2);
}

TEST_CASE("a very long wait in finish is one jump of a clock moved by hand") {
  ManualBackend device;
  StepTimer<ManualBackend> timer(device);
  step(timer, device, 24h * 365, 0ns);
  CHECK(timer.finish());
  CHECK(timer.last()->batch_time == nanoseconds(24h * 365));
}

TEST_CASE("poll called from on_record measures nothing, also where the device has got further meanwhile") {
  ManualBackend device;
  StepTimer<ManualBackend>* self = nullptr;
  std::vector<std::uint64_t> steps;
  StepTimerOptions options;
  options.on_record = [&](const StepRecord& record) {
    steps.push_back(record.step);
    device.advance(1s);
    CHECK(self->poll() == 0);
  };
  StepTimer<ManualBackend> timer(device, options);
  self = &timer;
  for (int i = 0; i < 4; ++i) step(timer, device, 10ms, 0ns);
  device.advance(15ms);
  CHECK(timer.poll() == 1);
  CHECK(timer.poll() == 2);
  CHECK(steps == std::vector<std::uint64_t>{0, 1, 2});
}

TEST_CASE("a record without a gap has none of an older record's, however small the window") {
  ManualBackend device;
  StepTimerOptions options;
  options.window = 1;
  StepTimer<ManualBackend> timer(device, options);
  for (int i = 0; i < 20; ++i) step(timer, device);  // enough that records take the places of older ones
  timer.finish();
  CHECK_FALSE(timer.last()->wall_gap.has_value());
  CHECK_FALSE(timer.last()->data_time.has_value());
  CHECK_FALSE(timer.last()->host_wall_gap.has_value());
}
