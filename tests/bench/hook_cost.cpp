// What the hooks cost, beside the calls that cannot be done without, and beside other ways of timing a step. All run in
// turns in one process, block by block, so that a machine that speeds up or slows down does so for all; each figure is
// the median over the blocks. After that, single hooks are timed one by one, for their spread.
//
//     hook_cost [--steps N] [--blocks N] [--csv FILE]
//
// On CUDA nothing but the timing is queued, so the stream is idle: what a loop with work of its own pays is shown by
// perturbation. Exit code 0 whatever the figures are: they are for reading, not for passing.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <steptimer/steptimer.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../../examples/common/option_table.hpp"
#include "../../examples/common/run_program.hpp"
#include "support/counted_calls.hpp"
#include "support/csv_file.hpp"
#include "support/figures.hpp"
#if defined(STEPTIMER_BENCH_CUDA)
#include "../../examples/common/cuda_check.hpp"
#include "../../examples/common/cuda_resources.hpp"
#include "support/patterns.hpp"
#include "support/stream_gate.hpp"
#endif

namespace {

using bench::Cell;
using bench::use;
using Clock = std::chrono::steady_clock;

struct Options {
  int steps = 20000;  // a block; on CUDA rounded up to whole bursts
  int blocks = 61;
  std::string csv;
};

double nanoseconds(Clock::duration time) { return std::chrono::duration<double, std::nano>(time).count(); }

/// One side of a comparison: it runs so many steps and says how long the host took for them.
struct Contender {
  const char* name;
  int steps;  // a block
  std::function<Clock::duration(int steps)> run;
  std::vector<double> nanoseconds_a_step = {};  // of each block
};

void run_in_turns(int blocks, std::vector<Contender>& contenders) {
  for (int block = 0; block < blocks; ++block)
    for (Contender& contender : contenders)
      contender.nanoseconds_a_step.push_back(nanoseconds(contender.run(contender.steps)) / contender.steps);
}

/// Medians of both sides, and of their difference and ratio block by block.
struct Comparison {
  double time, baseline, difference, ratio;
};

Comparison compare(const Contender& contender, const Contender& baseline) {
  const std::vector<double>& times = contender.nanoseconds_a_step;
  const std::vector<double>& baseline_times = baseline.nanoseconds_a_step;
  std::vector<double> differences, ratios;
  for (std::size_t block = 0; block < times.size(); ++block) {
    differences.push_back(times[block] - baseline_times[block]);
    ratios.push_back(times[block] / baseline_times[block]);
  }
  return {bench::median(times), bench::median(baseline_times), bench::median(differences), bench::median(ratios)};
}

/// Nanoseconds of single calls, with the clock reading around them.
struct SingleCalls {
  std::vector<double> start, end;
};

/// Steps between two waits for a stream, so that its queue stays short. The waits are not timed.
constexpr int burst = 100;

template <class Start, class End, class AfterBurst>
SingleCalls time_one_by_one(int steps, Start&& start, End&& end, AfterBurst&& after_burst) {
  SingleCalls calls{std::vector<double>(static_cast<std::size_t>(steps)),
                    std::vector<double>(static_cast<std::size_t>(steps))};
  for (int i = 0; i < steps; ++i) {
    const auto before = Clock::now();
    start();
    const auto between = Clock::now();
    end();
    const auto after = Clock::now();
    calls.start[static_cast<std::size_t>(i)] = nanoseconds(between - before);
    calls.end[static_cast<std::size_t>(i)] = nanoseconds(after - between);
    if ((i + 1) % burst == 0) after_burst();
  }
  return calls;
}

/// The figures of one timeline: lines for people, rows for programs.
class Report {
 public:
  Report(const char* timeline, bench::CsvFile& csv) : timeline_(timeline), csv_(csv) {}

