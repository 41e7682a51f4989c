/// What a timer remembers of its records: the recent ones, and the sum of all. Not API.
#pragma once

#include <cstddef>
#include <optional>

#include "../step_counts.hpp"
#include "../step_record.hpp"
#include "../step_summary.hpp"
#include "ring.hpp"

namespace steptimer {
namespace detail {

class StepStatistics {
 public:
  StepCounts counts;
  StepSummary total;

  /// Room for the next record, among the last `window` of them; its content is that of an older one.
  StepRecord& next_record(std::size_t window) noexcept {
    const bool full = !recent_.empty() && recent_.size() >= window;
    StepRecord* slot = full ? recent_.rotate() : recent_.push_back();
    if (slot == nullptr)
      slot = recent_.empty() ? &spare_ : recent_.rotate();  // memory is out: the window stays as it is
    return *slot;
  }

  /// Adds a record to the total; those of the warm-up are not in it.
  void add(const StepRecord& record) noexcept {
    if (!record.warmup) add_record(total, record);
  }

  /// Room for the window, so that hooks need not make it: all of an ordinary one, the beginning of a huge one.
  void reserve(std::size_t window) noexcept { recent_.reserve(window < 1024 ? window : 1024); }

  /// Forgets all, and keeps the room.
  void clear() noexcept {
    counts = {};
    total = {};
    recent_.clear();
  }

  std::optional<StepRecord> last() const noexcept {
    if (recent_.empty()) return std::nullopt;
    return recent_.back();
  }

  /// Warm-up records are the oldest of all, so leaving them out leaves the last `window` others.
  StepSummary window(std::size_t window) const noexcept {
    StepSummary summary;
    for (std::size_t i = 0; window > 0 && i < recent_.size(); ++i)
      if (!recent_[i].warmup) add_record(summary, recent_[i]);
    return summary;
  }

 private:
  Ring<StepRecord> recent_;
  StepRecord spare_;
};

}  // namespace detail
}  // namespace steptimer
