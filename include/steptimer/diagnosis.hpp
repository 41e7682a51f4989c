/// diagnose(): what a summary means, in one word and one sentence of advice.
#pragma once

#include "detail/macros_keep.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "detail/durations.hpp"
#include "step_summary.hpp"

namespace steptimer {

/// What a run would have to get rid of to be faster.
enum class Bottleneck {
  unknown,        ///< too few steps to tell, or too short ones
  device,         ///< the steps themselves: the timeline hardly waits
  data_moderate,  ///< waiting between steps, from DiagnosisThresholds::data_moderate_percent on
  data_high,      ///< waiting between steps, from DiagnosisThresholds::data_high_percent on
  host,           ///< the device waits within the steps: launches are too slow, or the host waits for a result
};

/// Where one diagnosis ends and the next begins. Percentages from 0 to 100, and one that is NaN never applies; the
/// defaults are ours.
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
  std::string advice = {};
  /// That of the summary, 0 to 100.
  std::optional<double> data_wait_percent = {};
  /// Of the data wait, what was spent on fetching, 0 to 100; absent without fetch scopes.
  std::optional<double> fetch_share_percent = {};
  /// So many times faster the run could be at most if nothing had to wait for data.
  ///
  /// Source:   ours: cycle / (cycle - wait) = 100 / (100 - data_wait_percent). Absent where all is waiting.
  std::optional<double> possible_speedup = {};
};

namespace detail {

/// Of a summary that contradicts itself, the nearest share there can be.
inline double share_in_range(double percent) noexcept { return (std::min)((std::max)(percent, 0.0), 100.0); }

/// With one decimal, rounded, but not up to a limit that it is below: it also reads as below it, and only all as 100 %.
inline std::string percent_text(double percent, std::initializer_list<double> limits) {
  long tenths = std::lround(10 * percent);
  for (const double limit : limits)
    if (percent < limit && static_cast<double>(tenths) / 10 >= limit) --tenths;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

/// "1.59 times faster", with a point in any locale; for numbers up to a million.
inline std::string times_faster(double speedup) {
  const long hundredths = std::lround(100 * speedup);
  const long rest = hundredths % 100;
  return std::to_string(hundredths / 100) + (rest < 10 ? ".0" : ".") + std::to_string(rest) + " times faster";
}

/// Not a gain that reads as 1.00, nor one without end.
inline bool can_be_told(const std::optional<double>& speedup) noexcept {
  return speedup && *speedup >= 1.005 && *speedup < 1e6;
}

inline std::string wait_text(const Diagnosis& d, const DiagnosisThresholds& thresholds) {
  return percent_text(*d.data_wait_percent, {thresholds.data_moderate_percent, thresholds.data_high_percent, 100});
}

inline std::string advice_on_data(const Diagnosis& d, const DiagnosisThresholds& thresholds, bool on_device) {
  std::string text = d.bottleneck == Bottleneck::data_high ? "highly data-bound: " : "moderately data-bound: ";
  text += wait_text(d, thresholds) + (on_device ? " of device time" : " of the time") + " is spent waiting";
  if (d.fetch_share_percent)
    text += ", " + percent_text(*d.fetch_share_percent, {thresholds.fetch_percent, 100}) + " of it for the fetch";
  if (can_be_told(d.possible_speedup))
    text += "; hiding it would make the run up to " + times_faster(*d.possible_speedup);
  if (!d.fetch_share_percent)
    return text + "; try prefetching or more loader threads, and fetch() around the loader to see its part";
  if (*d.fetch_share_percent >= thresholds.fetch_percent) return text + "; try prefetching or more loader threads";
  return text +
         "; look at the other work between steps (logging, checkpoints, copies): do it less often, or after the next "
         "step is queued";
}

inline std::string advice_on_steps(const Diagnosis& d, const DiagnosisThresholds& thresholds, bool on_device) {
  std::string text = on_device ? "device-bound: " : "compute-bound: ";
  text += wait_text(d, thresholds) + " of the time is spent waiting for data";
  if (can_be_told(d.possible_speedup))
    text += ", and hiding it would make the run at most " + times_faster(*d.possible_speedup);
  return text + "; make the step itself faster (larger batches, mixed precision, fused kernels)";
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
  if (const auto percent = summary.data_wait_percent()) d.data_wait_percent = detail::share_in_range(*percent);
  const std::uint64_t needed = (std::max)(thresholds.min_steps, std::uint64_t{1});
  if (summary.gaps < needed) {
    d.advice = "too few steps to tell: " + std::to_string(summary.gaps) + " of " + std::to_string(needed) +
               " with a next start measured; let it run on";
    return d;
  }
  if (!d.data_wait_percent) {
    d.advice = "the steps are too short for this clock to see: " + std::to_string(summary.gaps) +
               " of them took no time; take several as one, between one pair of hooks";
    return d;
  }
  const double wait = *d.data_wait_percent;
  if (wait < 100) d.possible_speedup = 100 / (100 - wait);
  const auto fetch = detail::percent(summary.exposed_fetch_total, summary.data_total);
  if (summary.fetches > 0 && fetch) d.fetch_share_percent = detail::share_in_range(*fetch);

  const bool on_device = summary.device_steps > 0;
  const double drained = on_device ? detail::share_in_range(100 * static_cast<double>(summary.drained_steps) /
                                                            static_cast<double>(summary.device_steps))
                                   : 0;
  const bool is_high = wait >= thresholds.data_high_percent;
  if (is_high || wait >= thresholds.data_moderate_percent) {
    d.bottleneck = is_high ? Bottleneck::data_high : Bottleneck::data_moderate;
    d.advice = detail::advice_on_data(d, thresholds, on_device);
  } else if (on_device && drained >= thresholds.drained_percent) {
    d.bottleneck = Bottleneck::host;
    d.advice = "host-bound: in " + detail::percent_text(drained, {100}) +
               " of the steps the device had run dry before the host ended the step; look for a wait within the step "
               "(reading the loss), or launch less: fused kernels, CUDA graphs";
  } else {
    d.bottleneck = Bottleneck::device;
    d.advice = detail::advice_on_steps(d, thresholds, on_device);
  }
  return d;
}

}  // namespace steptimer

#include "detail/macros_restore.hpp"
