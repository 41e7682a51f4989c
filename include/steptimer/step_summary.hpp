/// StepSummary: many records as exact sums, and merge() for windows, epochs and ranks. Pure functions on plain data.
#pragma once

#include "detail/macros_keep.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "detail/durations.hpp"
#include "detail/utf8.hpp"
#include "step_record.hpp"

namespace steptimer {

/// The time of all phases of one name.
struct PhaseTotal {
  char name[24] = "";                 ///< as given to mark(), cut to 23 bytes, between two characters
  std::uint32_t place = 0;            ///< the first among a step's phases that it was seen at
  std::uint64_t steps = 0;            ///< phases of that name
  std::chrono::nanoseconds total{0};  ///< their time
};

/// Sums over measured steps; warm-up steps are never in it.
///
/// Units:    integer nanoseconds, so sums are exact; beyond 292 years they stay at the largest value.
/// Empty:    with steps == 0 every member is 0 and every function returns nothing; the data_ members and wall_total
///           mean something only where gaps > 0.
struct StepSummary {
  std::uint64_t steps = 0;                         ///< records in it
  std::uint64_t gaps = 0;                          ///< those of them that have a data_time
  std::uint64_t items = 0;                         ///< over all steps
  std::chrono::nanoseconds batch_total{0};         ///< over all steps
  std::chrono::nanoseconds data_total{0};          ///< over steps with a gap
  std::chrono::nanoseconds wall_total{0};          ///< over steps with a gap
  std::chrono::nanoseconds batch_in_gaps{0};       ///< batch_time of the steps with a gap
  std::chrono::nanoseconds host_batch_in_gaps{0};  ///< host_batch_time of the steps with a gap
  std::chrono::nanoseconds host_wall_total{0};     ///< host_wall_gap of the steps with a gap
  std::chrono::nanoseconds batch_min{0};           ///< shortest batch_time
  std::chrono::nanoseconds batch_max{0};           ///< longest batch_time
  std::chrono::nanoseconds data_min{0};            ///< shortest data_time
  std::chrono::nanoseconds data_max{0};            ///< longest data_time
  std::uint64_t slowest_step = 0;                  ///< the step that took batch_max; the earliest of equals
  std::uint64_t longest_wait_step = 0;             ///< the step before the data_max wait; the earliest of equals
  std::uint64_t items_in_gaps = 0;                 ///< items of the steps with a gap, those of rates
  std::uint64_t device_steps = 0;                  ///< steps on a timeline behind the host
  std::uint64_t drained_steps = 0;          ///< those of them whose device had waited for the host when they ended
  std::uint64_t fetches = 0;                ///< steps with a gap and a fetch in it
  std::chrono::nanoseconds fetch_total{0};  ///< host time of those fetches
  std::chrono::nanoseconds exposed_fetch_total{0};  ///< what of it the timeline waited for
  std::size_t phase_count = 0;                      ///< names in phases; steps without mark() add none
  std::array<PhaseTotal, max_phases> phases{};  ///< by name, in the order of their places; further names are left out

  /// batch_total / steps, rounded towards zero.
  std::optional<std::chrono::nanoseconds> batch_mean() const noexcept { return mean(batch_total, steps); }
  /// data_total / gaps, rounded towards zero.
  std::optional<std::chrono::nanoseconds> data_mean() const noexcept { return mean(data_total, gaps); }

  /// Share of the time that was spent waiting for batches, 0 to 100.
  ///
  /// Source:   ours: the ratio of sums 100 * data_total / (data_total + batch_in_gaps). A mean of the steps' own
  ///           percentages would give a 1 ms step the weight of a 10 s step.
  std::optional<double> data_wait_percent() const noexcept;

  /// What a host clock alone would have claimed, 0 to 100: 100 * (host_wall_total - host_batch_in_gaps) /
  /// host_wall_total.
  std::optional<double> host_data_wait_percent() const noexcept {
    return detail::percent(detail::difference_or_zero(host_wall_total, host_batch_in_gaps), host_wall_total);
  }

  /// Steps with a gap per second of wall_total: the rate of whole cycles, waits included, pauses left out.
  std::optional<double> steps_per_second() const noexcept { return rate(gaps); }
  /// Items of the steps with a gap per second of wall_total.
  std::optional<double> items_per_second() const noexcept { return rate(gaps == steps ? items : items_in_gaps); }

