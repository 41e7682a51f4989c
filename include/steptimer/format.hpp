/// Records, summaries, counts, distributions, jobs and diagnoses as one readable line each, for fmt. The only header
/// that includes fmt.
///
///     fmt::print("{}\n", timer.total());
///     data_wait 10.0 % | data 10.0 ms | batch 90.0 ms | 10.0 steps/s | 100 steps
///
/// Width, fill and alignment are fmt's own: "{:>100}". A last letter h adds what a host clock alone would have claimed,
/// for a record and a summary: "{:h}", "{:>100h}".
#pragma once

#include "detail/macros_keep.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "diagnosis.hpp"
#include "job_totals.hpp"
#include "step_counts.hpp"
#include "step_distribution.hpp"
#include "step_record.hpp"
#include "step_summary.hpp"

namespace steptimer {
namespace detail {

using LineBuffer = fmt::memory_buffer;

/// Three significant digits with the unit that keeps them readable, from ns to s; "n/a" for what is absent.
inline void append_duration(LineBuffer& line, std::optional<std::chrono::nanoseconds> duration) {
  auto out = std::back_inserter(line);
  if (!duration) {
    fmt::format_to(out, "n/a");
    return;
  }
  struct Unit {
    double nanoseconds;
    const char* name;
  };
  constexpr Unit units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
  const auto count = static_cast<double>(duration->count());
  for (const Unit& unit : units) {
    const double value = count / unit.nanoseconds;
    if (value < 0.9995) continue;  // 999.5 us and more read as 1.00 ms
    const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    fmt::format_to(out, "{:.{}f} {}", value, decimals, unit.name);
    return;
  }
  fmt::format_to(out, "{} ns", duration->count());
}

inline void append_percent(LineBuffer& line, std::optional<double> percent) {
  if (percent)
    fmt::format_to(std::back_inserter(line), "{:.1f} %", *percent);
  else
    fmt::format_to(std::back_inserter(line), "n/a");
}

/// With one decimal below 1000, in whole above, and as a power of ten where whole numbers are too long to read.
inline void append_short(LineBuffer& line, double number) {
  constexpr double too_long = 1e15;
  if (number >= too_long)
    fmt::format_to(std::back_inserter(line), "{:.2e}", number);
  else
    fmt::format_to(std::back_inserter(line), "{:.{}f}", number, number < 999.95 ? 1 : 0);
}

/// "98.8 steps/s", or where that would be less than one, "41.0 s/step".
inline void append_rate(LineBuffer& line, std::optional<double> per_second, const char* unit) {
  auto out = std::back_inserter(line);
  if (!per_second) {
    fmt::format_to(out, "n/a {}s/s", unit);
  } else if (*per_second > 0 && *per_second < 1) {
    append_short(line, 1 / *per_second);
    fmt::format_to(out, " s/{}", unit);
  } else {
    append_short(line, *per_second);
    fmt::format_to(out, " {}s/s", unit);
  }
}

inline void append_text(LineBuffer& line, std::string_view text) {
  line.append(text.data(), text.data() + text.size());
}

enum class HostClock { hidden, shown };

/// What both lines begin with: the share, and the two times it is made of.
template <class Measured>
void append_times(LineBuffer& line, const Measured& measured, std::optional<std::chrono::nanoseconds> data,
                  std::optional<std::chrono::nanoseconds> batch, HostClock host_clock) {
  append_text(line, "data_wait ");
  append_percent(line, measured.data_wait_percent());
  if (host_clock == HostClock::shown) {
    append_text(line, " (host clock ");
    append_percent(line, measured.host_data_wait_percent());
    append_text(line, ")");
  }
  append_text(line, " | data ");
  append_duration(line, data);
  append_text(line, " | batch ");
  append_duration(line, batch);
}

inline void append_line(LineBuffer& line, const StepRecord& record, HostClock host_clock) {
  fmt::format_to(std::back_inserter(line), "step {} | ", record.step);
  append_times(line, record, record.data_time, record.batch_time, host_clock);
  if (record.warmup) append_text(line, " | warm-up");
}

inline void append_line(LineBuffer& line, const StepSummary& summary, HostClock host_clock) {
  append_times(line, summary, summary.data_mean(), summary.batch_mean(), host_clock);
  append_text(line, " | ");
  append_rate(line, summary.steps_per_second(), "step");
  if (summary.items > 0) {
    append_text(line, " | ");
    append_rate(line, summary.items_per_second(), "item");
  }
  fmt::format_to(std::back_inserter(line), " | {} steps", summary.steps);
}

/// Number and name with what stands before them, where the number is not zero.
inline void append_count(LineBuffer& line, const char* before, std::uint64_t number, const char* name) {
  if (number > 0) fmt::format_to(std::back_inserter(line), "{}{} {}", before, number, name);
}

inline void append_line(LineBuffer& line, const StepCounts& counts) {
  fmt::format_to(std::back_inserter(line), "{} started = {} measured", counts.started, counts.measured);
  append_count(line, " + ", counts.pending, "pending");
  append_count(line, " + ", counts.not_sampled, "not sampled");
  append_count(line, " + ", counts.stale, "stale");
  append_count(line, " + ", counts.dropped, "dropped");
  append_count(line, " + ", counts.failed, "failed");
  append_count(line, " | ", counts.ignored_ends, "ignored ends");
  append_count(line, " | ", counts.clamped, "clamped");
  append_count(line, " | ", counts.ignored_marks, "ignored marks");
}

inline void append_line(LineBuffer& line, const Diagnosis& diagnosis) { append_text(line, diagnosis.advice); }

inline void append_quantiles(LineBuffer& line, const char* name, const DurationDistribution& times, const char* worst) {
  append_text(line, name);
  append_text(line, " p50 ");
  append_duration(line, times.p50());
  append_text(line, ", p95 ");
  append_duration(line, times.p95());
  append_text(line, ", p99 ");
  append_duration(line, times.p99());
  append_text(line, ", worst ");
  append_duration(line, times.longest());
  if (const auto step = times.longest_step()) fmt::format_to(std::back_inserter(line), " {} step {}", worst, *step);
}

inline void append_line(LineBuffer& line, const StepDistribution& distribution) {
  append_quantiles(line, "batch", distribution.batch_time, "in");
  append_text(line, " | ");
  append_quantiles(line, "data", distribution.data_time, "after");
  fmt::format_to(std::back_inserter(line), " | {} steps", distribution.batch_time.count());
}

inline void append_line(LineBuffer& line, const JobSummary& job) {
  auto out = std::back_inserter(line);
  append_text(line, "job data_wait ");
  append_percent(line, job.data_wait_percent());
  append_text(line, " | stall ");
  append_duration(line, job.stall_mean());
  append_text(line, " | cycle ");
  append_duration(line, job.cycle_mean());
  append_text(line, " | batch ");
  append_duration(line, job.batch_min_mean());
  append_text(line, " to ");
  append_duration(line, job.batch_max_mean());
  if (const auto rank = job.guilty_rank())
    fmt::format_to(out, " | all wait for rank {} in {} of {} steps", *rank, job.most_blamed.steps, job.steps);
  else
    append_text(line, " | no rank to blame");
  fmt::format_to(out, " | {} {} | {} steps", job.ranks, job.ranks == 1 ? "rank" : "ranks", job.steps);
  append_count(line, " | ", job.left_out, "left out");
}

/// A line as a string, so that width, fill and alignment are fmt's own.
template <class T>
struct LineFormatter : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const T& value, Context& context) const {
    LineBuffer line;
    append_line(line, value);
    return fmt::formatter<fmt::string_view>::format(fmt::string_view(line.data(), line.size()), context);
  }
};

