/// StepTimer: how two hooks around a step become a record. This header is the explanation of the library.
///
/// A device runs behind its host: when on_batch_end() is called, the step's last work has been queued, not done. So
/// each hook only drops a mark on the backend's timeline, in the order of the program:
///
///     host       start 0 . end 0 . start 1 . end 1 . ...           calls, early
///     timeline   |== batch_time 0 ==|-- data_time 0 --|== batch_time 1 ==| ...      marks, reached later
///                |<------------- wall_gap 0 --------->|
///
/// and the timer asks, without waiting, how far the timeline has got. Step n is measured once the start mark of step
/// n + 1 is reached; then batch_time and wall_gap are read off the *same* timeline and
///
///     data_time = max(0, wall_gap - batch_time).
///
/// Source: ours. The usual repair of host timing, host start -> next host start minus device time, mixes two clocks:
///         where the host runs ahead and synchronises every tenth step, nine gaps are far too short and one is far
///         too long, and clamped at zero they do not cancel.
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "backend.hpp"
#include "cpu_backend.hpp"
#include "detail/call_guarded.hpp"
#include "detail/pending_steps.hpp"
#include "detail/step_statistics.hpp"
#include "detail/warnings.hpp"
#include "null_backend.hpp"
#include "step_counts.hpp"
#include "step_record.hpp"
#include "step_summary.hpp"
#include "step_timer_options.hpp"

/// All that the library gives. What is in a namespace named detail is no API.
namespace steptimer {

/// Times the steps of one loop on one timeline.
///
/// Blocking: only finish() waits. Every other call is bounded work; the Backend says which device calls it makes.
/// Threads:  one thread at a time; a timer may be handed from thread to thread. Separate timers share nothing.
/// Errors:   nothing throws except construction, where memory is out. What went wrong is in counts() and status().
/// Moving:   a moved-from timer is disabled: its hooks do nothing. Do not move a timer while a Scope of it lives.
/// Owns:     its Backend, and through it the marks; the stream behind a CudaBackend is the caller's.
template <class Backend = CpuBackend>
class StepTimer {
  // A type that is no Backend has been named by CheckBackend; standing in for it keeps further errors away.
  static_assert(detail::CheckBackend<Backend>::done);
  using Timeline = std::conditional_t<is_backend_v<Backend>, Backend, NullBackend>;
  using nanoseconds = std::chrono::nanoseconds;

 public:
  /// on_batch_start() now and on_batch_end(items) at the end of the C++ scope. Left by an exception, it drops the
  /// step.
  class [[nodiscard]] Scope {
   public:
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      if (std::uncaught_exceptions() > exceptions_at_start_)
        timer_.drop_open_step();
      else
        timer_.on_batch_end(items_);
    }

   private:
    friend StepTimer;
    Scope(StepTimer& timer, std::uint64_t items) noexcept
        : timer_(timer), items_(items), exceptions_at_start_(std::uncaught_exceptions()) {
      timer_.on_batch_start();
    }

    StepTimer& timer_;
    std::uint64_t items_;
    int exceptions_at_start_;
  };

  /// on_fetch_start() now and on_fetch_end() at the end of the C++ scope.
  class [[nodiscard]] FetchScope {
   public:
    FetchScope(const FetchScope&) = delete;
    FetchScope& operator=(const FetchScope&) = delete;
    ~FetchScope() { timer_.on_fetch_end(); }

   private:
    friend StepTimer;
    explicit FetchScope(StepTimer& timer) noexcept : timer_(timer) { timer_.on_fetch_start(); }

    StepTimer& timer_;
  };

  /// A timer that has not touched its backend yet: the first hook does.
  explicit StepTimer(Timeline backend = Timeline{}, StepTimerOptions options = {})
      : steps_(std::move(backend)), options_(std::move(options)), warnings_(std::move(options_.on_warning)) {
    if (!options_.enabled || !Timeline::measures)
      state_ = TimerState::disabled;
    else
      statistics_.reserve(options_.window);
  }

