/// StepDistribution: how the steps of a run are spread: p50, p95, p99 and the worst, in memory that does not grow.
///
///     steptimer::StepDistribution distribution;
///     options.on_record = std::ref(distribution);
///     ...
///     distribution.batch_time.p99();          // 99 of 100 steps took no longer
///     distribution.data_time.longest_step();  // the step before the longest wait
///
/// For the last n steps there are exact quantiles, see step_window.hpp.
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "detail/nearest_rank.hpp"
#include "step_record.hpp"
#include "step_summary.hpp"

namespace steptimer {

/// How often which durations were seen: a histogram whose buckets grow with what they hold.
///
/// Exact:    count, shortest and longest. A quantile is off by at most 1/128 (0.8 %) of its value, and by nothing below
///           128 ns or where it is the shortest or the longest.
/// Memory:   always the same: 3,712 counters cover 0 ns to 292 years, 29,728 bytes in all. Adding touches one.
/// Source:   ours; the buckets are those of a floating-point number with seven significant bits. A value is less than
///           one bucket from its bucket's middle: half of a 64th of it, at most.
class DurationDistribution {
  using nanoseconds = std::chrono::nanoseconds;

 public:
  /// Adds one duration, of this step. What is below zero counts as zero.
  void add(nanoseconds duration, std::uint64_t step) noexcept {
    if (duration.count() < 0) duration = nanoseconds{0};
    const bool first = count_++ == 0;
    ++buckets_[bucket_of(static_cast<std::uint64_t>(duration.count()))];
    detail::keep_smaller(shortest_, duration, first);
    detail::keep_larger(longest_, longest_step_, duration, step, first);
  }

  /// How many durations are in it.
  std::uint64_t count() const noexcept { return count_; }
  /// Exact.
  std::optional<nanoseconds> shortest() const noexcept { return if_any(shortest_); }
  /// Exact.
  std::optional<nanoseconds> longest() const noexcept { return if_any(longest_); }
  /// The step that took the longest; the earliest of equals.
  std::optional<std::uint64_t> longest_step() const noexcept { return if_any(longest_step_); }

  /// The duration that a share p of all, 0 to 1, does not exceed; within 0.8 %.
  ///
  /// Source:   the nearest rank: of n sorted durations the one at place ceil(p * n), the first for p = 0.
  /// Absent:   where there are none, and for a p that is not from 0 to 1.
  std::optional<nanoseconds> quantile(double p) const noexcept {
    if (count_ == 0 || !detail::is_probability(p)) return std::nullopt;
    const std::uint64_t rank = detail::nearest_rank(p, count_);
    if (rank == 1) return shortest_;
    if (rank == count_) return longest_;
    unsigned bucket = 0;
    for (std::uint64_t seen = buckets_[0]; seen < rank; seen += buckets_[bucket]) ++bucket;
    const nanoseconds middle = middle_of(bucket);
    return middle < shortest_ ? shortest_ : middle > longest_ ? longest_ : middle;
  }
  /// The median.
  std::optional<nanoseconds> p50() const noexcept { return quantile(0.50); }
  /// quantile(0.95).
  std::optional<nanoseconds> p95() const noexcept { return quantile(0.95); }
  /// quantile(0.99).
  std::optional<nanoseconds> p99() const noexcept { return quantile(0.99); }

  /// Adds all that is in the other one.
  void add(const DurationDistribution& other) noexcept {
    if (other.count_ == 0) return;
    const bool first = count_ == 0;
    count_ += other.count_;
    for (unsigned i = 0; i < bucket_count; ++i) buckets_[i] += other.buckets_[i];
    detail::keep_smaller(shortest_, other.shortest_, first);
    detail::keep_larger(longest_, longest_step_, other.longest_, other.longest_step_, first);
  }

 private:
  static constexpr unsigned per_octave = 64;  // buckets from one power of two to the next
  static constexpr unsigned exact_below = 2 * per_octave;
  static constexpr unsigned widths = 57;  // 1 ns, 2 ns, 4 ns, ... 2^56 ns
  static constexpr unsigned bucket_count = (widths + 1) * per_octave;

  /// Bucket i is 2^shift ns wide, where 2^shift is what leaves the value seven bits.
  static unsigned bucket_of(std::uint64_t value) noexcept {
    unsigned shift = 0;
    while (value >> shift >= exact_below) ++shift;
    return shift * per_octave + static_cast<unsigned>(value >> shift);
  }
  static nanoseconds middle_of(unsigned bucket) noexcept {
    if (bucket < exact_below) return nanoseconds{bucket};
    const unsigned shift = bucket / per_octave - 1;
    const std::uint64_t lowest = static_cast<std::uint64_t>(bucket - shift * per_octave) << shift;
    return nanoseconds{static_cast<std::int64_t>(lowest + (std::uint64_t{1} << (shift - 1)))};
  }

  template <class T>
  std::optional<T> if_any(T value) const noexcept {
    return count_ > 0 ? std::optional<T>(value) : std::nullopt;
  }

  std::uint64_t count_ = 0;
  nanoseconds shortest_{0}, longest_{0};
  std::uint64_t longest_step_ = 0;
  std::uint64_t buckets_[bucket_count] = {};
};

/// The spread of a run's batch times and data times. Warm-up steps are never in it.
///
/// Use:      `options.on_record = std::ref(distribution)`, or add() by hand. It cannot be copied, since a std::function
///           made of it would fill a copy; merge(distribution, {}) gives one.
/// Memory:   59,456 bytes, trivially copyable in the language's sense: it may be sent between processes as bytes.
/// Threads:  one thread at a time. Errors: none. Blocking: never; a record costs two counters, a quantile one walk
///           through 3,712 of them.
class StepDistribution {
 public:
  DurationDistribution batch_time;  ///< of all steps
  DurationDistribution data_time;   ///< of the steps that have one

  StepDistribution() = default;
  /// Moved, not copied: see Use. merge(d, {}) makes a copy.
  StepDistribution(StepDistribution&&) = default;
  /// The same.
  StepDistribution& operator=(StepDistribution&&) = default;
  StepDistribution(const StepDistribution&) = delete;
  StepDistribution& operator=(const StepDistribution&) = delete;

  /// Counts the durations of a record that is no warm-up.
  void add(const StepRecord& record) noexcept {
    if (record.warmup) return;
    batch_time.add(record.batch_time, record.step);
    if (record.data_time) data_time.add(*record.data_time, record.step);
  }
  /// The same, for on_record.
  void operator()(const StepRecord& record) noexcept { add(record); }
};

static_assert(std::is_trivially_copyable<StepDistribution>::value, "distributions are sent between processes as bytes");
static_assert(sizeof(StepDistribution) == 59456, "the size that the documentation states");

/// The distribution of both sets of steps together, as if all had been added to one.
///
/// Associative and commutative, with StepDistribution{} as its neutral element: epochs and ranks can be merged in any
/// order with the same result, bit by bit.
inline StepDistribution merge(const StepDistribution& a, const StepDistribution& b) noexcept {
  StepDistribution both;
  both.batch_time.add(a.batch_time);
  both.batch_time.add(b.batch_time);
  both.data_time.add(a.data_time);
  both.data_time.add(b.data_time);
  return both;
}

}  // namespace steptimer

#include "detail/macros_restore.hpp"
