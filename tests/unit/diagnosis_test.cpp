#include "catch.hpp"

#include <chrono>
#include <cstdint>
#include <string>

#include <steptimer/diagnosis.hpp>
#include <steptimer/steptimer.hpp>

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::Bottleneck;
using steptimer::diagnose;
using steptimer::Diagnosis;
using steptimer::DiagnosisThresholds;
using steptimer::StepSummary;

namespace {

/// 100 steps on a device: each works so long and then waits so long.
StepSummary run(nanoseconds batch, nanoseconds data, std::uint64_t drained = 0) {
  StepSummary sum;
  sum.steps = sum.gaps = sum.device_steps = 100;
  sum.batch_total = sum.batch_in_gaps = 100 * batch;
  sum.data_total = 100 * data;
  sum.wall_total = 100 * (batch + data);
  sum.drained_steps = drained;
  return sum;
}

bool says(const Diagnosis& d, const std::string& text) {
  INFO(d.advice);
  return d.advice.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("too few steps are no ground for a diagnosis") {
  CHECK(diagnose(StepSummary{}).bottleneck == Bottleneck::unknown);
  StepSummary few = run(1ms, 9ms);
  few.gaps = 19;
  CHECK(diagnose(few).bottleneck == Bottleneck::unknown);
  CHECK(says(diagnose(few), "19 of 20"));
  few.gaps = 20;
  CHECK(diagnose(few).bottleneck == Bottleneck::data_high);
  DiagnosisThresholds thresholds;
  thresholds.min_steps = 0;
  CHECK(diagnose(StepSummary{}, thresholds).bottleneck == Bottleneck::unknown);  // nothing was measured
}

TEST_CASE("a wait from 5 percent on is moderate, from 20 percent on high") {
  CHECK(diagnose(run(951us, 49us)).bottleneck == Bottleneck::device);
  CHECK(diagnose(run(950us, 50us)).bottleneck == Bottleneck::data_moderate);
  CHECK(diagnose(run(801us, 199us)).bottleneck == Bottleneck::data_moderate);
  CHECK(diagnose(run(800us, 200us)).bottleneck == Bottleneck::data_high);
  DiagnosisThresholds strict;
  strict.data_moderate_percent = 1;
  strict.data_high_percent = 2;
  CHECK(diagnose(run(980us, 20us), strict).bottleneck == Bottleneck::data_high);
}

TEST_CASE("the gain at stake is what the run would win without the wait") {
  const Diagnosis d = diagnose(run(630us, 370us));
  CHECK(*d.possible_speedup == Approx(1000.0 / 630));
  CHECK(says(d,
             "highly data-bound: 37 % of device time is spent waiting; hiding it would make the run up to 1.59 times "
             "faster; try prefetching or more loader threads"));
  CHECK(says(d, "fetch()"));
  const Diagnosis all = diagnose(run(0ns, 1ms));
  CHECK_FALSE(all.possible_speedup.has_value());
  CHECK(all.bottleneck == Bottleneck::data_high);
  CHECK(says(all, "100 % of device time"));
  const Diagnosis nearly_all = diagnose(run(1ns, 1s));
  CHECK(nearly_all.possible_speedup > 1e8);
  CHECK_FALSE(says(nearly_all, "faster"));
}

TEST_CASE("numbers in advice are rounded, and keep their zeros") {
  CHECK(says(diagnose(run(950us, 50us)),
             "5.0 % of device time is spent waiting; hiding it would make the run up to 1.05 "));
  CHECK(says(diagnose(run(90060us, 9940us)), " 9.9 % of device time"));
  CHECK(says(diagnose(run(90040us, 9960us)), " 10 % of device time"));
  CHECK(says(diagnose(run(3ms, 1ms)), "up to 1.33 times"));
  CHECK(says(diagnose(run(6ms, 4ms)), "up to 1.67 times"));
}

TEST_CASE("the loader is blamed for its own part of the wait only") {
  StepSummary sum = run(500us, 500us);
  sum.fetches = 100;
  sum.fetch_total = 100 * 450us;
  sum.exposed_fetch_total = 100 * 400us;
  const Diagnosis loader = diagnose(sum);
  CHECK(*loader.fetch_share_percent == 80.0);
  CHECK(says(loader, "80 % of it for the fetch"));
  CHECK(says(loader, "try prefetching"));
  CHECK_FALSE(says(loader, "checkpoints"));
  sum.exposed_fetch_total = 100 * 250us;
  CHECK(says(diagnose(sum), "50 % of it for the fetch"));
  CHECK(says(diagnose(sum), "try prefetching"));
  sum.exposed_fetch_total = 100 * 40us;
  const Diagnosis other = diagnose(sum);
  CHECK(says(other, "8.0 % of it for the fetch"));
  CHECK(says(other, "logging, checkpoints"));
  CHECK_FALSE(says(other, "prefetching"));
}

TEST_CASE("steps that end on an idle device are the host's, unless the wait for data is worse") {
  CHECK(diagnose(run(1ms, 10us, 49)).bottleneck == Bottleneck::device);
  CHECK(diagnose(run(1ms, 10us, 50)).bottleneck == Bottleneck::host);
  CHECK(says(diagnose(run(1ms, 10us, 80)), "in 80 % of the steps"));
  CHECK(diagnose(run(1ms, 1ms, 100)).bottleneck == Bottleneck::data_high);
}

TEST_CASE("on the host's own timeline a loop without waits is compute-bound") {
  StepSummary sum = run(1ms, 10us);
  sum.device_steps = 0;
  CHECK(diagnose(sum).bottleneck == Bottleneck::device);
  CHECK(says(diagnose(sum), "compute-bound: only 1.0 % of the time"));
  sum.data_total = 100 * 1ms;
  CHECK(says(diagnose(sum), "50 % of the time is spent waiting"));
}
