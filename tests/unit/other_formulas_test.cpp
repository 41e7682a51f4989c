#include "bench/support/other_formulas.hpp"

#include <cmath>
#include <vector>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using bench::HostGap;

TEST_CASE("clamped host gaps claim 44.8 % where the device is always busy") {
  std::vector<HostGap> steps(9, HostGap{1ms, 10ms, false});
  steps.push_back({91ms, 10ms, true});  // the step whose loss is read
  CHECK(bench::queue_percent(steps) == 100.0 * 81 / 181);
  CHECK(bench::queue_percent(steps) == Approx(44.8).margin(0.05));
  CHECK(bench::skip_percent(steps) == 100.0 * 81 / 91);  // nine of ten are skipped, and the tenth is the worst
}

TEST_CASE("where the host waits for each step both formulas are right") {
  const std::vector<HostGap> steps(10, HostGap{10ms, 9ms, true});
  CHECK(bench::queue_percent(steps) == 10.0);
  CHECK(bench::skip_percent(steps) == 10.0);
}

TEST_CASE("where no step was done in time nothing is claimed") {
  CHECK(std::isnan(bench::skip_percent({{10ms, 9ms, false}})));
  CHECK(std::isnan(bench::queue_percent({})));
}
