/// MpiJob: what a data-parallel job waits for, over an MPI communicator. The only header that includes MPI.
///
///     steptimer::MpiJob job(MPI_COMM_WORLD, 100);  // collective; between MPI_Init and MPI_Finalize
///     options.on_record = std::ref(job);
///     ...
///     if (step % 100 == 99) job.start_report();    // collective, and does not wait
///     if (const auto steps = job.poll_report()) print(steps->summary());  // on each rank that asks
///
/// What the numbers mean is in job_summary.hpp; here they are only brought together.
#pragma once

#include "detail/macros_keep.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "detail/call_guarded.hpp"
#include "job_summary.hpp"
#include "step_distribution.hpp"
#include "step_record.hpp"
#include "step_summary.hpp"
#include "step_window.hpp"

namespace steptimer {

/// What became of a job's reports on this rank: started == completed + abandoned + failed + those under way.
struct MpiJobCounts {
  std::uint64_t started = 0;    ///< report() and start_report() that MPI took
  std::uint64_t completed = 0;  ///< handed out, or overtaken by a later one before they were
  std::uint64_t abandoned = 0;  ///< not completed within their time; the ranks behind may be gone
  std::uint64_t failed = 0;     ///< ended by an error of MPI
};

/// The first error of MPI that a job met; MPI_SUCCESS and "" if there was none.
struct MpiJobStatus {
  int error_code = MPI_SUCCESS;  ///< as MPI gave it; MPI_Error_string() explains it
  const char* call = "";         ///< the function that gave it; a static string
};

namespace detail {

/// An operation and a type of MPI for values that are sent as bytes and put together by merge(a, b).
template <class Value>
class MpiMerge {
  static_assert(std::is_trivially_copyable<Value>::value, "values are sent between processes as bytes");

 public:
  int create() noexcept {
    int error = MPI_Type_contiguous(static_cast<int>(sizeof(Value)), MPI_BYTE, &type_);
    if (error == MPI_SUCCESS) error = MPI_Type_commit(&type_);
    if (error == MPI_SUCCESS) error = MPI_Op_create(&merge_all, /*commute=*/1, &op_);
    return error;
  }
  /// Not by a destructor, as MPI may be finalized by then.
  void free() noexcept {
    if (op_ != MPI_OP_NULL) (void)MPI_Op_free(&op_);
    if (type_ != MPI_DATATYPE_NULL) (void)MPI_Type_free(&type_);
  }

  MPI_Datatype type() const noexcept { return type_; }
  MPI_Op op() const noexcept { return op_; }

 private:
  // NOLINTNEXTLINE(readability-non-const-parameter): it is MPI's own signature
  static void merge_all(void* in, void* in_and_out, int* length, MPI_Datatype*) {
    const auto* other = static_cast<const Value*>(in);
    auto* value = static_cast<Value*>(in_and_out);
    for (int i = 0; i < *length; ++i) value[i] = merge(value[i], other[i]);
  }

  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  MPI_Op op_ = MPI_OP_NULL;
};

inline bool mpi_is_there() noexcept {
  int initialized = 0, finalized = 0;
  (void)MPI_Initialized(&initialized);
  (void)MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

template <class Value>
std::optional<Value> merge_over_ranks(const Value& own, MPI_Comm comm) {
  MpiMerge<Value> merging;
  std::optional<Value> all;
  int error = merging.create();
  if (error == MPI_SUCCESS) error = MPI_Allreduce(&own, &all.emplace(), 1, merging.type(), merging.op(), comm);
  merging.free();
  if (error != MPI_SUCCESS) all.reset();
  return all;
}

}  // namespace detail

/// The summary of the steps of all ranks together, on every rank.
///
/// Collective: every rank of `comm` must call it. Blocking: MPI_Allreduce.
/// Errors:     those of MPI go to the communicator's error handler; where that returns, there is no value.
inline std::optional<StepSummary> merge_over_ranks(const StepSummary& own, MPI_Comm comm) {
  return detail::merge_over_ranks(own, comm);
}

/// The distribution of the steps of all ranks together, on every rank; 59,456 bytes are sent.
///
/// Collective, blocking and errors: as for summaries.
inline std::optional<StepDistribution> merge_over_ranks(const StepDistribution& own, MPI_Comm comm) {
  return detail::merge_over_ranks(own, comm);
}

/// Keeps the last steps of this rank, and brings those of all ranks together when asked.
///
/// Collective: construction, report() and start_report() must be called by every rank of the communicator, in the same
///           order, as any collective of MPI. What a rank's window holds by then is its own affair: ranks may have
///           different steps in it, or none.
/// Traffic:  one MPI_Iallreduce of 56 bytes a step of the window, whatever the number of ranks; steps are merged by
///           maxima, the place of the maximum, minima and sums. Memory does not grow with the number of ranks either.
/// Blocking: the call operator, start_report() and poll_report() never wait; construction and report() wait for the
///           other ranks. Open MPI goes on with a report only within calls of MPI: those of the training do.
/// Threads:  one at a time, and one that may call MPI.
/// Errors:   none thrown but std::bad_alloc, by construction and report(). Errors of MPI, of which the first is kept in
///           status(), end in a count and never in the communicator's error handler: the job works on a duplicate of
///           its own. Where MPI itself ends the program because a rank died, this does not keep it from it.
/// Moving:   neither moved nor copied: MPI writes into it.
/// Owns:     a duplicate of the communicator. The destructor gives it back by MPI_Comm_free, in which Open MPI does not
///           wait; where MPI is finalized by then, or still at work on a report, the duplicate is left to MPI, with what
///           MPI may still write into.
class MpiJob {
 public:
  /// The largest window, in steps.
  static constexpr std::uint64_t most_steps = 1u << 24;
  /// A report not completed within this is abandoned.
  static constexpr std::chrono::seconds default_timeout{60};

