#include <steptimer/cpu_backend.hpp>

#include <chrono>
#include <thread>

#include <steptimer/step_timer.hpp>

#include "support/catch.hpp"

using namespace std::chrono_literals;

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
