#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <sstream>
#include <steptimer/csv_writer.hpp>
#include <steptimer/diagnosis.hpp>
#include <steptimer/job_summary.hpp>
#include <steptimer/jsonl_writer.hpp>
#include <steptimer/metrics.hpp>
#include <steptimer/progress_line.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/step_window.hpp>
#include <steptimer/steptimer.hpp>
#include <steptimer/tee.hpp>
#include <steptimer/trace_writer.hpp>
#include <string_view>
#include <utility>

#ifdef STEPTIMER_TEST_CUDA
#include <steptimer/cuda_backend.hpp>
#endif
#ifdef STEPTIMER_TEST_FORMAT
#include <steptimer/format.hpp>
#endif
#ifdef STEPTIMER_TEST_MPI
#include <steptimer/mpi.hpp>
#endif
#ifdef STEPTIMER_TEST_NVTX
#include <steptimer/nvtx_ranges.hpp>
#endif

/// Every public call once, so that a compiler that only looks at what is used looks at all of it. Returns a
/// number that depends on all results.
template <class Backend>
double every_call_of_timer(Backend backend) {
  steptimer::StepTimerOptions options;
  options.warmup_steps = 1;
  options.window = 3;
  double sum = 0;
  options.on_record = [&sum](const steptimer::StepRecord& record) { sum += static_cast<double>(record.step); };
  options.on_warning = [&sum](std::string_view line) { sum += static_cast<double>(line.size()); };

  steptimer::StepTimer<Backend> first(std::move(backend), options);
  steptimer::StepTimer<Backend> timer(std::move(first));
  for (int step = 0; step < 4; ++step) {
    timer.on_batch_start();
    timer.on_batch_end(64);
    const auto scope = timer.step(64);
    static_cast<void>(scope);
  }
  timer.on_batch_end();
  timer.pause();
  sum += static_cast<double>(timer.poll());
  sum += timer.finish(std::chrono::milliseconds(1)) ? 1 : 0;

  if (const auto record = timer.last()) {
    sum += record->data_wait_percent().value_or(0) + record->host_data_wait_percent().value_or(0);
  }
  sum += timer.data_wait_percent().value_or(0);
  const steptimer::StepSummary both = merge(timer.window(), timer.total());
  sum += both.data_wait_percent().value_or(0) + both.host_data_wait_percent().value_or(0);
  sum += both.steps_per_second().value_or(0) + both.items_per_second().value_or(0);
  sum += static_cast<double>(both.batch_mean().value_or(std::chrono::nanoseconds(0)).count() +
                             both.data_mean().value_or(std::chrono::nanoseconds(0)).count());
  sum += static_cast<double>(timer.counts().started);
  sum += timer.status().state == steptimer::TimerState::ok ? 1 : 0;
#ifdef STEPTIMER_TEST_FORMAT
  sum += static_cast<double>(fmt::format("{} {}", both, timer.last().value_or(steptimer::StepRecord{})).size());
#endif
  timer.release();
  timer.reset();
  first = std::move(timer);
  return sum;
}

/// The same of what looks at records.
inline double every_call_of_writers() {
  double sum = 0;
  std::ostringstream out;
  const auto warn = [&sum](std::string_view line) { sum += static_cast<double>(line.size()); };
  {
    steptimer::CsvWriter csv(out, warn);
    steptimer::TraceWriter trace(out, warn);
    steptimer::StepTimerOptions options;
    options.on_record = steptimer::tee(csv, trace, steptimer::JsonlWriter(out, warn));
    steptimer::CpuTimer timer{steptimer::CpuBackend{}, options};
#ifdef STEPTIMER_TEST_NVTX
    steptimer::NvtxRanges ranges(timer);
    ranges.on_batch_start();
    ranges.on_batch_end(1);
    { const auto scope = ranges.step(1); }
    ranges.pause();
    sum += ranges.finish() ? 1 : 0;
#else
    { const auto scope = timer.step(1); }
    timer.finish();
#endif
    csv.flush();
    trace.flush();
    sum += static_cast<double>(csv.lost() + trace.lost());
    const auto add = [&sum](std::string_view name, double value) { sum += static_cast<double>(name.size()) + value; };
    steptimer::for_each_metric(timer.total(), add);
    if (const auto record = timer.last()) steptimer::for_each_metric(*record, add);
  }
  return sum + static_cast<double>(out.str().size());
}

