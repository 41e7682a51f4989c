/// StepCounts: where every started step ended up.
#pragma once

#include "detail/macros_keep.hpp"

#include <cstdint>

namespace steptimer {

/// What became of the steps a timer was told about.
///
/// Always:   started == measured + pending + not_sampled + stale + dropped + failed.
struct StepCounts {
  std::uint64_t started = 0;      ///< calls of on_batch_start()
  std::uint64_t measured = 0;     ///< yielded a StepRecord
  std::uint64_t pending = 0;      ///< open, or waiting for the device to reach their marks
  std::uint64_t not_sampled = 0;  ///< left out by StepTimerOptions::sample_every
  std::uint64_t stale = 0;    ///< could not be measured without waiting: too many in flight, or given up by release()
  std::uint64_t dropped = 0;  ///< never ended: another start came first, or an exception left the scope
  std::uint64_t failed = 0;   ///< refused by the backend (a CUDA error, a stream capture) or met a turned-off timer
  std::uint64_t ignored_ends = 0;   ///< on_batch_end() without an open step; no step, so not part of the sum
  std::uint64_t clamped = 0;        ///< measured steps with a duration below zero or a wall_gap below batch_time
  std::uint64_t ignored_marks = 0;  ///< mark() without an open step, refused, or beyond max_phases
};

}  // namespace steptimer

#include "detail/macros_restore.hpp"
