// What every test may ask of StepCounts.
#pragma once

#include <ostream>

#include <steptimer/step_counts.hpp>

/// The identity that must hold after any sequence of calls.
inline bool adds_up(const steptimer::StepCounts& c) {
  return c.started == c.measured + c.pending + c.not_sampled + c.stale + c.dropped + c.failed;
}

namespace steptimer {
inline bool operator==(const StepCounts& a, const StepCounts& b) {
  return a.started == b.started && a.measured == b.measured && a.pending == b.pending &&
         a.not_sampled == b.not_sampled && a.stale == b.stale && a.dropped == b.dropped && a.failed == b.failed &&
         a.ignored_ends == b.ignored_ends && a.clamped == b.clamped && a.ignored_marks == b.ignored_marks;
}
inline std::ostream& operator<<(std::ostream& out, const StepCounts& c) {
  return out << "started " << c.started << " = measured " << c.measured << " + pending " << c.pending
             << " + not_sampled " << c.not_sampled << " + stale " << c.stale << " + dropped " << c.dropped
             << " + failed " << c.failed << ", ignored_ends " << c.ignored_ends << ", clamped " << c.clamped
             << ", ignored_marks " << c.ignored_marks;
}
}  // namespace steptimer
