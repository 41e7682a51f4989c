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

  /// Keeps the last `window` records, and at least the last one. Warm-up records are not in total.
  void add(const StepRecord& record, std::size_t window) noexcept {
    if (!record.warmup) merge_into(total, summary_of(record));
    StepRecord* slot = nullptr;
    if (recent_.empty() || recent_.size() < window) slot = recent_.push_back();
    if (slot == nullptr &&
        !recent_.empty()) {  // full, or memory is out: then the window stays as long as it is
      recent_.pop_front();
      slot = recent_.push_back();
    }
    if (slot != nullptr) *slot = record;
  }

  std::optional<StepRecord> last() const noexcept {
    if (recent_.empty()) return std::nullopt;
    return recent_.back();
  }

  /// Warm-up records are the oldest of all, so leaving them out leaves the last `window` others.
  StepSummary window(std::size_t window) const noexcept {
    StepSummary summary;
    for (std::size_t i = 0; window > 0 && i < recent_.size(); ++i)
      if (!recent_[i].warmup) merge_into(summary, summary_of(recent_[i]));
    return summary;
  }

 private:
  Ring<StepRecord> recent_;
};

}  // namespace detail
}  // namespace steptimer
