// What the hooks cost, beside the calls that cannot be done without. Both sides run in turns in one process,
// block by block, so that a machine that speeds up or slows down does so for both; each figure is the median
// over the blocks.
//
//     hook_cost [--steps N] [--blocks N]
//
// Exit code 0 whatever the figures are: they are for reading, not for passing.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
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
  int steps = 20000;  // a block; on CUDA rounded up to whole bursts
  int blocks = 61;
};

double nanoseconds_a_step(Clock::duration time, int steps) {
  return std::chrono::duration<double, std::nano>(time).count() / steps;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Medians of both sides, and of their difference and ratio block by block. Each side returns the time it took.
struct Comparison {
  double hooks, bare, difference, ratio;
};

template <class Hooks, class Bare>
Comparison in_turns(const Size& size, Hooks&& hooks, Bare&& bare) {
  std::vector<double> hook_times, bare_times, differences, ratios;
  for (int block = 0; block < size.blocks; ++block) {
    hook_times.push_back(nanoseconds_a_step(hooks(size.steps), size.steps));
    bare_times.push_back(nanoseconds_a_step(bare(size.steps), size.steps));
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
    const auto begin = Clock::now();
    for (int i = 0; i < steps; ++i) {
      timer.on_batch_start();
      timer.on_batch_end();
    }
    return Clock::now() - begin;
  };
  const auto two_clock_readings = [](int steps) {
    const auto begin = Clock::now();
    for (int i = 0; i < steps; ++i) {
      auto start = Clock::now();
      use(start);
      auto end = Clock::now();
      use(end);
    }
    return Clock::now() - begin;
  };
  hooks(size.steps);
  const long before = allocations;
  hooks(size.steps);
  const long allocated = allocations - before;
  const Comparison cost = in_turns(size, hooks, two_clock_readings);
  std::printf("cpu    hooks %.1f ns a step, two steady_clock::now() %.1f ns: +%.1f ns, ratio %.2f\n", cost.hooks,
              cost.bare, cost.difference, cost.ratio);
  std::printf("cpu    allocations in %d steps once warm: %ld\n", size.steps, allocated);
}

#if defined(STEPTIMER_BENCH_CUDA)

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "hook_cost: %s: %s\n", call, cudaGetErrorString(code));
  std::exit(1);
}

/// Steps between two waits for the stream, so that the queue stays short. The waits are not timed.
constexpr int burst = 100;

/// What a step cannot be timed without: two records, one query, two elapsed; these of a step of the last
/// burst, which is finished and whose times the host has not read before.
class BareCalls {
 public:
  explicit BareCalls(cudaStream_t stream) : stream_(stream) {
    for (auto& set : events_)
      for (Pair& pair : set) {
        check(cudaEventCreate(&pair.start), "cudaEventCreate");
        check(cudaEventCreate(&pair.end), "cudaEventCreate");
        check(cudaEventRecord(pair.start, stream_), "cudaEventRecord");
        check(cudaEventRecord(pair.end, stream_), "cudaEventRecord");
      }
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  void step() {
    const Pair& now = events_[writing_][at_];
    const Pair& old = events_[1 - writing_][at_];
    const Pair& next = events_[1 - writing_][at_ + 1];
    check(cudaEventRecord(now.start, stream_), "cudaEventRecord");
    check(cudaEventRecord(now.end, stream_), "cudaEventRecord");
    float batch = 0;
    float wall = 0;
    check(cudaEventQuery(next.start), "cudaEventQuery");
    check(cudaEventElapsedTime(&batch, old.start, old.end), "cudaEventElapsedTime");
    check(cudaEventElapsedTime(&wall, old.start, next.start), "cudaEventElapsedTime");
    use(batch);
    use(wall);
    if (++at_ == burst) {
      at_ = 0;
      writing_ = 1 - writing_;
    }
  }

 private:
  struct Pair {
    cudaEvent_t start, end;
  };
  cudaStream_t stream_;
  Pair events_[2][burst + 1];
  std::size_t writing_ = 0;
  std::size_t at_ = 0;
};

/// Puts more steps in flight than a burst ever does, by holding the stream meanwhile.
void warm_up(steptimer::CudaTimer& timer, cudaStream_t stream) {
  std::atomic<bool> open{false};
  const auto hold = [](void* flag) {
    while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::yield();
  };
  check(cudaLaunchHostFunc(stream, hold, &open), "cudaLaunchHostFunc");
  for (int i = 0; i < 2 * burst; ++i) {
    timer.on_batch_start();
    timer.on_batch_end();
  }
  open = true;
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

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
  const auto in_bursts = [&](auto step) {
    return [&stream, step](int steps) {
      Clock::duration spent{};
      for (int i = 0; i < steps; i += burst) {
        const auto begin = Clock::now();
        for (int k = 0; k < burst; ++k) step();
        spent += Clock::now() - begin;
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      }
      return spent;
    };
  };
  const auto hooks = in_bursts([&] {
    timer.on_batch_start();
    timer.on_batch_end();
  });
  const auto bare_calls = in_bursts([&] { bare.step(); });
  warm_up(timer, stream);
  hooks(size.steps);
  bare_calls(size.steps);

  const long allocations_before = allocations;
  const long events_before = events_made;
  hooks(size.steps);
  const long allocated = allocations - allocations_before;
  const long made = events_made - events_before;
  const Comparison cost = in_turns(size, hooks, bare_calls);
  std::printf("cuda   hooks %.0f ns a step, the bare calls %.0f ns: ratio %.3f\n", cost.hooks, cost.bare, cost.ratio);
  std::printf("cuda   in %d steps once warm: allocations %ld, events made %ld\n", size.steps, allocated, made);
  const steptimer::StepCounts counts = timer.counts();
  std::printf("cuda   steps %llu, measured %llu, failed %llu\n", static_cast<unsigned long long>(counts.started),
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
    if (*value < 1) return usage();  // also for text: atoi gives 0
  }
  cpu(size);
#if defined(STEPTIMER_BENCH_CUDA)
  cuda(size);
#else
  std::printf("cuda   left out: built without CUDA\n");
#endif
}
