/// The steps between their hooks and their record: marks dropped, not yet read. Not API.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "../backend.hpp"
#include "../step_record.hpp"
#include "durations.hpp"
#include "ring.hpp"

namespace steptimer {
namespace detail {

/// A queue of steps in the order of their start marks, over the backend that the marks belong to.
///
/// One start mark serves two steps: it begins its own and ends the gap of the step before it, which is always the
/// entry before it. So a step that yields no record may still have an entry, for the sake of its start mark alone.
template <class Backend>
class PendingSteps {
  using Mark = typename Backend::Mark;
  using nanoseconds = std::chrono::nanoseconds;

 public:
  explicit PendingSteps(Backend&& backend) noexcept : backend_(std::move(backend)) {}
  PendingSteps(PendingSteps&&) noexcept = default;
  PendingSteps& operator=(PendingSteps&& other) noexcept {
    if (this == &other) return *this;
    discard_all();
    backend_ = std::move(other.backend_);
    steps_ = std::move(other.steps_);
    return *this;
  }
  ~PendingSteps() { discard_all(); }

  Backend& backend() noexcept { return backend_; }
  const Backend& backend() const noexcept { return backend_; }

  // ---- marks ----

  bool gap_is_open() const noexcept { return !steps_.empty() && steps_.back().gap == Gap::open; }

  /// Says that the gap now open, if any, is none: its step will be measured without one.
  void give_up_gap() noexcept {
    if (gap_is_open()) steps_.back().gap = Gap::absent;
  }

  /// Appends a step with its start mark, which ends the gap before it. Without the mark that gap has no end.
  MarkStatus start(HostTime now, std::uint64_t ordinal) noexcept {
    const bool ends_a_gap = gap_is_open();
    Step* const step = steps_.push_back();
    if (step == nullptr) {  // memory is out
      give_up_gap();
      return MarkStatus::refused;
    }
    step->begin(now, ordinal);
    const MarkStatus marked = backend_.record(step->start, now);
    if (marked != MarkStatus::ok) {
      steps_.pop_back();
      give_up_gap();
    } else if (ends_a_gap) {
      steps_[steps_.size() - 2].gap = Gap::closed;
    }
    return marked;
  }

  /// Drops the end mark of the last step.
  MarkStatus end(HostTime now, std::uint64_t items, std::uint64_t steps_ahead) noexcept {
    Step& step = steps_.back();
    const MarkStatus marked = backend_.record(step.end, now);
    if (marked != MarkStatus::ok) return marked;
    step.host_end = now;
    step.items = items;
    step.steps_ahead = static_cast<std::uint32_t>(steps_ahead);
    step.phase = Phase::ended;
    return MarkStatus::ok;
  }

  bool can_mark() const noexcept { return steps_.back().marks < max_phases - 1; }

  /// Drops a mark within the last step, where a phase of that name begins.
  MarkStatus mark(HostTime now, const char* name) noexcept {
    Step& step = steps_.back();
    const MarkStatus marked = backend_.record(step.inner[step.marks].mark, now);
    if (marked == MarkStatus::ok) step.inner[step.marks++].name = name;
    return marked;
  }

  /// Host time that a fetch took, up to now, within the gap that is open.
  void add_fetch(HostTime from, HostTime now) noexcept {
    if (!gap_is_open()) return;
    Step& step = steps_.back();
    step.fetch_time += now - from;
    step.fetch_end = now;
    step.fetched = true;
  }

  /// The step started last will yield no record. Its start mark stays while the gap before it needs one.
  void take_out_last() noexcept {
    becomes_only_a_start(steps_.back());
    const bool ends_a_gap = steps_.size() > 1 && steps_[steps_.size() - 2].gap == Gap::closed;
    if (ends_a_gap) return;
    give_back_start(steps_.back());
    steps_.pop_back();
  }

  // ---- records ----

  bool anything_to_ask() const noexcept { return !steps_.empty() && steps_[0].can_be_asked(); }

