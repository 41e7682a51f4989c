// How hooks become records, on a device that runs behind its host, in exact time.
#include <steptimer/step_timer.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <steptimer/manual_backend.hpp>

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

/// A timer over a manual device, and the records it has made.
struct Loop {
  explicit Loop(StepTimerOptions options = {}) : timer(device, with_recorder(std::move(options))) {}
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// One step: `host` of the host's own work while `work` is queued; then `gap` of host time before the next.
  void step(nanoseconds work, nanoseconds host, nanoseconds gap, std::uint64_t items = 0) {
    timer.on_batch_start();
    device.launch(work);
    device.advance(host);
    timer.on_batch_end(items);
    device.advance(gap);
  }

  ManualBackend device;
  std::vector<StepRecord> records;
  StepTimer<ManualBackend> timer;

 private:
  StepTimerOptions with_recorder(StepTimerOptions options) {
    options.on_record = [this](const StepRecord& record) { records.push_back(record); };
    options.on_warning = [](std::string_view) {};  // counts are asserted instead
    return options;
  }
};

}  // namespace

TEST_CASE("work still queued at the end hook is the step's, not the loader's", "[case-01]") {
  Loop loop;
  loop.timer.on_batch_start();  // host at 0 ms
  loop.device.launch(90ms);
  loop.device.advance(5ms);
  loop.timer.on_batch_end();
  CHECK(loop.records.empty());
  loop.device.advance(95ms);
  CHECK(loop.timer.poll() == 0);  // the gap is still open
  loop.timer.on_batch_start();    // host at 100 ms
  CHECK(loop.records.empty());    // the start hook measures nothing
  loop.device.launch(90ms);
  loop.device.advance(5ms);
  loop.timer.on_batch_end();

  REQUIRE(loop.records.size() == 1);
  const StepRecord& first = loop.records[0];
  CHECK(first.step == 0);
  CHECK(first.batch_time == nanoseconds(90ms));
  CHECK(first.wall_gap == nanoseconds(100ms));
  CHECK(first.data_time == nanoseconds(10ms));
  CHECK(first.data_wait_percent() == 10.0);
  CHECK(first.host_batch_time == nanoseconds(5ms));
  CHECK(first.host_wall_gap == nanoseconds(100ms));
  CHECK(first.host_data_wait_percent() == 95.0);
}

TEST_CASE("a host that synchronises every tenth step shifts no time between steps", "[case-03]") {
  // The device is always busy, 10 ms a step; nine host gaps of 1 ms, then one of 91 ms in which the loss is read.
  Loop loop;
  for (int step = 0; step < 11; ++step) loop.step(10ms, 0ns, step == 9 ? 91ms : 1ms);
  loop.timer.finish();
  REQUIRE(loop.records.size() == 11);
  for (std::size_t i = 0; i < 10; ++i) CHECK(loop.records[i].data_time == 0ns);
  CHECK(loop.timer.total().wall_total == nanoseconds(100ms));
  CHECK(loop.timer.total().data_wait_percent() == 0.0);
}

TEST_CASE("hooks in the wrong order measure something else, and the right order the loader", "[case-05]") {
  Loop wrong;  // the start hook runs before the batch is fetched
  for (int i = 0; i < 2; ++i) wrong.step(0ns, 100ms, 0ns);
  wrong.timer.finish();
  CHECK(wrong.records[0].batch_time == nanoseconds(100ms));
  CHECK(wrong.records[0].data_time == 0ns);

  Loop right;
  for (int i = 0; i < 2; ++i) right.step(0ns, 60ms, 40ms);
  right.timer.finish();
  CHECK(right.records[0].batch_time == nanoseconds(60ms));
  CHECK(right.records[0].data_time == nanoseconds(40ms));
}

TEST_CASE("the last step is not lost: finish measures it, without a gap", "[case-11]") {
  Loop loop;
  for (int i = 0; i < 3; ++i) loop.step(90ms, 5ms, 95ms);
  CHECK(loop.timer.counts().pending == 1);
  CHECK(loop.timer.finish(0ns));
  REQUIRE(loop.records.size() == 3);
  CHECK(loop.records[1].data_time.has_value());
  CHECK(loop.records[2].batch_time == nanoseconds(90ms));
  CHECK_FALSE(loop.records[2].wall_gap.has_value());
  CHECK_FALSE(loop.records[2].data_time.has_value());
  CHECK_FALSE(loop.records[2].host_wall_gap.has_value());
  CHECK(loop.timer.total().steps == 3);
  CHECK(loop.timer.total().gaps == 2);
}