 private:
  static std::optional<std::chrono::nanoseconds> mean(std::chrono::nanoseconds total, std::uint64_t n) noexcept {
    if (n == 0) return std::nullopt;
    return std::chrono::nanoseconds{static_cast<std::int64_t>(static_cast<std::uint64_t>(total.count()) / n)};
  }
  std::optional<double> rate(std::uint64_t n) const noexcept {
    if (wall_total.count() <= 0) return std::nullopt;
    return static_cast<double>(n) * 1e9 / static_cast<double>(wall_total.count());
  }
};

static_assert(std::is_trivially_copyable<StepSummary>::value, "summaries are sent between processes as bytes");

namespace detail {

/// A value and the step it was seen at, the extreme of two: the larger, and of equals the earlier step. Where the other
/// is the first, it is the extreme.
inline void keep_larger(std::chrono::nanoseconds& value, std::uint64_t& step, std::chrono::nanoseconds other,
                        std::uint64_t other_step, bool first) noexcept {
  if (first || other > value || (other == value && other_step < step)) {
    value = other;
    step = other_step;
  }
}

inline void keep_smaller(std::chrono::nanoseconds& value, std::chrono::nanoseconds other, bool first) noexcept {
  if (first || other < value) value = other;
}

inline void add_to(std::chrono::nanoseconds& total, std::chrono::nanoseconds other) noexcept {
  total = saturating_sum(total, other);
}

}  // namespace detail

inline std::optional<double> StepSummary::data_wait_percent() const noexcept {
  return detail::percent(data_total, detail::saturating_sum(data_total, batch_in_gaps));
}

namespace detail {

/// Adds a time to the phases of its name, at its place among them; where there is no room for one more name, the last
/// is left out.
inline void add_phase(StepSummary& sum, const char* name, std::uint32_t place, std::uint64_t steps,
                      std::chrono::nanoseconds time) noexcept {
  PhaseTotal one;
  std::size_t length = 0;
  while (length < sizeof one.name && name[length] != '\0') ++length;  // no further: it may be of any length
  cut({name, length}, sizeof one.name - 1).copy(one.name, sizeof one.name - 1);
  one.place = place;
  const auto is_before = [](const PhaseTotal& a, const PhaseTotal& b) {
    return a.place != b.place ? a.place < b.place : std::strcmp(a.name, b.name) < 0;
  };
  std::size_t i = 0;
  while (i < sum.phase_count && std::strcmp(sum.phases[i].name, one.name) != 0) ++i;
  if (i < sum.phase_count) {
    if (place < sum.phases[i].place) sum.phases[i].place = place;
  } else if (i < max_phases) {
    sum.phases[i] = one;
    ++sum.phase_count;
  } else if (is_before(one, sum.phases[--i])) {
    sum.phases[i] = one;
  } else {
    return;
  }
  sum.phases[i].steps += steps;
  add_to(sum.phases[i].total, time);
  for (; i > 0 && is_before(sum.phases[i], sum.phases[i - 1]); --i) std::swap(sum.phases[i], sum.phases[i - 1]);
}

/// merge(sum, summary_of(record)) in place: what a hook does, without a second summary to build and read back.
inline void add_record(StepSummary& sum, const StepRecord& record) noexcept {
  const bool first = sum.steps++ == 0;
  sum.items += record.items;
  add_to(sum.batch_total, record.batch_time);
  keep_smaller(sum.batch_min, record.batch_time, first);
  keep_larger(sum.batch_max, sum.slowest_step, record.batch_time, record.step, first);
  if (record.device_drained) {
    ++sum.device_steps;
    sum.drained_steps += *record.device_drained ? 1u : 0u;
  }
  for (std::size_t i = 0; i < record.phase_count; ++i)
    add_phase(sum, record.phases[i].name, static_cast<std::uint32_t>(i), 1, record.phases[i].time);
  if (!record.data_time || !record.wall_gap) return;
  const bool first_gap = sum.gaps++ == 0;
  sum.items_in_gaps += record.items;
  add_to(sum.data_total, *record.data_time);
  keep_smaller(sum.data_min, *record.data_time, first_gap);
  keep_larger(sum.data_max, sum.longest_wait_step, *record.data_time, record.step, first_gap);
  add_to(sum.wall_total, *record.wall_gap);
  add_to(sum.batch_in_gaps, record.batch_time);
  if (record.fetch_time && record.exposed_fetch) {
    ++sum.fetches;
    add_to(sum.fetch_total, *record.fetch_time);
    add_to(sum.exposed_fetch_total, *record.exposed_fetch);
  }
  if (!record.host_wall_gap) return;
  add_to(sum.host_batch_in_gaps, record.host_batch_time);
  add_to(sum.host_wall_total, *record.host_wall_gap);
}

}  // namespace detail

/// The summary of one record, warm-up or not.
inline StepSummary summary_of(const StepRecord& record) noexcept {
  StepSummary one;
  detail::add_record(one, record);
  return one;
}

/// The summary of both sets of steps together.
///
/// Associative and commutative, with StepSummary{} as its neutral element: windows, epochs and ranks can be merged in
/// any order with the same result. Where there are more than max_phases names of phases, which of them are left out is
/// the same in any order too, but not what they have summed up.
inline StepSummary merge(const StepSummary& a, const StepSummary& b) noexcept {
  if (a.steps == 0) return b;
  if (b.steps == 0) return a;
  StepSummary both = a;
  both.steps += b.steps;
  both.items += b.items;
  detail::add_to(both.batch_total, b.batch_total);
  detail::keep_smaller(both.batch_min, b.batch_min, false);
  detail::keep_larger(both.batch_max, both.slowest_step, b.batch_max, b.slowest_step, false);
  both.device_steps += b.device_steps;
  both.drained_steps += b.drained_steps;
  for (std::size_t i = 0; i < b.phase_count; ++i)
    detail::add_phase(both, b.phases[i].name, b.phases[i].place, b.phases[i].steps, b.phases[i].total);
  if (b.gaps == 0) return both;
  both.fetches += b.fetches;
  detail::add_to(both.fetch_total, b.fetch_total);
  detail::add_to(both.exposed_fetch_total, b.exposed_fetch_total);
  detail::keep_smaller(both.data_min, b.data_min, a.gaps == 0);
  detail::keep_larger(both.data_max, both.longest_wait_step, b.data_max, b.longest_wait_step, a.gaps == 0);
  both.gaps += b.gaps;
  both.items_in_gaps += b.items_in_gaps;
  detail::add_to(both.data_total, b.data_total);
  detail::add_to(both.wall_total, b.wall_total);
  detail::add_to(both.batch_in_gaps, b.batch_in_gaps);
  detail::add_to(both.host_batch_in_gaps, b.host_batch_in_gaps);
  detail::add_to(both.host_wall_total, b.host_wall_total);
  return both;
}

}  // namespace steptimer

#include "detail/macros_restore.hpp"
