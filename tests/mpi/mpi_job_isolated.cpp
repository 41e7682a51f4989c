// MpiJob among real processes: mpirun -n N mpi_job_isolated <row>, for any N. Each rank checks for itself.
//
// MPI's profiling interface stands between the library and MPI: calls are counted there, and one can be made to fail.

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include <steptimer/mpi.hpp>
#include <steptimer/steptimer.hpp>

#include "isolated_rows.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

// ---- between the library and MPI

struct {
  std::uint64_t reductions = 0, bytes = 0, waits = 0;
  bool refuse_reduction = false, fail_wait = false, fail_test = false;
} seen;

}  // namespace

extern "C" int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                              MPI_Request* request) {
  if (seen.refuse_reduction) return MPI_ERR_OTHER;
  int size = 0;
  PMPI_Type_size(type, &size);
  ++seen.reductions;
  seen.bytes += static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size);
  return PMPI_Iallreduce(from, to, count, type, op, comm, request);
}

extern "C" int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++seen.waits;
  const int result = PMPI_Wait(request, status);
  return seen.fail_wait ? MPI_ERR_OTHER : result;
}

extern "C" int MPI_Test(MPI_Request* request, int* is_complete, MPI_Status* status) {
  const int result = PMPI_Test(request, is_complete, status);
  return seen.fail_test && *is_complete != 0 ? MPI_ERR_OTHER : result;
}

namespace {

// ---- what the rows need

int rank = 0, ranks = 0;

#define CHECK_THAT_IT_HOLDS(condition) check(condition, #condition, __LINE__)

void check(bool holds, const char* what, int line) {
  if (holds) return;
  std::fprintf(stderr, "rank %d of %d, line %d: not true: %s\n", rank, ranks, line, what);
  PMPI_Abort(MPI_COMM_WORLD, isolated_rows::failed);
}

/// The record of that step on that rank, which every rank can make up: some steps are missing, some have no gap.
std::optional<steptimer::StepRecord> record_of(std::uint32_t of_rank, std::uint64_t step) {
  std::mt19937_64 random(1000 * step + of_rank);
  if (random() % 10 == 0) return std::nullopt;
  steptimer::StepRecord record;
  record.step = step;
  record.warmup = step < 3;
  record.batch_time = nanoseconds{random() % 50'000'000};
  if (random() % 10 != 0) {
    record.data_time = nanoseconds{random() % 3 * 1'000'000};  // often equal on several ranks
    record.wall_gap = record.batch_time + *record.data_time;
  }
  return record;
}

/// Ranks are at different steps: the last has measured three steps fewer than the first.
std::uint64_t steps_of(std::uint32_t of_rank) { return 40 - 3 * of_rank / static_cast<std::uint32_t>(ranks); }

template <class Job>
void feed(Job&& job, std::uint32_t of_rank) {
  for (std::uint64_t step = 0; step < steps_of(of_rank); ++step)
    if (const auto record = record_of(of_rank, step)) job(*record);
}

/// What all ranks together must come to.
steptimer::JobSteps expected_steps(std::size_t window) {
  steptimer::JobSteps all(static_cast<std::uint32_t>(ranks), window);
  for (std::uint32_t of_rank = 0; of_rank < static_cast<std::uint32_t>(ranks); ++of_rank) {
    steptimer::StepWindow own(window);
    feed([&](const steptimer::StepRecord& record) { own.add(record); }, of_rank);
    all.add(of_rank, own);
  }
  return all;
}

bool same(const steptimer::JobSteps& a, const steptimer::JobSteps& b) {
  return a.size() == b.size() && a.ranks() == b.ranks() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(steptimer::JobStep)) == 0;
}

std::optional<steptimer::JobSteps> poll_until_it_comes(steptimer::MpiJob& job) {
  for (;;) {
    if (auto steps = job.poll_report()) return steps;
    std::this_thread::sleep_for(1ms);
  }
}

