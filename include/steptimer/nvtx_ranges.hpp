/// NvtxRanges: steps and data waits as NVTX ranges, so that Nsight Systems shows them. The only header that includes
/// NVTX, which comes with the CUDA Toolkit; programs that include it link the library of dlopen() where that is one
/// (-ldl).
///
///     steptimer::CudaTimer timer{stream};
///     steptimer::NvtxRanges ranges(timer);
///     for (...) {
///       batch = loader.next();
///       ranges.on_batch_start();          // instead of timer.on_batch_start(), and so on
///       train(batch);
///       ranges.on_batch_end(batch.size());
///     }
#pragma once

#include "detail/macros_keep.hpp"

#include <nvtx3/nvToolsExt.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>

namespace steptimer {
namespace detail {

/// The domain "steptimer"; null where no tool is attached. Made once and, as tools expect, kept.
inline nvtxDomainHandle_t nvtx_domain() noexcept {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("steptimer");
  return domain;
}

/// A range that is open or not. It starts and ends rather than pushes and pops: a timer may be handed from thread to
/// thread, and the caller's own ranges need not nest with it.
class NvtxRange {
 public:
  explicit NvtxRange(std::uint32_t color) noexcept : color_(color) {}
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
  ~NvtxRange() { end(); }

  void start(const char* message) noexcept {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = color_;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = message;
    id_ = nvtxDomainRangeStartEx(nvtx_domain(), &attributes);
    open_ = true;
  }
  bool is_open() const noexcept { return open_; }
  void end() noexcept {
    if (std::exchange(open_, false)) nvtxDomainRangeEnd(nvtx_domain(), id_);
  }

 private:
  std::uint32_t color_;
  nvtxRangeId_t id_ = 0;
  bool open_ = false;
};

}  // namespace detail

/// The hooks of a StepTimer, with a range "step n" from start to end and a range "data wait" from end to the next
/// start.
///
/// Ranges are of the host: on a GPU "step n" is the time in which the step was queued, which Nsight Systems also shows
/// projected onto the kernels queued in it, and "data wait" is the host's own gap. How long the device waited is in the
/// timer's records.
///
/// Blocking: as the timer's own hooks. The start mark is dropped before any range is touched; at the end the ranges
///           change before the end mark is dropped, so that the timer's bookkeeping is not shown as part of the step.
/// Cost:     where no tool is attached when the first NvtxRanges is made, a comparison a hook. A disabled timer shows
///           none.
/// Threads:  as the timer. Errors: none.
/// Owns:     nothing; the timer must outlive it. Ranges still open are ended by the destructor.
template <class Timer>
class NvtxRanges {
 public:
  /// Around the hooks of that timer, which must outlive it.
  explicit NvtxRanges(Timer& timer) noexcept : timer_(timer), attached_(detail::nvtx_domain() != nullptr) {}
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

  /// What StepTimer::step() returns, with the ranges.
  class [[nodiscard]] Scope {
   public:
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {  // and then ~Timer::Scope
      if (std::uncaught_exceptions() > exceptions_at_start_)
        ranges_.close();
      else
        ranges_.show_wait();
    }

   private:
    friend NvtxRanges;
    Scope(NvtxRanges& ranges, std::uint64_t items) noexcept : ranges_(ranges), scope_(ranges.timer_.step(items)) {
      ranges_.show_step();
    }

    NvtxRanges& ranges_;
    typename Timer::Scope scope_;
    int exceptions_at_start_ = std::uncaught_exceptions();
  };

  /// StepTimer::on_batch_start(); ends "data wait" and starts "step n".
  void on_batch_start() noexcept {
    timer_.on_batch_start();
    show_step();
  }

  /// StepTimer::on_batch_end(items); ends "step n" and starts "data wait". Without an open step there is no range.
  void on_batch_end(std::uint64_t items = 0) noexcept {
    show_wait();
    timer_.on_batch_end(items);
  }

  /// StepTimer::step(items): on_batch_start() now, on_batch_end(items) when the returned object goes out of scope.
  [[nodiscard]] Scope step(std::uint64_t items = 0) noexcept { return Scope(*this, items); }

  /// StepTimer::pause(); the time from now to the next start is in no range.
  void pause() noexcept {
    timer_.pause();
    wait_.end();
    paused_ = true;
  }

  /// StepTimer::finish(timeout); ends all ranges before.
  bool finish(std::chrono::nanoseconds timeout = (std::chrono::nanoseconds::max)()) noexcept {
    close();
    return timer_.finish(timeout);
  }

 private:
  void show_step() noexcept {
    if (!attached_) return;
    close();
    paused_ = false;
    const std::uint64_t started = timer_.counts().started;
    if (started == 0) return;  // the timer is disabled
    char message[32] = "step ";
    *std::to_chars(message + 5, message + sizeof message - 1, started - 1).ptr = '\0';
    step_.start(message);
  }

  void show_wait() noexcept {
    if (!step_.is_open()) return;
    step_.end();
    if (!paused_) wait_.start("data wait");
  }

  void close() noexcept {
    step_.end();
    wait_.end();
  }

  Timer& timer_;
  const bool attached_;
  bool paused_ = false;  // the gap after the open step is no data wait
  detail::NvtxRange step_{0xFF76B900};
  detail::NvtxRange wait_{0xFFD9480F};
};

}  // namespace steptimer

#include "detail/macros_restore.hpp"
