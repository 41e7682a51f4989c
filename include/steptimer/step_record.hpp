/// StepRecord: what is known about one measured step. Plain data; no clock, no state.
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

#include "detail/durations.hpp"

namespace steptimer {

/// The finished measurement of one step.
///
/// Units:    every duration is in nanoseconds; percentages run from 0 to 100.
/// Absent:   what is not known is an empty optional, never 0. The last step before pause(), finish() or release() has
///           no next start, so it has a batch_time and neither wall_gap nor data_time.
struct StepRecord {
  /// Ordinal of the step's on_batch_start(), from 0. Steps that yield no record leave a hole in the numbering.
  std::uint64_t step = 0;
  /// Host clock at on_batch_start(), since the timer's first on_batch_start().
  std::chrono::nanoseconds host_start{0};
  /// Start mark -> end mark on the backend's timeline. On a GPU this is a span on the stream, not busy time.
  std::chrono::nanoseconds batch_time{0};
  /// Start mark -> the next step's start mark, on the same timeline.
  std::optional<std::chrono::nanoseconds> wall_gap;
  /// max(0, wall_gap - batch_time): the time the timeline spent outside steps. Present exactly when wall_gap is.
  std::optional<std::chrono::nanoseconds> data_time;
  /// Host clock between the two hooks: on an asynchronous device, the time it took to queue the step.
  std::chrono::nanoseconds host_batch_time{0};
  /// Host clock from this step's on_batch_start() to the next. Present exactly when wall_gap is.
  std::optional<std::chrono::nanoseconds> host_wall_gap;
  /// As given to on_batch_end(), in whatever the caller counts: samples, tokens.
  std::uint64_t items = 0;
  /// True for the first StepTimerOptions::warmup_steps steps, which are left out of every summary.
  bool warmup = false;

  /// Share of the cycle that was spent waiting for the next batch, 0 to 100.
  ///
  /// Source:   ours: 100 * data_time / (data_time + batch_time), both ends on one timeline.
  /// Absent:   where data_time is, and where both times are zero (a clock too coarse to see the step).
  std::optional<double> data_wait_percent() const noexcept {
    if (!data_time) return std::nullopt;
    return detail::percent(*data_time, detail::saturating_sum(*data_time, batch_time));
  }

  /// What a host clock alone would have claimed for the same step, 0 to 100.
  ///
  /// Source:   the common practice: 100 * (host_wall_gap - host_batch_time) / host_wall_gap. On an asynchronous
  ///           device it books work that is still queued as waiting for data; it is here to be compared, not
  ///           believed.
  std::optional<double> host_data_wait_percent() const noexcept {
    if (!host_wall_gap) return std::nullopt;
    return detail::percent(detail::difference_or_zero(*host_wall_gap, host_batch_time), *host_wall_gap);
  }
};

}  // namespace steptimer

#include "detail/macros_restore.hpp"