/// Every rank but 0 tells rank 0, who comes after them.
void tell_rank_0() {
  if (rank != 0) PMPI_Send(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}
void wait_for_the_others() {
  for (int other = 1; rank == 0 && other < ranks; ++other) {
    int number = 0;
    PMPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

// ---- the rows

void report_is_the_same_on_every_rank() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 16);
  CHECK_THAT_IT_HOLDS(job.rank() == static_cast<std::uint32_t>(rank));
  CHECK_THAT_IT_HOLDS(job.ranks() == static_cast<std::uint32_t>(ranks));
  feed(job, job.rank());
  const auto steps = job.report();
  CHECK_THAT_IT_HOLDS(steps && same(*steps, expected_steps(16)));
  CHECK_THAT_IT_HOLDS(steps->summary().ranks == static_cast<std::uint32_t>(ranks));
  CHECK_THAT_IT_HOLDS(ranks > 1 || steps->summary().steps > 5);
  CHECK_THAT_IT_HOLDS(job.counts().started == 1 && job.counts().completed == 1);
  CHECK_THAT_IT_HOLDS(job.status().error_code == MPI_SUCCESS && *job.status().call == '\0');
}

void started_report_is_the_same() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 16);
  feed(job, job.rank());
  CHECK_THAT_IT_HOLDS(job.start_report());
  const auto steps = poll_until_it_comes(job);
  CHECK_THAT_IT_HOLDS(same(*steps, expected_steps(16)));
  CHECK_THAT_IT_HOLDS(!job.poll_report());  // handed out once
  CHECK_THAT_IT_HOLDS(job.counts().started == 1 && job.counts().completed == 1);
}

/// Were any of it to wait for rank 0, rank 0 would wait for ever to be told.
void started_report_waits_for_nobody() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 16);
  feed(job, job.rank());
  wait_for_the_others();
  CHECK_THAT_IT_HOLDS(job.start_report());
  if (rank != 0) CHECK_THAT_IT_HOLDS(!job.poll_report());
  tell_rank_0();
  CHECK_THAT_IT_HOLDS(same(*poll_until_it_comes(job), expected_steps(16)));
  CHECK_THAT_IT_HOLDS(seen.waits == 0);
}

void latest_of_several_is_handed_out() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 4);
  for (std::uint64_t step = 0; step < 3; ++step) {
    steptimer::StepRecord record;
    record.step = step;
    record.wall_gap = record.data_time = 1ms;
    job(record);
    CHECK_THAT_IT_HOLDS(job.start_report());
  }
  std::uint64_t most = 0;
  while (job.counts().completed < 3)
    if (const auto steps = job.poll_report()) most = std::max(most, steps->summary().steps);
  CHECK_THAT_IT_HOLDS(most == 3);
  CHECK_THAT_IT_HOLDS(job.counts().started == 3 && job.counts().abandoned == 0);
}

void report_may_wait_while_others_are_under_way() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 16);
  wait_for_the_others();  // so that the others have started one, and cannot have completed it
  CHECK_THAT_IT_HOLDS(job.start_report());
  tell_rank_0();
  feed(job, job.rank());
  const auto steps = job.report();
  CHECK_THAT_IT_HOLDS(steps && same(*steps, expected_steps(16)));
  while (job.counts().completed < 2) (void)job.poll_report();
  CHECK_THAT_IT_HOLDS(job.counts().started == 2 && job.counts().failed == 0);
}

/// Two jobs at once, one of all ranks and one of every second: neither sees the other's steps.
/// A rank that never polls holds the last report and what is under way, not every report.
void reports_that_nobody_asks_for_are_not_kept() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 4);
  for (int report = 0; report < 50; ++report) {
    CHECK_THAT_IT_HOLDS(job.start_report());
    PMPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK_THAT_IT_HOLDS(job.counts().completed > 0);
  while (job.counts().completed < 50) (void)job.poll_report();
}

void older_reports_are_overtaken_by_one_that_was_waited_for() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 16);
  CHECK_THAT_IT_HOLDS(job.start_report());
  feed(job, job.rank());
  CHECK_THAT_IT_HOLDS(same(*job.report(), expected_steps(16)));
  while (job.counts().completed < 2) CHECK_THAT_IT_HOLDS(!job.poll_report());
  CHECK_THAT_IT_HOLDS(!job.poll_report());
}

