// Threads that never chose a device read and destroy a timer of device 1: device 0, which is current to them by default,
// gets no context by it. (What measures steps, such as poll() and release(), exchanges the thread's capture mode; there
// CUDA itself makes a context on the current device.)
//
//     cuda_context_isolated <row>     0: as expected, 1: not, 77: fewer than two devices
//     cuda_context_isolated list      the names of the rows

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <steptimer/cuda_backend.hpp>

#include "../support/device_work.hpp"
#include "../support/isolated_rows.hpp"

using namespace std::chrono_literals;
using steptimer::CudaTimer;

namespace {

using isolated_rows::expect;
using isolated_rows::outcome;
using isolated_rows::skipped;

void run_step(CudaTimer& timer, cudaStream_t stream) {
  timer.on_batch_start();
  device_work::work(stream, 1ms);
  timer.on_batch_end();
}

/// Does something to a timer of device 1, with steps measured, pending and open, on a thread that never chose a device.
template <class Deal>
int deal_on_another_thread(Deal deal) {
  bool known = false;
  expect("device 1 can be made current", cudaSetDevice(1) == cudaSuccess);
  const device_work::Stream stream;
  std::optional<CudaTimer> timer{stream.get()};
  for (int i = 0; i < 5; ++i) {
    run_step(*timer, stream);
    device_work::wait_for(stream);
  }
  for (int i = 0; i < 3; ++i) run_step(*timer, stream);
  timer->on_batch_start();
  expect("steps were measured", timer->counts().measured >= 3);
  if (device_work::has_context(0, known) || !known) {
    std::printf("SKIPPED: %s\n", known ? "device 0 has a context without the timer" : "this driver does not tell");
    return skipped;
  }
  int device = -1;
  std::thread([&] {
    deal(timer);
    expect("no error is left", cudaPeekAtLastError() == cudaSuccess);
    expect("the device can be asked for", cudaGetDevice(&device) == cudaSuccess);
  }).join();
  expect("the thread's device is the one it was", device == 0);
  expect("device 0 has no context", !device_work::has_context(0, known));
  expect("device 1 goes on", device_work::wait_for(stream) == cudaSuccess);
  return outcome;
}

int read_by_another_thread() {
  return deal_on_another_thread([](std::optional<CudaTimer>& timer) {
    expect("a window can be read", timer->window().steps >= 3 && timer->total().steps >= 3);
    expect("a record can be read", timer->last().has_value() && timer->data_wait_percent().has_value());
    expect("counts can be read", timer->counts().started == 9);
    expect("the timer is fine", timer->status().state == steptimer::TimerState::ok);
  });
}

int destroyed_by_another_thread() {
  return deal_on_another_thread([](std::optional<CudaTimer>& timer) { timer.reset(); });
}

int moved_and_destroyed_by_another_thread() {
  return deal_on_another_thread([](std::optional<CudaTimer>& timer) { const CudaTimer moved = std::move(*timer); });
}

struct Row {
  const char* name;
  int (*run)();
};

constexpr Row rows[] = {
    {"read-by-another-thread", read_by_another_thread},
    {"destroyed-by-another-thread", destroyed_by_another_thread},
    {"moved-and-destroyed-by-another-thread", moved_and_destroyed_by_another_thread},
};

}  // namespace

int main(int argc, char** argv) {
  return isolated_rows::main_of("cuda_context_isolated", rows, argc, argv, [](const Row& row) {
    alarm(60);  // a process that hangs on a GPU is ended
    const std::string reason = device_work::skip_reason();
    if (!reason.empty() || !device_work::begin_untouched(2)) {
      std::printf("SKIPPED: %s\n", reason.empty() ? "there is one device" : reason.c_str());
      return skipped;
    }
    return row.run();
  });
}
