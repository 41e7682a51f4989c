/// StepWindow: the last n steps, and their exact quantiles.
///
///     steptimer::StepWindow window(1000);
///     options.on_record = std::ref(window);
///     ...
///     window.batch_time().p99();
///
/// For a whole run, in memory that does not grow, see step_distribution.hpp.
#pragma once

#include "detail/macros_keep.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "detail/nearest_rank.hpp"
#include "detail/ring.hpp"
#include "step_record.hpp"

namespace steptimer {

/// What a window keeps of a record.
struct StepTimes {
  std::uint64_t step = 0;                                  ///< ordinal of the step
  std::chrono::nanoseconds batch_time{0};                  ///< as in the record
  std::optional<std::chrono::nanoseconds> wall_gap = {};   ///< as in the record
  std::optional<std::chrono::nanoseconds> data_time = {};  ///< as in the record
};

/// Durations with their steps, all of them kept: what DurationDistribution says of many, this says exactly.
class ExactDurations {
  using nanoseconds = std::chrono::nanoseconds;

 public:
  /// A duration and the step it is of.
  struct Entry {
    /// Of that step.
    nanoseconds duration{0};
    /// Ordinal of the step.
    std::uint64_t step = 0;
  };

  /// Sorts them. Throws std::bad_alloc where memory is out.
  explicit ExactDurations(std::vector<Entry> entries) : entries_(std::move(entries)) {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return a.duration != b.duration ? a.duration < b.duration : a.step > b.step;
    });
  }

  /// How many durations are in it.
  std::uint64_t count() const noexcept { return entries_.size(); }
  /// Nothing where there are none.
  std::optional<nanoseconds> shortest() const noexcept { return quantile(0.0); }
  /// Nothing where there are none.
  std::optional<nanoseconds> longest() const noexcept { return quantile(1.0); }
  /// The step that took the longest; the earliest of equals.
  std::optional<std::uint64_t> longest_step() const noexcept {
    return entries_.empty() ? std::nullopt : std::optional<std::uint64_t>(entries_.back().step);
  }

  /// The duration that a share p of all, 0 to 1, does not exceed.
  ///
  /// Source:   the nearest rank: of n sorted durations the one at place ceil(p * n), the first for p = 0.
  /// Absent:   where there are none, and for a p that is not from 0 to 1.
  std::optional<nanoseconds> quantile(double p) const noexcept {
    if (entries_.empty() || !detail::is_probability(p)) return std::nullopt;
    return entries_[static_cast<std::size_t>(detail::nearest_rank(p, entries_.size()) - 1)].duration;
  }
  /// The median.
  std::optional<nanoseconds> p50() const noexcept { return quantile(0.50); }
  /// quantile(0.95).
  std::optional<nanoseconds> p95() const noexcept { return quantile(0.95); }
  /// quantile(0.99).
  std::optional<nanoseconds> p99() const noexcept { return quantile(0.99); }

 private:
  std::vector<Entry> entries_;
};

/// Keeps the last n records that are no warm-up.
///
/// Use:      `options.on_record = std::ref(window)`, or add() by hand. It cannot be copied, since a std::function made
///           of it would fill a copy.
/// Memory:   48 bytes a step; made room for as steps come. Where memory is out, the window stays as short as it is.
/// Threads:  one thread at a time.
class StepWindow {
  using nanoseconds = std::chrono::nanoseconds;

 public:
  /// The last `steps` of them; with 0 it stays empty.
  explicit StepWindow(std::size_t steps) noexcept : steps_(steps) {}

  /// Keeps a record that is no warm-up.
  void add(const StepRecord& record) noexcept {
    if (record.warmup || steps_ == 0) return;
    const bool full = !recent_.empty() && recent_.size() >= steps_;
    StepTimes* slot = full ? recent_.rotate() : recent_.push_back();
    if (slot == nullptr && !recent_.empty()) slot = recent_.rotate();
    if (slot != nullptr) *slot = {record.step, record.batch_time, record.wall_gap, record.data_time};
  }
  /// The same, for on_record.
  void operator()(const StepRecord& record) noexcept { add(record); }

  /// Sorts the batch times of the window; ask the result for all that you want to know. Throws std::bad_alloc where
  /// memory is out.
  ExactDurations batch_time() const {
    return sorted([](const StepTimes& times) { return std::optional<nanoseconds>(times.batch_time); });
  }
  /// The same for the data times of those steps that have one.
  ExactDurations data_time() const {
    return sorted([](const StepTimes& times) { return times.data_time; });
  }

  /// How many steps are in it.
  std::size_t size() const noexcept { return recent_.size(); }
  /// The i-th of them, the oldest first.
  const StepTimes& operator[](std::size_t i) const noexcept { return recent_[i]; }

 private:
  template <class Choice>
  ExactDurations sorted(Choice choice) const {
    std::vector<ExactDurations::Entry> entries;
    entries.reserve(recent_.size());
    for (std::size_t i = 0; i < recent_.size(); ++i) {
      const std::optional<nanoseconds> duration = choice(recent_[i]);
      if (duration) entries.push_back({*duration, recent_[i].step});
    }
    return ExactDurations(std::move(entries));
  }

  std::size_t steps_;
  detail::Ring<StepTimes> recent_;
};

}  // namespace steptimer

#include "detail/macros_restore.hpp"
