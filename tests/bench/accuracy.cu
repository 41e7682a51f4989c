// Whether the number is true: the timer on loops of many kinds, beside what CUPTI saw the device do in the same run,
// and beside what other formulas make of the same steps.
//
//     accuracy [--quick] [--csv FILE] [--only TEXT]
//
// Exit code 0 however far the figures are apart: they are for reading. 1 where the witness cannot be trusted: the
// activities that it saw are not those that a loop queued, or some were lost.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <steptimer/steptimer.hpp>
#include <string>
#include <vector>

#include "../../examples/common/cuda_resources.hpp"
#include "../../examples/common/option_table.hpp"
#include "../../examples/common/run_program.hpp"
#include "support/accuracy_workloads.cuh"
#include "support/csv_file.hpp"
#include "support/device_activity.hpp"
#include "support/device_truth.hpp"
#include "support/figures.hpp"
#include "support/measured_loop.cuh"
#include "support/other_formulas.hpp"

namespace {

using namespace bench;

constexpr const char* definitions =
    "Share of time waiting for data, in percent, of one run of each loop under CUPTI:\n"
    "truth      a step's work is what was queued between its hooks, all on the step's streams: kernels, copies,\n"
    "           memsets; a gap is from its last end to the first start of the next step's work, 0 if they overlap;\n"
    "           sum of gaps / sum of the times from first start to first start, over steps that have a data_time\n"
    "steptimer  StepTimer::total() of the timer on that loop\n"
    "host       the host's clock alone: from a step's end hook to the next start hook\n"
    "skip       host time from start hook to start hook minus GPU time, from 0 up, in a ratio of sums; a step whose\n"
    "           work was not done when the next one started is left out\n"
    "queue      the same over all steps, however late they were done\n"
    "outside    share of the cycles in which work queued outside the hooks ran in the gaps\n"
    "off        how far a step's data_time is off its gap in CUPTI, in us: 99 of 100 steps are no further off\n";

// Beyond the table: start_to_first_us is the median of what batch_time has beyond first start to last end of the work;
// over_host_gap_us is how far data_time exceeds the host's own gap (below 0: it does not); step_off_us is `off` above.
constexpr const char* csv_columns =
    "workload,cycle_ms,truth_percent,steptimer_percent,host_percent,skip_percent,queue_percent,steps,records,"
    "outside_percent,start_to_first_us,over_host_gap_us_p99,over_host_gap_us_max,step_off_us_p50,step_off_us_p99,"
    "step_off_us_max,skip_records,activities,not_measured";

struct Result {
  DeviceTruth truth;
  double steptimer = 0, host = 0, skip = 0, queue = 0;
  std::size_t skip_records = 0;
  double start_to_first_us = 0;
  std::vector<double> over_host_gap_us, step_off_us;  // of each step with a data_time
  std::size_t steps = 0, activities = 0;
  std::uint64_t not_measured = 0;

