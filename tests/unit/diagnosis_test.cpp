#include "catch.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
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
  CHECK(says(diagnose(few), "too few steps to tell: 19 of 20"));
  few.gaps = 20;
  CHECK(diagnose(few).bottleneck == Bottleneck::data_high);
  DiagnosisThresholds thresholds;
  thresholds.min_steps = 0;
  CHECK(diagnose(StepSummary{}, thresholds).bottleneck == Bottleneck::unknown);  // nothing was measured
  CHECK(says(diagnose(StepSummary{}, thresholds), "too few steps to tell: 0 of 1"));
}

TEST_CASE("steps that take no time are not too few but too short", "[case-13]") {
  const Diagnosis d = diagnose(run(0ns, 0ns));
  CHECK(d.bottleneck == Bottleneck::unknown);
  CHECK_FALSE(d.data_wait_percent.has_value());
  CHECK(says(d, "the steps are too short for this clock to see"));
  CHECK_FALSE(says(d, "too few"));
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

TEST_CASE("a threshold that is no number never applies, and leaves the others alone") {
  DiagnosisThresholds thresholds;
  thresholds.data_moderate_percent = std::nan("");
  CHECK(diagnose(run(900us, 100us), thresholds).bottleneck == Bottleneck::device);
  CHECK(diagnose(run(200us, 800us), thresholds).bottleneck == Bottleneck::data_high);
  thresholds = {};
  thresholds.data_high_percent = std::nan("");
  CHECK(diagnose(run(200us, 800us), thresholds).bottleneck == Bottleneck::data_moderate);
  thresholds = {};
  thresholds.drained_percent = std::nan("");
  CHECK(diagnose(run(1ms, 0ns, 100), thresholds).bottleneck == Bottleneck::device);
  thresholds = {};
  thresholds.fetch_percent = std::nan("");
  StepSummary fetched = run(500us, 500us);
  fetched.fetches = 100;
  fetched.exposed_fetch_total = fetched.data_total;
  CHECK(says(diagnose(fetched, thresholds), "logging, checkpoints"));
}

TEST_CASE("a percentage below a threshold also reads as below it") {
  CHECK(says(diagnose(run(9504us, 496us)), "device-bound: 4.9 % of the time"));
  CHECK(says(diagnose(run(80040us, 19960us)), "moderately data-bound: 19.9 %"));
  CHECK(says(diagnose(run(100s - 5s + 1ns, 5s - 1ns)), "device-bound: 4.9 %"));
  StepSummary drained = run(1ms, 0ns, 996);
  drained.device_steps = 1000;
  CHECK(says(diagnose(drained), "in 99.6 % of the steps"));
  drained.drained_steps = 99996;
  drained.device_steps = 100000;
  CHECK(says(diagnose(drained), "in 99.9 % of the steps"));
  StepSummary fetched = run(500us, 500us);
  fetched.fetches = 100;
  fetched.exposed_fetch_total = 100 * 249800ns;
  CHECK(says(diagnose(fetched), "49.9 % of it for the fetch; hiding"));
}

TEST_CASE("elsewhere a percentage is rounded as the lines beside it round it") {
  CHECK(says(diagnose(run(99264us, 736us)), "device-bound: 0.7 %"));
  CHECK(says(diagnose(run(60240us, 39760us)), "highly data-bound: 39.8 %"));
}

TEST_CASE("a percentage of whole tenths reads as it is") {
  for (int tenths = 50; tenths <= 1000; ++tenths) {
    const Diagnosis d = diagnose(run(nanoseconds{1000 - tenths}, nanoseconds{tenths}));
    const std::string text = std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " % of device time";
    REQUIRE(says(d, "data-bound: " + text));
  }
}

TEST_CASE("a wait below the thresholds is told with what hiding it would win") {
  CHECK(says(diagnose(run(951us, 49us)),
             "device-bound: 4.9 % of the time is spent waiting for data, and hiding it would make the run at most 1.05 "
             "times faster; make the step itself faster"));
  CHECK(says(diagnose(run(100ms, 1us)), "device-bound: 0.0 % of the time is spent waiting for data; make"));
  DiagnosisThresholds lenient;
  lenient.data_moderate_percent = 60;
  lenient.data_high_percent = 80;
  CHECK(says(diagnose(run(51us, 49us), lenient), "at most 1.96 times faster"));
  lenient.data_moderate_percent = lenient.data_high_percent = std::nan("");
  CHECK(says(diagnose(run(0us, 49us), lenient), "device-bound: 100.0 % of the time is spent waiting for data; make"));
}

TEST_CASE("summaries that contradict themselves give no percentage beyond 0 to 100") {
  StepSummary fetched = run(1ms, 1ms);
  fetched.fetches = 100;
  fetched.exposed_fetch_total = (nanoseconds::max)();
  CHECK(*diagnose(fetched).fetch_share_percent == 100);
  CHECK(says(diagnose(fetched), "100.0 % of it for the fetch"));
  fetched.exposed_fetch_total = -1ms;
  CHECK(says(diagnose(fetched), "0.0 % of it for the fetch"));
  StepSummary drained = run(1ms, 0ns, (std::numeric_limits<std::uint64_t>::max)());
  CHECK(says(diagnose(drained), "in 100.0 % of the steps"));
  StepSummary negative = run(1ms, 0ns);
  negative.data_total = -5ms;
  CHECK(says(diagnose(negative), "device-bound: 0.0 %"));
  CHECK(*diagnose(negative).possible_speedup == 1);
  negative = run(-1ms, 3ms);
  CHECK(*diagnose(negative).data_wait_percent == 100);
  CHECK_FALSE(diagnose(negative).possible_speedup.has_value());
}

TEST_CASE("the gain at stake is what the run would win without the wait") {
  const Diagnosis d = diagnose(run(630us, 370us));
  CHECK(*d.possible_speedup == Approx(1000.0 / 630));
  CHECK(says(d,
             "highly data-bound: 37.0 % of device time is spent waiting; hiding it would make the run up to 1.59 times "
             "faster; try prefetching or more loader threads"));
  CHECK(says(d, "fetch()"));
  const Diagnosis all = diagnose(run(0ns, 1ms));
  CHECK_FALSE(all.possible_speedup.has_value());
  CHECK(all.bottleneck == Bottleneck::data_high);
  CHECK(says(all, "100.0 % of device time"));
  const Diagnosis nearly_all = diagnose(run(1ns, 1s));
  CHECK(nearly_all.possible_speedup > 1e8);
  CHECK_FALSE(says(nearly_all, "faster"));
}

TEST_CASE("numbers in advice are rounded, and keep their zeros") {
  CHECK(says(diagnose(run(950us, 50us)),
             "5.0 % of device time is spent waiting; hiding it would make the run up to 1.05 "));
  CHECK(says(diagnose(run(90060us, 9940us)), " 9.9 % of device time"));
  CHECK(says(diagnose(run(90040us, 9960us)), " 10.0 % of device time"));
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
  CHECK(says(loader, "80.0 % of it for the fetch"));
  CHECK(says(loader, "try prefetching"));
  CHECK_FALSE(says(loader, "checkpoints"));
  sum.exposed_fetch_total = 100 * 250us;
  CHECK(says(diagnose(sum), "50.0 % of it for the fetch"));
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
  CHECK(says(diagnose(run(1ms, 10us, 80)), "in 80.0 % of the steps"));
  CHECK(diagnose(run(1ms, 1ms, 100)).bottleneck == Bottleneck::data_high);
}

TEST_CASE("on the host's own timeline a loop without waits is compute-bound") {
  StepSummary sum = run(1ms, 10us);
  sum.device_steps = 0;
  CHECK(diagnose(sum).bottleneck == Bottleneck::device);
  CHECK(says(diagnose(sum), "compute-bound: 1.0 % of the time"));
  sum.data_total = 100 * 1ms;
  CHECK(says(diagnose(sum), "50.0 % of the time is spent waiting"));
}