TEST_CASE("a timer without steps has nothing to say", "[case-11]") {
  Loop loop;
  CHECK(loop.timer.finish());
  CHECK(loop.timer.poll() == 0);
  CHECK_FALSE(loop.timer.last().has_value());
  CHECK_FALSE(loop.timer.data_wait_percent().has_value());
  CHECK(loop.timer.window().steps == 0);
  CHECK(loop.timer.counts() == StepCounts{});
  CHECK(loop.timer.status().state == TimerState::ok);
}

TEST_CASE("pause keeps a validation out of the data time", "[case-09]") {
  // Ten steps in cycles of 100 ms, with 60 s of validation on the same stream after the fifth.
  const auto run = [](bool pause) {
    Loop loop;
    for (int step = 1; step <= 10; ++step) {
      loop.step(90ms, 5ms, 95ms);
      if (step != 5) continue;
      if (pause) loop.timer.pause();
      loop.device.launch(60s);
      loop.device.synchronize();
    }
    loop.timer.finish();
    return std::pair{loop.records, loop.timer.total()};
  };

  const auto [records, total] = run(true);
  REQUIRE(records.size() == 10);
  CHECK(total.gaps == 8);
  CHECK(total.data_total == nanoseconds(80ms));
  CHECK(total.batch_total == nanoseconds(900ms));
  CHECK_FALSE(records[4].data_time.has_value());
  CHECK_FALSE(records[9].data_time.has_value());
  CHECK(total.data_max == nanoseconds(10ms));

  CHECK(run(false).second.data_max == nanoseconds(60s + 10ms));
}

TEST_CASE("pause in the middle of a step leaves that step without a gap", "[case-09]") {
  Loop loop;
  loop.timer.on_batch_start();
  loop.timer.pause();
  loop.device.launch(10ms);
  loop.timer.on_batch_end();
  loop.device.advance(30s);
  loop.step(10ms, 0ns, 20ms);
  loop.step(10ms, 0ns, 20ms);
  loop.timer.finish();
  REQUIRE(loop.records.size() == 3);
  CHECK(loop.records[0].batch_time == nanoseconds(10ms));
  CHECK_FALSE(loop.records[0].data_time.has_value());
  CHECK(loop.records[1].data_time == nanoseconds(10ms));
}

TEST_CASE("pause twice, before the first step, and after finish is harmless", "[case-09]") {
  Loop loop;
  loop.timer.pause();
  loop.timer.pause();
  loop.step(10ms, 0ns, 20ms);
  loop.timer.pause();
  loop.timer.pause();
  loop.step(10ms, 0ns, 20ms);
  loop.timer.finish();
  loop.timer.pause();
  CHECK(loop.timer.counts().measured == 2);
  CHECK(loop.timer.total().gaps == 0);
}

TEST_CASE("a device far behind is measured later, in order, with its own times", "[case-35]") {
  Loop loop;
  for (int i = 0; i < 8; ++i) loop.step(10ms, 0ns, 0ns);  // the host queues 8 steps at once
  CHECK(loop.records.empty());
  CHECK(loop.timer.counts().pending == 8);
  loop.device.advance(75ms);
  CHECK(loop.timer.poll() == 7);
  CHECK(loop.timer.finish());
  REQUIRE(loop.records.size() == 8);
  for (std::uint64_t i = 0; i < 8; ++i) {
    CHECK(loop.records[i].step == i);
    CHECK(loop.records[i].batch_time == nanoseconds(10ms));
    if (i < 7) CHECK(loop.records[i].data_time == 0ns);
  }
}

TEST_CASE("one hook measures a bounded number of steps, and still catches up") {
  Loop loop;
  for (int i = 0; i < 100; ++i) loop.step(1ms, 0ns, 0ns);
  loop.device.synchronize();
  std::size_t before = loop.records.size();
  for (int i = 0; i < 120; ++i) {
    loop.step(1ms, 0ns, 10ms);
    const std::size_t made = loop.records.size() - before;
    CHECK(made <= 8);
    before = loop.records.size();
  }
  CHECK(loop.timer.counts().pending <= 2);
}

TEST_CASE("finish waits as long as it may and no longer") {
  Loop loop;
  loop.step(10s, 0ns, 0ns);
  CHECK_FALSE(loop.timer.finish(-1s));
  CHECK_FALSE(loop.timer.finish(0ns));
  CHECK(loop.device.host_now().time_since_epoch() == 0ns);
  CHECK_FALSE(loop.timer.finish(3s));
  CHECK(loop.device.host_now().time_since_epoch() == nanoseconds(3s));
  CHECK(loop.timer.counts().pending == 1);
  CHECK(loop.timer.finish());
  CHECK(loop.timer.counts().pending == 0);
  CHECK(loop.records.size() == 1);
}

