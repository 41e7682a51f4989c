// What costs a process its device: a kernel that faults, a device that is reset, a fork. The timer turns itself off,
// its counts add up, and the program goes on to see its own errors.
//
//     cuda_fault_isolated <row>     0: as expected, 1: not, 77: no device
//     cuda_fault_isolated list      the names of the rows

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <steptimer/cuda_backend.hpp>

#include "../support/counts.hpp"
#include "../support/device_work.hpp"
#include "../support/isolated_rows.hpp"

using namespace std::chrono_literals;
using steptimer::CudaTimer;
using steptimer::StepTimerOptions;
using steptimer::TimerState;

namespace {

using isolated_rows::expect;
using isolated_rows::failed;
using isolated_rows::outcome;
using isolated_rows::passed;
using isolated_rows::skipped;

void expect_code(const char* what, int got, int wanted) {
  if (got == wanted) return;
  outcome = failed;
  std::printf("%s: %d, not %d\n", what, got, wanted);
  std::fflush(stdout);
}

int warnings = 0;

StepTimerOptions options() {
  StepTimerOptions made;
  made.on_warning = [](std::string_view) { ++warnings; };
  return made;
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  expect_code("create stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

void run_step(CudaTimer& timer, cudaStream_t stream) {
  timer.on_batch_start();
  device_work::work(stream, 1ms);
  timer.on_batch_end();
}

void run_steps(CudaTimer& timer, cudaStream_t stream, int steps) {
  for (int i = 0; i < steps; ++i) {
    run_step(timer, stream);
    device_work::wait_for(stream);
  }
}

/// `others`: warnings of another kind that came before.
void expect_off(const CudaTimer& timer, int code, int others = 0) {
  expect("the timer is off", timer.status().state == TimerState::failed);
  expect_code("its error", timer.status().error_code, code);
  expect("it says which call", *timer.status().call != '\0');
  expect("its counts add up", adds_up(timer.counts()));
  expect("nothing is pending", timer.counts().pending == 0);
  expect("it warned once", warnings == 1 + others);
}

void ten_thousand_hooks(CudaTimer& timer) {
  for (int i = 0; i < 10'000; ++i) {
    timer.on_batch_start();
    timer.on_batch_end();
    if (i % 100 == 0) timer.poll();
  }
}

// --- a kernel faults

int fault_inside_a_step() {
  const cudaStream_t stream = new_stream();
  CudaTimer timer{stream, options()};
  run_steps(timer, stream, 4);
  const auto measured = timer.counts().measured;
  timer.on_batch_start();
  device_work::fault(stream);
  timer.on_batch_end();
  ten_thousand_hooks(timer);
  expect_code("the user's wait", device_work::wait_for(stream), cudaErrorIllegalAddress);
  ten_thousand_hooks(timer);
  expect_off(timer, cudaErrorIllegalAddress);
  expect("what was measured stays", timer.counts().measured >= measured);  // and what finished before the fault
  expect("all of it is in the total", timer.total().steps == timer.counts().measured);
  expect("all steps are counted", timer.counts().started == 20'005);
  expect("finish does not wait", timer.finish());
  expect_code("the user's own synchronisation", cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  return outcome;
}

int trap_inside_a_step() {
  const cudaStream_t stream = new_stream();
  CudaTimer timer{stream, options()};
  run_steps(timer, stream, 4);
  timer.on_batch_start();
  device_work::fault(stream, device_work::Fault::trap);
  timer.on_batch_end();
  ten_thousand_hooks(timer);
  const cudaError_t code = device_work::wait_for(stream);
  expect("the user's wait fails", code != cudaSuccess);
  ten_thousand_hooks(timer);
  expect_off(timer, code);
  expect("finish does not wait", timer.finish());
  expect_code("the user's own synchronisation", cudaDeviceSynchronize(), code);
  return outcome;
}

int fault_inside_the_first_step() {
  const cudaStream_t stream = new_stream();
  CudaTimer timer{stream, options()};
  timer.on_batch_start();
  device_work::fault(stream);
  timer.on_batch_end();
  expect_code("the user's wait", device_work::wait_for(stream), cudaErrorIllegalAddress);
  ten_thousand_hooks(timer);
  expect_off(timer, cudaErrorIllegalAddress);
  expect("nothing was measured", timer.counts().measured == 0);
  expect_code("the user's own synchronisation", cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  return outcome;
}

int fault_on_another_stream() {
  const cudaStream_t stream = new_stream();
  const cudaStream_t other = new_stream();
  CudaTimer timer{stream, options()};
  run_steps(timer, stream, 4);
  run_step(timer, stream);
  device_work::fault(other);
  expect_code("the user's wait", device_work::wait_for(other), cudaErrorIllegalAddress);
  ten_thousand_hooks(timer);
  expect_off(timer, cudaErrorIllegalAddress);
  expect_code("the user's own synchronisation", cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  return outcome;
}

int fault_then_everything_else() {
  const cudaStream_t stream = new_stream();
  CudaTimer timer{stream, options()};
  run_steps(timer, stream, 4);
  run_step(timer, stream);
  device_work::fault(stream);
  device_work::wait_for(stream);
  timer.poll();
  timer.finish(0ns);
  timer.pause();
  CudaTimer moved{std::move(timer)};
  moved.on_batch_start();
  moved.reset();
  moved.on_batch_start();
  moved.on_batch_end();
  moved.release();
  moved.on_batch_start();
  moved.on_batch_end();
  expect("a released timer tries again and turns itself off again", moved.status().state == TimerState::failed);
  moved = CudaTimer{stream, options()};
  moved.on_batch_start();
  moved.on_batch_end();
  expect("so does a new one", moved.status().state == TimerState::failed);
  expect("its counts add up", adds_up(moved.counts()));
  expect_code("the user's own synchronisation", cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  return outcome;
}

int fault_then_destruction() {
  const cudaStream_t stream = new_stream();
  {
    CudaTimer timer{stream, options()};
    run_steps(timer, stream, 4);
    for (int i = 0; i < 3; ++i) run_step(timer, stream);
    device_work::fault(stream);
    device_work::wait_for(stream);
  }
  expect("nothing was said", warnings == 0);
  expect_code("the user's own synchronisation", cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  return outcome;
}

// --- the device is reset

int reset_after_release() {
  const cudaStream_t stream = new_stream();
  CudaTimer timer{stream, options()};
  CudaTimer on_default_stream{0, options()};
  run_steps(timer, stream, 3);
  run_steps(on_default_stream, nullptr, 3);
  run_step(timer, stream);
  run_step(on_default_stream, nullptr);
  timer.release();
  on_default_stream.release();
  expect_code("reset", cudaDeviceReset(), cudaSuccess);

  const cudaStream_t next_stream = new_stream();
  CudaTimer fresh{next_stream, options()};
  run_steps(fresh, next_stream, 3);
  expect("a fresh timer finishes", fresh.finish(20s));
  expect("it measured three steps", fresh.counts().measured == 3);
  run_steps(on_default_stream, nullptr, 3);
  expect("a released timer on stream 0 finishes", on_default_stream.finish(20s));
  expect("it is fine", on_default_stream.status().state == TimerState::ok);
  expect("it has all but the one that was pending",
         on_default_stream.counts().measured >= 6 && on_default_stream.counts().failed == 0);
  expect("its counts add up", adds_up(on_default_stream.counts()));
  timer = CudaTimer{next_stream, options()};
  run_steps(timer, next_stream, 3);
  expect("a timer that was replaced finishes", timer.finish(20s));
  expect("it measured three steps", timer.counts().measured == 3);
  expect("nothing was said", warnings == 0);
  expect_code("no error is left", cudaPeekAtLastError(), cudaSuccess);
  return outcome;
}

/// A timer with finished, pending and open steps whose device has been reset under it.
std::unique_ptr<CudaTimer> timer_of_a_reset_device() {
  const cudaStream_t stream = new_stream();
  auto timer = std::make_unique<CudaTimer>(stream, options());
  run_steps(*timer, stream, 4);
  run_step(*timer, stream);
  timer->on_batch_start();
  expect_code("reset", cudaDeviceReset(), cudaSuccess);
  return timer;
}

/// The program can go on with its device.
int go_on() {
  expect_code("no error is left", cudaPeekAtLastError(), cudaSuccess);
  const cudaStream_t stream = new_stream();
  warnings = 0;
  CudaTimer timer{stream, options()};
  run_steps(timer, stream, 3);
  expect("a fresh timer finishes", timer.finish(20s));
  expect("it measured three steps", timer.counts().measured == 3);
  expect("nothing was said", warnings == 0);
  return outcome;
}

int reset_before_release_then_hooks() {
  const auto timer = timer_of_a_reset_device();
  ten_thousand_hooks(*timer);  // the first start finds a step open
  expect_off(*timer, cudaErrorContextIsDestroyed, 1);
  timer->release();
  return go_on();
}

int reset_before_release_then_end() {
  const auto timer = timer_of_a_reset_device();
  timer->on_batch_end();
  expect_off(*timer, cudaErrorContextIsDestroyed);
  return go_on();
}

int reset_before_release_then_poll() {
  const auto timer = timer_of_a_reset_device();
  timer->pause();
  timer->poll();
  timer->finish();
  expect_off(*timer, cudaErrorContextIsDestroyed);
  return go_on();
}

int reset_before_release_then_release() {
  const auto timer = timer_of_a_reset_device();
  timer->release();
  expect("its counts add up", adds_up(timer->counts()));
  expect("nothing is pending", timer->counts().pending == 0);
  return go_on();
}

int reset_before_release_then_reset() {
  const auto timer = timer_of_a_reset_device();
  timer->reset();
  expect("its counts add up", adds_up(timer->counts()));
  return go_on();
}

int reset_before_release_then_destruction() {
  timer_of_a_reset_device().reset();
  return go_on();
}

// Until a step has been measured nothing can tell that the device is gone, so hooks are not part of this.
int reset_before_any_step_was_done() {
  {
    const cudaStream_t stream = new_stream();
    CudaTimer timer{stream, options()};
    CudaTimer other{stream, options()};
    for (CudaTimer* const one : {&timer, &other}) {
      run_step(*one, stream);
      one->on_batch_start();
    }
    expect_code("reset", cudaDeviceReset(), cudaSuccess);
    timer.reset();
  }
  return go_on();
}

int reset_of_another_device() {
  if (!device_work::begin(2)) {
    std::printf("SKIPPED: there is one device\n");
    return skipped;
  }
  const cudaStream_t stream = new_stream();
  CudaTimer timer{stream, options()};
  run_steps(timer, stream, 3);
  run_step(timer, stream);
  timer.on_batch_start();
  expect_code("make the other device current", cudaSetDevice(1), cudaSuccess);
  expect_code("reset", cudaDeviceReset(), cudaSuccess);
  timer.on_batch_end();
  timer.poll();
  expect_code("make the timer's device current", cudaSetDevice(0), cudaSuccess);
  run_steps(timer, stream, 3);
  expect("the timer finishes", timer.finish(20s));
  expect("it measured all steps", timer.counts().measured == 8);
  expect("it is fine", timer.status().state == TimerState::ok);
  expect("nothing was said", warnings == 0);
  expect_code("no error is left", cudaPeekAtLastError(), cudaSuccess);
  return outcome;
}

// --- the process forks

int fork_child() {
  const cudaStream_t stream = new_stream();
  CudaTimer timer{stream, options()};
  run_steps(timer, stream, 4);
  run_step(timer, stream);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return skipped;
  if (child == 0) {
    alarm(20);
    device_work::in_forked_child();
    ten_thousand_hooks(timer);
    expect_off(timer, cudaErrorInitializationError);
    timer.release();
    std::fflush(nullptr);
    _exit(outcome);
  }
  int how = 0;
  if (waitpid(child, &how, 0) != child) return failed;
  expect_code("the child's exit code", WIFEXITED(how) ? WEXITSTATUS(how) : -1, passed);
  run_steps(timer, stream, 3);
  expect("the parent's timer finishes", timer.finish(20s));
  expect("it measured all steps", timer.counts().measured == 8);
  expect("nothing was said", warnings == 0);
  return outcome;
}

struct Row {
  const char* name;
  int (*run)();
};

constexpr Row rows[] = {
    {"fault-inside-a-step", fault_inside_a_step},
    {"trap-inside-a-step", trap_inside_a_step},
    {"fault-inside-the-first-step", fault_inside_the_first_step},
    {"fault-on-another-stream", fault_on_another_stream},
    {"fault-then-everything-else", fault_then_everything_else},
    {"fault-then-destruction", fault_then_destruction},
    {"reset-after-release", reset_after_release},
    {"reset-before-release-then-hooks", reset_before_release_then_hooks},
    {"reset-before-release-then-end", reset_before_release_then_end},
    {"reset-before-release-then-poll", reset_before_release_then_poll},
    {"reset-before-release-then-release", reset_before_release_then_release},
    {"reset-before-release-then-reset", reset_before_release_then_reset},
    {"reset-before-release-then-destruction", reset_before_release_then_destruction},
    {"reset-before-any-step-was-done", reset_before_any_step_was_done},
    {"reset-of-another-device", reset_of_another_device},
    {"fork-child", fork_child},
};

}  // namespace

int main(int argc, char** argv) {
  return isolated_rows::main_of("cuda_fault_isolated", rows, argc, argv, [](const Row& row) {
    alarm(60);  // a process that hangs on a GPU is ended
    const std::string reason = device_work::skip_reason();
    if (!reason.empty() || !device_work::begin()) {
      std::printf("SKIPPED: %s\n", reason.c_str());
      return skipped;
    }
    return row.run();
  });
}
