// Calls in any order, marks refused at any point, a timeline that is lost: each step ends in one count and
// each mark is given back once.
#include <steptimer/step_timer.hpp>

#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/counts.hpp"
#include "support/scripted_backend.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::MarkStatus;
using steptimer::StepCounts;
using steptimer::StepRecord;
using steptimer::StepTimer;
using steptimer::StepTimerOptions;
using steptimer::TimerState;

namespace {

struct Loop {
  explicit Loop(StepTimerOptions options = {}) : timer(backend, with_recorders(std::move(options))) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  ScriptedBackend::Script& script() { return *backend.script; }
  void pass(nanoseconds time) { script().now += time; }
  void start() {
    timer.on_batch_start();
    pass(20ms);
  }
  void end() {
    timer.on_batch_end();
    pass(20ms);
  }
  void step() {
    start();
    end();
  }
  /// Every mark that was dropped has come back once, and was asked for only while the timer held it.
  bool marks_are_accounted_for() {
    return script().given_back_twice == 0 && script().out.empty() && !script().asked_outside_a_reading;
  }

  ScriptedBackend backend;
  std::vector<StepRecord> records;
  std::vector<std::string> warnings;
  StepTimer<ScriptedBackend> timer;

 private:
  StepTimerOptions with_recorders(StepTimerOptions options) {
    options.on_record = [this](const StepRecord& record) { records.push_back(record); };
    options.on_warning = [this](std::string_view text) { warnings.emplace_back(text); };
    return options;
  }
};

}  // namespace

