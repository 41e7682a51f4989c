/// JobSummary: a data-parallel job's steps as one; plain data. job_summary.hpp makes it, and says what its words mean.
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "detail/durations.hpp"

namespace steptimer {

/// How often a rank was the one that all waited for.
struct RankBlame {
  std::uint32_t rank = 0;              ///< the rank
  std::uint64_t steps = 0;             ///< steps whose stall was its data_time
  std::chrono::nanoseconds excess{0};  ///< what they would have gained, had it been no later than the next rank
};

/// A job's last steps as one.
///
/// Units:    integer nanoseconds, so sums are exact; beyond 292 years they stay at the largest value.
/// Counted:  the steps that every rank has, warm-up and steps without a gap left out. A step that only some have
///           (stale, dropped, not sampled, not measured yet) is in left_out and in no other number.
/// Blame:    a stall has a rank to its name where that rank waited longer than any other, by at least 1 % of the cycle
///           (see JobSteps::summary()). Where several wait alike, to mend one of them would win nothing, and nobody is
///           blamed.
struct JobSummary {
  std::uint32_t ranks = 0;                      ///< of the job
  std::uint32_t most_ranks = 0;                 ///< the most ranks that had the same step; fewer: some have none
  std::uint64_t steps = 0;                      ///< steps that all ranks have
  std::uint64_t left_out = 0;                   ///< steps that only some of them have
  std::chrono::nanoseconds stall_total{0};      ///< the sum of the largest data_time of each step
  std::chrono::nanoseconds cycle_total{0};      ///< the sum of the largest wall_gap of each step
  std::chrono::nanoseconds batch_min_total{0};  ///< the sum of the shortest batch_time of each step
  std::chrono::nanoseconds batch_max_total{0};  ///< the sum of the longest batch_time of each step
  std::chrono::nanoseconds longest_stall{0};    ///< of one step
  std::uint64_t longest_stall_step = 0;         ///< the step before it; the earliest of equals
  std::uint32_t longest_stall_rank = 0;         ///< the rank that had it
  std::uint64_t blamed_steps = 0;               ///< steps with a rank to blame
  RankBlame most_blamed;                        ///< the rank blamed for most of them; steps is 0 where there are none

  /// The job's data wait, 0 to 100.
  ///
  /// Source:   ours: the ratio of sums 100 * stall_total / cycle_total. Absent without a step that all ranks have.
  std::optional<double> data_wait_percent() const noexcept { return detail::percent(stall_total, cycle_total); }
  /// stall_total / steps, rounded towards zero.
  std::optional<std::chrono::nanoseconds> stall_mean() const noexcept { return mean(stall_total); }
  /// cycle_total / steps, rounded towards zero.
  std::optional<std::chrono::nanoseconds> cycle_mean() const noexcept { return mean(cycle_total); }
  /// The mean of the shortest batch_time of each step, that of the rank that the others did not have to wait for.
  std::optional<std::chrono::nanoseconds> batch_min_mean() const noexcept { return mean(batch_min_total); }
  /// The mean of the longest batch_time of each step.
  std::optional<std::chrono::nanoseconds> batch_max_mean() const noexcept { return mean(batch_max_total); }

  /// Share of the steps that the most blamed rank is blamed for, 0 to 1.
  std::optional<double> blamed_share() const noexcept {
    if (steps == 0) return std::nullopt;
    return static_cast<double>(most_blamed.steps) / static_cast<double>(steps);
  }

  /// The rank that the job waits for: the most blamed one, where it is blamed more often than chance explains, and its
  /// excess is at least `cost_from_percent` of all cycles.
  ///
  /// Source:   if ranks were last by chance, each would be blamed for 1/ranks of the blamed steps. The probability that
  ///           any one is blamed for a share s of n of them is at most ranks * exp(-n * D(s, 1/ranks)), D being the
  ///           relative entropy of two coins (Chernoff, Hoeffding; the factor is Bonferroni's). It must not exceed
  ///           `chance`, which holds where steps are independent of each other: a rank that is slow for a stretch is
  ///           named for that stretch. In a job of one rank it is that one, as soon as it is blamed.
  std::optional<std::uint32_t> guilty_rank(double chance = 0.001, double cost_from_percent = 1.0) const noexcept {
    if (most_blamed.steps == 0) return std::nullopt;
    if (!(detail::percent(most_blamed.excess, cycle_total).value_or(0) >= cost_from_percent)) return std::nullopt;
    if (ranks > 1 && !(chance_of_blame() <= chance)) return std::nullopt;
    return most_blamed.rank;
  }

 private:
  std::optional<std::chrono::nanoseconds> mean(std::chrono::nanoseconds total) const noexcept {
    if (steps == 0) return std::nullopt;
    return std::chrono::nanoseconds{total.count() / static_cast<std::int64_t>(steps)};
  }

  double chance_of_blame() const noexcept {
    const auto n = static_cast<double>(blamed_steps);
    const double share = static_cast<double>(most_blamed.steps) / n;
    const double fair = 1.0 / ranks;
    double entropy = share * std::log(share / fair);
    if (share < 1.0) entropy += (1.0 - share) * std::log((1.0 - share) / (1.0 - fair));
    return ranks * std::exp(-n * entropy);
  }
};

static_assert(std::is_trivially_copyable<JobSummary>::value, "summaries are sent between processes as bytes");

}  // namespace steptimer

#include "detail/macros_restore.hpp"