TEST_CASE("a timer goes on after finish; the gap across it is not data time", "[case-09]") {
  Loop loop;
  loop.step(10ms, 0ns, 20ms);
  loop.timer.finish();
  loop.device.advance(1h);
  loop.step(10ms, 0ns, 20ms);
  loop.step(10ms, 0ns, 20ms);
  loop.timer.finish();
  REQUIRE(loop.records.size() == 3);
  CHECK(loop.timer.total().data_total == nanoseconds(10ms));
}

TEST_CASE("host_start counts from the first start, ordinals from 0") {
  Loop loop;
  loop.device.advance(7s);
  for (int i = 0; i < 3; ++i) loop.step(10ms, 1ms, 19ms);
  loop.timer.finish();
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(loop.records[i].step == i);
    CHECK(loop.records[i].host_start == static_cast<int>(i) * nanoseconds(20ms));
  }
}

TEST_CASE("items are those of the step they were given with") {
  Loop loop;
  loop.step(10ms, 0ns, 20ms, 3);
  loop.step(10ms, 0ns, 20ms, 5);
  { const auto scope = loop.timer.step(7); }
  loop.timer.finish();
  CHECK(loop.records[0].items == 3);
  CHECK(loop.records[1].items == 5);
  CHECK(loop.records[2].items == 7);
  CHECK(loop.timer.total().items == 15);
}

TEST_CASE("a scope is a pair of hooks") {
  Loop loop;
  for (int i = 0; i < 2; ++i) {
    {
      const auto scope = loop.timer.step();
      loop.device.launch(90ms);
      loop.device.advance(5ms);
    }
    loop.device.advance(95ms);
  }
  loop.timer.finish();
  CHECK(loop.records[0].batch_time == nanoseconds(90ms));
  CHECK(loop.records[0].data_time == nanoseconds(10ms));
}

TEST_CASE("a scope left by an exception drops its step and nothing else") {
  Loop loop;
  loop.step(10ms, 0ns, 20ms);
  try {
    const auto scope = loop.timer.step();
    loop.device.launch(10ms);
    throw std::runtime_error("out of memory");
  } catch (const std::runtime_error&) {
  }
  loop.device.advance(50ms);
  loop.step(10ms, 0ns, 20ms);
  loop.timer.finish();
  CHECK(loop.timer.counts().dropped == 1);
  CHECK(loop.timer.counts().ignored_ends == 0);
  REQUIRE(loop.records.size() == 2);
  CHECK(loop.records[0].data_time == nanoseconds(10ms));  // up to the start of the dropped step, which did happen
  CHECK(loop.records[1].step == 2);
  CHECK(adds_up(loop.timer.counts()));
}

TEST_CASE("a scope opened while an exception passes ends as a step when its own scope ends normally") {
  Loop loop;
  struct AtUnwind {
    Loop& loop;
    ~AtUnwind() { const auto scope = loop.timer.step(); }
  };
  try {
    const AtUnwind at_unwind{loop};
    throw 1;
  } catch (int) {
  }
  loop.timer.finish();
  CHECK(loop.timer.counts().measured == 1);
  CHECK(loop.timer.counts().dropped == 0);
}

TEST_CASE("a clock that never moves gives lengths of zero and no share", "[case-13]") {
  Loop loop;
  for (int i = 0; i < 5; ++i) loop.step(0ns, 0ns, 0ns);
  loop.timer.finish();
  REQUIRE(loop.records.size() == 5);
  CHECK(loop.records[0].batch_time == 0ns);
  CHECK(loop.records[0].data_time == 0ns);
  CHECK_FALSE(loop.timer.data_wait_percent().has_value());
  CHECK_FALSE(loop.timer.total().data_wait_percent().has_value());
  CHECK_FALSE(loop.timer.total().steps_per_second().has_value());
}

TEST_CASE("reset forgets everything and begins at 0 again") {
  Loop loop;
  for (int i = 0; i < 5; ++i) loop.step(10ms, 0ns, 0ns);
  loop.timer.on_batch_start();
  loop.timer.reset();
  CHECK(loop.timer.counts() == StepCounts{});
  CHECK_FALSE(loop.timer.last().has_value());
  CHECK(loop.timer.total().steps == 0);
  CHECK(loop.timer.window().steps == 0);
  loop.timer.on_batch_end();
  CHECK(loop.timer.counts().ignored_ends == 1);
  loop.device.synchronize();
  loop.records.clear();
  loop.step(10ms, 0ns, 20ms);
  loop.timer.finish();
  REQUIRE(loop.records.size() == 1);
  CHECK(loop.records[0].step == 0);
  CHECK(loop.records[0].host_start == 0ns);
  CHECK(loop.records[0].batch_time == nanoseconds(10ms));
}

