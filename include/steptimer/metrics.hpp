/// for_each_metric(): a record or a summary as named numbers, for any logger.
///
///     steptimer::for_each_metric(timer.window(), [&](std::string_view name, double value) {
///       logger.log(name, value, step);
///     });
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "step_record.hpp"
#include "step_summary.hpp"

namespace steptimer {
namespace detail {

/// Turns what a record or summary holds into doubles, and leaves out what is absent.
template <class F>
class MetricVisitor {
 public:
  explicit MetricVisitor(F& f) : f_(f) {}

  void count(std::string_view name, std::uint64_t count) { f_(name, static_cast<double>(count)); }
  void seconds(std::string_view name, std::optional<std::chrono::nanoseconds> time) {
    if (time) f_(name, static_cast<double>(time->count()) / 1e9);
  }
  void share(std::string_view name, std::optional<double> percent) {
    if (percent) f_(name, *percent / 100);
  }
  void rate(std::string_view name, std::optional<double> per_second) {
    if (per_second) f_(name, *per_second);
  }

 private:
  F& f_;
};

}  // namespace detail

/// Calls f(name, value) for each number of a record that is there.
///
/// Units:    seconds; shares 0 to 1; counts as they are. Names are string literals, `profiling/...`.
/// Blocking: what f does.
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
}

/// The same for a summary: data_time and batch_time are means, data_wait is the ratio of sums. An empty summary has its
/// counts, which are 0, and nothing else.
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
  if (summary.gaps == 0) return;
  visit.seconds("profiling/data_total", summary.data_total);
  visit.seconds("profiling/data_min", summary.data_min);
  visit.seconds("profiling/data_max", summary.data_max);
  visit.count("profiling/longest_wait_step", summary.longest_wait_step);
  visit.seconds("profiling/wall_total", summary.wall_total);
  visit.seconds("profiling/batch_in_gaps", summary.batch_in_gaps);
  visit.seconds("profiling/host_batch_in_gaps", summary.host_batch_in_gaps);
  visit.seconds("profiling/host_wall_total", summary.host_wall_total);
}

}  // namespace steptimer

#include "detail/macros_restore.hpp"