  /// Goes on where the other was, an open step and its statistics included; the other is disabled.
  StepTimer(StepTimer&& other) noexcept
      : steps_(std::move(other.steps_)),
        options_(std::move(other.options_)),
        warnings_(std::move(other.warnings_)),
        statistics_(std::exchange(other.statistics_, {})),
        first_start_(other.first_start_),
        fetch_start_(std::exchange(other.fetch_start_, std::nullopt)),
        open_(std::exchange(other.open_, OpenStep::none)),
        state_(std::exchange(other.state_, TimerState::disabled)) {}

  /// The same; what this one had measured is gone, and what it had pending is given back without waiting.
  StepTimer& operator=(StepTimer&& other) noexcept {
    if (this == &other) return *this;
    steps_ = std::move(other.steps_);
    options_ = std::move(other.options_);
    warnings_ = std::move(other.warnings_);
    statistics_ = std::exchange(other.statistics_, {});
    first_start_ = other.first_start_;
    fetch_start_ = std::exchange(other.fetch_start_, std::nullopt);
    open_ = std::exchange(other.open_, OpenStep::none);
    state_ = std::exchange(other.state_, TimerState::disabled);
    return *this;
  }

  /// Gives back what is pending without waiting for it and without calling on_record: call finish() for the last
  /// steps.
  ~StepTimer() = default;

  /// Opens a step. Call it when the batch is in hand, before the step's first launch.
  ///
  /// Takes the host time and drops the start mark; measures nothing, so that no work of the timer's is booked as data
  /// wait or delays the first launch. A step still open is dropped: its start stands, its end never came.
  ///
  /// Blocking: never waits; one Backend::record() call.
  void on_batch_start() noexcept {
    if constexpr (!Timeline::measures) return;
    if (state_ != TimerState::ok) return count_start_while_off();
    const HostTime now = host_now();
    const bool unbalanced = open_ != OpenStep::none;
    if (unbalanced) drop_open_step();
    if (fetch_start_) end_fetch(now);

    Fate fate = fate_of_next_step();
    MarkStatus marked = MarkStatus::ok;
    if (fate == Fate::pending || steps_.gap_is_open()) {
      marked = steps_.start(now, statistics_.counts.started);
      if (marked == MarkStatus::ok && fate != Fate::pending) steps_.take_out_last();
      if (marked != MarkStatus::ok && fate == Fate::pending) fate = Fate::failed;
    }
    file_start(fate, now);

    if (unbalanced) warnings_.tell(detail::Trouble::start_without_end);
    if (fate == Fate::stale) warnings_.tell(detail::Trouble::too_many_in_flight);
    if (marked != MarkStatus::ok) face_trouble(marked);
  }

  /// Closes the open step. Call it when the step's last launch has been queued.
  ///
  /// Takes the host time and drops the end mark first, then measures a few of the steps that the device has finished
  /// and calls on_record for them. `items` is what steps are worth to the caller: samples, tokens. Without an open
  /// step the call is ignored and counted.
  ///
  /// Blocking: never waits; one Backend::record() call, then at most eight measurements.
  void on_batch_end(std::uint64_t items = 0) noexcept {
    if constexpr (!Timeline::measures) return;
    if (state_ != TimerState::ok) return;
    if (open_ == OpenStep::none) {
      ++statistics_.counts.ignored_ends;
      return warnings_.tell(detail::Trouble::end_without_start);
    }
    const HostTime now = host_now();
    if (std::exchange(open_, OpenStep::none) == OpenStep::marked) {
      const MarkStatus marked = steps_.end(now, items, statistics_.counts.pending - 1);
      if (marked != MarkStatus::ok) {
        take_out_open_step(statistics_.counts.failed);
        face_trouble(marked);
      }
    }
    measure_after_end(now);
  }

  /// on_batch_start() now, on_batch_end(items) when the returned object goes out of scope.
  [[nodiscard]] Scope step(std::uint64_t items = 0) noexcept { return Scope(*this, items); }

