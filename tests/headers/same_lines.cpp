// Built with fmt as headers alone, and with a newer fmt: the lines are the same, and these.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <steptimer/format.hpp>
#include <string>
#include <string_view>

#ifdef STEPTIMER_TEST_FMT_VERSION
static_assert(FMT_VERSION == STEPTIMER_TEST_FMT_VERSION, "this is not the fmt that was asked for");
#endif

namespace {

int failures = 0;

void expect_line(const std::string& line, std::string_view wanted) {
  if (line == wanted) return;
  std::fprintf(stderr, "not the line that it should be: '%s'\n", line.c_str());
  ++failures;
}

steptimer::StepRecord record() {
  using namespace std::chrono_literals;
  steptimer::StepRecord record;
  record.step = 41;
  record.batch_time = 90ms;
  record.wall_gap = 100ms;
  record.data_time = 10ms;
  return record;
}

}  // namespace

int main() {
  const steptimer::StepSummary summary = summary_of(record());
  expect_line(fmt::format("{}", record()), "step 41 | data_wait 10.0 % | data 10.0 ms | batch 90.0 ms");
  expect_line(fmt::format("{}", summary), "data_wait 10.0 % | data 10.0 ms | batch 90.0 ms | 10.0 steps/s | 1 steps");
  expect_line(fmt::format("{:>70}", summary), fmt::format("{:>70}", fmt::format("{}", summary)));
  expect_line(fmt::format("{}", steptimer::StepSummary{}),
              "data_wait n/a | data n/a | batch n/a | n/a steps/s | 0 steps");
  return failures == 0 ? 0 : 1;
}
