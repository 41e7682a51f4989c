/// diagnose(): what a summary means, in one word and one sentence of advice.
#pragma once

#include "detail/macros_keep.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "step_summary.hpp"

namespace steptimer {

/// What a run would have to get rid of to be faster.
enum class Bottleneck {
  unknown,        ///< too few steps to tell
  device,         ///< the steps themselves: the timeline hardly waits
  data_moderate,  ///< waiting between steps, from DiagnosisThresholds::data_moderate_percent on
  data_high,      ///< waiting between steps, from DiagnosisThresholds::data_high_percent on
  host,           ///< the device waits within the steps: launches are too slow, or the host waits for a result
};

/// Where one diagnosis ends and the next begins. Percentages from 0 to 100; the defaults are ours.
struct DiagnosisThresholds {
  double data_moderate_percent = 5;  ///< of data_wait
  double data_high_percent = 20;     ///< of data_wait
  double drained_percent = 50;       ///< of steps whose device had waited for the host when they ended
  double fetch_percent = 50;         ///< of the wait: from so much on the fetch is to blame
  std::uint64_t min_steps = 20;      ///< steps with a gap; below it speaks of nothing
};

/// What diagnose() says.
struct Diagnosis {
  /// In one word.
  Bottleneck bottleneck = Bottleneck::unknown;
  /// One sentence: what was seen, the gain at stake, and what to try next.
  std::string advice;
  /// That of the summary.
  std::optional<double> data_wait_percent;
  /// Of the data wait, what was spent on fetching; absent without fetch scopes.
  std::optional<double> fetch_share_percent;
  /// So many times faster the run could be at most if nothing had to wait for data.
  ///
  /// Source:   ours: cycle / (cycle - wait) = 100 / (100 - data_wait_percent). Absent where all is waiting.
  std::optional<double> possible_speedup;
};

namespace detail {

/// A number with a point in any locale, rounded to so many decimals; for advice, so no more than a million.
inline std::string decimal(double number, int decimals) {
  long scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  const long scaled = std::lround(number * static_cast<double>(scale));
  std::string text = std::to_string(scaled / scale);
  if (decimals == 0) return text;
  std::string rest = std::to_string(scaled % scale);
  while (rest.size() < static_cast<std::size_t>(decimals)) rest.insert(0, "0");
  return text + "." + rest;
}

inline std::string percent_text(double percent) { return decimal(percent, percent < 9.95 ? 1 : 0) + " %"; }

inline std::string advice_on_data(const Diagnosis& d, const DiagnosisThresholds& thresholds, bool on_device) {
  std::string text = d.bottleneck == Bottleneck::data_high ? "highly data-bound: " : "moderately data-bound: ";
  text += percent_text(*d.data_wait_percent) + (on_device ? " of device time" : " of the time") + " is spent waiting";
  if (d.fetch_share_percent) text += ", " + percent_text(*d.fetch_share_percent) + " of it for the fetch";
  if (d.possible_speedup && *d.possible_speedup < 1e6)
    text += "; hiding it would make the run up to " + decimal(*d.possible_speedup, 2) + " times faster";
  if (!d.fetch_share_percent)
    return text + "; try prefetching or more loader threads, and fetch() around the loader to see its part";
  if (*d.fetch_share_percent >= thresholds.fetch_percent) return text + "; try prefetching or more loader threads";
  return text +
         "; look at the other work between steps (logging, checkpoints, copies): do it less often, or after the next "
         "step is queued";
}

}  // namespace detail

/// Says what holds a run up.
///
/// Data comes first: a wait between steps is lost for good, whatever goes on within them. Below
/// data_moderate_percent it is the host, if most steps ended on an idle device, else the device; on the host's own
/// timeline there is no such difference.
///
/// Errors:   throws std::bad_alloc where memory is out, as any std::string does; not for hooks.
inline Diagnosis diagnose(const StepSummary& summary, const DiagnosisThresholds& thresholds = {}) {
  Diagnosis d;
  d.data_wait_percent = summary.data_wait_percent();
  if (summary.gaps < thresholds.min_steps || !d.data_wait_percent) {
    d.advice = "too few steps to tell: " + std::to_string(summary.gaps) + " of " +
               std::to_string(thresholds.min_steps) + " with a next start measured; let it run on";
    return d;
  }
  const double wait = *d.data_wait_percent;
  if (wait < 100) d.possible_speedup = 100 / (100 - wait);
  if (summary.fetches > 0) d.fetch_share_percent = detail::percent(summary.exposed_fetch_total, summary.data_total);

  const bool on_device = summary.device_steps > 0;
  const double drained =
      on_device ? 100 * static_cast<double>(summary.drained_steps) / static_cast<double>(summary.device_steps) : 0;
  if (wait >= thresholds.data_moderate_percent) {
    d.bottleneck = wait >= thresholds.data_high_percent ? Bottleneck::data_high : Bottleneck::data_moderate;
    d.advice = detail::advice_on_data(d, thresholds, on_device);
  } else if (on_device && drained >= thresholds.drained_percent) {
    d.bottleneck = Bottleneck::host;
    d.advice = "host-bound: in " + detail::percent_text(drained) +
               " of the steps the device had run dry before the host ended the step; look for a wait within the step "
               "(reading the loss), or launch less: fused kernels, CUDA graphs";
  } else {
    d.bottleneck = Bottleneck::device;
    d.advice = std::string(on_device ? "device-bound: " : "compute-bound: ") + "only " + detail::percent_text(wait) +
               " of the time is spent waiting for data, so a faster loader gains nothing; make the step itself faster "
               "(larger batches, mixed precision, fused kernels)";
  }
  return d;
}

}  // namespace steptimer

#include "detail/macros_restore.hpp"
