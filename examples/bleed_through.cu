// How GPU work bleeds into the data wait of a host clock, and how steptimer keeps it out.
//
// No training, only loops whose true data wait is known because it is built in: a loader and a kernel that
// take as long as they are told to. The truth comes from following host and device through the loop on paper.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>

#include "common/cuda_check.hpp"
#include "common/cuda_resources.hpp"
#include "common/gpu_loop.cuh"
#include "common/option_table.hpp"
#include "common/run_program.hpp"

namespace {

using namespace example;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr int steps = 50;

/// A training loop, boiled down to what matters for its timing.
struct Situation {
  const char* name;
  microseconds loader;
  int loads_every;  // n: only every n-th batch has to be loaded
  microseconds gpu;
  int reads_loss_every;  // n: the host waits for the device after every n-th step; 0: never

  microseconds load_time(int step) const { return (step + 1) % loads_every == 0 ? loader : microseconds{0}; }
  bool reads_loss_after(int step) const { return reads_loss_every != 0 && (step + 1) % reads_loss_every == 0; }
};

constexpr Situation situations[] = {
    {"load 6 ms, GPU 4 ms, loss read after each step", microseconds{6000}, 1, microseconds{4000}, 1},
    {"load 1 ms, GPU 9 ms, loss read after each step", microseconds{1000}, 1, microseconds{9000}, 1},
    {"load 6 ms, GPU 4 ms, loss never read", microseconds{6000}, 1, microseconds{4000}, 0},
    {"load 1 ms, GPU 9 ms, loss never read", microseconds{1000}, 1, microseconds{9000}, 0},
    {"load 1 ms, GPU 9 ms, loss read every 10 steps", microseconds{1000}, 1, microseconds{9000}, 10},
    {"load 60 ms every 8 steps, GPU 5 ms, never read", microseconds{60000}, 8, microseconds{5000}, 0},
};

double percent(nanoseconds part, nanoseconds whole) {
  return whole.count() == 0 ? 0.0 : 100.0 * static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

/// Follows host and device through the loop: a step starts when it has been queued and the device is free.
double true_data_wait_percent(const Situation& situation) {
  nanoseconds host{0};
  nanoseconds device_free{0};
  nanoseconds waited{0};
  nanoseconds first_start{0};
  nanoseconds start{0};
  for (int step = 0; step < steps; ++step) {
    host += situation.load_time(step);
    start = std::max(host, device_free);
    if (step == 0) first_start = start;
    if (step > 0) waited += start - device_free;
    device_free = start + situation.gpu;
    if (situation.reads_loss_after(step)) host = device_free;
  }
  return percent(waited, start - first_start);
}

struct Claims {
  std::optional<double> host_clock, repaired, steptimer;
};

Claims measure(const Situation& situation, const Stream& stream) {
  // The usual repair of a host clock: host time from start to start, minus GPU time, and no less than 0.
  nanoseconds repaired_wait{0};
  nanoseconds batch_total{0};
  steptimer::StepTimerOptions options;
  options.on_record = [&](const steptimer::StepRecord& record) {
    if (!record.host_wall_gap) return;
    repaired_wait += std::max(nanoseconds{0}, *record.host_wall_gap - record.batch_time);
    batch_total += record.batch_time;
  };
  steptimer::CudaTimer timer(stream, options);

  for (int step = 0; step < steps; ++step) {
    keep_host_busy(situation.load_time(step));
    timer.on_batch_start();
    queue_work(situation.gpu, stream);
    timer.on_batch_end();
    if (situation.reads_loss_after(step)) stream.wait();
  }
  timer.finish();
  const steptimer::StepSummary total = timer.total();
  return {total.host_data_wait_percent(), percent(repaired_wait, repaired_wait + batch_total),
          total.data_wait_percent()};
}

void print_percent(std::optional<double> number) {
  number ? std::printf(" %8.1f %%", *number) : std::printf(" %10s", "n/a");
}

void run(int argc, char** argv) {
  const OptionTable table("bleed_through", "shows how GPU work bleeds into the data wait of a host clock");
  if (!table.parse(argc, argv)) return;
  use_first_gpu();

  const Stream stream;
  const WaitForDevice wait_at_the_end;
  queue_work(nanoseconds{1000}, stream);  // CUDA loads a kernel at its first launch
  stream.wait();

  std::printf("%-48s %10s %10s %10s %10s\n", "share of time waiting for data", "truth", "host clock", "repaired",
              "steptimer");
  for (const Situation& situation : situations) {
    const Claims claims = measure(situation, stream);
    std::printf("%-48s", situation.name);
    print_percent(true_data_wait_percent(situation));
    print_percent(claims.host_clock);
    print_percent(claims.repaired);
    print_percent(claims.steptimer);
    std::printf("\n");
    std::fflush(stdout);
  }
  std::printf(
      "host clock: books queued GPU work as waiting. repaired: host time from start to start, minus GPU "
      "time.\n"
      "steptimer: from start to start on the GPU's own timeline, minus GPU time.\n");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("bleed_through", [&] { run(argc, argv); });
}
