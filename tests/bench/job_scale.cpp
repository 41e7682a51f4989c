// How long it takes to make a job's numbers of very many ranks, and whether they are right: a simulated job of up to
// 100,000 ranks, of which one is slowed, each rank's steps added as they would arrive from a transport.
//
//     job_scale [--quick] [--csv FILE]
//
// Exit code 0 whatever the figures are: they are for reading, not for passing.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <steptimer/job_summary.hpp>

#include "../../examples/common/option_table.hpp"
#include "../../examples/common/run_program.hpp"
#include "support/csv_file.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t steps = 100;
constexpr nanoseconds computing = 10ms;
constexpr nanoseconds delay = 5ms;
constexpr double true_percent = 100.0 * 5 / (5 + 10);

/// Small and the same at any time: a loader that takes up to 30 us.
nanoseconds loading(std::uint32_t rank, std::uint64_t step) {
  std::uint64_t bits = (step << 32 | rank) * 0x9E3779B97F4A7C15u;
  bits ^= bits >> 29;
  return nanoseconds{static_cast<std::int64_t>(bits % 30'000)};
}

struct Result {
  double milliseconds;
  steptimer::JobSummary summary;
};

Result measure(std::uint32_t ranks) {
  const std::uint32_t slow_rank = ranks / 3;
  const auto begin = Clock::now();
  steptimer::JobSteps job(ranks, steps);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      steptimer::StepRecord record;
      record.step = step;
      record.data_time = loading(rank, step) + (rank == slow_rank ? delay : 0ns);
      record.wall_gap = computing + delay + 15us;
      record.batch_time = *record.wall_gap - *record.data_time;
      job.add(rank, record);
    }
  }
  const steptimer::JobSummary summary = job.summary();
  return {std::chrono::duration<double, std::milli>(Clock::now() - begin).count(), summary};
}

void run(int argc, char** argv) {
  bool quick = false;
  std::string csv;
  example::OptionTable table("job_scale", "makes a job's numbers of very many ranks");
  table.add_switch("--quick", quick, "up to 1,000 ranks only");
  table.add_text("--csv", "FILE", csv, "the figures");
  if (!table.parse(argc, argv)) return;

  bench::CsvFile file(csv,
                      "ranks,steps,ms,ns_per_record,bytes,data_wait_percent,true_percent,guilty_rank,guilty_share");
  std::printf("%8s %8s %10s %10s %10s %10s %8s %8s\n", "ranks", "ms", "ns/record", "bytes", "job wait", "truth",
              "guilty", "share");
  const std::uint32_t most = quick ? 1'000 : 100'000;
  for (std::uint32_t ranks = 1; ranks <= most; ranks *= 10) {
    const Result result = measure(ranks);
    const double ns = result.milliseconds * 1e6 / (static_cast<double>(ranks) * steps);
    const auto bytes = static_cast<std::uint64_t>(steps * sizeof(steptimer::JobStep));
    const std::uint32_t guilty = result.summary.guilty_rank().value_or(ranks);
    std::printf("%8u %8.2f %10.2f %10llu %8.2f %% %8.2f %% %8u %8.3f\n", ranks, result.milliseconds, ns,
                static_cast<unsigned long long>(bytes), *result.summary.data_wait_percent(), true_percent, guilty,
                *result.summary.blamed_share());
    file.row({std::uint64_t{ranks},
              steps,
              {result.milliseconds, 3},
              {ns, 2},
              bytes,
              {*result.summary.data_wait_percent(), 3},
              {true_percent, 3},
              std::uint64_t{guilty},
              {*result.summary.blamed_share(), 3}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("job_scale", [&] { run(argc, argv); });
}