  /// Says that a phase of the open step begins here: timer.mark("forward"), timer.mark("backward"). It ends at the next
  /// mark or at the step's end; what comes before the first mark is a phase without a name. The record then holds the
  /// time of each on the backend's timeline, and the summary their sums by name.
  ///
  /// `name` is kept as it is: a string that lives as long as the records do, such as a literal. Without an open step,
  /// or beyond max_phases, the call is ignored and counted; in a step that is not measured it does nothing.
  ///
  /// Blocking: never waits; one Backend::record() call, and one more duration read when the step is measured.
  void mark(const char* name) noexcept {
    if constexpr (!Timeline::measures) return;
    if (state_ != TimerState::ok || open_ == OpenStep::unmarked) return;
    if (open_ == OpenStep::none || name == nullptr || !steps_.can_mark()) {
      ++statistics_.counts.ignored_marks;
      return;
    }
    const MarkStatus marked = steps_.mark(host_now(), name);
    if (marked == MarkStatus::ok) return;
    ++statistics_.counts.ignored_marks;
    if (marked == MarkStatus::lost)
      face_trouble(marked);
    else
      warnings_.tell(detail::Trouble::phase_refused, steps_.backend().error());
  }

  /// Around the call that fetches the next batch, by the host's clock: the record then tells how much of it the
  /// timeline waited for (exposed_fetch) and, by the rest of data_time, how much it waited for other work of the
  /// host's.
  ///
  /// A fetch belongs to the gap of the step started last; before a first step or after pause() it is not counted. The
  /// next on_batch_start() ends a fetch that is still going on, and so does another on_fetch_start(). Blocking: never;
  /// no device call.
  void on_fetch_start() noexcept {
    if (state_ != TimerState::ok || !Timeline::measures) return;
    const HostTime now = host_now();
    if (fetch_start_) end_fetch(now);
    fetch_start_ = now;
  }
  /// Ends the fetch; without one going on it does nothing.
  void on_fetch_end() noexcept {
    if (fetch_start_) end_fetch(host_now());
  }
  /// on_fetch_start() now, on_fetch_end() when the returned object goes out of scope.
  [[nodiscard]] FetchScope fetch() noexcept { return FetchScope(*this); }

  /// Says that the time from now to the next on_batch_start() is not spent waiting for data: call it before
  /// validation, a checkpoint, the end of an epoch. The latest step, also one still open, then has no wall_gap and no
  /// data_time.
  ///
  /// Blocking: never; touches neither clock nor device.
  void pause() noexcept { steps_.give_up_gap(); }

  /// Measures every step that the device has finished, oldest first, and calls on_record for each.
  ///
  /// Returns:  the number of records made. The latest step's gap stays open: it is measured after the next start.
  /// Blocking: never waits; Backend::query() once a step, and once more for the first step that is not ready.
  std::size_t poll() noexcept { return steps_.anything_to_ask() ? measure(no_limit, host_now()).records : 0; }

  /// Ends the measurement: drops a step still open, closes the gap as pause() does, and measures until nothing is
  /// pending or the time is up. The timer can be used on.
  ///
  /// Returns:  true when nothing is pending any more; false when the time was up, when the backend puts measuring off
  ///           (CUDA: while an error of the caller's is pending), or when on_record has started another step.
  /// Blocking: the one call that may wait; it sleeps and asks again, and calls nothing that blocks. With a timeout of
  ///           zero or less it does not wait.
  bool finish(nanoseconds timeout = (nanoseconds::max)()) noexcept {
    if (measuring_ || state_ != TimerState::ok) return statistics_.counts.pending == 0;
    const std::uint64_t started = statistics_.counts.started;
    drop_open_step();
    pause();
    const HostTime begin = host_now();
    for (HostTime now = begin;; now = host_now()) {
      const bool put_off = measure(no_limit, now).put_off;
      if (statistics_.counts.pending == 0) return true;
      const nanoseconds waited = now - begin;
      const bool another_started = statistics_.counts.started != started || !steps_.anything_to_ask();
      if (put_off || another_started || waited >= timeout) return false;
      steps_.backend().host_wait(timeout - waited);
    }
  }

