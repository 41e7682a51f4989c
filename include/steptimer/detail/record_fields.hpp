/// The fields of a record by name, the same in every file format. Not API.
#pragma once

#include <cstdint>
#include <optional>

#include "../step_record.hpp"

namespace steptimer {
namespace detail {

/// A share of 0 to 100; its own type, so that it is not taken for a time.
struct Percent {
  std::optional<double> value;
};

/// Calls visit(name, value) for each field but the phases. A value is an integer, a bool or nanoseconds, either perhaps
/// absent, or a Percent.
template <class Visitor>
void visit_fields(const StepRecord& record, Visitor&& visit) {
  visit("step", record.step);
  visit("host_start_s", record.host_start);
  visit("batch_time_s", record.batch_time);
  visit("wall_gap_s", record.wall_gap);
  visit("data_time_s", record.data_time);
  visit("data_wait_percent", Percent{record.data_wait_percent()});
  visit("host_batch_time_s", record.host_batch_time);
  visit("host_wall_gap_s", record.host_wall_gap);
  visit("host_data_wait_percent", Percent{record.host_data_wait_percent()});
  visit("items", record.items);
  visit("warmup", record.warmup);
  visit("fetch_time_s", record.fetch_time);
  visit("exposed_fetch_s", record.exposed_fetch);
  visit("device_drained", record.device_drained);
  visit("steps_ahead", std::uint64_t{record.steps_ahead});
}

}  // namespace detail
}  // namespace steptimer
