/// CudaBackend: marks are events on the caller's stream. The only header that knows CUDA; host code, no nvcc needed.
///
/// An event pair on the stream tells how long the device took, and cudaEventQuery tells, without waiting, whether it
/// has got there. The rest of this file is manners: after any call here the caller's device, capture mode and pending
/// error are what they were. Each rule below says what was seen to happen without it (CUDA 13.0).
#pragma once

#include "detail/macros_keep.hpp"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "backend.hpp"
#include "detail/ring.hpp"
#include "step_timer.hpp"

namespace steptimer {

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
// The same source means other functions here (stream 0 is the thread's own), so it must not be the same type.
inline namespace per_thread_default_stream {
#endif

namespace cuda_detail {

/// Whether the caller has an error pending, and how to leave none of ours behind.
///
/// A failed runtime call becomes the thread's last error. cudaGetLastError() clears it, but would also clear an error
/// that the caller has yet to ask for, so it is only called where none was pending before.
struct CallersCudaError {
  bool pending = false;

  static CallersCudaError now() noexcept { return {cudaPeekAtLastError() != cudaSuccess}; }
  void clear_ours() const noexcept {
    if (!pending) (void)cudaGetLastError();
  }
};

/// Makes a device current for a scope, where it is not. Blocking: cudaGetDevice; cudaSetDevice twice if they differ.
class CurrentDevice {
 public:
  CurrentDevice(int device, CallersCudaError callers) noexcept : callers_(callers), code_(cudaGetDevice(&previous_)) {
    if (code_ != cudaSuccess || previous_ == device) return;
    call_ = "cudaSetDevice";
    code_ = cudaSetDevice(device);
    switched_ = true;
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (switched_ && cudaSetDevice(previous_) != cudaSuccess) callers_.clear_ours();
  }
  cudaError_t code() const noexcept { return code_; }
  const char* call() const noexcept { return call_; }

 private:
  CallersCudaError callers_;
  int previous_ = 0;
  bool switched_ = false;
  const char* call_ = "cudaGetDevice";
  cudaError_t code_;
};

}  // namespace cuda_detail

/// A timeline of events on one CUDA stream.
///
/// Units:    event times come as float milliseconds, 7 digits, in steps of 32 ns.
/// Blocking: never waits for the device. A mark costs cudaPeekAtLastError, cudaStreamIsCapturing and cudaEventRecord,
///           on stream 0 also cudaGetDevice; a reading costs cudaPeekAtLastError, cudaThreadExchangeStreamCaptureMode
///           twice, a cudaEventQuery a step asked for and two cudaEventElapsedTime a step measured. Either begins with
///           one more cudaEventElapsedTime where the last call here was more than 0.2 ms ago. Events are made while
///           more steps are in flight than ever before. With about a thousand commands queued on a stream, CUDA blocks
///           in the next one, whoever makes it.
/// Threads:  one thread at a time, whatever device is current on it. With a per-thread default stream, stream 0 is
///           another stream on another thread: stay on one. On a thread whose current device has no context yet, a
///           reading makes CUDA create one there; reading results and destroying the timer do not.
/// Errors:   never thrown. A mark on a stream under capture is refused and the graph is left alone: put the hooks
///           around its launch. A call that CUDA refuses costs its step; after an error that stays (a kernel fault, a
///           reset device) the timeline is lost and no further call is made. While an error of the caller's is
///           pending, a call here that fails replaces it: CUDA has no way to put an error back.
/// Owns:     its events: two for each of the most steps ever in flight, one more for each mark() in them and for each
///           that is followed by a step that is not measured, and three. The stream is the caller's and must outlive
///           its use here: marks on one that CUDA refuses as destroyed cost their steps, but CUDA does not promise to
///           notice.
class CudaBackend : public BackendDefaults {
  using CallersCudaError = cuda_detail::CallersCudaError;
  using CurrentDevice = cuda_detail::CurrentDevice;

 public:
  /// An event that is out as a mark.
  struct Mark {
    cudaEvent_t event = nullptr;  ///< the backend's own; nullptr where nothing is recorded
  };

  /// A timeline on `stream`, also implicitly: `CudaTimer timer{stream}`. Makes no CUDA call: it binds to the stream's
  /// device, or for stream 0 to the current one, at the first mark (before CUDA 12.8, which cannot tell a stream's
  /// device, always to the current one). Where you have a stream of your own, give it: an event on the legacy default
  /// stream orders all blocking streams, so two that ran 50 ms each side by side took 100 ms.
  CudaBackend(cudaStream_t stream = nullptr) noexcept : stream_(stream) {}
  /// The same for a class that converts to cudaStream_t: a stream wrapper, c10::cuda::CUDAStream.
  template <class Stream,
            class = std::enable_if_t<std::is_class_v<Stream> && std::is_convertible_v<const Stream&, cudaStream_t>>>
  CudaBackend(const Stream& stream) : CudaBackend(static_cast<cudaStream_t>(stream)) {}

  /// Takes over the events; the other keeps its stream and begins anew.
  CudaBackend(CudaBackend&& other) noexcept : CudaBackend(other.stream_) { swap(other); }
  /// The same, after giving back this one's own events.
  CudaBackend& operator=(CudaBackend&& other) noexcept {
    CudaBackend moved(std::move(other));
    swap(moved);
    return *this;
  }
  /// As release().
  ~CudaBackend() { release(); }

  /// Records an event on the stream.
  MarkStatus record(Mark& mark, HostTime now) noexcept {
    const auto callers = CallersCudaError::now();
    if (!is_alive_at(now, callers)) return MarkStatus::lost;
    if (!is_default_stream()) return record_on_current_device(mark, callers);
    // Stream 0 is that of the current device; with an event of another one the record gives 400.
    if (device_ == unbound) {
      const cudaError_t code = cudaGetDevice(&device_);
      if (code != cudaSuccess) return fail(code, "cudaGetDevice", callers);
    }
    const CurrentDevice guard(device_, callers);
    if (guard.code() != cudaSuccess) return fail(guard.code(), guard.call(), callers);
    return record_on_current_device(mark, callers);
  }

  /// Puts readings off while an error of the caller's is pending, until this runtime has shown that "not ready"
  /// leaves none behind: some do, and clearing it would clear the caller's. An error that the caller never reads would
  /// stop the timer for good, so after most_put_off readings it asks all the same.
  ///
  /// The capture mode is relaxed meanwhile: while any thread captures in global mode, a plain cudaEventQuery on any
  /// other gives 900 and destroys the capture, which ends with 901.
  MarkStatus begin_reading(HostTime now) noexcept {
    const auto callers = callers_in_reading_ = CallersCudaError::now();
    if (!callers.pending) put_off_ = 0;
    if (callers.pending && !not_ready_is_clean_ && put_off_ < most_put_off) {
      ++put_off_;
      return MarkStatus::not_ready;
    }
    if (!is_alive_at(now, callers)) return MarkStatus::lost;
    capture_mode_ = cudaStreamCaptureModeRelaxed;
    const cudaError_t code = cudaThreadExchangeStreamCaptureMode(&capture_mode_);
    if (code == cudaSuccess) return MarkStatus::ok;
    if (capture_mode_ != cudaStreamCaptureModeRelaxed) end_reading();  // it failed, and exchanged nevertheless
    return fail(code, "cudaThreadExchangeStreamCaptureMode", callers);
  }
  /// Gives the thread its capture mode back.
  void end_reading() noexcept {
    if (cudaThreadExchangeStreamCaptureMode(&capture_mode_) != cudaSuccess) callers_in_reading_.clear_ours();
  }

  /// Asks by cudaEventQuery.
  MarkStatus query(const Mark& mark) noexcept {
    const cudaError_t code = cudaEventQuery(mark.event);
    return code == cudaSuccess ? MarkStatus::ok : not_ready_or_failed(code, "cudaEventQuery");
  }

  /// Asks by cudaEventElapsedTime, rounded to nanoseconds.
  MarkStatus elapsed(const Mark& from, const Mark& to, std::chrono::nanoseconds& result) noexcept {
    float milliseconds = std::numeric_limits<float>::quiet_NaN();
    const cudaError_t code = cudaEventElapsedTime(&milliseconds, from.event, to.event);
    if (code != cudaSuccess) return not_ready_or_failed(code, "cudaEventElapsedTime");
    const double nanoseconds = static_cast<double>(milliseconds) * 1e6;
    if (!(std::fabs(nanoseconds) < 9e18)) return refuse("cudaEventElapsedTime", "the time is not a number");
    result = std::chrono::nanoseconds{std::llround(nanoseconds)};
    return MarkStatus::ok;
  }

  /// Only a mark that was reached is used again: re-recording an event in flight gave -50 ms, with success.
  void recycle(Mark& mark) noexcept {
    const cudaEvent_t event = std::exchange(mark.event, nullptr);
    if (lost_) return;
    if (finished_ == nullptr) {
      finished_ = event;
    } else if (cudaEvent_t* const slot = free_.push_back()) {
      *slot = event;
    } else {
      destroy(event);
    }
  }
  /// An event in flight may be destroyed: CUDA keeps it until it is reached.
  void discard(Mark& mark) noexcept {
    const cudaEvent_t event = std::exchange(mark.event, nullptr);
    const auto callers = CallersCudaError::now();
    const bool may_ask_it = not_ready_is_clean_ || !callers.pending;
    const bool must_ask = host_now() - last_call_ >= shorter_than_a_reset;
    const cudaEvent_t witness = finished_ != nullptr ? finished_ : may_ask_it && must_ask ? event : nullptr;
    if (is_alive(witness, callers)) destroy(event);
  }

  /// Destroys the free events; after a lost timeline they are abandoned instead (about 0.6 KB each).
  void release() noexcept {
    if (finished_ != nullptr && is_alive(finished_, CallersCudaError::now())) {
      for (std::size_t i = 0; i < free_.size(); ++i) destroy(free_[i]);
      destroy(finished_);
    }
    free_.clear();
    finished_ = nullptr;
    device_ = unbound;
    lost_ = false;
    error_ = {};
  }

  /// The error that lost the timeline, else the first one met. Makes no CUDA call.
  BackendError error() const noexcept { return error_; }

 private:
  static constexpr int unbound = -1;
  static constexpr unsigned most_put_off = 256;
  static constexpr std::chrono::microseconds shorter_than_a_reset{200};

  bool is_default_stream() const noexcept {
    return stream_ == nullptr || stream_ == cudaStreamLegacy || stream_ == cudaStreamPerThread;
  }

  MarkStatus record_on_current_device(Mark& mark, const CallersCudaError& callers) noexcept {
    // A record on a stream under capture succeeds, and asking for that event later destroys the capture; so the
    // stream is asked first. An invalidated capture counts: it has yet to end.
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaError_t code = cudaStreamIsCapturing(stream_, &capture);
    if (is_about_capture(code)) callers.clear_ours();  // stream 0, while a blocking stream captures: 906
    if (is_about_capture(code) || (code == cudaSuccess && capture != cudaStreamCaptureStatusNone))
      return refuse("cudaStreamIsCapturing", "a graph is being captured; put the hooks around its launch");
    if (code != cudaSuccess) return fail(code, "cudaStreamIsCapturing", callers);

    if (device_ == unbound) {
      code = find_device_of_stream();
      if (code != cudaSuccess) return fail(code, "cudaStreamGetDevice", callers);
    }
    cudaEvent_t event = nullptr;
    const MarkStatus taken = take_event(event, callers);
    if (taken != MarkStatus::ok) return taken;
    code = cudaEventRecord(event, stream_);
    if (code != cudaSuccess) {
      const MarkStatus status = fail(code, "cudaEventRecord", callers);
      if (status != MarkStatus::lost) destroy(event);
      return status;
    }
    mark.event = event;
    return MarkStatus::ok;
  }

  cudaError_t find_device_of_stream() noexcept {
#if CUDART_VERSION >= 12080
    const cudaError_t code = cudaStreamGetDevice(stream_, &device_);
#else
    const cudaError_t code = cudaGetDevice(&device_);
#endif
    if (code != cudaSuccess) device_ = unbound;
    return code;
  }

  MarkStatus take_event(cudaEvent_t& event, const CallersCudaError& callers) noexcept {
    if (!free_.empty()) {
      event = free_.back();
      free_.pop_back();
      return MarkStatus::ok;
    }
    const CurrentDevice guard(device_, callers);  // an event belongs to the device that is current when it is made
    if (guard.code() != cudaSuccess) return fail(guard.code(), guard.call(), callers);
    const cudaError_t code = cudaEventCreateWithFlags(&event, cudaEventDefault);
    return code == cudaSuccess ? MarkStatus::ok : fail(code, "cudaEventCreateWithFlags", callers);
  }

  void destroy(cudaEvent_t event) noexcept {
    const auto callers = CallersCudaError::now();
    if (cudaEventDestroy(event) != cudaSuccess) callers.clear_ours();
  }

  /// is_alive(), asked only where the last call here was long enough ago for a device to have been reset meanwhile.
  bool is_alive_at(HostTime now, const CallersCudaError& callers) noexcept {
    const bool just_now = now - std::exchange(last_call_, now) < shorter_than_a_reset;
    return just_now ? !lost_ : is_alive(finished_, callers);
  }

  /// Asks a finished event for its time to itself, which is legal during any capture and harmless on a dead context.
  ///
  /// After cudaDeviceReset(), recording, destroying or asking about a capture was seen to crash, and exchanging the
  /// capture mode makes a new context; this call gives 709 then. A null event (no step measured yet) passes for
  /// alive: so early a reset device is not noticed.
  bool is_alive(cudaEvent_t event, const CallersCudaError& callers) noexcept {
    if (lost_ || event == nullptr) return !lost_;
    float milliseconds = 0;
    const cudaError_t code = cudaEventElapsedTime(&milliseconds, event, event);
    if (code == cudaSuccess) return true;
    if (passes(code)) {
      callers.clear_ours();
      return true;
    }
    return fail(code, "cudaEventElapsedTime", callers) != MarkStatus::lost;
  }

  MarkStatus not_ready_or_failed(cudaError_t code, const char* call) noexcept {
    if (code != cudaErrorNotReady) return fail(code, call, callers_in_reading_);
    if (!not_ready_is_clean_) {
      not_ready_is_clean_ = cudaPeekAtLastError() != cudaErrorNotReady;
      if (!not_ready_is_clean_) callers_in_reading_.clear_ours();
    }
    return MarkStatus::not_ready;
  }

  MarkStatus fail(cudaError_t code, const char* call, const CallersCudaError& callers) noexcept {
    callers.clear_ours();
    lost_ = lost_ || !passes(code);
    if (lost_ || error_.code == 0) error_ = {static_cast<int>(code), call, cudaGetErrorString(code)};
    return lost_ ? MarkStatus::lost : MarkStatus::refused;
  }

  MarkStatus refuse(const char* call, const char* message) noexcept {
    if (error_.code == 0) error_ = {0, call, message};
    return MarkStatus::refused;
  }

  static bool is_about_capture(cudaError_t code) noexcept {
    return code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread;
  }

  /// Errors of one call, after which the next may succeed. All others mean that nothing more is to be had: an error
  /// that stays with the context, a runtime that is unloading, the child of a fork.
  static bool passes(cudaError_t code) noexcept {
    return code == cudaErrorInvalidValue || code == cudaErrorMemoryAllocation ||
           code == cudaErrorInvalidResourceHandle || code == cudaErrorNotReady || is_about_capture(code);
  }

  void swap(CudaBackend& other) noexcept {
    std::swap(stream_, other.stream_);
    std::swap(device_, other.device_);
    std::swap(free_, other.free_);
    std::swap(finished_, other.finished_);
    std::swap(error_, other.error_);
    std::swap(last_call_, other.last_call_);
    std::swap(lost_, other.lost_);
    std::swap(not_ready_is_clean_, other.not_ready_is_clean_);
    std::swap(put_off_, other.put_off_);
  }

  cudaStream_t stream_;
  int device_ = unbound;
  detail::Ring<cudaEvent_t> free_;  // reached, to be recorded again
  cudaEvent_t finished_ = nullptr;  // reached and never recorded again, for is_alive()
  HostTime last_call_{};            // host time of the last mark or reading
  BackendError error_;
  bool lost_ = false;
  bool not_ready_is_clean_ = false;
  unsigned put_off_ = 0;
  CallersCudaError callers_in_reading_;
  cudaStreamCaptureMode capture_mode_ = cudaStreamCaptureModeRelaxed;  // the caller's, within a reading
};

static_assert(is_backend_v<CudaBackend>);

/// A timer of steps on one CUDA stream.
using CudaTimer = StepTimer<CudaBackend>;

#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
}  // namespace per_thread_default_stream
#endif

}  // namespace steptimer

#include "detail/macros_restore.hpp"
