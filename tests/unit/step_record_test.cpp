#include <steptimer/step_record.hpp>

#include <chrono>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using steptimer::StepRecord;

TEST_CASE("data wait of a step is its data time over the whole cycle") {
  StepRecord record;
  record.batch_time = 90ms;
  record.wall_gap = 100ms;
  record.data_time = 10ms;
  CHECK(record.data_wait_percent() == 10.0);
}

TEST_CASE("without a next start nothing is claimed about waiting") {
  StepRecord record;
  record.batch_time = 90ms;
  record.host_batch_time = 5ms;
  CHECK_FALSE(record.data_wait_percent().has_value());
  CHECK_FALSE(record.host_data_wait_percent().has_value());
}

TEST_CASE("a step and a gap of no length have no share, rather than 0 / 0", "[case-13]") {
  StepRecord record;
  record.wall_gap = record.data_time = record.host_wall_gap = 0ns;
  CHECK_FALSE(record.data_wait_percent().has_value());
  CHECK_FALSE(record.host_data_wait_percent().has_value());
}

TEST_CASE("the host clock's claim books queued work as waiting", "[case-01]") {
  StepRecord record;
  record.batch_time = 90ms;
  record.wall_gap = record.host_wall_gap = 100ms;
  record.data_time = 10ms;
  record.host_batch_time = 5ms;
  CHECK(record.host_data_wait_percent() == 95.0);
}
