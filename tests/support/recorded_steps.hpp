// What a timer reported: its records and warnings, and what must hold for them in every loop.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <steptimer/step_record.hpp>
#include <steptimer/step_timer_options.hpp>

#include "catch.hpp"
#include "device_work.hpp"

/// Collects what a timer reports. Copies share one collection, so it stays valid wherever the timer is moved.
class RecordedSteps {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  /// Options for a timer that reports here.
  steptimer::StepTimerOptions options(steptimer::StepTimerOptions base = {}) const {
    base.on_record = [all = all_](const steptimer::StepRecord& record) { all->records.push_back(record); };
    base.on_warning = [all = all_](std::string_view line) { all->warnings.emplace_back(line); };
    return base;
  }

  const std::vector<steptimer::StepRecord>& records() const { return all_->records; }
  const std::vector<std::string>& warnings() const { return all_->warnings; }
  std::size_t size() const { return all_->records.size(); }
  const steptimer::StepRecord& operator[](std::size_t i) const { return all_->records.at(i); }

  /// What holds in any loop: steps come in order, once each, and a record contradicts itself nowhere.
  void check() const {
    const auto out_of_order = std::adjacent_find(records().begin(), records().end(),
                                                 [](const auto& a, const auto& b) { return a.step >= b.step; });
    CHECK(out_of_order == records().end());
    const auto contradicts_itself = [](const steptimer::StepRecord& r) {
      if (r.batch_time < nanoseconds{0} || r.wall_gap.has_value() != r.data_time.has_value()) return true;
      if (r.wall_gap.has_value() != r.host_wall_gap.has_value()) return true;
      return r.wall_gap && *r.data_time != (std::max)(nanoseconds{0}, *r.wall_gap - r.batch_time);
    };
    CHECK(std::count_if(records().begin(), records().end(), contradicts_itself) == 0);
  }

  /// What holds besides in a loop that queues nothing between one step's end hook and the next one's start hook: the
  /// stream waits for data no longer than the host was away, up to the latency of events. At most 1 % of the records,
  /// or one in a short loop, may miss that by more than 20 us, and none by more than 0.5 ms.
  ///
  /// On the fake the host clock is real and the device's is not, so there is nothing to compare.
  void check_gaps() const {
    check();
    if (device_work::exact()) return;
    std::size_t compared = 0;
    std::size_t late = 0;
    nanoseconds worst{0};
    for (const auto& r : records()) {
      if (!r.data_time || !r.host_wall_gap) continue;
      const nanoseconds excess = *r.data_time - (*r.host_wall_gap - r.host_batch_time);
      ++compared;
      late += excess > std::chrono::microseconds{20} ? 1u : 0u;
      worst = (std::max)(worst, excess);
    }
    INFO(late << " of " << compared << " records exceed the host's own gap by more than 20 us, the worst by "
              << worst.count() << " ns");
    CHECK(late <= (std::max)(std::size_t{1}, compared / 100));
    CHECK(worst <= std::chrono::microseconds{500});
  }

 private:
  struct All {
    std::vector<steptimer::StepRecord> records;
    std::vector<std::string> warnings;
  };
  std::shared_ptr<All> all_ = std::make_shared<All>();
};
