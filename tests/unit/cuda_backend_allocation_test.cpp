// Once warm the hooks take no memory, and where there is none they lose no more than the step. This file replaces the
// global operator new of its program, to count and to refuse.

#include <steptimer/cuda_backend.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <utility>

#include <steptimer/manual_backend.hpp>
#include <steptimer/step_window.hpp>

#include "support/catch.hpp"
#include "support/device_work.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/virtual_cuda.hpp"

namespace {

thread_local bool counting = false;
thread_local std::size_t allocations = 0;
thread_local bool refusing = false;

void* allocate(std::size_t size) noexcept {
  if (refusing) return nullptr;
  if (counting && !fake_cuda::inside_call()) ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}

void* allocate_or_throw(std::size_t size) {
  void* const memory = allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate_or_throw(size); }
void* operator new[](std::size_t size) { return allocate_or_throw(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::StepTimerOptions;
using CudaTimer = VirtualCudaTimer;

namespace {

/// The allocations that `f` makes, those inside the fake runtime left out.
template <class F>
std::size_t allocations_of(F&& f) {
  allocations = 0;
  counting = true;
  f();
  counting = false;
  return allocations;
}

/// Calls `f` while memory is out.
template <class F>
void without_memory(F&& f) {
  refusing = true;
  f();
  refusing = false;
}

/// A timer whose callbacks take no memory either.
StepTimerOptions quiet(std::size_t& records) {
  StepTimerOptions options;
  options.on_record = [&records](const steptimer::StepRecord&) { ++records; };
  options.on_warning = [](std::string_view) {};
  return options;
}

}  // namespace

TEST_CASE("the counter of allocations counts") {
  // Called by name: a compiler may leave out a new-expression whose result goes nowhere.
  CHECK(allocations_of([] { ::operator delete(::operator new(1)); }) == 1);
  CHECK(allocations_of([] { ::operator delete[](::operator new[](3, std::nothrow)); }) == 1);
  CHECK(allocations_of([] {}) == 0);
}

TEST_CASE("once warm no hook allocates, with a device that keeps up or runs behind") {
  REQUIRE(device_work::begin());
  fake_cuda::set_keep_log(false);
  const device_work::Stream stream;
  std::size_t records = 0;
  StepTimerOptions options = quiet(records);
  options.window = 50;
  options.sample_every = GENERATE(1u, 3u);
  CudaTimer timer{stream.get(), options};

  std::size_t made = 0;
  const auto run = [&](int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (int ahead : {1, 20, 1, 3}) {
        for (int i = 0; i < ahead; ++i) {
          made += allocations_of([&] { timer.on_batch_start(); });
          device_work::work(stream, 1ms);
          made += allocations_of([&] { timer.on_batch_end(4); });
        }
        made += allocations_of([&] { timer.poll(); });
        device_work::wait_for(stream);
        made += allocations_of([&] { timer.pause(); });
        made += allocations_of([&] { timer.poll(); });
      }
      {
        const auto scope = timer.step();
        device_work::work(stream, 1ms);
      }
      timer.on_batch_start();  // unbalanced, and an end that is missing
      made += allocations_of([&] { timer.on_batch_start(); });
      device_work::wait_for(stream);
      made += allocations_of([&] { timer.on_batch_end(); });
      made += allocations_of([&] { timer.on_batch_end(); });
      made += allocations_of([&] { timer.finish(0ns); });
    }
  };
  run(10);
  CHECK(made > 0);  // while it warms up
  const std::size_t records_while_cold = records;
  made = 0;
  run(100);
  CHECK(made == 0);
  CHECK(records > records_while_cold + 500);
  made = allocations_of([&] {
    timer.last();
    timer.window();
    timer.total();
    timer.counts();
    timer.status();
  });
  CHECK(made == 0);
}

TEST_CASE("no hook allocates when calls fail, nor once the timer is off") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  std::size_t records = 0;
  CudaTimer timer{stream.get(), quiet(records)};
  const auto steps = [&](int count) {
    std::size_t made = 0;
    for (int i = 0; i < count; ++i) {
      made += allocations_of([&] { timer.on_batch_start(); });
      device_work::work(stream, 1ms);
      made += allocations_of([&] { timer.on_batch_end(); });
      device_work::wait_for(stream);
    }
    return made;
  };
  steps(200);
  for (const char* function : {"cudaEventRecord", "cudaStreamIsCapturing", "cudaEventQuery", "cudaEventElapsedTime"}) {
    INFO(function);
    fake_cuda::fail_next(function, cudaErrorInvalidValue);
    CHECK(steps(5) == 0);
  }
  fake_cuda::fault_device(0);
  CHECK(steps(5) == 0);
  CHECK(timer.status().state == steptimer::TimerState::failed);
  CHECK(allocations_of([&] { timer.poll(); }) == 0);
}

TEST_CASE("a disabled timer allocates nothing from its first hook on") {
  REQUIRE(device_work::begin());
  std::size_t records = 0;
  StepTimerOptions options = quiet(records);
  options.enabled = false;
  CudaTimer timer{0, options};
  CHECK(allocations_of([&] {
          for (int i = 0; i < 10; ++i) {
            timer.on_batch_start();
            timer.on_batch_end();
          }
          timer.poll();
          timer.finish();
        }) == 0);
}

TEST_CASE("a step whose allocation fails is failed, the gap before it has no end, and the next one is measured") {
  steptimer::ManualBackend device;
  std::size_t records = 0;
  steptimer::StepTimer<steptimer::ManualBackend> timer{device, quiet(records)};
  const auto step = [&] {
    timer.on_batch_start();
    device.launch(1ms);
    timer.on_batch_end();
  };
  without_memory(step);
  CHECK(timer.counts().failed == 1);
  step();
  while (timer.counts().failed == 1 && timer.counts().started < 100) without_memory(step);  // to the end of its room
  CHECK(timer.counts().failed == 2);
  const std::uint64_t pending = timer.counts().pending;
  CHECK(pending > 0);
  step();
  CHECK(timer.finish());
  CHECK(records == pending + 1);
  CHECK(timer.total().gaps == pending - 1);
}

TEST_CASE("a window whose allocation fails stays as short as it is, and holds the last steps") {
  steptimer::ManualBackend device;
  std::size_t records = 0;
  std::optional<steptimer::StepTimer<steptimer::ManualBackend>> timer;
  StepTimerOptions options = quiet(records);
  without_memory([&] { timer.emplace(device, std::move(options)); });
  steptimer::StepWindow last_steps(1000);
  const auto step = [&](bool with_memory) {
    timer->on_batch_start();
    device.launch(1ms);
    timer->on_batch_end();
    refusing = !with_memory;
    timer->finish();
    if (const auto record = timer->last()) last_steps.add(*record);
    refusing = false;
  };
  step(false);
  CHECK(timer->total().steps == 1);
  CHECK_FALSE(timer->last().has_value());
  step(true);
  for (int i = 0; i < 1000; ++i) step(false);
  CHECK(timer->total().steps == 1002);
  CHECK(timer->window().steps > 0);
  CHECK(timer->window().steps < 1000);
  CHECK(timer->last()->step == 1001);
  CHECK(timer->window().slowest_step == 1002 - timer->window().steps);
  CHECK(last_steps.batch_time().count() == timer->window().steps);
  CHECK(last_steps.batch_time().longest_step() == timer->window().slowest_step);
}

TEST_CASE("a StepWindow whose first allocation fails stays empty") {
  steptimer::StepWindow window(1000);
  without_memory([&] { window.add({}); });
  CHECK(window.batch_time().count() == 0);
}
