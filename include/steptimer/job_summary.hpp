/// JobSteps and JobSummary: a data-parallel job's step times as one true number, and the rank to blame.
///
///     steptimer::JobSteps job(ranks, 100);         // the last 100 steps
///     for (rank ...) job.add(rank, window);        // the StepWindow or the records of each, however they came here
///     const steptimer::JobSummary summary = job.summary();
///     summary.data_wait_percent();                 // of the job
///     summary.guilty_rank();                       // nothing where chance explains who was last
///
/// The all-reduce hides the culprit: the rank that waited for its batch has the short batch_time, and every other rank
/// shows a long one and no data wait. So it is taken step by step what the job waited for:
///
///     rank 0   |== step ==|.... all-reduce ....|          data_time 0
///     rank 1   |-- data wait --|== step ==|               data_time of this one is the job's stall
///
/// Pure functions, no transport: see mpi.hpp, or gather JobSteps by whatever the job has.
#pragma once

#include "detail/macros_keep.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "detail/durations.hpp"
#include "job_totals.hpp"
#include "step_record.hpp"
#include "step_window.hpp"

namespace steptimer {

/// One step over the ranks that have it.
struct JobStep {
  std::uint64_t step = 0;             ///< ordinal of the step, the same on all ranks
  std::uint32_t ranks = 0;            ///< how many have it; 0 means that there is nothing here
  std::uint32_t turn = 0;             ///< the rank of the stall, counted from the one whose turn it is: see rank_in()
  std::chrono::nanoseconds stall{0};  ///< the largest data_time
  std::chrono::nanoseconds next_wait{0};  ///< the largest data_time but for that one; 0 where one rank has the step
  std::chrono::nanoseconds cycle{0};      ///< the largest wall_gap
  std::chrono::nanoseconds batch_min{0};  ///< the shortest batch_time
  std::chrono::nanoseconds batch_max{0};  ///< the longest batch_time

  /// The rank whose data_time is the stall, in a job of so many ranks. Of equals, the one whose turn it is in this
  /// step.
  std::uint32_t rank_in(std::uint32_t ranks_of_job) const noexcept {
    return ranks_of_job == 0 ? 0 : static_cast<std::uint32_t>((turn + step % ranks_of_job) % ranks_of_job);
  }
  /// What the step would have gained, had the rank of the stall been no later than the next one.
  std::chrono::nanoseconds excess() const noexcept { return stall - next_wait; }
};

static_assert(std::is_trivially_copyable<JobStep>::value, "steps are sent between processes as bytes");

/// The step over the ranks of both, which must have none in common; of two different steps, the later one.
///
/// Source:   ours: the two largest, the place of the largest, maxima, a minimum and a sum. Associative and commutative,
///           with JobStep{} as its neutral element, so ranks can be merged in any order with the same result.
inline JobStep merge(const JobStep& a, const JobStep& b) noexcept {
  if (b.ranks == 0) return a;
  if (a.ranks == 0) return b;
  if (a.step != b.step) return a.step > b.step ? a : b;
  const bool b_stalls = b.stall > a.stall || (b.stall == a.stall && b.turn < a.turn);
  JobStep both = b_stalls ? b : a;
  both.ranks = a.ranks + b.ranks;
  both.next_wait = (std::max)({a.next_wait, b.next_wait, (std::min)(a.stall, b.stall)});
  both.cycle = (std::max)(a.cycle, b.cycle);
  both.batch_min = (std::min)(a.batch_min, b.batch_min);
  both.batch_max = (std::max)(a.batch_max, b.batch_max);
  return both;
}

/// The last steps of a job, of each what all its ranks make of it.
///
/// Memory:   56 bytes a step, however many ranks there are; made room for when it is constructed, and that may throw.
/// Threads:  one thread at a time. Blocking: never.
class JobSteps {
 public:
  /// Of a job of so many ranks, the last `window` steps.
  JobSteps(std::uint32_t ranks, std::size_t window) : ranks_(ranks), slots_(window) {}

  /// Counts a step of a rank; a warm-up step, and one without a gap, is none. Give each step of a rank once.
  ///
  /// Returns:  false, and counts nothing, where there is no such rank.
  bool add(std::uint32_t rank, const StepRecord& record) noexcept {
    if (rank >= ranks_) return false;
    if (!record.warmup) add(rank, StepTimes{record.step, record.batch_time, record.wall_gap, record.data_time});
    return true;
  }

  /// Counts the steps of a rank's window. Where their numbers begin again, as after StepTimer::reset(), only those
  /// after.
  ///
  /// Returns:  false, and counts nothing, where there is no such rank.
  bool add(std::uint32_t rank, const StepWindow& window) noexcept {
    if (rank >= ranks_) return false;
    std::size_t first = window.size();
    while (first > 0 && (first == window.size() || window[first - 1].step < window[first].step)) --first;
    for (; first < window.size(); ++first) add(rank, window[first]);
    return true;
  }

  /// Adds the steps that other ranks of the same job have sent.
  ///
  /// Returns:  false, and adds nothing, where they are of a job of another size.
  bool add(const JobSteps& other) noexcept {
    if (other.ranks_ != ranks_) return false;
    for (const JobStep& step : other.slots_) place(step);
    return true;
  }

