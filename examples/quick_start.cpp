#include <fmt/core.h>

#include <chrono>
#include <steptimer/format.hpp>
#include <steptimer/steptimer.hpp>
#include <thread>

int main() {
  using namespace std::chrono_literals;
  steptimer::CpuTimer timer;
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(4ms);  // fetch a batch
    timer.on_batch_start();
    std::this_thread::sleep_for(6ms);  // forward, backward, optimizer
    timer.on_batch_end(32);            // 32 samples
  }
  timer.finish();
  fmt::print("{}\n", timer.total());
}
