/// StepRecord: what is known about one measured step. Plain data; no clock, no state.
#pragma once

#include "detail/macros_keep.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "detail/durations.hpp"

namespace steptimer {

/// A part of a step, from one StepTimer::mark() to the next or to the step's end.
struct PhaseTime {
  const char* name = "";             ///< as given to mark(); "" from the step's start to the first mark
  std::chrono::nanoseconds time{0};  ///< on the backend's timeline
};

/// Phases kept of a step: what comes before the first mark, and so many marks less one.
inline constexpr std::size_t max_phases = 8;

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
  std::optional<std::chrono::nanoseconds> wall_gap = {};
  /// max(0, wall_gap - batch_time): the time the timeline spent outside steps. Present exactly when wall_gap is.
  std::optional<std::chrono::nanoseconds> data_time = {};
  /// Host clock between the two hooks: on an asynchronous device, the time it took to queue the step.
  std::chrono::nanoseconds host_batch_time{0};
  /// Host clock from this step's on_batch_start() to the next. Present exactly when wall_gap is.
  std::optional<std::chrono::nanoseconds> host_wall_gap = {};
  /// As given to on_batch_end(), in whatever the caller counts: samples, tokens.
  std::uint64_t items = 0;
  /// True for the first StepTimerOptions::warmup_steps steps, which are left out of every summary.
  bool warmup = false;

  /// Whether the device had done all of the step's work when on_batch_end() was called, so that it had waited for the
  /// host within the step. Absent where the timeline is the host's own.
  ///
  /// Source:   ours: an idle device reaches a mark as the host drops it, so a step that ends idle takes no longer on
  ///           the device than on the host, up to the latency of events: batch_time <= host_batch_time + 10 us, the
  ///           latency taken as no more than a quarter of batch_time.
  std::optional<bool> device_drained = {};
  /// Steps started before this one that the device had not finished when on_batch_end() was called, as far as the timer
  /// knew: how far the host was ahead.
  std::uint32_t steps_ahead = 0;

  /// Host time within fetch scopes from this step's start to the next. Absent where there was none.
  std::optional<std::chrono::nanoseconds> fetch_time = {};
  /// What of fetch_time the timeline really waited for; the rest was hidden by queued work. Present where fetch_time
  /// and data_time are.
  ///
  /// Source:   ours: the timeline waits last, up to the next start, so exposed is what of the fetch lies in the last
  ///           data_time of the host's gap. Several fetches of one gap are taken as one that ends when the last one
  ///           did.
  std::optional<std::chrono::nanoseconds> exposed_fetch = {};

  /// The step's phases in order, none where mark() was not called. Their times add up to batch_time exactly.
  std::size_t phase_count = 0;
  /// The first phase_count of them are the phases.
  std::array<PhaseTime, max_phases> phases{};

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
