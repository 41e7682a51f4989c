// fetch(): how much of the wait is the loader's; and what else a record tells of host and device.
#include "catch.hpp"

#include <chrono>
#include <optional>
#include <utility>

#include <steptimer/steptimer.hpp>

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::CpuTimer;
using steptimer::ManualBackend;
using steptimer::StepRecord;
using steptimer::StepSummary;
using steptimer::StepTimer;

namespace {

/// A step of so much device work, queued in no time, then what the host does until the next start.
template <class F>
StepRecord step_then(nanoseconds work, F&& between) {
  ManualBackend device;
  StepTimer timer{device};
  timer.on_batch_start();
  device.launch(work);
  timer.on_batch_end();
  between(timer, device);
  timer.on_batch_start();
  timer.on_batch_end();
  timer.finish();
  // Two steps: the first has the gap. The window holds both, so the first is what the second is not.
  StepSummary all = timer.total();
  REQUIRE(all.gaps == 1);
  StepRecord record;
  record.batch_time = all.batch_in_gaps;
  record.data_time = all.data_total;
  if (all.fetches > 0) {
    record.fetch_time = all.fetch_total;
    record.exposed_fetch = all.exposed_fetch_total;
  }
  return record;
}

}  // namespace

TEST_CASE("a fetch that queued work covers is hidden, and what goes beyond is exposed") {
  const auto fetch_of = [](nanoseconds time) {
    return [time](auto& timer, ManualBackend& device) {
      const auto scope = timer.fetch();
      device.advance(time);
    };
  };
  const StepRecord hidden = step_then(10ms, fetch_of(8ms));
  CHECK(hidden.data_time == 0ms);
  CHECK(hidden.fetch_time == 8ms);
  CHECK(hidden.exposed_fetch == 0ms);

  const StepRecord partly = step_then(10ms, fetch_of(14ms));
  CHECK(partly.data_time == 4ms);
  CHECK(partly.fetch_time == 14ms);
  CHECK(partly.exposed_fetch == 4ms);
}

TEST_CASE("other work of the host's after the fetch is waited for last, and is not the loader's") {
  const StepRecord record = step_then(10ms, [](auto& timer, ManualBackend& device) {
    timer.on_fetch_start();
    device.advance(12ms);
    timer.on_fetch_end();
    device.advance(5ms);  // logging
  });
  CHECK(record.data_time == 7ms);
  CHECK(record.fetch_time == 12ms);
  CHECK(record.exposed_fetch == 2ms);
}

TEST_CASE("a fetch hidden before other work that was waited for is not exposed") {
  const StepRecord record = step_then(10ms, [](auto& timer, ManualBackend& device) {
    timer.on_fetch_start();
    device.advance(1ms);
    timer.on_fetch_end();
    device.advance(20ms);  // a checkpoint
  });
  CHECK(record.data_time == 11ms);
  CHECK(record.fetch_time == 1ms);
  CHECK(record.exposed_fetch == 0ms);
}

TEST_CASE("other work before the fetch may leave all of the fetch exposed") {
  const StepRecord record = step_then(10ms, [](auto& timer, ManualBackend& device) {
    device.advance(15ms);  // a checkpoint
    timer.on_fetch_start();
    device.advance(3ms);
    timer.on_fetch_end();
  });
  CHECK(record.data_time == 8ms);
  CHECK(record.fetch_time == 3ms);
  CHECK(record.exposed_fetch == 3ms);
}

TEST_CASE("several fetches of a gap are summed") {
  const StepRecord record = step_then(0ms, [](auto& timer, ManualBackend& device) {
    for (int i = 0; i < 3; ++i) {
      {
        const auto scope = timer.fetch();
        device.advance(2ms);
      }
      device.advance(1ms);
    }
  });
  CHECK(record.data_time == 9ms);
  CHECK(record.fetch_time == 6ms);
  CHECK(record.exposed_fetch == 6ms);
}

TEST_CASE("a fetch begun while another goes on ends that one, and both are counted") {
  const StepRecord record = step_then(0ms, [](auto& timer, ManualBackend& device) {
    timer.on_fetch_start();
    device.advance(5ms);
    timer.on_fetch_start();
    device.advance(1ms);
    timer.on_fetch_end();
  });
  CHECK(record.fetch_time == 6ms);
}

TEST_CASE("a fetch still going on ends at the next start; an end without a start is nothing") {
  const StepRecord open = step_then(1ms, [](auto& timer, ManualBackend& device) {
    timer.on_fetch_start();
    device.advance(4ms);
  });
  CHECK(open.fetch_time == 4ms);
  CHECK(open.exposed_fetch == 3ms);
  const StepRecord none = step_then(1ms, [](auto& timer, ManualBackend& device) {
    timer.on_fetch_end();
    device.advance(4ms);
  });
  CHECK(none.data_time == 3ms);
  CHECK_FALSE(none.fetch_time.has_value());
}