  void baseline(const Contender& contender) {
    csv_.row({timeline_, contender.name, Cell(bench::median(contender.nanoseconds_a_step), 1), "", "", "", "", "", "",
              contender.steps});
  }
  Comparison comparison(const char* what, const Contender& contender, const Contender& baseline) {
    const Comparison cost = compare(contender, baseline);
    csv_.row({timeline_, what, Cell(cost.time, 1), Cell(cost.baseline, 1), Cell(cost.difference, 1),
              Cell(cost.ratio, 3), "", "", "", contender.steps});
    return cost;
  }
  void single_calls(const SingleCalls& hooks, const SingleCalls& nothing) {
    spread("on_batch_start", hooks.start);
    spread("on_batch_end", hooks.end);
    spread("empty pair of clock readings", nothing.start);
  }

 private:
  void spread(const char* what, const std::vector<double>& times) {
    const double p50 = bench::median(times);
    const double p99 = bench::percentile(times, 0.99);
    const double worst = bench::percentile(times, 1);
    std::printf("%-6s one by one: %s p50 %.0f ns, p99 %.0f ns, worst %.0f ns\n", timeline_, what, p50, p99, worst);
    csv_.row(
        {timeline_, what, "", "", "", "", Cell(p50, 1), Cell(p99, 1), Cell(worst, 1), std::uint64_t{times.size()}});
  }

  const char* timeline_;
  bench::CsvFile& csv_;
};

void cpu(const Options& options, bench::CsvFile& csv) {
  steptimer::CpuTimer timer;
  const auto hooks = [&](int steps) {
    const auto begin = Clock::now();
    for (int i = 0; i < steps; ++i) {
      timer.on_batch_start();
      timer.on_batch_end();
    }
    return Clock::now() - begin;
  };
  const auto two_clock_readings = [](int steps) {
    const auto begin = Clock::now();
    for (int i = 0; i < steps; ++i) {
      auto start = Clock::now();
      use(start);
      auto end = Clock::now();
      use(end);
    }
    return Clock::now() - begin;
  };
  hooks(options.steps);
  const long before = bench::allocations;
  hooks(options.steps);
  const long allocated = bench::allocations - before;

  std::vector<Contender> contenders{{"steptimer", options.steps, hooks},
                                    {"two clock readings", options.steps, two_clock_readings}};
  run_in_turns(options.blocks, contenders);
  const Contender& bare = contenders[1];
  Report report("cpu", csv);
  const Comparison cost = report.comparison("steptimer", contenders[0], bare);
  report.baseline(bare);
  std::printf("cpu    hooks %.1f ns a step, two steady_clock::now() %.1f ns: +%.1f ns, ratio %.2f\n", cost.time,
              cost.baseline, cost.difference, cost.ratio);
  std::printf("cpu    allocations in %d steps once warm: %ld\n", options.steps, allocated);

  const auto nothing = [] {};
  report.single_calls(time_one_by_one(
                          options.steps, [&] { timer.on_batch_start(); }, [&] { timer.on_batch_end(); }, nothing),
                      time_one_by_one(options.steps, nothing, nothing, nothing));
}

#if defined(STEPTIMER_BENCH_CUDA)

using example::check;
using example::Stream;

/// What a step cannot be timed without: two records, one query, two elapsed; these of a step of the last
/// burst, which is finished and whose times the host has not read before.
class BareCalls {
 public:
  explicit BareCalls(const Stream& stream) : stream_(stream) {
    for (auto& set : events_)
      for (bench::EventPair& pair : set) {
        pair.start.record(stream_);
        pair.end.record(stream_);
      }
    stream.wait();
  }
  void step() {
    bench::EventPair& now = events_[writing_][at_];
    const bench::EventPair& old = events_[1 - writing_][at_];
    const bench::EventPair& next = events_[1 - writing_][at_ + 1];
    now.start.record(stream_);
    now.end.record(stream_);
    bool reached = next.start.reached();
    float batch = old.end.milliseconds_since(old.start);
    float wall = next.start.milliseconds_since(old.start);
    use(reached);
    use(batch);
    use(wall);
    if (++at_ == burst) {
      at_ = 0;
      writing_ = 1 - writing_;
    }
  }