void communicators_that_are_none_give_a_job_without_ranks() {
  steptimer::MpiJob none(MPI_COMM_NULL, 16);
  CHECK_THAT_IT_HOLDS(none.ranks() == 0 && none.status().error_code == MPI_ERR_COMM);
  CHECK_THAT_IT_HOLDS(!none.report() && !none.start_report() && !none.poll_report());
  if (ranks < 2) return;
  MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL;
  PMPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  PMPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &between);
  {
    steptimer::MpiJob job(between, 16);
    CHECK_THAT_IT_HOLDS(job.ranks() == 0 && job.status().error_code == MPI_ERR_COMM);
  }
  PMPI_Comm_free(&between);
  PMPI_Comm_free(&half);
}

void jobs_at_once_are_apart() {
  MPI_Comm half = MPI_COMM_NULL;
  PMPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  {
    steptimer::MpiJob of_all(MPI_COMM_WORLD, 16), of_half(half, 4);
    CHECK_THAT_IT_HOLDS(of_half.rank() == static_cast<std::uint32_t>(rank / 2));
    CHECK_THAT_IT_HOLDS(of_half.ranks() == static_cast<std::uint32_t>((ranks + 1 - rank % 2) / 2));
    PMPI_Comm_free(&half);  // the job has its own
    feed(of_all, of_all.rank());
    steptimer::StepRecord record;
    record.wall_gap = record.data_time = std::chrono::milliseconds(1 + rank % 2);
    of_half(record);
    CHECK_THAT_IT_HOLDS(of_half.start_report() && of_all.start_report());
    CHECK_THAT_IT_HOLDS(same(*poll_until_it_comes(of_all), expected_steps(16)));
    const steptimer::JobSummary summary = poll_until_it_comes(of_half)->summary();
    CHECK_THAT_IT_HOLDS(summary.steps == 1 && summary.stall_total == *record.data_time);
  }
}

void late_report_is_abandoned_and_later_ones_are_not() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 16);
  const auto wait_until_abandoned = [&] {
    while (job.counts().abandoned == 0) {
      CHECK_THAT_IT_HOLDS(!job.poll_report());
      std::this_thread::sleep_for(1ms);
    }
  };
  wait_for_the_others();
  CHECK_THAT_IT_HOLDS(job.start_report(rank == 0 ? 1h : 10ms));
  if (rank != 0) wait_until_abandoned();
  tell_rank_0();
  if (rank == 0) poll_until_it_comes(job);

  feed(job, job.rank());
  CHECK_THAT_IT_HOLDS(job.start_report());
  CHECK_THAT_IT_HOLDS(same(*poll_until_it_comes(job), expected_steps(16)));
  CHECK_THAT_IT_HOLDS(job.counts().started == 2);
  CHECK_THAT_IT_HOLDS(job.counts().completed == (rank == 0 ? 2 : 1));
  CHECK_THAT_IT_HOLDS(job.counts().abandoned == (rank == 0 ? 0 : 1));
}

/// Rank 0 comes when the others' jobs are gone; none of them waits for it, and MPI goes on.
void job_may_end_before_its_report() {
  auto job = std::make_unique<steptimer::MpiJob>(MPI_COMM_WORLD, 16);
  wait_for_the_others();
  CHECK_THAT_IT_HOLDS(job->start_report());
  if (rank != 0) job.reset();
  tell_rank_0();
  if (rank == 0) poll_until_it_comes(*job);
  PMPI_Barrier(MPI_COMM_WORLD);
}

void job_may_end_after_mpi() {
  auto job = std::make_unique<steptimer::MpiJob>(MPI_COMM_WORLD, 16);
  feed(*job, job->rank());
  CHECK_THAT_IT_HOLDS(job->report().has_value());
  PMPI_Finalize();
  CHECK_THAT_IT_HOLDS(!job->report() && !job->start_report() && !job->poll_report());
  job.reset();
}

