/// for_each_metric(): a record or a summary as named numbers, for any logger.
///
///     steptimer::for_each_metric(timer.window(), [&](std::string_view name, double value) {
///       logger.log(name, value, step);
///     });
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <type_traits>

#include "step_record.hpp"
#include "step_summary.hpp"

namespace steptimer {
namespace detail {

/// Turns what a record or summary holds into doubles, and leaves out what is absent.
template <class F>
class MetricVisitor {
 public:
  explicit MetricVisitor(F& f) : f_(f) {}

  void count(std::string_view name, std::uint64_t count) { give(name, static_cast<double>(count)); }
  void seconds(std::string_view name, std::optional<std::chrono::nanoseconds> time) {
    if (time) give(name, static_cast<double>(time->count()) / 1e9);
  }
  void share(std::string_view name, std::optional<double> percent) {
    if (percent) give(name, *percent / 100);
  }
  void rate(std::string_view name, std::optional<double> per_second) {
    if (per_second) give(name, *per_second);
  }
  void mean(std::string_view name, std::chrono::nanoseconds total, std::uint64_t n) {
    if (n > 0) give(name, static_cast<double>(total.count()) / (1e9 * static_cast<double>(n)));
  }
  void fraction(std::string_view name, std::uint64_t part, std::uint64_t whole) {
    if (whole > 0) give(name, static_cast<double>(part) / static_cast<double>(whole));
  }
  void phases(const StepSummary& summary) {
    for (std::size_t i = 0; i < summary.phase_count; ++i) {
      const PhaseTotal& phase = summary.phases[i];
      if (*phase.name == '\0') continue;
      char name[sizeof "profiling/phase/" + sizeof phase.name];
      std::snprintf(name, sizeof name, "profiling/phase/%s", phase.name);
      mean(name, phase.total, phase.steps);
    }
  }

 private:
  /// All names end in a zero, so they can be given to what takes a std::string or a const char*.
  void give(std::string_view name, double value) {
    if constexpr (std::is_invocable_v<F&, std::string_view, double>)
      f_(name, value);
    else
      f_(name.data(), value);
  }

  F& f_;
};

}  // namespace detail

/// Calls f(name, value) for each number of a record that is there.
///
/// Units:    seconds; shares 0 to 1; counts as they are, device_drained 0 or 1.
/// Names:    a std::string_view, or where f does not take one a const char*, so that it may take a std::string.
///           `profiling/...`, string literals. Only that of a phase, `profiling/phase/forward`, is put together, so f
///           copies what it keeps; it has the first 23 bytes of what was given to mark(). Phases of one name are one
///           metric, their mean; what comes before the first mark has no name and no metric.
/// Blocking: what f does; no memory is asked for.
template <class F>
void for_each_metric(const StepRecord& record, F&& f) {
  detail::MetricVisitor<F> visit(f);
  visit.seconds("profiling/data_time", record.data_time);
  visit.seconds("profiling/batch_time", record.batch_time);
  visit.share("profiling/data_wait", record.data_wait_percent());
  visit.seconds("profiling/wall_gap", record.wall_gap);
  visit.seconds("profiling/host_start", record.host_start);
  visit.seconds("profiling/host_batch_time", record.host_batch_time);
  visit.seconds("profiling/host_wall_gap", record.host_wall_gap);
  visit.share("profiling/host_data_wait", record.host_data_wait_percent());
  visit.count("profiling/step", record.step);
  visit.count("profiling/items", record.items);
  visit.seconds("profiling/fetch_time", record.fetch_time);
  visit.seconds("profiling/exposed_fetch", record.exposed_fetch);
  if (record.device_drained) visit.count("profiling/device_drained", *record.device_drained ? 1 : 0);
  visit.count("profiling/steps_ahead", record.steps_ahead);
  visit.phases(summary_of(record));
}

/// The same for a summary: data_time, batch_time, fetch_time, exposed_fetch and phases are means, data_wait is the
/// ratio of sums, device_drained a share of steps. An empty summary has its counts, which are 0, and nothing else.
template <class F>
void for_each_metric(const StepSummary& summary, F&& f) {
  detail::MetricVisitor<F> visit(f);
  visit.seconds("profiling/data_time", summary.data_mean());
  visit.seconds("profiling/batch_time", summary.batch_mean());
  visit.share("profiling/data_wait", summary.data_wait_percent());
  visit.share("profiling/host_data_wait", summary.host_data_wait_percent());
  visit.rate("profiling/steps_per_second", summary.steps_per_second());
  visit.rate("profiling/items_per_second", summary.items_per_second());
  visit.count("profiling/steps", summary.steps);
  visit.count("profiling/gaps", summary.gaps);
  visit.count("profiling/items", summary.items);
  visit.count("profiling/items_in_gaps", summary.items_in_gaps);
  if (summary.steps == 0) return;
  visit.seconds("profiling/batch_total", summary.batch_total);
  visit.seconds("profiling/batch_min", summary.batch_min);
  visit.seconds("profiling/batch_max", summary.batch_max);
  visit.count("profiling/slowest_step", summary.slowest_step);
  visit.fraction("profiling/device_drained", summary.drained_steps, summary.device_steps);
  visit.phases(summary);
  if (summary.gaps == 0) return;
  visit.seconds("profiling/data_total", summary.data_total);
  visit.seconds("profiling/data_min", summary.data_min);
  visit.seconds("profiling/data_max", summary.data_max);
  visit.count("profiling/longest_wait_step", summary.longest_wait_step);
  visit.seconds("profiling/wall_total", summary.wall_total);
  visit.seconds("profiling/batch_in_gaps", summary.batch_in_gaps);
  visit.seconds("profiling/host_batch_in_gaps", summary.host_batch_in_gaps);
  visit.seconds("profiling/host_wall_total", summary.host_wall_total);
  visit.mean("profiling/fetch_time", summary.fetch_total, summary.fetches);
  visit.mean("profiling/exposed_fetch", summary.exposed_fetch_total, summary.fetches);
}

}  // namespace steptimer

#include "detail/macros_restore.hpp"
