#pragma once

#include <cuda_runtime.h>

#include <chrono>

#include "cuda_check.hpp"

namespace example {

/// Keeps one thread of the device busy for some time, by the device's own clock.
static __global__ void spin(long long duration) {
  long long begin = 0;
  long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < duration);
}

/// A kernel that takes as long as it is told to.
inline void queue_work(std::chrono::nanoseconds duration, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(duration.count());
  check(cudaGetLastError(), "the launch of spin");
}

/// A loader that takes exactly as long as it is told to; sleeping would take a little longer.
inline void keep_host_busy(std::chrono::nanoseconds duration) {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < duration) {
  }
}

}  // namespace example
