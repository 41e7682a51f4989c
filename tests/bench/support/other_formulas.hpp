// What others compute from the same steps: the host's gap from start to start minus the device's time for the step.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace bench {

struct HostGap {
  std::chrono::nanoseconds from_start_to_start{0};  // on the host's clock
  std::chrono::nanoseconds device{0};               // the step, between its own two events
  bool device_was_done = false;                     // the step, when the host started the next one
};

/// "queue": all steps, however late their events were reached. Below zero is zero, step by step, and the share is a
/// ratio of sums. NaN without steps.
inline double queue_percent(const std::vector<HostGap>& steps) {
  std::chrono::nanoseconds waited{0};
  std::chrono::nanoseconds busy{0};
  for (const HostGap& step : steps) {
    waited += std::max(std::chrono::nanoseconds{0}, step.from_start_to_start - step.device);
    busy += step.device;
  }
  const double whole = static_cast<double>((waited + busy).count());
  return whole > 0 ? 100.0 * static_cast<double>(waited.count()) / whole : std::nan("");
}

/// "skip": the same with one pair of events, so that a step that is not done when the next one starts is skipped.
inline double skip_percent(std::vector<HostGap> steps) {
  steps.erase(std::remove_if(steps.begin(), steps.end(), [](const HostGap& step) { return !step.device_was_done; }),
              steps.end());
  return queue_percent(steps);
}

}  // namespace bench
