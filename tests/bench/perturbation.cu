// How much slower a training loop becomes when its steps are timed: the same loop with no timer and with each way of
// timing that there is in support/patterns.hpp, in turns, block by block, in one process.
//
//     perturbation [--quick] [--csv FILE]
//
// A block runs a fixed number of steps, about 60 ms without a timer, and is timed on the host from its first hook until
// the stream has run dry. Each block with a pattern is divided by the mean of the two blocks with no timer around it;
// reported are the median and the tenth and ninetieth percentile of these ratios. "no timer" is measured like a
// pattern, too: what it shows is the noise of the method.
//
// About 1,021 commands queued on a stream block the host, whatever it calls next, and a timer's marks would bring that
// about earlier. So all variants alike wait for the stream each time that 880 commands could have been queued, a graph
// taken for as many as it has kernels, and two marks a step: every 4th step of the launch-bound loop, every 40th graph,
// every 293rd step elsewhere.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../../examples/common/cuda_check.hpp"
#include "../../examples/common/cuda_resources.hpp"
#include "../../examples/common/gpu_loop.cuh"
#include "../../examples/common/option_table.hpp"
#include "../../examples/common/run_program.hpp"
#include "support/csv_file.hpp"
#include "support/figures.hpp"
#include "support/patterns.hpp"

namespace {

using bench::Cell;
using example::check;
using example::Stream;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr int most_queued = 880;
constexpr int marks_a_step = 2;

struct Loop {
  const char* name;
  microseconds loader;  // what the host does for the next batch
  int kernels;          // a step
  microseconds kernel;  // 0: as short as a kernel can be
  bool as_graph;        // the kernels are one CUDA graph
  int steps;            // a block

  int steps_between_waits() const { return most_queued / (kernels + marks_a_step); }
};

constexpr Loop loops[] = {
    {"1 ms compute-bound", microseconds{400}, 1, microseconds{1000}, false, 60},
    {"100 us steps", microseconds{20}, 1, microseconds{100}, false, 600},
    {"launch-bound", microseconds{0}, 200, microseconds{0}, false, 128},
    {"graph replay", microseconds{40}, 20, microseconds{9}, true, 280},
    {"1 ms data-bound", microseconds{2000}, 1, microseconds{1000}, false, 28},
};

/// What a step of a loop puts on the stream.
class StepWork {
 public:
  StepWork(const Loop& loop, const Stream& stream) : loop_(loop), stream_(stream) {
    queue_kernels();  // CUDA loads a kernel at its first launch, which must not be within the capture
    stream_.wait();
    if (loop_.as_graph) capture();
  }
  ~StepWork() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  StepWork(const StepWork&) = delete;
  StepWork& operator=(const StepWork&) = delete;

  void queue() const {
    if (graph_ != nullptr)
      check(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch");
    else
      queue_kernels();
  }

 private:
  void queue_kernels() const {
    for (int i = 0; i < loop_.kernels; ++i) example::queue_work(loop_.kernel, stream_);
  }
  void capture() {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    queue_kernels();
    check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiateWithFlags(&graph_, graph, 0), "cudaGraphInstantiateWithFlags");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }

  const Loop& loop_;
  const Stream& stream_;
  cudaGraphExec_t graph_ = nullptr;
};

template <class Pattern>
nanoseconds time_block(const Loop& loop, const StepWork& work, const Stream& stream, Pattern& pattern) {
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 1; step <= loop.steps; ++step) {
    pattern.start();
    work.queue();
    pattern.end();
    if (step % loop.steps_between_waits() == 0) stream.wait();
    example::keep_host_busy(loop.loader);
  }
  stream.wait();
  return std::chrono::steady_clock::now() - begin;
}

/// One way of timing in one loop, and what its blocks took.
struct Contender {
  const char* name;
  std::function<nanoseconds()> run_block;
  std::vector<double> step_us, no_timer_us, change_percent;
};

std::vector<Contender> contenders_in(const Loop& loop, const StepWork& work, const Stream& stream) {
  std::vector<Contender> contenders;
  const auto add = [&](const char* name, auto pattern) {
    contenders.push_back({name, [&, pattern] { return time_block(loop, work, stream, *pattern); }, {}, {}, {}});
  };
  add("no timer", std::make_shared<bench::NoTimer>());
  add("steptimer", std::make_shared<bench::Steptimer>(stream));
  add("steptimer sample_every=10", std::make_shared<bench::Steptimer>(stream, 10));
  bench::for_each_other_pattern(stream, add);
  return contenders;
}

void run_in_turns(const Loop& loop, std::vector<Contender>& contenders, int rounds) {
  const auto step_us = [&loop](const Contender& contender) {
    return std::chrono::duration<double, std::micro>(contender.run_block()).count() / loop.steps;
  };
  for (const Contender& contender : contenders) step_us(contender);  // makes events, fills caches, wakes the device

  const Contender no_timer = contenders.front();
  double before = step_us(no_timer);
  for (int round = 0; round < rounds; ++round) {
    for (Contender& contender : contenders) {
      const double with_pattern = step_us(contender);
      const double after = step_us(no_timer);
      const double without = (before + after) / 2;
      contender.step_us.push_back(with_pattern);
      contender.no_timer_us.push_back(without);
      contender.change_percent.push_back(100 * (with_pattern / without - 1));
      before = after;
    }
  }
}

void report(const Loop& loop, const Contender& contender, bench::CsvFile& csv) {
  const double step_us = bench::median(contender.step_us);
  const double no_timer_us = bench::median(contender.no_timer_us);
  const double change = bench::median(contender.change_percent);
  const double p10 = bench::percentile(contender.change_percent, 0.1);
  const double p90 = bench::percentile(contender.change_percent, 0.9);
  std::printf("%-20s %-26s %10.1f %12.1f %+9.2f %% %+9.2f %+9.2f\n", loop.name, contender.name, step_us, no_timer_us,
              change, p10, p90);
  csv.row({loop.name, contender.name, Cell(step_us, 3), Cell(no_timer_us, 3), Cell(change, 3), Cell(p10, 3),
           Cell(p90, 3), std::uint64_t{contender.change_percent.size()}, loop.steps});
}

void compare(int rounds, const std::string& csv_path) {
  bench::CsvFile csv(csv_path, "loop,pattern,step_us,no_timer_us,change_percent,change_p10,change_p90,blocks,steps");
  std::printf("%-20s %-26s %10s %12s %11s %9s %9s\n", "loop", "pattern", "step us", "no timer us", "change", "p10",
              "p90");
  const Stream stream;
  for (const Loop& loop : loops) {
    const StepWork work(loop, stream);
    std::vector<Contender> contenders = contenders_in(loop, work, stream);
    run_in_turns(loop, contenders, rounds);
    for (const Contender& contender : contenders) report(loop, contender, csv);
    std::fflush(stdout);
  }
}

bool has_gpu() {
  try {
    example::use_first_gpu();
    return true;
  } catch (const example::UserError& error) {
    std::printf("left out: %s\n", error.what());
    return false;
  }
}

void run(int argc, char** argv) {
  bool quick = false;
  std::string csv_path;
  example::OptionTable table("perturbation", "shows how much a loop slows down when its steps are timed");
  table.add_switch("--quick", quick, "3 blocks a pattern instead of 17");
  table.add_text("--csv", "FILE", csv_path, "also write the results to FILE");
  if (!table.parse(argc, argv) || !has_gpu()) return;
  compare(quick ? 3 : 17, csv_path);
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("perturbation", [&] { run(argc, argv); });
}
