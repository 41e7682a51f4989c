#include <steptimer/metrics.hpp>

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "support/catch.hpp"
#include "support/sample_records.hpp"

namespace {

using Metrics = std::map<std::string, double>;

template <class T>
Metrics metrics_of(const T& value) {
  Metrics all;
  steptimer::for_each_metric(value, [&all](std::string_view name, double number) {
    CHECK(all.emplace(name, number).second);  // each once
  });
  return all;
}

}  // namespace

TEST_CASE("the metrics of a record are its numbers in seconds and shares of 1") {
  CHECK(metrics_of(record_with_gap()) == Metrics{
                                             {"profiling/data_time", 0.009999999},
                                             {"profiling/batch_time", 0.090000001},
                                             {"profiling/data_wait", *record_with_gap().data_wait_percent() / 100},
                                             {"profiling/wall_gap", 0.1},
                                             {"profiling/host_start", 1234.567890123},
                                             {"profiling/host_batch_time", 0.005},
                                             {"profiling/host_wall_gap", 0.125},
                                             {"profiling/host_data_wait", 0.96},
                                             {"profiling/step", 41},
                                             {"profiling/items", 32},
                                             {"profiling/steps_ahead", 0},
                                         });
}

TEST_CASE("a logger may take a metric's name as it likes") {
  const steptimer::StepRecord record = record_with_everything();
  const Metrics expected = metrics_of(record);
  Metrics all;
  steptimer::for_each_metric(record, [&](const std::string& name, double number) { all[name] = number; });
  CHECK(all == expected);
  all.clear();
  steptimer::for_each_metric(record, [&](const char* name, double number) { all[name] = number; });
  CHECK(all == expected);
  all.clear();
  const auto log = [&](const auto& name, const auto& number) { all[std::string(name)] = number; };
  steptimer::for_each_metric(record, log);
  CHECK(all == expected);
}

TEST_CASE("a record's metrics hold its fetch, its device and its phases where they are known") {
  Metrics metrics = metrics_of(record_with_everything());
  for (const auto& [name, value] : metrics_of(record_with_gap()))
    if (name != "profiling/steps_ahead") CHECK(metrics.erase(name) == 1);
  CHECK(metrics == Metrics{
                       {"profiling/fetch_time", 0.02},
                       {"profiling/exposed_fetch", 0.009},
                       {"profiling/device_drained", 0},
                       {"profiling/steps_ahead", 3},
                       {"profiling/phase/a\"b\\c\td\u00e9", 0.060000001},
                   });
  steptimer::StepRecord drained = record_with_gap();
  drained.device_drained = true;
  CHECK(metrics_of(drained)["profiling/device_drained"] == 1);
}

TEST_CASE("a phase has one metric, without a name none, and of a long name 23 bytes of whole characters") {
  using namespace std::chrono_literals;
  steptimer::StepRecord record;
  const std::string x(22, 'x'), umlaut = x + "\xc3\xa4";
  record.phase_count = 5;
  record.phases[0] = {"", 1ms};
  record.phases[1] = {"forward", 10ms};
  record.phases[2] = {umlaut.c_str(), 3ms};
  record.phases[3] = {"forward", 20ms};
  record.phases[4] = {"", 5ms};
  const Metrics metrics = metrics_of(record);
  CHECK(metrics.at("profiling/phase/forward") == 0.015);  // the mean of those of one name
  CHECK(metrics.at("profiling/phase/" + x) == 0.003);
  CHECK(metrics.count("profiling/phase/") == 0);
}

TEST_CASE("metrics that are absent are left out") {
  CHECK(metrics_of(record_without_gap()) == Metrics{
                                                {"profiling/batch_time", 7e-9},
                                                {"profiling/host_start", 1234.667890123},
                                                {"profiling/host_batch_time", 1e-9},
                                                {"profiling/step", 42},
                                                {"profiling/items", 0},
                                                {"profiling/steps_ahead", 0},
                                            });
  CHECK(metrics_of(steptimer::StepSummary{}) == Metrics{
                                                    {"profiling/steps", 0},
                                                    {"profiling/gaps", 0},
                                                    {"profiling/items", 0},
                                                    {"profiling/items_in_gaps", 0},
                                                });
}

TEST_CASE("the metrics of a summary are means, totals, extremes, rates and counts") {
  using namespace std::chrono_literals;
  steptimer::StepRecord waited = record_with_gap();
  waited.step = 40;
  waited.batch_time = 40ms;
  waited.data_time = 60ms;
  waited.wall_gap = 100ms;
  steptimer::StepRecord slow = record_with_gap();
  slow.batch_time = 90ms;
  slow.data_time = 10ms;
  slow.wall_gap = 100ms;
  steptimer::StepRecord last;
  last.step = 42;
  last.batch_time = 20ms;
  last.items = 6;
  const Metrics expected{
      {"profiling/data_time", 0.035},
      {"profiling/batch_time", 0.05},
      {"profiling/data_wait", 0.35},
      {"profiling/host_data_wait", 0.96},
      {"profiling/steps_per_second", 10},
      {"profiling/items_per_second", 320},
      {"profiling/steps", 3},
      {"profiling/gaps", 2},
      {"profiling/items", 70},
      {"profiling/items_in_gaps", 64},
      {"profiling/batch_total", 0.15},
      {"profiling/batch_min", 0.02},
      {"profiling/batch_max", 0.09},
      {"profiling/slowest_step", 41},
      {"profiling/data_total", 0.07},
      {"profiling/data_min", 0.01},
      {"profiling/data_max", 0.06},
      {"profiling/longest_wait_step", 40},
      {"profiling/wall_total", 0.2},
      {"profiling/batch_in_gaps", 0.13},
      {"profiling/host_batch_in_gaps", 0.01},
      {"profiling/host_wall_total", 0.25},
  };
  CHECK(metrics_of(merge(merge(summary_of(waited), summary_of(slow)), summary_of(last))) == expected);
}

TEST_CASE("a summary's fetches and phases are means, and its drained steps a share") {
  using namespace std::chrono_literals;
  steptimer::StepRecord one = record_with_everything();
  steptimer::StepRecord other = one;
  other.device_drained = true;
  other.fetch_time = 40ms;
  other.exposed_fetch = 1ms;
  other.phases[1].time = 20ms + 1ns;
  Metrics metrics = metrics_of(merge(summary_of(one), summary_of(other)));
  CHECK(metrics.at("profiling/fetch_time") == 0.03);
  CHECK(metrics.at("profiling/exposed_fetch") == 0.005);
  CHECK(metrics.at("profiling/device_drained") == 0.5);
  CHECK(metrics.at("profiling/phase/a\"b\\c\td\u00e9") == 0.040000001);
  CHECK(metrics.count("profiling/steps_ahead") == 0);
  metrics = metrics_of(merge(summary_of(record_with_gap()), summary_of(record_without_gap())));
  CHECK(metrics.count("profiling/fetch_time") == 0);
  CHECK(metrics.count("profiling/exposed_fetch") == 0);
  CHECK(metrics.count("profiling/device_drained") == 0);
}

TEST_CASE("a summary without a gap has no metric of waiting") {
  const Metrics metrics = metrics_of(summary_of(record_without_gap()));
  CHECK(metrics.count("profiling/batch_min") == 1);
  CHECK(metrics.count("profiling/data_total") == 0);
  CHECK(metrics.count("profiling/data_wait") == 0);
  CHECK(metrics.count("profiling/host_wall_total") == 0);
}