/// The same for what has a host clock's claim beside it.
template <class T>
class HostLineFormatter : fmt::formatter<fmt::string_view> {
  using Text = fmt::formatter<fmt::string_view>;

 public:
  /// fmt knows no h, so it is given what stands before it. Where it does not take that, or a width comes from an
  /// argument, it is given all, and says itself what is wrong.
  template <class ParseContext>
  FMT_CONSTEXPR auto parse(ParseContext& context) -> decltype(context.begin()) {
    const auto begin = context.begin();
    auto end = begin;
    while (end != context.end() && *end != '}' && *end != '{') ++end;
    if (end != begin && *(end - 1) == 'h') {
      fmt::format_parse_context before(fmt::string_view(begin, static_cast<std::size_t>(end - begin - 1)));
      if (Text::parse(before) == before.end()) {
        host_clock_ = HostClock::shown;
        return end;
      }
    }
    return Text::parse(context);
  }

  template <class Context>
  auto format(const T& value, Context& context) const {
    LineBuffer line;
    append_line(line, value, host_clock_);
    return Text::format(fmt::string_view(line.data(), line.size()), context);
  }

 private:
  HostClock host_clock_ = HostClock::hidden;
};

}  // namespace detail
}  // namespace steptimer

/// "step 41 | data_wait 10.0 % | data 10.0 ms | batch 90.0 ms", times of this one step. With h: "data_wait 10.0 % (host
/// clock 95.0 %) | ...".
template <>
struct fmt::formatter<steptimer::StepRecord> : steptimer::detail::HostLineFormatter<steptimer::StepRecord> {};

/// "data_wait 10.0 % | data 10.0 ms | batch 90.0 ms | 10.0 steps/s | 100 steps": the share as a ratio of sums, mean
/// times, whole cycles per second, or seconds a step where that is less than one; with items, their rate too. With h:
/// as for a record.
template <>
struct fmt::formatter<steptimer::StepSummary> : steptimer::detail::HostLineFormatter<steptimer::StepSummary> {};

/// "100 started = 97 measured + 2 pending + 1 stale | 3 ignored ends": what there is none of is left out.
template <>
struct fmt::formatter<steptimer::StepCounts> : steptimer::detail::LineFormatter<steptimer::StepCounts> {};

/// "batch p50 90.0 ms, p95 91.2 ms, p99 120 ms, worst 131 ms in step 7 | data p50 10.0 ms, ... after step 9 | 100
/// steps".
template <>
struct fmt::formatter<steptimer::StepDistribution> : steptimer::detail::LineFormatter<steptimer::StepDistribution> {};

/// "job data_wait 33.3 % | stall 5.00 ms | cycle 15.0 ms | batch 10.0 ms to 15.0 ms | all wait for rank 1 in 99 of 100
/// steps | 4 ranks | 100 steps": means of what JobSummary sums; of batch, the fastest and the slowest rank's.
template <>
struct fmt::formatter<steptimer::JobSummary> : steptimer::detail::LineFormatter<steptimer::JobSummary> {};

/// The advice: "highly data-bound: 37.0 % of device time is spent waiting; ...".
template <>
struct fmt::formatter<steptimer::Diagnosis> : steptimer::detail::LineFormatter<steptimer::Diagnosis> {};

#include "detail/macros_restore.hpp"