  double points_off() const { return std::fabs(steptimer - truth.percent()); }
};

double microseconds_of(nanoseconds time) { return static_cast<double>(time.count()) / 1e3; }

/// What one run tells of a witness that saw something else: numbers of calls, as they came.
std::string call_numbers(const StepOnDevice& step, const DeviceTrace& trace) {
  std::string text = "; its marks are calls " + std::to_string(step.start_mark.call) + " and " +
                     std::to_string(step.end_mark.call) + ", the activities those of calls";
  std::vector<std::uint32_t> calls;
  for (const Activity& activity : trace.activities) calls.push_back(activity.call);
  std::sort(calls.begin(), calls.end());
  const auto near = std::lower_bound(calls.begin(), calls.end(), step.start_mark.call);
  const auto from = near - std::min<std::ptrdiff_t>(near - calls.begin(), 4);
  for (auto call = from; call != calls.end() && call < from + 12; ++call) text += ' ' + std::to_string(*call);
  return text + " (" + std::to_string(calls.size()) + " in all)";
}

/// Holds the witness to what the loop knows that it queued.
void check_witness(const StepsOnDevice& device, const DeviceTrace& trace, const LoopReport& report) {
  if (device.steps.size() != report.queued.size())
    throw WitnessError("the loop ran " + std::to_string(report.queued.size()) + " steps, CUPTI saw the marks of " +
                       std::to_string(device.steps.size()));
  for (std::size_t n = 0; n < device.steps.size(); ++n) {
    if (device.steps[n].activities == report.queued[n]) continue;
    throw WitnessError("step " + std::to_string(n) + " queued " + std::to_string(report.queued[n]) +
                       " activities, CUPTI saw " + std::to_string(device.steps[n].activities) +
                       call_numbers(device.steps[n], trace));
  }
  if (device.outside.size() != report.queued_outside)
    throw WitnessError("outside its steps the loop queued " + std::to_string(report.queued_outside) +
                       " activities, CUPTI saw " + std::to_string(device.outside.size()));
}

Result judge(const DeviceTrace& trace, const LoopReport& report) {
  const StepsOnDevice device = steps_of(trace);
  check_witness(device, trace, report);
  const BusyTimes others(device.outside);
  Result result;
  std::vector<HostGap> host_gaps;
  std::vector<double> start_to_first;
  for (const steptimer::StepRecord& record : report.records) {
    const StepOnDevice& step = device.steps[record.step];
    start_to_first.push_back(microseconds_of(record.batch_time - (step.last_end - step.first_start)));
    if (!record.data_time || !record.host_wall_gap) continue;
    const StepOnDevice& next = device.steps[record.step + 1];
    // By the witness: a query of its own in each hook would change the loop.
    const bool was_done = step.last_end <= next.start_mark.host_time;
    result.truth.add(step, next, others);
    result.skip_records += was_done ? 1U : 0U;
    host_gaps.push_back({*record.host_wall_gap, record.batch_time, was_done});
    result.step_off_us.push_back(std::fabs(microseconds_of(*record.data_time - gap_between(step, next))));
    result.over_host_gap_us.push_back(
        microseconds_of(*record.data_time - (*record.host_wall_gap - record.host_batch_time)));
  }
  result.steptimer = report.total.data_wait_percent().value_or(std::nan(""));
  result.host = report.total.host_data_wait_percent().value_or(std::nan(""));
  result.skip = skip_percent(host_gaps);
  result.queue = queue_percent(host_gaps);
  result.start_to_first_us = median(start_to_first);
  result.steps = device.steps.size();
  result.activities = trace.activities.size();
  result.not_measured = report.counts.started - report.counts.measured;
  return result;
}

std::size_t steps_for(const Workload& workload, nanoseconds about) {
  constexpr nanoseconds::rep fewest = 12;
  const nanoseconds::rep period = workload.period;
  const nanoseconds::rep wanted = std::max({about / workload.cycle, fewest, 2 * period});
  return static_cast<std::size_t>((wanted + period - 1) / period * period + 1);  // and one to end the last gap
}

Result measure(const Workload& workload, std::size_t steps, DeviceActivity& activity) {
  MeasuredLoop loop(steps);
  const Step step = workload.begin(loop);
  const example::WaitForDevice wait_before_memory_goes;
  queue_work(1us, loop.stream());  // CUDA loads a kernel at its first launch
  example::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  activity.take();
  for (std::size_t n = 1; n <= steps; ++n) step(static_cast<int>(n));
  const LoopReport& report = loop.finish();
  return judge(activity.take(), report);
}

void print_percent(double percent) {
  std::isnan(percent) ? std::printf(" %9s", "none") : std::printf(" %9.2f", percent);
}

void print_row(const std::string& name, const Result& result) {
  std::printf("%-43s %9.3f", name.c_str(), result.truth.cycle_ms());
  for (const double percent : {result.truth.percent(), result.steptimer, result.host, result.skip, result.queue,
                               result.truth.outside_percent()})
    print_percent(percent);
  std::printf(" %8.1f %6llu of %zu\n", percentile(result.step_off_us, 0.99),
              static_cast<unsigned long long>(result.truth.gaps), result.steps);
  std::fflush(stdout);
}

void write_row(CsvFile& csv, const std::string& name, const Result& result) {
  const auto whole = [](std::size_t number) { return Cell(std::uint64_t{number}); };
  csv.row({Cell(name), Cell(result.truth.cycle_ms(), 4), Cell(result.truth.percent(), 3), Cell(result.steptimer, 3),
           Cell(result.host, 3), Cell(result.skip, 3), Cell(result.queue, 3), whole(result.steps),
           Cell(result.truth.gaps), Cell(result.truth.outside_percent(), 3), Cell(result.start_to_first_us, 2),
           Cell(percentile(result.over_host_gap_us, 0.99), 2), Cell(percentile(result.over_host_gap_us, 1.0), 2),
           Cell(percentile(result.step_off_us, 0.5), 2), Cell(percentile(result.step_off_us, 0.99), 2),
           Cell(percentile(result.step_off_us, 1.0), 2), whole(result.skip_records), whole(result.activities),
           Cell(result.not_measured)});
}

/// How close the timer should come, in points; NaN where no goal is set: at a short cycle a few microseconds of the
/// device between a mark and a kernel are points.
double goal_of(const Workload& workload, const Result& result) {
  if (result.truth.cycle_ms() >= 5) return 1.0;
  return workload.short_and_device_bound ? 4.0 : std::nan("");
}

std::string miss_of(const Workload& workload, const Result& result) {
  const double goal = goal_of(workload, result);
  if (std::isnan(goal) || result.points_off() <= goal) return {};
  char text[200];
  std::snprintf(text, sizeof text, "%s: %.2f points off, %.2f more than the goal of %.1f", workload.name.c_str(),
                result.points_off(), result.points_off() - goal, goal);
  return text;
}

void run(int argc, char** argv) {
  bool quick = false;
  std::string csv_path;
  std::string only;
  example::OptionTable table("accuracy", "says how true the timer's number is, by what CUPTI saw the device do");
  table.add_switch("--quick", quick, "a quarter of a second a loop instead of one");
  table.add_text("--csv", "FILE", csv_path, "write the figures there, too");
  table.add_text("--only", "TEXT", only, "only loops whose name contains the text");
  if (!table.parse(argc, argv)) return;

  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("left out: no CUDA device\n");
    return;
  }
  cudaDeviceProp device;
  example::check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  DeviceActivity& activity = DeviceActivity::start();
  CsvFile csv(csv_path, csv_columns);
  std::printf("%s\n%s\n%-43s %9s %9s %9s %9s %9s %9s %9s %8s %s\n", device.name, definitions, "loop", "cycle ms",
              "truth", "steptimer", "host", "skip", "queue", "outside", "off us", "gaps");

  std::vector<std::string> misses;
  int not_trusted = 0;
  for (const Workload& workload : accuracy_workloads()) {
    if (workload.name.find(only) == std::string::npos) continue;
    try {
      const Result result = measure(workload, steps_for(workload, quick ? 250ms : 1s), activity);
      print_row(workload.name, result);
      write_row(csv, workload.name, result);
      const std::string miss = miss_of(workload, result);
      if (!miss.empty()) misses.push_back(miss);
    } catch (const WitnessError& error) {
      std::printf("%-43s cannot be judged: %s\n", workload.name.c_str(), error.what());
      ++not_trusted;
    }
  }
  std::printf("\n");
  for (const std::string& miss : misses) std::printf("misses the goal: %s\n", miss.c_str());
  if (misses.empty() && not_trusted == 0)
    std::printf("all loops with a goal meet it: 1 point from 5 ms a cycle, 4 points at 100 us\n");
  if (not_trusted > 0)
    throw std::runtime_error(std::to_string(not_trusted) +
                             " loops could not be judged, as CUPTI saw something else than they queued; see above");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("accuracy", [&] { run(argc, argv); });
}
