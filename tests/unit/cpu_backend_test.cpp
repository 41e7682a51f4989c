#include <steptimer/cpu_backend.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include <steptimer/step_timer.hpp>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::StepRecord;
using steptimer::StepTimer;
using steptimer::StepTimerOptions;

namespace {

std::time_t wall_clock_set_by = 0;  // seconds

/// The CPU's timeline over a host clock that the test moves.
class CpuOnSetClock : public steptimer::CpuBackend {
 public:
  explicit CpuOnSetClock(const nanoseconds& now) : now_(&now) {}
  steptimer::HostTime host_now() const noexcept { return steptimer::HostTime{*now_}; }

 private:
  const nanoseconds* now_;
};

/// Steps of `inside` between the hooks and `outside` from one to the next.
std::vector<StepRecord> records_of(int steps, nanoseconds inside, nanoseconds outside) {
  nanoseconds now{0};
  std::vector<StepRecord> records;
  StepTimerOptions options;
  options.on_record = [&](const StepRecord& record) { records.push_back(record); };
  StepTimer<CpuOnSetClock> timer(CpuOnSetClock(now), options);
  for (int i = 0; i < steps; ++i) {
    timer.on_batch_start();
    now += inside;
    timer.on_batch_end();
    now += outside;
  }
  timer.finish();
  return records;
}

}  // namespace

// In place of the C library's, so that the wall clock of this program can be set.
int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_REALTIME) time->tv_sec += wall_clock_set_by;
  return result;
}

TEST_CASE("on the CPU the timeline is the host's clock") {
  steptimer::CpuTimer timer;
  for (int i = 0; i < 3; ++i) {
    timer.on_batch_start();
    std::this_thread::sleep_for(2ms);
    timer.on_batch_end();
  }
  CHECK(timer.counts().measured == 2);  // the last one's gap is open
  CHECK(timer.finish(0ns));
  REQUIRE(timer.total().steps == 3);
  CHECK(timer.total().batch_min >= 2ms);
  CHECK(timer.last()->batch_time == timer.last()->host_batch_time);
  CHECK(timer.total().wall_total == timer.total().host_wall_total);
  CHECK(timer.total().data_wait_percent() == timer.total().host_data_wait_percent());
}

TEST_CASE("on the CPU a start hook above the loader makes the loader a part of the step, and one below it does not",
          "[case-05]") {
  const auto wrong_order = records_of(3, 40ms + 60ms, 0ms);
  REQUIRE(wrong_order.size() == 3);
  CHECK(wrong_order[0].batch_time == nanoseconds{100ms});
  CHECK(wrong_order[0].data_time == nanoseconds{0});
  CHECK(wrong_order[0].data_wait_percent() == 0.0);

  const auto right_order = records_of(3, 60ms, 40ms);
  REQUIRE(right_order.size() == 3);
  CHECK(right_order[0].batch_time == nanoseconds{60ms});
  CHECK(right_order[0].data_time == nanoseconds{40ms});
  CHECK(right_order[0].data_wait_percent() == 40.0);
}

TEST_CASE("a wall clock that is set in the middle of a step does not change its length", "[case-42]") {
  const std::time_t set_by = GENERATE(-3600, 3600);
  INFO("set by " << set_by << " s");
  using WallClock = std::chrono::system_clock;
  steptimer::CpuTimer timer;
  for (int i = 0; i < 2; ++i) {
    const auto before = WallClock::now();
    timer.on_batch_start();
    wall_clock_set_by = set_by;
    std::this_thread::sleep_for(2ms);
    timer.on_batch_end();
    const auto by_wall_clock = WallClock::now() - before;
    wall_clock_set_by = 0;
    CHECK((by_wall_clock < 0ns) == (set_by < 0));  // the setting is seen by those who ask
    CHECK((by_wall_clock < -30min || by_wall_clock > 30min));
  }
  CHECK(timer.finish());
  REQUIRE(timer.total().steps == 2);
  CHECK(timer.total().batch_min >= 2ms);
  CHECK(timer.total().batch_max < 30min);
  CHECK(timer.total().data_max < 30min);
}

TEST_CASE("on a clock too coarse for its steps nothing is divided by zero", "[case-13]") {
  // It never moves, or only inside the steps, or only between them.
  const nanoseconds inside = GENERATE(as<nanoseconds>{}, 0ns, 1ns);
  const nanoseconds outside = GENERATE(as<nanoseconds>{}, 0ns, 1ns);
  INFO(inside.count() << " ns inside the steps, " << outside.count() << " ns between them");
  std::feclearexcept(FE_ALL_EXCEPT);
  steptimer::StepSummary total;
  for (const StepRecord& record : records_of(5, inside, outside)) {
    CHECK(record.batch_time == inside);
    const auto percent = record.data_wait_percent();
    const bool has_share = record.data_time && inside + outside > 0ns;
    CHECK(percent.has_value() == has_share);
    if (percent) CHECK(*percent == (outside == 0ns ? 0.0 : inside == 0ns ? 100.0 : 50.0));
    CHECK(record.host_data_wait_percent() == percent);
    total = merge(total, steptimer::summary_of(record));
  }
  CHECK(total.steps == 5);
  CHECK(total.data_wait_percent().has_value() == (inside + outside > 0ns));
  CHECK(total.steps_per_second().has_value() == (inside + outside > 0ns));
  CHECK(total.items_per_second().has_value() == (inside + outside > 0ns));
  CHECK(total.batch_mean() == inside);
  CHECK(std::fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW) == 0);  // what a trap would be set on
}