TEST_CASE("release measures what is finished, gives up the rest as stale, and the timer goes on") {
  Loop loop;
  loop.step(10ms, 0ns, 0ns);
  loop.step(10ms, 0ns, 0ns);
  loop.device.advance(10ms);  // the first is done, the second is not
  loop.timer.on_batch_start();
  loop.timer.release();
  StepCounts expected;
  expected.started = 3;
  expected.measured = 1;
  expected.stale = 1;
  expected.dropped = 1;
  CHECK(loop.timer.counts() == expected);
  loop.device.synchronize();
  loop.step(10ms, 0ns, 20ms);
  CHECK(loop.timer.finish());
  CHECK(loop.timer.counts().measured == 2);
  CHECK_FALSE(loop.records[1].wall_gap.has_value());
}

TEST_CASE("a moved timer goes on with its steps; the one it came from is disabled", "[case-22]") {
  Loop loop;
  for (int i = 0; i < 3; ++i) loop.step(10ms, 0ns, 0ns);
  StepTimer<ManualBackend> second = std::move(loop.timer);
  CHECK(loop.timer.status().state == TimerState::disabled);  // NOLINT(bugprone-use-after-move): that is the test
  CHECK(loop.timer.counts() == StepCounts{});
  loop.timer.on_batch_start();
  loop.timer.on_batch_end();
  CHECK(loop.timer.finish());
  CHECK(loop.timer.counts() == StepCounts{});

  StepTimer<ManualBackend> third(loop.device);
  third.on_batch_start();
  third = std::move(second);
  CHECK(third.counts().pending == 3);
  CHECK(third.finish());
  CHECK(loop.records.size() == 3);
  CHECK(third.total().batch_total == nanoseconds(30ms));
}

TEST_CASE("a timer moved in the middle of a step ends it", "[case-22]") {
  Loop loop;
  loop.timer.on_batch_start();
  loop.device.launch(10ms);
  StepTimer<ManualBackend> moved = std::move(loop.timer);
  moved.on_batch_end();
  CHECK(moved.finish());
  CHECK(moved.last()->batch_time == nanoseconds(10ms));
}

TEST_CASE("a timer may be moved to itself") {
  Loop loop;
  loop.step(10ms, 0ns, 0ns);
  StepTimer<ManualBackend>& self = loop.timer;
  loop.timer = std::move(self);
  CHECK(loop.timer.counts().pending == 1);
  CHECK(loop.timer.finish());
}

TEST_CASE("destroying a timer calls nobody") {
  std::vector<StepRecord> records;
  {
    ManualBackend device;
    StepTimerOptions options;
    options.on_record = [&](const StepRecord& record) { records.push_back(record); };
    StepTimer<ManualBackend> timer(device, options);
    timer.on_batch_start();
    timer.on_batch_end();
  }
  CHECK(records.empty());
}

TEST_CASE("a timer that takes over another one's steps counts host_start from that one's first start") {
  Loop loop;
  loop.step(10ms, 0ns, 20ms);
  StepTimer<ManualBackend> heir(loop.device);
  heir.on_batch_start();  // a first start of its own, which it gives up
  heir = std::move(loop.timer);
  heir.on_batch_start();
  heir.on_batch_end();
  CHECK(heir.finish());
  REQUIRE(loop.records.size() == 2);
  CHECK(loop.records[0].host_start == 0ns);
  CHECK(loop.records[1].host_start == nanoseconds(20ms));
}

TEST_CASE("hooks catch up with a device that was just behind for a while") {
  Loop loop;
  for (int i = 0; i < 3; ++i) loop.step(10ms, 0ns, 0ns);
  loop.device.advance(15ms);
  loop.step(10ms, 0ns, 0ns);  // measures the first, and looks for the second in vain
  REQUIRE(loop.records.size() == 1);
  for (int i = 0; i < 20; ++i) loop.step(10ms, 0ns, 0ns);
  loop.device.synchronize();
  for (int i = 0; i < 15; ++i) loop.step(1ms, 0ns, 10ms);
  CHECK(loop.timer.counts().pending <= 2);
}

TEST_CASE("a device without a pause is no clock noise") {
  Loop loop;
  for (int i = 0; i < 3; ++i) loop.step(10ms, 0ns, 0ns);
  CHECK(loop.timer.finish());
  CHECK(loop.records[0].wall_gap == nanoseconds(10ms));
  CHECK(loop.records[0].data_time == 0ns);
  CHECK(loop.timer.counts().clamped == 0);
}

TEST_CASE("a step is not measured before its next start is reached") {
  Loop loop;
  loop.step(10ms, 0ns, 0ns);
  loop.device.launch(50ms);  // on the same stream, outside any step
  loop.timer.on_batch_start();
  loop.device.advance(20ms);  // the end of the step is reached, the next start is not
  CHECK(loop.timer.poll() == 0);
  loop.device.advance(40ms);
  CHECK(loop.timer.poll() == 1);
  CHECK(loop.records[0].wall_gap == nanoseconds(60ms));
}
