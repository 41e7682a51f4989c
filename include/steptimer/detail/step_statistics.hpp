/// What a timer remembers of its records: the last, the recent, the sum of all. Not API.
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
  std::optional<StepRecord> last;
  StepSummary total;

  /// Warm-up records are only the last one; the others are also in total and window, which keeps `window` of
  /// them.
  void add(const StepRecord& record, std::size_t window) noexcept {
    last = record;
    if (record.warmup) return;
    merge_into(total, summary_of(record));
    if (window == 0) return;
    if (recent_.size() >= window) recent_.pop_front();
    StepRecord* slot = recent_.push_back();
    if (slot == nullptr && !recent_.empty()) {  // memory is out: the window stays as long as it is
      recent_.pop_front();
      slot = recent_.push_back();
    }
    if (slot != nullptr) *slot = record;
  }

  StepSummary window() const noexcept {
    StepSummary summary;
    for (std::size_t i = 0; i < recent_.size(); ++i) merge_into(summary, summary_of(recent_[i]));
    return summary;
  }

 private:
  Ring<StepRecord> recent_;
};

}  // namespace detail
}  // namespace steptimer