  struct Reading {
    MarkStatus status = MarkStatus::ok;  ///< not_ready: ask again later; lost: never again
    bool put_off = false;                ///< the backend would not be asked at all
    std::size_t refused = 0;             ///< steps that turned out to have no times
  };

  /// Reads up to `limit` steps that the timeline has finished, oldest first.
  Reading read(std::size_t limit, HostTime now) noexcept {
    Reading reading;
    reading.status = backend_.begin_reading(now);
    if (reading.status != MarkStatus::ok) {
      reading.put_off = true;
      return reading;
    }
    for (std::size_t i = 0; i < steps_.size() && limit > 0; ++i) {
      Step& step = steps_[i];
      if (step.phase == Phase::only_start) continue;
      if (!step.can_be_asked()) break;
      const MarkStatus read = read_step(step, step.gap == Gap::closed ? &steps_[i + 1] : nullptr);
      if (read == MarkStatus::not_ready || read == MarkStatus::lost) {
        reading.status = read;
        break;
      }
      if (read == MarkStatus::ok) {
        step.phase = Phase::measured;
      } else {
        ++reading.refused;
        backend_.discard(step.end);
        becomes_only_a_start(step);
      }
      --limit;
    }
    backend_.end_reading();
    return reading;
  }

  /// Whether the oldest step has been read, so that take_measured() may be called.
  bool has_measured() noexcept {
    while (!steps_.empty() && steps_.front().phase == Phase::only_start) {
      give_back_start(steps_.front());
      steps_.pop_front();
    }
    return !steps_.empty() && steps_.front().phase == Phase::measured;
  }

  /// Writes the oldest step's times into its record and takes the step off the queue. Returns whether clock noise had
  /// made a duration negative.
  bool take_measured(StepRecord& record, HostTime first_start) noexcept {
    Step& step = steps_.front();
    step.write_to(record, first_start);
    give_back_start(step);
    for (std::size_t i = 0; i < step.marks; ++i) backend_.recycle(step.inner[i].mark);
    backend_.recycle(step.end);
    steps_.pop_front();
    return step.clamped;
  }

  /// Gives every mark back, reached or not.
  void discard_all() noexcept {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      Step& step = steps_[i];
      give_back_start(step);
      discard_inner(step);
      if (step.phase == Phase::ended || step.phase == Phase::measured) backend_.discard(step.end);
    }
    steps_.clear();
  }

 private:
  enum class Phase { open, ended, measured, only_start };  // only_start: no record; there to end the gap before it
  enum class Gap { open, closed, absent };                 // closed: by the start mark of the next entry

  /// A mark between a step's start and its end, and then the time from the start to it.
  struct InnerMark {
    Mark mark{};
    const char* name = "";
    nanoseconds since_start{};
  };

  struct Step {
    std::uint64_t ordinal = 0;
    std::uint64_t items = 0;
    Mark start{};
    Mark end{};
    HostTime host_start{};
    HostTime host_end{};
    HostTime host_next_start{};  // this and wall_gap: where the gap is closed
    nanoseconds batch_time{};
    nanoseconds wall_gap{};
    nanoseconds fetch_time{};
    HostTime fetch_end{};
    std::uint32_t steps_ahead = 0;
    std::uint32_t marks = 0;
    Phase phase = Phase::open;
    Gap gap = Gap::open;
    bool start_reached = false;
    bool clamped = false;
    bool fetched = false;
    std::array<InnerMark, max_phases - 1> inner;