void rank_without_steps_leaves_the_job_without_a_number() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 16);
  if (rank != 0) feed(job, job.rank());
  const steptimer::JobSummary summary = job.report()->summary();
  CHECK_THAT_IT_HOLDS(summary.steps == 0 && !summary.data_wait_percent());
  CHECK_THAT_IT_HOLDS(ranks == 1 || summary.left_out > 0);
  CHECK_THAT_IT_HOLDS(summary.most_ranks < static_cast<std::uint32_t>(ranks));
}

void largest_window_is_that_of_all() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 4 + static_cast<std::size_t>(rank));
  feed(job, job.rank());
  CHECK_THAT_IT_HOLDS(same(*job.report(), expected_steps(4 + static_cast<std::size_t>(ranks - 1))));
}

void a_timer_feeds_it() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 16);
  steptimer::StepTimerOptions options;
  options.on_record = std::ref(job);
  steptimer::ManualBackend backend;
  steptimer::StepTimer<steptimer::ManualBackend> timer(backend, options);
  for (int step = 0; step < 10; ++step) {
    timer.on_batch_start();
    backend.advance(rank == ranks - 1 ? 10ms : 15ms);
    timer.on_batch_end();
    backend.advance(rank == ranks - 1 ? 5ms : 0ms);
  }
  timer.finish();
  const steptimer::JobSummary summary = job.report()->summary();
  CHECK_THAT_IT_HOLDS(summary.steps == 9);
  CHECK_THAT_IT_HOLDS(summary.stall_total == 45ms && summary.cycle_total == 135ms);
  CHECK_THAT_IT_HOLDS(summary.most_blamed.rank == static_cast<std::uint32_t>(ranks - 1));
  CHECK_THAT_IT_HOLDS(summary.most_blamed.steps == 9);
}

void a_report_costs_the_same_for_any_number_of_ranks() {
  steptimer::MpiJob job(MPI_COMM_WORLD, 100);
  feed(job, job.rank());
  seen = {};
  CHECK_THAT_IT_HOLDS(job.report().has_value());
  CHECK_THAT_IT_HOLDS(seen.reductions == 1 && seen.bytes == 100 * 56);
}

void summaries_and_distributions_are_merged() {
  steptimer::StepSummary own, all;
  steptimer::StepDistribution own_times, all_times;
  feed(
      [&](const steptimer::StepRecord& r) {
        own = merge(own, summary_of(r));
        own_times.add(r);
      },
      static_cast<std::uint32_t>(rank));
  for (int other = 0; other < ranks; ++other)
    feed(
        [&](const steptimer::StepRecord& r) {
          all = merge(all, summary_of(r));
          all_times.add(r);
        },
        static_cast<std::uint32_t>(other));
  const auto summary = steptimer::merge_over_ranks(own, MPI_COMM_WORLD);
  CHECK_THAT_IT_HOLDS(summary && summary->steps == all.steps && summary->gaps == all.gaps);
  CHECK_THAT_IT_HOLDS(summary->batch_total == all.batch_total && summary->data_total == all.data_total);
  CHECK_THAT_IT_HOLDS(summary->slowest_step == all.slowest_step && summary->batch_max == all.batch_max);
  const auto times = steptimer::merge_over_ranks(own_times, MPI_COMM_WORLD);
  CHECK_THAT_IT_HOLDS(times && std::memcmp(&*times, &all_times, sizeof all_times) == 0);
}

void errors_of_mpi_are_counted_and_kept_from_its_handler() {
  MPI_Comm fatal = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &fatal);  // whose handler ends the program
  {
    steptimer::MpiJob job(fatal, 16);
    seen.refuse_reduction = true;
    CHECK_THAT_IT_HOLDS(!job.report() && !job.start_report());
    seen.refuse_reduction = false;
    CHECK_THAT_IT_HOLDS(job.status().error_code == MPI_ERR_OTHER);
    CHECK_THAT_IT_HOLDS(std::strcmp(job.status().call, "MPI_Iallreduce") == 0);
    CHECK_THAT_IT_HOLDS(job.counts().started == 0);

    seen.fail_wait = true;
    CHECK_THAT_IT_HOLDS(!job.report());
    seen.fail_wait = false;
    seen.fail_test = true;
    CHECK_THAT_IT_HOLDS(job.start_report());
    while (job.counts().failed < 2) CHECK_THAT_IT_HOLDS(!job.poll_report());
    seen.fail_test = false;
    CHECK_THAT_IT_HOLDS(job.counts().started == 2 && job.counts().completed == 0);
    CHECK_THAT_IT_HOLDS(std::strcmp(job.status().call, "MPI_Iallreduce") == 0);  // the first

    feed(job, job.rank());
    CHECK_THAT_IT_HOLDS(same(*job.report(), expected_steps(16)));  // and the job goes on
  }
  PMPI_Comm_free(&fatal);
}

