// How much of a loop's cycle the device really waited, from what the device did and when: arithmetic on plain data.
//
// A step's work is what was queued between its two hooks. Between two steps in turn,
//
//     gap   = last end of the one's work -> first start of the next one's work, no less than 0
//     cycle = first start of the one's work -> first start of the next one's work
//     truth = sum of the gaps / sum of the cycles.
//
// `outside` is that share of the cycles in which other activity, a loader's own copies say, ran in the gaps.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using std::chrono::nanoseconds;

/// The trace cannot be what happened.
struct WitnessError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A kernel, a copy or a memset that ran on the device.
struct Activity {
  nanoseconds start{0}, end{0};
  std::uint32_t call = 0;  // number of the API call that queued it; calls are numbered as they are made
  std::uint32_t stream = 0;
  bool is_kernel = false;
};

/// The call that recorded an event of the timer.
struct Mark {
  std::uint32_t call = 0;
  nanoseconds host_time{0};  // on the clock of the activities
};

/// What happened between the forgetting of all before and the taking.
struct DeviceTrace {
  std::vector<Mark> marks;           // in the order of their calls
  std::vector<Activity> activities;  // in no order
  std::uint64_t dropped = 0;         // activities that were lost
};

struct StepOnDevice {
  Mark start_mark, end_mark;
  std::size_t activities = 0;
  nanoseconds first_start{0}, last_end{0};  // of its work; mean nothing without activities
  std::uint32_t stream = 0;                 // that of its first start
};

/// Times at which the device was busy, as spans that do not overlap.
class BusyTimes {
 public:
  BusyTimes() = default;
  explicit BusyTimes(std::vector<Activity> activities) {
    std::sort(activities.begin(), activities.end(),
              [](const Activity& a, const Activity& b) { return a.start < b.start; });
    for (const Activity& activity : activities) {
      if (spans_.empty() || activity.start > spans_.back().second)
        spans_.emplace_back(activity.start, activity.end);
      else
        spans_.back().second = std::max(spans_.back().second, activity.end);
    }
  }

  nanoseconds within(nanoseconds from, nanoseconds to) const {
    const auto ends_later = [](nanoseconds time, const std::pair<nanoseconds, nanoseconds>& span) {
      return time < span.second;
    };
    nanoseconds busy{0};
    for (auto span = std::upper_bound(spans_.begin(), spans_.end(), from, ends_later);
         span != spans_.end() && span->first < to; ++span)
      busy += std::min(span->second, to) - std::max(span->first, from);
    return busy;
  }

 private:
  std::vector<std::pair<nanoseconds, nanoseconds>> spans_;
};

struct StepsOnDevice {
  std::vector<StepOnDevice> steps;
  std::vector<Activity> outside;  // what no step queued, in the order of the calls
};

/// Which step queued what. The timer's marks are the starts and ends of steps by turns.
inline StepsOnDevice steps_of(const DeviceTrace& trace) {
  if (trace.dropped > 0) throw WitnessError(std::to_string(trace.dropped) + " activities of the device were lost");
  if (trace.marks.size() % 2 != 0)
    throw WitnessError("a mark is missing: there are " + std::to_string(trace.marks.size()));
  StepsOnDevice result;
  for (std::size_t i = 0; i < trace.marks.size(); i += 2) {
    StepOnDevice step;
    step.start_mark = trace.marks[i];
    step.end_mark = trace.marks[i + 1];
    const bool in_order = step.start_mark.call < step.end_mark.call &&
                          (result.steps.empty() || result.steps.back().end_mark.call < step.start_mark.call);
    if (!in_order) throw WitnessError("the calls that recorded the marks are not numbered in their order");
    result.steps.push_back(step);
  }

  for (const Activity& activity : trace.activities) {
    if (activity.start <= nanoseconds{0} || activity.end < activity.start)
      throw WitnessError("an activity of the device came without its times");
    const auto after =
        std::upper_bound(result.steps.begin(), result.steps.end(), activity.call,
                         [](std::uint32_t call, const StepOnDevice& step) { return call < step.start_mark.call; });
    if (after == result.steps.begin() || activity.call > std::prev(after)->end_mark.call) {
      result.outside.push_back(activity);
      continue;
    }
    StepOnDevice& step = *std::prev(after);
    const bool is_first = step.activities++ == 0;
    if (is_first || activity.start < step.first_start) {
      step.first_start = activity.start;
      step.stream = activity.stream;
    }
    step.last_end = is_first ? activity.end : std::max(step.last_end, activity.end);
  }
  std::sort(result.outside.begin(), result.outside.end(),
            [](const Activity& a, const Activity& b) { return a.call < b.call; });
  return result;
}

inline nanoseconds gap_between(const StepOnDevice& step, const StepOnDevice& next) {
  return std::max(nanoseconds{0}, next.first_start - step.last_end);
}

/// Whether other kernels were queued on the step's stream between two steps: a validation, say, which is no wait.
inline bool other_kernels_between(const StepsOnDevice& device, std::size_t step) {
  const StepOnDevice& before = device.steps[step];
  const StepOnDevice& next = device.steps[step + 1];
  auto activity = std::upper_bound(device.outside.begin(), device.outside.end(), before.end_mark.call,
                                   [](std::uint32_t call, const Activity& other) { return call < other.call; });
  for (; activity != device.outside.end() && activity->call < next.start_mark.call; ++activity) {
    if (activity->is_kernel && activity->stream == before.stream) return true;
  }
  return false;
}

/// Sums over gaps.
struct DeviceTruth {
  nanoseconds gap{0}, cycle{0}, outside{0};
  std::uint64_t gaps = 0;

  void add(const StepOnDevice& step, const StepOnDevice& next, const BusyTimes& others) {
    if (step.activities == 0 || next.activities == 0) throw WitnessError("a step without work on the device");
    gap += gap_between(step, next);
    cycle += next.first_start - step.first_start;
    outside += others.within(step.last_end, next.first_start);
    ++gaps;
  }

  /// NaN where there is no gap.
  double percent() const { return share(gap); }
  double outside_percent() const { return share(outside); }
  double cycle_ms() const { return static_cast<double>(cycle.count()) / 1e6 / static_cast<double>(gaps); }

 private:
  double share(nanoseconds part) const {
    return 100.0 * static_cast<double>(part.count()) / static_cast<double>(cycle.count());
  }
};

}  // namespace bench