  /// Keeps the last `window` steps; where ranks name different numbers, the largest on all of them. The communicator is
  /// one of a group, such as MPI_COMM_WORLD; with MPI_COMM_NULL or one between two groups the job has no ranks.
  explicit MpiJob(MPI_Comm comm, std::size_t window = 100) : MpiJob(Connection(comm, window)) {}
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;
  ~MpiJob();

  /// Keeps a record; for on_record, by std::ref() or tee().
  void operator()(const StepRecord& record) noexcept { window_.add(record); }

  /// This process's rank in the communicator.
  std::uint32_t rank() const noexcept { return connection_.rank; }
  /// Ranks in the communicator; 0 where construction failed.
  std::uint32_t ranks() const noexcept { return connection_.ranks; }

  /// What all ranks together make of their windows as they are now. Waits until every rank has come here: MPI_Wait.
  ///
  /// Returns:  nothing where MPI gave an error. Throws std::bad_alloc where memory is out; the other ranks then wait, as
  ///           in any collective that one rank does not come to.
  std::optional<JobSteps> report();

  /// Begins the same without waiting for anyone: MPI_Iallreduce. Others may be under way.
  ///
  /// Returns:  false where MPI did not take it, or memory is out. The other ranks' report is then abandoned in time.
  bool start_report(std::chrono::nanoseconds timeout = default_timeout) noexcept;

  /// The latest report that is complete and was not handed out yet; MPI_Test for each that is under way.
  ///
  /// A report that is not complete within its time is abandoned: it is counted, and will not be handed out. MPI cannot
  /// take a collective back, so its memory stays until MPI is through with it.
  std::optional<JobSteps> poll_report() noexcept;

  /// What became of the reports so far.
  MpiJobCounts counts() const noexcept { return counts_; }
  /// The first error of MPI.
  MpiJobStatus status() const noexcept { return connection_.status; }

 private:
  using Clock = std::chrono::steady_clock;

  /// The job's own communicator.
  struct Connection {
    Connection(MPI_Comm of, std::size_t wanted_window) noexcept;
    bool is(int error, const char* call) noexcept;

    MPI_Comm comm = MPI_COMM_NULL;
    detail::MpiMerge<JobStep> merging;
    std::uint32_t rank = 0, ranks = 0;
    std::size_t window = 0;
    MpiJobStatus status;
  };

  /// A report under way; MPI reads and writes its steps.
  struct Report {
    JobSteps own, all;
    MPI_Request request;
    Clock::time_point started;
    std::chrono::nanoseconds timeout;
    bool abandoned, overtaken;
  };

  explicit MpiJob(const Connection& connection) : connection_(connection), window_(connection.window) {}
  bool start(std::chrono::nanoseconds timeout);
  void look_at_all() noexcept;
  void leave_to_mpi(std::list<Report>::iterator report) noexcept;

