// Built with and without exceptions and RTTI: the numbers are the same, and these.

#include <chrono>
#include <cstdio>
#include <steptimer/steptimer.hpp>
#include <thread>

using namespace std::chrono_literals;

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not true: %s\n", what);
  ++failures;
}

void exact_numbers() {
  steptimer::ManualBackend device;
  std::uint64_t records = 0;
  steptimer::StepTimerOptions options;
  options.on_record = [&records](const steptimer::StepRecord&) { ++records; };
  steptimer::StepTimer<steptimer::ManualBackend> timer{device, options};
  for (int step = 0; step < 10; ++step) {
    timer.on_batch_start();
    device.launch(90ms);
    device.advance(5ms);
    timer.on_batch_end(32);
    device.advance(95ms);
  }
  expect(timer.finish(), "nothing is pending");
  const steptimer::StepSummary total = timer.total();
  expect(records == 10 && total.steps == 10 && total.gaps == 9, "10 records, 9 gaps");
  expect(total.batch_total == 900ms, "batch_total is 900 ms");
  expect(total.data_total == 90ms, "data_total is 90 ms");
  expect(total.data_wait_percent() == 10.0, "data wait is 10 %");
}

void real_clock() {
  steptimer::CpuTimer timer;
  for (int step = 0; step < 3; ++step) {
    const auto scope = timer.step(1);
    std::this_thread::sleep_for(2ms);
  }
  expect(timer.finish(), "a CPU timer has nothing pending");
  expect(timer.counts().measured == 3, "3 steps are measured");
  expect(timer.total().batch_min >= 2ms, "no step is shorter than its sleep");
}

}  // namespace

int main() {
  exact_numbers();
  real_clock();
  return failures == 0 ? 0 : 1;
}
