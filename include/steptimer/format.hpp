/// Records and summaries as one readable line, for fmt. The only header that includes fmt.
///
///     fmt::print("{}\n", timer.total());
///     data_wait 10.0 % | data 10.0 ms | batch 90.0 ms | 10.0 steps/s | 100 steps
#pragma once

#include "detail/macros_keep.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

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

inline void append_rate(LineBuffer& line, std::optional<double> per_second, const char* what) {
  if (per_second)
    fmt::format_to(std::back_inserter(line), "{:.1f} {}/s", *per_second, what);
  else
    fmt::format_to(std::back_inserter(line), "n/a {}/s", what);
}

inline void append_text(LineBuffer& line, std::string_view text) {
  line.append(text.data(), text.data() + text.size());
}

/// What both lines begin with: the share, and the two times it is made of.
inline void append_times(LineBuffer& line, std::optional<double> data_wait,
                         std::optional<std::chrono::nanoseconds> data, std::optional<std::chrono::nanoseconds> batch) {
  append_text(line, "data_wait ");
  append_percent(line, data_wait);
  append_text(line, " | data ");
  append_duration(line, data);
  append_text(line, " | batch ");
  append_duration(line, batch);
}

inline void append_line(LineBuffer& line, const StepRecord& record) {
  fmt::format_to(std::back_inserter(line), "step {} | ", record.step);
  append_times(line, record.data_wait_percent(), record.data_time, record.batch_time);
  if (record.warmup) append_text(line, " | warm-up");
}

inline void append_line(LineBuffer& line, const StepSummary& summary) {
  append_times(line, summary.data_wait_percent(), summary.data_mean(), summary.batch_mean());
  append_text(line, " | ");
  append_rate(line, summary.steps_per_second(), "steps");
  if (summary.items > 0) {
    append_text(line, " | ");
    append_rate(line, summary.items_per_second(), "items");
  }
  fmt::format_to(std::back_inserter(line), " | {} steps", summary.steps);
}

/// A line as a string, so that width, fill and alignment are fmt's own: "{:>100}".
template <class T>
struct LineFormatter : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const T& value, Context& context) const {
    LineBuffer line;
    append_line(line, value);
    return fmt::formatter<fmt::string_view>::format(fmt::string_view(line.data(), line.size()), context);
  }
};

}  // namespace detail
}  // namespace steptimer

/// "step 41 | data_wait 10.0 % | data 10.0 ms | batch 90.0 ms", times of this one step.
template <>
struct fmt::formatter<steptimer::StepRecord> : steptimer::detail::LineFormatter<steptimer::StepRecord> {};

/// "data_wait 10.0 % | data 10.0 ms | batch 90.0 ms | 10.0 steps/s | 100 steps": the share as a ratio of sums, mean
/// times, whole cycles per second; with items, their rate too.
template <>
struct fmt::formatter<steptimer::StepSummary> : steptimer::detail::LineFormatter<steptimer::StepSummary> {};

#include "detail/macros_restore.hpp"
