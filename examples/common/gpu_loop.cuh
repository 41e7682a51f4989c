// What the loops of the GPU benchmarks are made of: a loader and kernels that take as long as they are told to.
#pragma once

#include <cuda_runtime.h>

#include <chrono>

#include "../../../examples/common/cuda_check.hpp"

namespace bench {

using std::chrono::nanoseconds;

/// Keeps one thread of the device busy for some time, by the device's own clock.
static __global__ void spin(long long duration) {
  long long begin = 0;
  long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < duration);
}

inline void queue_work(nanoseconds duration, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(duration.count());
  example::check(cudaGetLastError(), "the launch of spin");
}

/// Keeps the host busy, exactly so long: sleeping would take a little longer.
inline void keep_host_busy(nanoseconds duration) {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < duration) {
  }
}

}  // namespace bench