    /// Makes a slot that may have held another step a new one; what is not set here is set before it is read.
    void begin(HostTime now, std::uint64_t its_ordinal) noexcept {
      ordinal = its_ordinal;
      host_start = now;
      phase = Phase::open;
      gap = Gap::open;
      start_reached = false;
      marks = 0;
      if (fetched) fetch_time = {};
      fetched = false;
    }
    void write_to(StepRecord& record, HostTime first_start) const noexcept {
      record.step = ordinal;
      record.host_start = host_start - first_start;
      record.batch_time = batch_time;
      record.host_batch_time = host_end - host_start;
      record.items = items;
      if (gap == Gap::closed) {
        record.wall_gap = wall_gap;
        record.data_time = difference_or_zero(wall_gap, batch_time);
        record.host_wall_gap = host_next_start - host_start;
      } else {
        record.wall_gap.reset();
        record.data_time.reset();
        record.host_wall_gap.reset();
      }
      record.steps_ahead = steps_ahead;
      if (Backend::behind_host)
        record.device_drained = batch_time - record.host_batch_time <= latency_within(batch_time);
      write_fetch_to(record);
      record.phase_count = 0;
      if (marks > 0) write_phases_to(record);
    }
    void write_fetch_to(StepRecord& record) const noexcept {
      record.fetch_time.reset();
      record.exposed_fetch.reset();
      if (!fetched) return;
      record.fetch_time = fetch_time;
      if (!record.data_time) return;
      const nanoseconds after_fetch = host_next_start - fetch_end;
      record.exposed_fetch = difference_or_zero((std::min)(*record.data_time, after_fetch + fetch_time), after_fetch);
    }
    void write_phases_to(StepRecord& record) const noexcept {
      PhaseTime* part = record.phases.data();
      nanoseconds begin{0};
      for (std::size_t i = 0; i < marks; ++i) {
        part->time = inner[i].since_start - begin;
        begin = inner[i].since_start;
        *++part = {inner[i].name, nanoseconds{0}};
      }
      part->time = batch_time - begin;
      record.phase_count = marks + 1;
    }
    bool can_be_asked() const noexcept { return phase == Phase::ended && gap != Gap::open; }

    /// How much later than the host a device that is idle may say that it reached a mark.
    static nanoseconds latency_within(nanoseconds batch_time) noexcept {
      constexpr nanoseconds longest = std::chrono::microseconds{10};
      return (std::min)(longest, batch_time / 4);
    }
  };

  void becomes_only_a_start(Step& step) noexcept {
    discard_inner(step);
    step.phase = Phase::only_start;
    step.gap = Gap::absent;
  }
  void discard_inner(Step& step) noexcept {
    for (std::size_t i = 0; i < step.marks; ++i) backend_.discard(step.inner[i].mark);
    step.marks = 0;
  }

  /// Both durations off one timeline, and their difference. `next` holds the start mark that ends the step's gap;
  /// nullptr where the step has none. Clock noise below zero becomes zero and is counted.
  MarkStatus read_step(Step& step, Step* next) noexcept {
    MarkStatus read = backend_.query(next != nullptr ? next->start : step.end);
    if (read != MarkStatus::ok) return read;
    nanoseconds batch_time{};
    nanoseconds wall_gap{};
    read = backend_.elapsed(step.start, step.end, batch_time);
    if (read == MarkStatus::ok && next != nullptr) read = backend_.elapsed(step.start, next->start, wall_gap);
    if (read != MarkStatus::ok) return read;

    constexpr nanoseconds zero{0};
    nanoseconds before = zero;
    for (std::size_t i = 0; i < step.marks; ++i) {
      nanoseconds& since_start = step.inner[i].since_start;
      read = backend_.elapsed(step.start, step.inner[i].mark, since_start);
      if (read != MarkStatus::ok) return read;
      since_start = before = (std::min)((std::max)(since_start, before), (std::max)(batch_time, zero));
    }
    step.batch_time = (std::max)(batch_time, zero);
    step.clamped = batch_time < zero;
    step.start_reached = true;
    if (next == nullptr) return MarkStatus::ok;
    step.wall_gap = (std::max)(wall_gap, zero);
    step.host_next_start = next->host_start;
    step.clamped = step.clamped || wall_gap < step.batch_time;
    next->start_reached = true;
    return MarkStatus::ok;
  }

  void give_back_start(Step& step) noexcept {
    if (step.start_reached)
      backend_.recycle(step.start);
    else
      backend_.discard(step.start);
  }

  Backend backend_;
  Ring<Step> steps_;
};

}  // namespace detail
}  // namespace steptimer
