// Records made by hand, for the tests of what writes them.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include <steptimer/step_record.hpp>

/// 90.000000001 ms of batch, 9.999999999 ms of wait, on a host that queued it in 5 ms and went on 125 ms after its start.
inline steptimer::StepRecord record_with_gap() {
  using namespace std::chrono_literals;
  steptimer::StepRecord record;
  record.step = 41;
  record.host_start = 1234567890123ns;
  record.batch_time = 90ms + 1ns;
  record.wall_gap = 100ms;
  record.data_time = 10ms - 1ns;
  record.host_batch_time = 5ms;
  record.host_wall_gap = 125ms;
  record.items = 32;
  return record;
}

/// The same with all that is optional.
inline steptimer::StepRecord record_with_everything() {
  using namespace std::chrono_literals;
  steptimer::StepRecord record = record_with_gap();
  record.device_drained = false;
  record.steps_ahead = 3;
  record.fetch_time = 20ms;
  record.exposed_fetch = 9ms;
  record.phase_count = 2;
  record.phases[0] = {"", 30ms};
  record.phases[1] = {"a\"b\\c\td\u00e9", 60ms + 1ns};
  return record;
}

/// The last step before a pause.
inline steptimer::StepRecord record_without_gap() {
  using namespace std::chrono_literals;
  steptimer::StepRecord record;
  record.step = 42;
  record.host_start = 1234667890123ns;
  record.batch_time = 7ns;
  record.host_batch_time = 1ns;
  record.warmup = true;
  return record;
}

/// Every number as long as it can be.
inline steptimer::StepRecord record_of_extremes() {
  constexpr std::chrono::nanoseconds most = (std::chrono::nanoseconds::max)();
  steptimer::StepRecord record;
  record.step = record.items = (std::numeric_limits<std::uint64_t>::max)();
  record.host_start = record.batch_time = record.host_batch_time = most;
  record.wall_gap = record.data_time = record.host_wall_gap = record.fetch_time = record.exposed_fetch = most;
  record.device_drained = true;
  record.steps_ahead = (std::numeric_limits<std::uint32_t>::max)();
  record.phase_count = steptimer::max_phases;
  record.phases.fill(
      {"\"\"\"\"\"\"\"\"\"\"\\\\\\\\\\\\\\\\\\\\\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\" and what is cut off", most});
  return record;
}

inline std::vector<steptimer::StepRecord> sample_records() {
  return {record_with_gap(), record_with_everything(), record_without_gap(), steptimer::StepRecord{},
          record_of_extremes()};
}
