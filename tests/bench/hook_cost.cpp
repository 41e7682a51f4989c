// What the hooks cost, beside the calls that cannot be done without. Both sides run in turns in one process,
// block by block, so that a machine that speeds up or slows down does so for both; each figure is the median
// over the blocks.
//
//     hook_cost [--steps N] [--blocks N]
//
// Exit code 0 whatever the figures are: they are for reading, not for passing.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <steptimer/steptimer.hpp>
#if defined(STEPTIMER_BENCH_CUDA)
#include <steptimer/cuda_backend.hpp>
#endif

namespace {

long allocations = 0;
#if defined(STEPTIMER_BENCH_CUDA)
long events_made = 0;
#endif

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept { return operator new(size, tag); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

#if defined(STEPTIMER_BENCH_CUDA)
// The linker sends this program's calls of cudaEventCreateWithFlags here (--wrap).
extern "C" cudaError_t __real_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
extern "C" cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  ++events_made;
  return __real_cudaEventCreateWithFlags(event, flags);
}
#endif

namespace {

using Clock = std::chrono::steady_clock;

struct Size {
  int steps = 20000;
  int blocks = 61;
};

double nanoseconds_a_step(Clock::time_point begin, Clock::time_point end, int steps) {
  return std::chrono::duration<double, std::nano>(end - begin).count() / steps;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Medians of both sides, and of their difference and ratio block by block.
struct Comparison {
  double hooks, bare, difference, ratio;
};

template <class Hooks, class Bare>
Comparison in_turns(const Size& size, Hooks&& hooks, Bare&& bare) {
  std::vector<double> hook_times, bare_times, differences, ratios;
  for (int block = 0; block < size.blocks; ++block) {
    const auto begin = Clock::now();
    hooks(size.steps);
    const auto middle = Clock::now();
    bare(size.steps);
    const auto end = Clock::now();
    hook_times.push_back(nanoseconds_a_step(begin, middle, size.steps));
    bare_times.push_back(nanoseconds_a_step(middle, end, size.steps));
    differences.push_back(hook_times.back() - bare_times.back());
    ratios.push_back(hook_times.back() / bare_times.back());
  }
  return {median(hook_times), median(bare_times), median(differences), median(ratios)};
}

/// Keeps a value from being optimised away.
template <class T>
void use(T& value) {
#if defined(__GNUC__)
  asm volatile("" : : "g"(&value) : "memory");
#else
  static volatile const void* sink;
  sink = &value;
#endif
}

void cpu(const Size& size) {
  steptimer::CpuTimer timer;
  const auto hooks = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      timer.on_batch_start();
      timer.on_batch_end();
    }
  };
  const auto two_clock_readings = [](int steps) {
    for (int i = 0; i < steps; ++i) {
      auto start = Clock::now();
      use(start);
      auto end = Clock::now();
      use(end);
    }
  };
  hooks(1000);
  const long before = allocations;
  hooks(size.steps);
  const long allocated = allocations - before;
  const Comparison cost = in_turns(size, hooks, two_clock_readings);
  std::printf("cpu    hooks %.1f ns a step, two steady_clock::now() %.1f ns: +%.1f ns, ratio %.2f\n",
              cost.hooks, cost.bare, cost.difference, cost.ratio);
  std::printf("cpu    allocations in %d steps once warm: %ld\n", size.steps, allocated);
}

#if defined(STEPTIMER_BENCH_CUDA)

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "hook_cost: %s: %s\n", call, cudaGetErrorString(code));
  std::exit(1);
}

/// What a step cannot be timed without: two records, one query, two elapsed; of a step so far back that it is
/// finished.
class BareCalls {
 public:
  explicit BareCalls(cudaStream_t stream) : stream_(stream) {
    for (Pair& pair : pairs_) {
      check(cudaEventCreate(&pair.start), "cudaEventCreate");
      check(cudaEventCreate(&pair.end), "cudaEventCreate");
    }
  }
  void step() {
    Pair& now = at(step_);
    check(cudaEventRecord(now.start, stream_), "cudaEventRecord");
    check(cudaEventRecord(now.end, stream_), "cudaEventRecord");
    if (step_ >= lag) {
      const Pair& old = at(step_ - lag);
      const Pair& next = at(step_ - lag + 1);
      float batch = 0;
      float wall = 0;
      if (cudaEventQuery(next.start) == cudaSuccess) {
        check(cudaEventElapsedTime(&batch, old.start, old.end), "cudaEventElapsedTime");
        check(cudaEventElapsedTime(&wall, old.start, next.start), "cudaEventElapsedTime");
      } else {
        ++not_ready;
      }
      use(batch);
      use(wall);
    }
    ++step_;
  }
  long not_ready = 0;

 private:
  static constexpr long lag = 4;
  struct Pair {
    cudaEvent_t start, end;
  };
  Pair& at(long step) { return pairs_[static_cast<std::size_t>(step) % 16]; }

  cudaStream_t stream_;
  Pair pairs_[16];
  long step_ = 0;
};

void cuda(const Size& size) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("cuda   left out: no CUDA device\n");
    return;
  }
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  std::printf("cuda   %s\n", device.name);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  steptimer::CudaTimer timer{stream};
  BareCalls bare(stream);
  const auto drained = [&](auto step) {
    return [&stream, step](int steps) {
      for (int i = 0; i < steps; ++i) step();
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    };
  };
  const auto hooks = drained([&] {
    timer.on_batch_start();
    timer.on_batch_end();
  });
  const auto bare_calls = drained([&] { bare.step(); });
  hooks(2000);
  bare_calls(2000);

  const long allocations_before = allocations;
  const long events_before = events_made;
  hooks(size.steps);
  const long allocated = allocations - allocations_before;
  const long made = events_made - events_before;
  const Comparison cost = in_turns(size, hooks, bare_calls);
  std::printf("cuda   hooks %.0f ns a step, the bare calls %.0f ns: ratio %.3f\n", cost.hooks, cost.bare,
              cost.ratio);
  std::printf("cuda   in %d steps once warm: allocations %ld, events made %ld\n", size.steps, allocated,
              made);
  std::printf("cuda   bare queries that were not ready: %ld\n", bare.not_ready);
  const steptimer::StepCounts counts = timer.counts();
  std::printf(
      "cuda   steps %llu, measured %llu, failed %llu\n", static_cast<unsigned long long>(counts.started),
      static_cast<unsigned long long>(counts.measured), static_cast<unsigned long long>(counts.failed));
  timer.release();
  check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

#endif

int usage() {
  std::fprintf(stderr, "usage: hook_cost [--steps N] [--blocks N], N from 1\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  Size size;
  for (int i = 1; i < argc; i += 2) {
    int* const value = std::strcmp(argv[i], "--steps") == 0    ? &size.steps
                       : std::strcmp(argv[i], "--blocks") == 0 ? &size.blocks
                                                               : nullptr;
    if (value == nullptr || i + 1 == argc) return usage();
    *value = std::atoi(argv[i + 1]);
    if (*value < 1) return usage();
  }
  cpu(size);
#if defined(STEPTIMER_BENCH_CUDA)
  cuda(size);
#else
  std::printf("cuda   left out: built without CUDA\n");
#endif
}