  /// Gives back all device resources. Call it before cudaDeviceReset(); the timer can be used again after, also one
  /// that had turned itself off.
  ///
  /// What the device has finished is measured first, as by poll(); steps still pending are stale, an open one dropped.
  /// Statistics stay. Blocking: never waits.
  void release() noexcept {
    if (state_ == TimerState::disabled) return;
    drop_open_step();
    pause();
    (void)poll();
    drop_open_step();  // one that on_record has started meanwhile
    statistics_.counts.stale += std::exchange(statistics_.counts.pending, 0);
    steps_.discard_all();
    steps_.backend().release();
    state_ = TimerState::ok;
    ++releases_;
  }

  /// Forgets statistics, counts and pending steps, as if newly made: ordinals, host_start and warm-up begin again.
  /// Warnings already given stay given, a timer that turned itself off stays off, and device resources are kept (give
  /// them back with release()). Blocking: never waits.
  void reset() noexcept {
    steps_.discard_all();
    statistics_.clear();
    first_start_.reset();
    open_ = OpenStep::none;
  }

  /// The latest measured step, warm-up or not.
  std::optional<StepRecord> last() const { return statistics_.last(); }
  /// data_wait_percent() of last().
  std::optional<double> data_wait_percent() const {
    const std::optional<StepRecord> record = last();
    return record ? record->data_wait_percent() : std::nullopt;
  }
  /// The last StepTimerOptions::window measured steps, warm-up left out. Takes time in proportion to the window.
  StepSummary window() const { return statistics_.window(options_.window); }
  /// All measured steps since construction or reset(), warm-up left out.
  StepSummary total() const { return statistics_.total; }
  /// Where every started step ended up.
  StepCounts counts() const { return statistics_.counts; }
  /// Whether the timer measures, and the error that turned it off, else the first one it met.
  TimerStatus status() const {
    const BackendError error = steps_.backend().error();
    if (error.code == 0) return {state_, 0, "", ""};
    return {state_, error.code, error.call, error.message};
  }

 private:
  enum class OpenStep { none, marked, unmarked };           // unmarked: it yields no record, its end is still to come
  enum class Fate { pending, not_sampled, stale, failed };  // of a step, decided at its start

  struct Measured {
    std::size_t records = 0;
    bool not_ready = false;  // the device has not got to the next one
    bool put_off = false;    // the backend would not be asked
  };

  static constexpr std::size_t most_records_per_hook = 8;  // bounds a hook's work, and still catches up after a stall
  static constexpr unsigned hooks_after_vain_look = 7;
  static constexpr std::size_t no_limit = static_cast<std::size_t>(-1);

  HostTime host_now() const noexcept { return steps_.backend().host_now(); }

  void end_fetch(HostTime now) noexcept { steps_.add_fetch(*std::exchange(fetch_start_, std::nullopt), now); }

  void count_start_while_off() noexcept {
    if (state_ != TimerState::failed) return;
    ++statistics_.counts.started;
    ++statistics_.counts.failed;
  }

  Fate fate_of_next_step() const noexcept {
    const StepCounts& counts = statistics_.counts;
    if (options_.sample_every > 1 && counts.started % options_.sample_every != 0) return Fate::not_sampled;
    return counts.pending < options_.max_in_flight ? Fate::pending : Fate::stale;
  }

  void file_start(Fate fate, HostTime now) noexcept {
    StepCounts& counts = statistics_.counts;
    ++counts.started;
    if (!first_start_) first_start_ = now;
    open_ = OpenStep::unmarked;
    switch (fate) {
      case Fate::not_sampled: ++counts.not_sampled; return;
      case Fate::stale: ++counts.stale; return;
      case Fate::failed: ++counts.failed; return;
      case Fate::pending: break;
    }
    ++counts.pending;
    open_ = OpenStep::marked;
  }