  /// Ranks of the job.
  std::uint32_t ranks() const noexcept { return ranks_; }

  /// The steps for a transport to send and to merge(), place by place: step n is at place n % size(), and where a later
  /// one is there, it is gone. The memory belongs to this.
  JobStep* data() noexcept { return slots_.data(); }
  /// The same, to be read.
  const JobStep* data() const noexcept { return slots_.data(); }
  /// The window, in steps.
  std::size_t size() const noexcept { return slots_.size(); }

  /// The job's window, in which stalls are nobody's whose excess is below `blame_from_percent` of their cycle. Throws
  /// std::bad_alloc where memory is out.
  JobSummary summary(double blame_from_percent = 1.0) const;

  /// All ranks that are blamed for a step, the most blamed first, and of equals the one with the larger excess. Throws
  /// std::bad_alloc where memory is out.
  std::vector<RankBlame> blame(double blame_from_percent = 1.0) const;

 private:
  void add(std::uint32_t rank, const StepTimes& times) noexcept {
    if (!times.wall_gap || !times.data_time) return;
    const auto whose_turn = static_cast<std::uint32_t>(times.step % ranks_);
    JobStep step;
    step.step = times.step;
    step.ranks = 1;
    step.turn = rank >= whose_turn ? rank - whose_turn : rank + (ranks_ - whose_turn);
    step.stall = *times.data_time;
    step.cycle = *times.wall_gap;
    step.batch_min = step.batch_max = times.batch_time;
    place(step);
  }

  void place(const JobStep& step) noexcept {
    if (slots_.empty() || step.ranks == 0) return;
    JobStep& slot = slots_[static_cast<std::size_t>(step.step % slots_.size())];
    slot = merge(slot, step);
  }

  /// Calls f(step) for each step of the window that a rank has.
  template <class F>
  void for_each_step(F f) const {
    std::uint64_t last = 0;
    for (const JobStep& step : slots_) last = (std::max)(last, step.step);
    for (const JobStep& step : slots_) {
      if (step.ranks > 0 && last - step.step < slots_.size()) f(step);
    }
  }

  static bool is_blamed(const JobStep& step, double from_percent) noexcept {
    const auto excess = static_cast<double>(step.excess().count());
    return excess > 0 && excess * 100.0 >= from_percent * static_cast<double>(step.cycle.count());
  }

  std::uint32_t ranks_;
  std::vector<JobStep> slots_;
};

inline std::vector<RankBlame> JobSteps::blame(double blame_from_percent) const {
  std::vector<RankBlame> blame;
  blame.reserve(slots_.size());
  for_each_step([&](const JobStep& step) {
    if (step.ranks == ranks_ && is_blamed(step, blame_from_percent))
      blame.push_back({step.rank_in(ranks_), 1, step.excess()});
  });
  std::sort(blame.begin(), blame.end(), [](const RankBlame& a, const RankBlame& b) { return a.rank < b.rank; });
  std::size_t ranks = 0;
  for (const RankBlame& one : blame) {
    if (ranks > 0 && blame[ranks - 1].rank == one.rank) {
      ++blame[ranks - 1].steps;
      blame[ranks - 1].excess = detail::saturating_sum(blame[ranks - 1].excess, one.excess);
    } else {
      blame[ranks++] = one;
    }
  }
  blame.resize(ranks);
  std::stable_sort(blame.begin(), blame.end(), [](const RankBlame& a, const RankBlame& b) {
    return a.steps != b.steps ? a.steps > b.steps : a.excess > b.excess;
  });
  return blame;
}

inline JobSummary JobSteps::summary(double blame_from_percent) const {
  JobSummary summary;
  summary.ranks = ranks_;
  const auto add_to = [](std::chrono::nanoseconds& total, std::chrono::nanoseconds time) {
    total = detail::saturating_sum(total, time);
  };
  for_each_step([&](const JobStep& step) {
    summary.most_ranks = (std::max)(summary.most_ranks, step.ranks);
    if (step.ranks != ranks_) {
      ++summary.left_out;
      return;
    }
    const bool first = summary.steps++ == 0;
    add_to(summary.stall_total, step.stall);
    add_to(summary.cycle_total, step.cycle);
    add_to(summary.batch_min_total, step.batch_min);
    add_to(summary.batch_max_total, step.batch_max);
    const bool earlier = step.stall == summary.longest_stall && step.step < summary.longest_stall_step;
    if (first || step.stall > summary.longest_stall || earlier) {
      summary.longest_stall = step.stall;
      summary.longest_stall_step = step.step;
      summary.longest_stall_rank = step.rank_in(ranks_);
    }
    summary.blamed_steps += is_blamed(step, blame_from_percent) ? 1u : 0u;
  });
  const std::vector<RankBlame> ranks = blame(blame_from_percent);
  if (!ranks.empty()) summary.most_blamed = ranks.front();
  return summary;
}

}  // namespace steptimer

#include "detail/macros_restore.hpp"