  Connection connection_;
  StepWindow window_;
  std::list<Report> under_way_;     // the oldest first
  std::optional<JobSteps> latest_;  // complete, and not handed out yet
  bool has_left_behind_ = false;
  MpiJobCounts counts_;
};

/// Keeps the first error.
inline bool MpiJob::Connection::is(int error, const char* call) noexcept {
  if (error != MPI_SUCCESS && status.error_code == MPI_SUCCESS) status = {error, call};
  return error == MPI_SUCCESS;
}

inline MpiJob::Connection::Connection(MPI_Comm of, std::size_t wanted_window) noexcept {
  if (!detail::mpi_is_there()) {
    status = {MPI_ERR_OTHER, "MPI_Initialized"};
    return;
  }
  int own_rank = 0, size = 0, is_between_groups = 0;
  if (of != MPI_COMM_NULL) (void)MPI_Comm_test_inter(of, &is_between_groups);
  if (of == MPI_COMM_NULL || is_between_groups != 0) {
    status = {MPI_ERR_COMM, "MPI_Comm_dup"};
    return;
  }
  auto steps = (std::min)(static_cast<std::uint64_t>(wanted_window), most_steps);
  if (is(MPI_Comm_dup(of, &comm), "MPI_Comm_dup") &&
      is(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler") &&
      is(MPI_Comm_rank(comm, &own_rank), "MPI_Comm_rank") && is(MPI_Comm_size(comm, &size), "MPI_Comm_size") &&
      is(MPI_Allreduce(MPI_IN_PLACE, &steps, 1, MPI_UINT64_T, MPI_MAX, comm), "MPI_Allreduce") &&
      is(merging.create(), "MPI_Op_create")) {
    rank = static_cast<std::uint32_t>(own_rank);
    ranks = static_cast<std::uint32_t>(size);
    window = static_cast<std::size_t>(steps);
  }
}

inline bool MpiJob::start(std::chrono::nanoseconds timeout) {
  if (connection_.ranks == 0 || !detail::mpi_is_there()) return false;
  look_at_all();  // so that what is complete is not kept on a rank that never polls
  const JobSteps none(connection_.ranks, connection_.window);
  Report& report = under_way_.emplace_back(Report{none, none, MPI_REQUEST_NULL, Clock::now(), timeout, false, false});
  report.own.add(connection_.rank, window_);
  const detail::MpiMerge<JobStep>& merging = connection_.merging;
  const bool is_taken =
      connection_.is(MPI_Iallreduce(report.own.data(), report.all.data(), static_cast<int>(report.own.size()),
                                    merging.type(), merging.op(), connection_.comm, &report.request),
                     "MPI_Iallreduce");
  if (is_taken)
    ++counts_.started;
  else
    leave_to_mpi(std::prev(under_way_.end()));
  return is_taken;
}

inline bool MpiJob::start_report(std::chrono::nanoseconds timeout) noexcept {
  bool is_taken = false;
  return detail::call_guarded([&] { is_taken = start(timeout); }) && is_taken;
}

inline std::optional<JobSteps> MpiJob::report() {
  std::optional<JobSteps> all;
  if (!start((std::chrono::nanoseconds::max)())) return all;
  const auto report = std::prev(under_way_.end());
  if (connection_.is(MPI_Wait(&report->request, MPI_STATUS_IGNORE), "MPI_Wait")) {
    ++counts_.completed;
    all = std::move(report->all);
    under_way_.erase(report);
    latest_.reset();
    for (Report& older : under_way_) older.overtaken = true;
  } else {
    ++counts_.failed;
    leave_to_mpi(report);
  }
  return all;
}

inline std::optional<JobSteps> MpiJob::poll_report() noexcept {
  if (detail::mpi_is_there()) look_at_all();
  std::optional<JobSteps> latest = std::move(latest_);
  latest_.reset();
  return latest;
}

/// What is complete is taken, what is late abandoned.
inline void MpiJob::look_at_all() noexcept {
  const Clock::time_point now = Clock::now();
  for (auto next = under_way_.begin(); next != under_way_.end();) {
    const auto report = next++;
    int is_complete = 0;
    if (!connection_.is(MPI_Test(&report->request, &is_complete, MPI_STATUS_IGNORE), "MPI_Test")) {
      counts_.failed += report->abandoned ? 0u : 1u;
      leave_to_mpi(report);
    } else if (is_complete != 0) {
      if (!report->abandoned) {
        ++counts_.completed;
        if (!report->overtaken) latest_ = std::move(report->all);
      }
      under_way_.erase(report);
    } else if (!report->abandoned && now - report->started > report->timeout) {
      ++counts_.abandoned;
      report->abandoned = true;
    }
  }
}

inline MpiJob::~MpiJob() {
  (void)poll_report();
  while (!under_way_.empty()) leave_to_mpi(under_way_.begin());
  // Open MPI 4.1 crashes in a collective under way whose communicator or operation was freed, though MPI allows it.
  if (has_left_behind_ || !detail::mpi_is_there()) return;
  connection_.merging.free();
  if (connection_.comm != MPI_COMM_NULL) (void)MPI_Comm_free(&connection_.comm);
}

/// MPI may still write into it, whatever becomes of the job: it is kept for ever, in a place that takes no memory.
inline void MpiJob::leave_to_mpi(std::list<Report>::iterator report) noexcept {
  struct Left {
    std::mutex mutex;  // jobs of several threads leave theirs here
    std::list<Report> reports;
  };
  alignas(Left) static unsigned char place[sizeof(Left)];
  static auto* const left = new (place) Left;
  const std::lock_guard<std::mutex> lock(left->mutex);
  left->reports.splice(left->reports.end(), under_way_, report);
  has_left_behind_ = true;
}

}  // namespace steptimer

#include "detail/macros_restore.hpp"