void code_in_the_readme_runs() {
  int printed = 0;
  const auto print = [&](const auto&) { ++printed; };
  steptimer::StepTimerOptions options;
#include "readme/block_5.inc"
  while (printed == 0 && job.counts().completed == 0) (void)job.poll_report();
  CHECK_THAT_IT_HOLDS(job.counts().started == 1 && job.counts().completed == 1);
  feed(options.on_record, job.rank());
  CHECK_THAT_IT_HOLDS(same(*job.report(), expected_steps(1000)));
}

void a_job_without_mpi_does_nothing() {  // before MPI_Init, and after MPI_Finalize
  steptimer::MpiJob job(MPI_COMM_WORLD, 16);
  CHECK_THAT_IT_HOLDS(job.ranks() == 0);
  CHECK_THAT_IT_HOLDS(std::strcmp(job.status().call, "MPI_Initialized") == 0);
  CHECK_THAT_IT_HOLDS(!job.report() && !job.start_report() && !job.poll_report());
  job(steptimer::StepRecord{});
}

struct Row {
  const char* name;
  void (*run)();
};

constexpr Row rows[] = {
    {"report_is_the_same_on_every_rank", report_is_the_same_on_every_rank},
    {"started_report_is_the_same", started_report_is_the_same},
    {"started_report_waits_for_nobody", started_report_waits_for_nobody},
    {"latest_of_several_is_handed_out", latest_of_several_is_handed_out},
    {"report_may_wait_while_others_are_under_way", report_may_wait_while_others_are_under_way},
    {"jobs_at_once_are_apart", jobs_at_once_are_apart},
    {"late_report_is_abandoned_and_later_ones_are_not", late_report_is_abandoned_and_later_ones_are_not},
    {"job_may_end_before_its_report", job_may_end_before_its_report},
    {"job_may_end_after_mpi", job_may_end_after_mpi},
    {"rank_without_steps_leaves_the_job_without_a_number", rank_without_steps_leaves_the_job_without_a_number},
    {"largest_window_is_that_of_all", largest_window_is_that_of_all},
    {"a_timer_feeds_it", a_timer_feeds_it},
    {"a_report_costs_the_same_for_any_number_of_ranks", a_report_costs_the_same_for_any_number_of_ranks},
    {"summaries_and_distributions_are_merged", summaries_and_distributions_are_merged},
    {"errors_of_mpi_are_counted_and_kept_from_its_handler", errors_of_mpi_are_counted_and_kept_from_its_handler},
    {"reports_that_nobody_asks_for_are_not_kept", reports_that_nobody_asks_for_are_not_kept},
    {"older_reports_are_overtaken_by_one_that_was_waited_for", older_reports_are_overtaken_by_one_that_was_waited_for},
    {"communicators_that_are_none_give_a_job_without_ranks", communicators_that_are_none_give_a_job_without_ranks},
    {"code_in_the_readme_runs", code_in_the_readme_runs},
    {"a_job_without_mpi_does_nothing", a_job_without_mpi_does_nothing},
};

int run(const Row& row) {
  const bool without_mpi = row.run == a_job_without_mpi_does_nothing;
  if (without_mpi) row.run();
  PMPI_Init(nullptr, nullptr);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (!without_mpi) row.run();
  int is_finalized = 0;
  PMPI_Finalized(&is_finalized);
  if (is_finalized == 0) PMPI_Finalize();
  if (without_mpi) row.run();
  return isolated_rows::passed;
}

}  // namespace

int main(int argc, char** argv) { return isolated_rows::main_of("mpi_job_isolated", rows, argc, argv, run); }
