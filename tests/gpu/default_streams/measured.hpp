// Two units of one program, each with another meaning of stream 0.
#pragma once

#include <chrono>
#include <cstdint>

struct Measured {
  std::uint64_t steps = 0;
  std::uint64_t failed = 0;
  std::chrono::nanoseconds shortest{0};
};

/// Steps of 2 ms on the unit's default stream, timed by a `CudaTimer` that was given no stream.
Measured measure_on_legacy_stream();
Measured measure_on_per_thread_stream();
