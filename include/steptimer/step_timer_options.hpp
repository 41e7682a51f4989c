/// StepTimerOptions: what the caller sets, once, at construction. TimerStatus: what the timer says about itself.
#pragma once

#include "detail/macros_keep.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "step_record.hpp"

namespace steptimer {

/// How a timer measures. Every value is legal; what the extremes mean is said at each.
struct StepTimerOptions {
  /// false: the hooks touch nothing, neither clock nor device; counts stay 0 and status() says disabled.
  bool enabled = true;

  /// The first steps, by ordinal: they appear in records with warmup set, and in no summary.
  std::uint64_t warmup_steps = 0;

  /// Steps in window(). 0: window() is always empty. Memory grows to what is used, about 150 bytes a step.
  std::size_t window = 100;

  /// Pending steps kept; a step that starts when so many are pending is stale: skipped and counted. A step stays
  /// pending until the end hook after its next start, so a device that keeps up needs 2. 1 measures every other step,
  /// 0 none.
  std::size_t max_in_flight = 1024;

  /// Measure steps 0, n, 2n, ...; each gap still runs to the next step's start. 0 is taken as 1.
  std::uint64_t sample_every = 1;

  /// Called once for each record, in step order, from on_batch_end(), poll(), finish() or release(), on the caller's
  /// thread, when nothing of the timer's is in force (CUDA device, capture mode and last error are the caller's). It
  /// may read the timer and call any of its members; poll() and finish() called from it measure nothing. It may not
  /// move or destroy the timer. If it throws, it is turned off with one warning.
  std::function<void(const StepRecord&)> on_record = {};

  /// Told in one sentence, at most once a kind of trouble a timer. Where none is set, the sentence goes to stderr, at
  /// most once a kind a process. It may call the timer's hooks. If it throws, it is not called again.
  std::function<void(std::string_view)> on_warning = {};
};

/// Whether a timer measures.
enum class TimerState {
  ok,        ///< it does
  disabled,  ///< StepTimerOptions::enabled is false, the backend is a NullBackend, or the timer was moved from
  failed,    ///< the backend's timeline is gone, and the timer turned itself off
};

/// State of a timer, and the error that turned it off, else the first one it met.
struct TimerStatus {
  TimerState state = TimerState::ok;  ///< whether it measures
  int error_code = 0;                 ///< the backend's own code (a cudaError_t), 0 for none
  const char* call = "";              ///< the call that returned it; a static string
  const char* message = "";           ///< what the code means; a static string
};

}  // namespace steptimer

#include "detail/macros_restore.hpp"