/// The same of what sums records up and shows them.
inline double every_call_of_watchers() {
  steptimer::StepRecord record;
  record.data_time = record.wall_gap = std::chrono::milliseconds(1);
  steptimer::StepDistribution distribution;
  steptimer::StepWindow window(2);
  steptimer::ProgressLine line(2, nullptr);
  using OnRecord = std::function<void(const steptimer::StepRecord&)>;
  for (const auto& on_record : {OnRecord(std::ref(distribution)), OnRecord(std::ref(window)), OnRecord(std::ref(line))})
    on_record(record);
  line.text(line.due() ? "due" : "not due");
  line.print("a line");
  line.finish();

  const auto sum_of = [](const auto& times) {
    auto all = static_cast<double>(times.count() + times.longest_step().value_or(0));
    for (const auto& time :
         {times.shortest(), times.longest(), times.p50(), times.p95(), times.p99(), times.quantile(0.1)})
      all += std::chrono::duration<double>(time.value_or(std::chrono::nanoseconds(0))).count();
    return all;
  };
  distribution = merge(distribution, steptimer::StepDistribution{});
  double sum = sum_of(distribution.batch_time) + sum_of(distribution.data_time);
  sum += sum_of(window.batch_time()) + sum_of(window.data_time());
#ifdef STEPTIMER_TEST_FORMAT
  sum += static_cast<double>(fmt::format("{} {} {:h}", distribution, steptimer::StepCounts{}, record).size());
#endif
  return sum;
}

/// The same of what brings ranks together; without MPI_Init() a job over MPI has none.
inline double every_call_of_jobs() {
  steptimer::StepRecord record;
  record.data_time = record.wall_gap = std::chrono::milliseconds(1);
  steptimer::StepWindow window(2);
  window.add(record);
  steptimer::JobSteps job(2, 2);
  double sum = job.add(0, record) && job.add(1, window) && job.add(steptimer::JobSteps(2, 2)) ? 1 : 0;
#ifdef STEPTIMER_TEST_MPI
  steptimer::MpiJob over_mpi(MPI_COMM_WORLD, 2);
  over_mpi(record);
  sum += over_mpi.start_report() || over_mpi.report() || over_mpi.poll_report() ? 1 : 0;
  sum += static_cast<double>(over_mpi.rank() + over_mpi.ranks() + over_mpi.counts().started);
  sum += over_mpi.status().error_code;
  if (over_mpi.ranks() > 0) {
    sum += merge_over_ranks(steptimer::StepSummary{}, MPI_COMM_WORLD) ? 1 : 0;
    sum += merge_over_ranks(steptimer::StepDistribution{}, MPI_COMM_WORLD) ? 1 : 0;
  }
#endif
  const steptimer::JobSummary summary = job.summary();
  for (const auto& time :
       {summary.stall_mean(), summary.cycle_mean(), summary.batch_min_mean(), summary.batch_max_mean()})
    sum += std::chrono::duration<double>(time.value_or(std::chrono::nanoseconds(0))).count();
  sum += summary.data_wait_percent().value_or(0) + summary.blamed_share().value_or(0);
  sum += static_cast<double>(summary.guilty_rank().value_or(0) + job.blame().size() + job.ranks() + job.size());
  sum += static_cast<double>(static_cast<const steptimer::JobSteps&>(job).data()->rank_in(2) + job.data()->ranks);
  sum += static_cast<double>(window.size() + window[0].step);
#ifdef STEPTIMER_TEST_FORMAT
  sum += static_cast<double>(fmt::format("{}", summary).size());
#endif
  return sum;
}

/// Over every backend that is here.
inline double every_call() {
  double sum = every_call_of_writers() + every_call_of_watchers() + every_call_of_timer(steptimer::CpuBackend{});
  sum += every_call_of_jobs() + every_call_of_timer(steptimer::ManualBackend{});
  sum += every_call_of_timer(steptimer::NullBackend{});
#ifdef STEPTIMER_TEST_CUDA
  sum += every_call_of_timer(steptimer::CudaBackend{});
#endif
  return sum;
}