TEST_CASE("start, start, end, end, end, start, end: two steps, one dropped, two ends ignored", "[case-44]") {
  Loop loop;
  loop.start();
  loop.start();
  loop.end();
  loop.end();
  loop.end();
  loop.start();
  loop.end();
  loop.timer.finish();
  StepCounts expected;
  expected.started = 3;
  expected.measured = 2;
  expected.dropped = 1;
  expected.ignored_ends = 2;
  CHECK(loop.timer.counts() == expected);
  REQUIRE(loop.records.size() == 2);
  CHECK(loop.records[0].step == 1);
  CHECK(loop.records[0].batch_time == nanoseconds(20ms));
  CHECK(loop.records[1].batch_time == nanoseconds(20ms));
  CHECK(loop.warnings.size() == 2);
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("starts without ends keep no more than one mark and nothing grows", "[case-44]") {
  Loop loop;
  for (int i = 0; i < 1000; ++i) {
    loop.start();
    CHECK(loop.script().out.size() <= 1);
  }
  loop.end();
  loop.timer.finish();
  CHECK(loop.timer.counts().dropped == 999);
  CHECK(loop.timer.counts().measured == 1);
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("the start of a dropped step still ends the gap before it", "[case-44]") {
  Loop loop;
  loop.step();
  loop.script().device_runs = false;  // so the first step is still pending when the second is dropped
  for (int i = 0; i < 5; ++i) loop.start();
  CHECK(loop.script().out.size() <= 4);
  loop.script().device_runs = true;
  loop.end();
  loop.timer.finish();
  REQUIRE(loop.records.size() == 2);
  CHECK(loop.records[0].wall_gap == nanoseconds(40ms));
  CHECK(loop.records[0].data_time == nanoseconds(20ms));
  CHECK(loop.records[1].step == 5);
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("a start that is refused costs its step, and the gap before it has no end") {
  Loop loop;
  loop.step();
  loop.script().record = {MarkStatus::refused};
  loop.step();
  loop.step();
  loop.timer.finish();
  StepCounts expected;
  expected.started = 3;
  expected.measured = 2;
  expected.failed = 1;
  CHECK(loop.timer.counts() == expected);
  CHECK_FALSE(loop.records[0].wall_gap.has_value());
  CHECK(loop.records[1].step == 2);
  CHECK(loop.warnings.size() == 1);
  CHECK(loop.timer.status().state == TimerState::ok);
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("an end that is refused costs its step; its start still ends the gap before it") {
  Loop loop;
  loop.step();
  loop.script().record = {MarkStatus::ok, MarkStatus::refused};
  loop.step();
  loop.step();
  loop.timer.finish();
  REQUIRE(loop.records.size() == 2);
  CHECK(loop.records[0].wall_gap == nanoseconds(40ms));
  CHECK(loop.records[1].step == 2);
  CHECK(loop.timer.counts().failed == 1);
  CHECK(loop.timer.counts().ignored_ends == 0);
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("a step that the timeline cannot time is failed and the next one is measured") {
  Loop loop;
  loop.script().query = {MarkStatus::refused};
  for (int i = 0; i < 3; ++i) loop.step();
  loop.timer.finish();
  CHECK(loop.timer.counts().failed == 1);
  REQUIRE(loop.records.size() == 2);
  CHECK(loop.records[0].step == 1);
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("elapsed may take back what query said: the step is measured later", "[case-17]") {
  Loop loop;
  loop.script().elapsed_status = {MarkStatus::not_ready};
  loop.step();
  loop.step();
  CHECK(loop.records.empty());
  CHECK(loop.timer.poll() == 1);
  loop.timer.finish();
  REQUIRE(loop.records.size() == 2);
  CHECK(loop.records[0].batch_time == nanoseconds(20ms));
  CHECK(loop.warnings.empty());
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("times below zero become zero and are counted", "[case-39]") {
  Loop loop;
  loop.script().elapsed = {-1780us,      std::nullopt,  // batch_time below zero, wall_gap true
                           std::nullopt, -1us,          // wall_gap below zero
                           std::nullopt, 19ms};         // wall_gap below batch_time
  for (int i = 0; i < 4; ++i) loop.step();
  loop.timer.finish();
  REQUIRE(loop.records.size() == 4);
  CHECK(loop.records[0].batch_time == 0ns);
  CHECK(loop.records[0].data_time == nanoseconds(40ms));
  CHECK(loop.records[1].wall_gap == 0ns);
  CHECK(loop.records[1].data_time == 0ns);
  CHECK(loop.records[2].wall_gap == nanoseconds(19ms));
  CHECK(loop.records[2].data_time == 0ns);
  CHECK(loop.timer.counts().clamped == 3);
  CHECK(loop.timer.counts().measured == 4);
}

TEST_CASE("after a lost timeline the timer is off, counts every step as failed, and touches nothing", "[case-21]") {
  const int where = GENERATE(range(0, 5));
  Loop loop;
  loop.script().error = {700, "cudaEventQuery", "an illegal memory access was encountered"};
  loop.step();
  switch (where) {
    case 0: loop.script().record = {MarkStatus::lost}; break;
    case 1: loop.script().record = {MarkStatus::ok, MarkStatus::lost}; break;
    case 2: loop.script().begin_reading = {MarkStatus::lost}; break;
    case 3: loop.script().query = {MarkStatus::lost}; break;
    case 4: loop.script().elapsed_status = {MarkStatus::ok, MarkStatus::lost}; break;
    default: break;
  }
  loop.step();
  CHECK(loop.timer.status().state == TimerState::failed);
  CHECK(loop.timer.status().error_code == 700);
  CHECK(std::string(loop.timer.status().call) == "cudaEventQuery");
  REQUIRE(loop.warnings.size() == 1);
  CHECK(loop.warnings[0].find("illegal memory access") != std::string::npos);
  CHECK(loop.script().out.empty());

  const int calls = loop.script().records + loop.script().readings;
  for (int i = 0; i < 100; ++i) loop.step();
  CHECK(loop.script().records + loop.script().readings == calls);
  CHECK(loop.timer.poll() == 0);
  CHECK(loop.timer.finish());
  CHECK(loop.timer.counts().started == 102);
  CHECK(loop.timer.counts().failed == 102);
  CHECK(loop.timer.counts().ignored_ends == 0);
  CHECK(adds_up(loop.timer.counts()));

  loop.script().error = {};
  loop.timer.release();
  CHECK(loop.timer.status().state == TimerState::ok);
  loop.step();
  CHECK(loop.timer.finish());
  CHECK(loop.timer.counts().measured == 1);
}

TEST_CASE("a release from on_record outlives the loss of what it gave back") {
  ScriptedBackend backend;
  StepTimer<ScriptedBackend>* self = nullptr;
  StepTimerOptions options;
  options.on_warning = [](std::string_view) {};
  options.on_record = [&](const StepRecord&) { self->release(); };
  StepTimer<ScriptedBackend> timer(backend, options);
  self = &timer;
  backend.script->device_runs = false;
  for (int i = 0; i < 4; ++i) {
    timer.on_batch_start();
    timer.on_batch_end();
  }
  backend.script->device_runs = true;
  backend.script->query = {MarkStatus::ok, MarkStatus::lost};
  timer.poll();
  CHECK(timer.status().state == TimerState::ok);
  CHECK(adds_up(timer.counts()));
  CHECK(backend.script->out.empty());
}

TEST_CASE("host_start begins again after a reset, also of a timer that was off meanwhile") {
  Loop loop;
  loop.step();
  loop.script().record = {MarkStatus::lost};
  loop.step();
  loop.timer.reset();
  loop.step();  // counted while off
  loop.timer.release();
  loop.step();
  loop.timer.finish();
  REQUIRE(loop.records.size() == 1);
  CHECK(loop.records[0].host_start == 0ns);
  CHECK(loop.records[0].step == 1);
}

TEST_CASE("readings that the backend puts off lose nothing, and finish does not wait for them") {
  Loop loop;
  loop.script().begin_reading = std::deque<MarkStatus>(6, MarkStatus::not_ready);
  for (int i = 0; i < 5; ++i) loop.step();
  CHECK(loop.records.empty());
  loop.script().begin_reading = {MarkStatus::not_ready};
  const auto before = loop.script().now;
  CHECK_FALSE(loop.timer.finish());
  CHECK(loop.script().now == before);
  CHECK(loop.timer.finish());
  CHECK(loop.records.size() == 5);
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("finish drops a step that is still open, and its end is ignored") {
  Loop loop;
  loop.step();
  loop.start();
  CHECK(loop.timer.finish());
  loop.end();
  StepCounts expected;
  expected.started = 2;
  expected.measured = 1;
  expected.dropped = 1;
  expected.ignored_ends = 1;
  CHECK(loop.timer.counts() == expected);
  CHECK(loop.records[0].wall_gap == nanoseconds(40ms));  // the open step's start was marked
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("nothing is asked when nothing can be known") {
  Loop loop;
  CHECK(loop.timer.poll() == 0);
  loop.start();
  CHECK(loop.timer.poll() == 0);
  loop.end();
  CHECK(loop.timer.poll() == 0);  // its gap is open
  CHECK(loop.script().readings == 0);
}

TEST_CASE("a device that keeps up is asked once a step") {
  Loop loop;
  for (int i = 0; i < 100; ++i) loop.step();
  CHECK(loop.script().records == 200);
  CHECK(loop.script().queries == 99);
  CHECK(loop.script().readings == 99);
  CHECK(loop.script().discarded == 0);
}

TEST_CASE("sampling gives marks back for use, rather than away") {
  StepTimerOptions options;
  options.sample_every = 10;
  Loop loop(options);
  for (int i = 0; i < 101; ++i) loop.step();
  loop.timer.finish();
  CHECK(loop.script().records == 11 * 2 + 10);
  CHECK(loop.script().discarded == 0);
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("any sequence of calls and refusals keeps counts, order and marks right", "[case-44]") {
  const auto seed = GENERATE(range(0u, 40u));
  std::mt19937 random(seed);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  StepTimerOptions options;
  options.max_in_flight = random() % 6;
  options.sample_every = random() % 4;
  options.window = random() % 4;
  options.warmup_steps = random() % 3;
  Loop loop(options);
  auto some_status = [&] {
    return one_in(30) ? MarkStatus::refused : one_in(20) ? MarkStatus::not_ready : MarkStatus::ok;
  };
  std::uint64_t resets = 0;
  for (int call = 0; call < 3000; ++call) {
    loop.script().device_runs = !one_in(3);
    if (one_in(4)) loop.script().record.push_back(one_in(20) ? MarkStatus::refused : MarkStatus::ok);
    if (one_in(4)) loop.script().query.push_back(some_status());
    if (one_in(6)) loop.script().elapsed_status.push_back(some_status());
    if (one_in(50)) loop.script().query.push_back(MarkStatus::lost);
    const std::size_t records_before = loop.records.size();
    switch (random() % 16) {
      case 0:
      case 1:
      case 2:
      case 3: loop.start(); break;
      case 4:
      case 5:
      case 6:
      case 7: loop.end(); break;
      case 8: loop.timer.pause(); break;
      case 9: (void)loop.timer.poll(); break;
      case 10: (void)loop.timer.finish(nanoseconds{random() % 3}); break;
      case 11:
        if (one_in(10)) {
          loop.timer.reset();
          ++resets;
          loop.records.clear();
        }
        break;
      case 12:
        if (one_in(3)) loop.timer.release();
        break;
      case 13: {
        StepTimer<ScriptedBackend> moved = std::move(loop.timer);
        loop.timer = std::move(moved);
        break;
      }
      case 14:
        try {
          const auto scope = loop.timer.step();
          if (one_in(2)) throw std::runtime_error("in a step");
        } catch (const std::runtime_error&) {
        }
        break;
      default: loop.pass(1ms); break;
    }
    const StepCounts counts = loop.timer.counts();
    INFO("seed " << seed << ", call " << call << ": " << counts);
    REQUIRE(adds_up(counts));
    REQUIRE(counts.pending <= options.max_in_flight);
    REQUIRE(loop.script().out.size() <= 3 * counts.pending + 1);
    REQUIRE(loop.script().given_back_twice == 0);
    REQUIRE_FALSE(loop.script().asked_outside_a_reading);
    REQUIRE_FALSE(loop.script().reading);
    REQUIRE(counts.measured == loop.records.size());
    for (std::size_t i = std::max<std::size_t>(records_before, 1); i < loop.records.size(); ++i)
      REQUIRE(loop.records[i].step > loop.records[i - 1].step);
    for (std::size_t i = records_before; i < loop.records.size(); ++i) {
      const StepRecord& record = loop.records[i];
      REQUIRE(record.batch_time >= 0ns);
      REQUIRE(record.wall_gap.has_value() == record.data_time.has_value());
      REQUIRE(record.wall_gap.has_value() == record.host_wall_gap.has_value());
      if (record.data_time) REQUIRE((*record.data_time >= 0ns && *record.data_time <= *record.wall_gap));
    }
  }
  loop.timer.release();
  CHECK(loop.marks_are_accounted_for());
}

TEST_CASE("finish ends on time where it asks many times") {
  Loop loop;
  loop.step();
  loop.script().device_runs = false;
  const auto begin = loop.script().now;
  CHECK_FALSE(loop.timer.finish(120us));  // the backend waits 50 us at a time
  CHECK(loop.script().now - begin == nanoseconds(120us));
}

TEST_CASE("a reset from on_record gives back the marks of steps already read") {
  ScriptedBackend backend;
  StepTimer<ScriptedBackend>* self = nullptr;
  int calls = 0;
  StepTimerOptions options;
  options.on_record = [&](const StepRecord&) {
    ++calls;
    self->reset();
  };
  StepTimer<ScriptedBackend> timer(backend, options);
  self = &timer;
  backend.script->device_runs = false;
  for (int i = 0; i < 4; ++i) {
    timer.on_batch_start();
    timer.on_batch_end();
  }
  backend.script->device_runs = true;
  timer.poll();  // reads three steps; the reset comes with the first of them
  CHECK(calls == 1);
  CHECK(backend.script->out.empty());
  CHECK(backend.script->given_back_twice == 0);
}