TEST_CASE("a fetch belongs to no step before the first one and after a pause") {
  ManualBackend device;
  StepTimer timer{device};
  {
    const auto scope = timer.fetch();
    device.advance(50ms);
  }
  timer.on_batch_start();
  timer.on_batch_end();
  timer.pause();
  {
    const auto scope = timer.fetch();
    device.advance(50ms);
  }
  CHECK(timer.poll() == 1);
  CHECK_FALSE(timer.last()->fetch_time.has_value());
  timer.on_batch_start();
  timer.on_batch_end();
  timer.finish();
  CHECK_FALSE(timer.last()->fetch_time.has_value());
  CHECK(timer.total().fetches == 0);
}

TEST_CASE("a step knows nothing of the fetch of the one that had its place") {
  ManualBackend device;
  steptimer::StepTimerOptions options;
  options.window = 1;
  StepTimer timer{device, options};
  for (int i = 0; i < 40; ++i) {  // often enough for all places
    timer.on_batch_start();
    if (i > 0) {
      CHECK(timer.poll() == 1);
      const bool fetched = i <= 20 && i % 2 == 1;
      CHECK(timer.last()->fetch_time == (fetched ? std::optional<nanoseconds>(2ms) : std::nullopt));
    }
    device.launch(1ms);
    timer.on_batch_end();
    if (i < 20 && i % 2 == 0) {
      const auto scope = timer.fetch();
      device.advance(2ms);
    }
    device.advance(3ms);
  }
  CHECK(timer.total().fetches == 10);
  CHECK(timer.total().fetch_total == 20ms);
}

TEST_CASE("without a gap nothing is known of what the fetch cost") {
  ManualBackend device;
  steptimer::StepTimerOptions options;
  options.window = 1;
  StepTimer timer{device, options};
  for (int i = 0; i < 12; ++i) {  // often enough for all places
    timer.on_batch_start();
    timer.on_batch_end();
    const auto scope = timer.fetch();
    device.advance(2ms);
  }
  timer.pause();
  timer.poll();
  CHECK(timer.last()->step == 11);
  CHECK(timer.last()->fetch_time == 2ms);
  CHECK_FALSE(timer.last()->exposed_fetch.has_value());
}

TEST_CASE("a fetch of the next batch within the step is a fetch of that step's") {
  ManualBackend device;
  StepTimer timer{device};
  for (int i = 0; i < 2; ++i) {
    timer.on_batch_start();
    device.launch(10ms);
    timer.on_fetch_start();
    device.advance(12ms);
    timer.on_fetch_end();
    timer.on_batch_end();
  }
  timer.finish();
  const StepSummary total = timer.total();
  CHECK(total.data_total == 0ms);
  CHECK(total.fetch_total == 12ms);
  CHECK(total.exposed_fetch_total == 0ms);  // the wait was within the step, so no data time
}

TEST_CASE("a fetch goes along when a timer is moved, and is forgotten by reset()") {
  ManualBackend device;
  StepTimer timer{device};
  timer.on_batch_start();
  timer.on_batch_end();
  timer.on_fetch_start();
  device.advance(2ms);
  StepTimer moved = std::move(timer);
  device.advance(1ms);
  moved.on_fetch_end();
  moved.on_fetch_start();
  moved.on_batch_start();
  moved.on_batch_end();
  moved.finish();
  CHECK(moved.total().fetch_total == 3ms);

  StepTimer assigned{device};
  moved.on_batch_start();
  moved.on_batch_end();
  moved.on_fetch_start();
  device.advance(4ms);
  assigned = std::move(moved);
  moved = StepTimer{device};
  assigned.on_fetch_end();
  assigned.on_batch_start();
  assigned.on_batch_end();
  assigned.finish();
  CHECK(assigned.total().fetch_total == 7ms);

  moved.on_fetch_start();
  moved.reset();
  moved.on_batch_start();
  device.advance(1ms);
  moved.on_fetch_end();
  moved.on_batch_end();
  moved.on_batch_start();
  moved.on_batch_end();
  moved.finish();
  CHECK(moved.total().fetches == 0);
}

TEST_CASE("whether the device had run dry before the host ended the step") {
  const auto drained = [](nanoseconds work, nanoseconds host) {
    ManualBackend device;
    StepTimer timer{device};
    timer.on_batch_start();
    device.launch(work);
    device.advance(host);
    timer.on_batch_end();
    timer.finish();
    return timer.last()->device_drained;
  };
  CHECK(drained(10ms, 1ms) == false);
  CHECK(drained(1ms, 10ms) == true);
  CHECK(drained(10ms + 10us, 10ms) == true);  // within the latency of events
  CHECK(drained(10ms + 11us, 10ms) == false);
  CHECK(drained(12us, 8us) == false);  // which is no more than a quarter of a step
}

TEST_CASE("on the host's own timeline nothing can have run dry") {
  CpuTimer timer;
  timer.on_batch_start();
  timer.on_batch_end();
  timer.finish();
  CHECK_FALSE(timer.last()->device_drained.has_value());
  CHECK(timer.total().device_steps == 0);
  CHECK(timer.total().steps == 1);
}

TEST_CASE("how many steps the host was ahead") {
  ManualBackend device;
  StepTimer timer{device};
  for (int i = 0; i < 3; ++i) {
    timer.on_batch_start();
    device.launch(10ms);
    timer.on_batch_end();
  }
  timer.finish();
  CHECK(timer.last()->steps_ahead == 2);
  CHECK(timer.total().device_steps == 3);
  CHECK(timer.total().drained_steps == 0);
}
