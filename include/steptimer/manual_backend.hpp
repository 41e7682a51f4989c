/// ManualBackend: a host clock and a device behind it, both moved by the caller. For tests: ours, and those of users.
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
#include <memory>

#include "backend.hpp"
#include "detail/durations.hpp"

namespace steptimer {

/// A device with one queue, in exact integer time.
///
///     ManualBackend device;                     // copies share one timeline: keep one, give one to the timer
///     StepTimer<ManualBackend> timer{device};
///     timer.on_batch_start();
///     device.launch(90ms);                      // queued: the host does not wait
///     device.advance(5ms);                      // the host's own work; the device runs meanwhile
///     timer.on_batch_end();                     // host at 5 ms; the end mark will be reached at 90 ms
///
/// A mark is reached when the host dropped it or when the work queued before it is done, whichever is later.
///
/// Threads:  one thread at a time for all copies of one ManualBackend.
class ManualBackend : public BackendDefaults {
 public:
  /// The time at which the timeline reaches the mark, known from the start.
  using Mark = HostTime;

  /// A timeline of its own, at time zero, with an idle device. Throws std::bad_alloc where memory is out.
  ManualBackend() : clock_(std::make_shared<Clock>()) {}
  /// A copy is another handle of the same timeline.
  ManualBackend(const ManualBackend&) noexcept = default;  // no moves: a copy is as cheap and leaves both usable
  /// Leaves this one's timeline for the other's.
  ManualBackend& operator=(const ManualBackend&) noexcept = default;

  /// Moves the host clock on; the device works off its queue meanwhile. Zero or less moves nothing: clocks do not go
  /// back.
  void advance(std::chrono::nanoseconds duration) noexcept {
    if (duration.count() > 0) clock_->now = later(clock_->now, duration);
  }
  /// Queues work of this length behind what is queued already. The host clock stands still.
  void launch(std::chrono::nanoseconds work) noexcept {
    if (work.count() > 0) clock_->device_done = later(queue_end(), work);
  }
  /// Lets the host wait for the device: moves the host clock to the end of the queued work.
  void synchronize() noexcept { clock_->now = queue_end(); }

  /// Where the host clock stands.
  HostTime host_now() const noexcept { return clock_->now; }
  /// What finish() waits with: goes on to the end of the queued work, or less far.
  void host_wait(std::chrono::nanoseconds most) noexcept {
    const std::chrono::nanoseconds work_left = queue_end() - clock_->now;
    advance(work_left.count() > 0 && work_left < most ? work_left : most);
  }

  /// Drops a mark behind the work queued so far.
  MarkStatus record(Mark& mark, HostTime) noexcept {
    mark = queue_end();
    return MarkStatus::ok;
  }
  /// Whether the host clock has come to where the device reaches the mark.
  MarkStatus query(const Mark& mark) noexcept { return mark <= clock_->now ? MarkStatus::ok : MarkStatus::not_ready; }
  /// Exact, also for marks not reached yet.
  MarkStatus elapsed(const Mark& from, const Mark& to, std::chrono::nanoseconds& result) noexcept {
    result = to - from;
    return MarkStatus::ok;
  }

 private:
  struct Clock {
    HostTime now{};
    HostTime device_done{};  // when the work queued so far is done
  };

  static HostTime later(HostTime time, std::chrono::nanoseconds duration) noexcept {
    return HostTime{detail::saturating_sum(time.time_since_epoch(), duration)};
  }
  HostTime queue_end() const noexcept { return clock_->device_done > clock_->now ? clock_->device_done : clock_->now; }

  std::shared_ptr<Clock> clock_;
};

static_assert(is_backend_v<ManualBackend>);

}  // namespace steptimer

#include "detail/macros_restore.hpp"