 private:
  cudaStream_t stream_;
  bench::EventPair events_[2][burst + 1];
  std::size_t writing_ = 0;
  std::size_t at_ = 0;
};

/// Puts more steps in flight than a burst ever does, by holding the stream meanwhile.
void warm_up(bench::Steptimer& timer, const Stream& stream) {
  const bench::StreamGate gate(stream);
  for (int i = 0; i < 2 * burst; ++i) {
    timer.start();
    timer.end();
  }
}

int in_whole_bursts(int steps) { return (steps + burst - 1) / burst * burst; }

/// A contender that runs `step` in bursts.
template <class Step>
Contender in_bursts(const char* name, int steps, const Stream& stream, Step step) {
  const auto run = [&stream, step](int count) {
    Clock::duration spent{};
    for (int i = 0; i < count; i += burst) {
      const auto begin = Clock::now();
      for (int k = 0; k < burst; ++k) step();
      spent += Clock::now() - begin;
      stream.wait();
    }
    return spent;
  };
  return {name, steps, run};
}

void cuda(const Options& options, bench::CsvFile& csv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("cuda   left out: no CUDA device\n");
    return;
  }
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  std::printf("cuda   %s\n", device.name);

  const int steps = in_whole_bursts(options.steps);
  const int steps_of_others = in_whole_bursts((options.steps + 4) / 5);  // some are slow
  const Stream stream;
  bench::Steptimer timer(stream);
  BareCalls bare_calls(stream);
  std::vector<Contender> contenders;
  contenders.push_back(in_bursts("steptimer", steps, stream, [&] {
    timer.start();
    timer.end();
  }));
  contenders.push_back(in_bursts("bare calls", steps, stream, [&] { bare_calls.step(); }));
  bench::for_each_other_pattern(stream, [&](const char* name, auto pattern) {
    contenders.push_back(in_bursts(name, steps_of_others, stream, [pattern] {
      pattern->start();
      pattern->end();
    }));
  });
  warm_up(timer, stream);
  for (const Contender& contender : contenders) contender.run(contender.steps);

  const long allocations_before = bench::allocations;
  const long events_before = bench::events_made;
  contenders[0].run(steps);
  const long allocated = bench::allocations - allocations_before;
  const long made = bench::events_made - events_before;

  run_in_turns(options.blocks, contenders);
  const Contender& bare = contenders[1];
  Report report("cuda", csv);
  const Comparison cost = report.comparison("steptimer", contenders[0], bare);
  report.baseline(bare);
  std::printf("cuda   hooks %.0f ns a step, the bare calls %.0f ns: ratio %.3f\n", cost.time, cost.baseline,
              cost.ratio);
  std::printf("cuda   in %d steps once warm: allocations %ld, events made %ld\n", steps, allocated, made);
  for (std::size_t i = 2; i < contenders.size(); ++i) {
    const Comparison other = report.comparison(contenders[i].name, contenders[i], bare);
    std::printf("cuda   %s %.0f ns a step: %.2f times the bare calls\n", contenders[i].name, other.time, other.ratio);
  }

  const auto nothing = [] {};
  const auto wait = [&] { stream.wait(); };
  report.single_calls(time_one_by_one(
                          steps, [&] { timer.start(); }, [&] { timer.end(); }, wait),
                      time_one_by_one(steps, nothing, nothing, wait));
  const steptimer::StepCounts counts = timer.counts();
  std::printf("cuda   steps %llu, measured %llu, failed %llu\n", static_cast<unsigned long long>(counts.started),
              static_cast<unsigned long long>(counts.measured), static_cast<unsigned long long>(counts.failed));
}

#endif

void run(int argc, char** argv) {
  Options options;
  example::OptionTable table("hook_cost", "shows what the hooks cost beside other ways of timing a step");
  table.add_count("--steps", options.steps, 1, 10'000'000, "steps a block");
  table.add_count("--blocks", options.blocks, 1, 100'000, "blocks");
  table.add_text("--csv", "FILE", options.csv, "also write the results to FILE");
  if (!table.parse(argc, argv)) return;

  bench::CsvFile csv(options.csv,
                     "timeline,what,ns_per_step,ns_baseline,difference_ns,ratio,p50_ns,p99_ns,worst_ns,steps");
  cpu(options, csv);
#if defined(STEPTIMER_BENCH_CUDA)
  cuda(options, csv);
#else
  std::printf("cuda   left out: built without CUDA\n");
#endif
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("hook_cost", [&] { run(argc, argv); });
}