  void drop_open_step() noexcept {
    if (std::exchange(open_, OpenStep::none) == OpenStep::marked) take_out_open_step(statistics_.counts.dropped);
  }

  void take_out_open_step(std::uint64_t& count) noexcept {
    --statistics_.counts.pending;
    ++count;
    steps_.take_out_last();
  }

  /// What the device has finished becomes records. The backend's guards are lifted before any of the caller's code
  /// runs, and nothing is kept across that code, since it may call back.
  Measured measure(std::size_t limit, HostTime now) noexcept {
    if (measuring_ || !steps_.anything_to_ask()) return {};
    measuring_ = true;
    const unsigned releases = releases_;
    const auto reading = steps_.read(limit, now);
    statistics_.counts.pending -= reading.refused;
    statistics_.counts.failed += reading.refused;
    const std::size_t records = file_measured();
    measuring_ = false;
    if (reading.refused > 0) face_trouble(MarkStatus::refused);
    if (reading.status == MarkStatus::lost && releases == releases_) face_trouble(MarkStatus::lost);
    return {records, reading.status == MarkStatus::not_ready && !reading.put_off, reading.put_off};
  }

  /// measure() for the end hook. One step a hook keeps up with a device; where it is just behind, looking for a
  /// second is to ask in vain. So after a look that was in vain the next hooks leave it.
  void measure_after_end(HostTime now) noexcept {
    const bool looks_further = looks_to_skip_ == 0;
    if (!looks_further) --looks_to_skip_;
    const Measured done = measure(looks_further ? most_records_per_hook : 1, now);
    if (looks_further && done.records > 0 && done.not_ready) looks_to_skip_ = hooks_after_vain_look;
  }

  std::size_t file_measured() noexcept {
    std::size_t records = 0;
    for (; steps_.has_measured(); ++records) {
      StepCounts& counts = statistics_.counts;
      StepRecord& record = statistics_.next_record(options_.window);
      --counts.pending;
      ++counts.measured;
      counts.clamped += steps_.take_measured(record, *first_start_) ? 1u : 0u;
      record.warmup = record.step < options_.warmup_steps;
      statistics_.add(record);
      if (!options_.on_record) continue;
      const StepRecord copy = record;
      if (!detail::call_guarded([&] { options_.on_record(copy); })) {
        options_.on_record = nullptr;
        warnings_.tell(detail::Trouble::on_record_threw);
      }
    }
    return records;
  }

  void face_trouble(MarkStatus trouble) noexcept {
    if (trouble == MarkStatus::lost) {
      state_ = TimerState::failed;
      open_ = OpenStep::none;
      statistics_.counts.failed += std::exchange(statistics_.counts.pending, 0);
      steps_.discard_all();
      warnings_.tell(detail::Trouble::timeline_lost, steps_.backend().error());
    } else {
      warnings_.tell(detail::Trouble::mark_refused, steps_.backend().error());
    }
  }

  detail::PendingSteps<Timeline> steps_;
  StepTimerOptions options_;
  detail::Warnings warnings_;
  detail::StepStatistics statistics_;
  std::optional<HostTime> first_start_;
  std::optional<HostTime> fetch_start_;  // of the fetch going on
  OpenStep open_ = OpenStep::none;
  TimerState state_ = TimerState::ok;
  unsigned looks_to_skip_ = 0;
  unsigned releases_ = 0;  // what was lost before a release is no trouble after it
  bool measuring_ = false;
};

/// `StepTimer timer{backend};`
template <class Backend>
StepTimer(Backend) -> StepTimer<Backend>;
/// `StepTimer timer{backend, options};`
template <class Backend>
StepTimer(Backend, StepTimerOptions) -> StepTimer<Backend>;

/// A timer of steps that run on the host.
using CpuTimer = StepTimer<CpuBackend>;

}  // namespace steptimer

#include "detail/macros_restore.hpp"
