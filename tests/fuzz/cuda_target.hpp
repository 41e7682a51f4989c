// A StepTimer over CudaBackend on the fake runtime: faults in any call, captures anywhere, a user who leaves errors
// pending and changes devices. After each call of a timer the user's side of CUDA must be as it was.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string_view>

#include "bytes.hpp"
#include "report.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/virtual_cuda.hpp"
#include "witness.hpp"

namespace fuzz {

/// A CudaBackend that waits for what is queued in one go, and for which a fault that never ends does so after a while.
class WaitingCuda : public VirtualCuda {
 public:
  using VirtualCuda::VirtualCuda;
  static inline int waits = 0;                   // since finish() was called
  static inline nanoseconds work_is_done_at{0};  // all that was launched

  void host_wait(nanoseconds most) noexcept {
    constexpr nanoseconds between_polls = std::chrono::microseconds{50};
    constexpr int patience = 20;
    if (++waits > patience) fake_cuda::clear_injections();
    const nanoseconds until_done = waits % 2 == 0 ? work_is_done_at - fake_cuda::now() : nanoseconds{0};
    fake_cuda::advance((std::min)(most, (std::max)(until_done, between_polls)));
  }
};

class CudaTarget {
 public:
  using Backend = WaitingCuda;
  static constexpr unsigned lines = 4;

  /// What the user sees of CUDA, and what may explain that it changed.
  struct CallersState {
    cudaError_t error;
    int device;
    cudaStreamCaptureMode mode;
    std::uint64_t errors_set;       // by the timer
    std::uint64_t users_errors;     // by work that on_record has launched
    std::uint64_t set_devices_hit;  // injected answers, by what they hit
    std::uint64_t exchanges_hit;
  };

  explicit CudaTarget(Bytes& bytes) {
    fake_cuda::reset(devices);
    fake_cuda::set_keep_log(false);
    WaitingCuda::work_is_done_at = nanoseconds{0};
    const fake_cuda::UserCode user;
    cudaStreamCreateWithFlags(&streams_[0], cudaStreamNonBlocking);
    cudaStreamCreate(&streams_[1]);
    streams_[2] = nullptr;
    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&streams_[3], cudaStreamNonBlocking);
    cudaSetDevice(0);
    if (bytes.below(4) != 3) return;
    note("not ready sets the last error");
    fake_cuda::set_not_ready_sets_last_error(true);
  }

  Backend backend(unsigned line) const { return Backend(streams_[line]); }
  nanoseconds host_now() const { return fake_cuda::now(); }
  nanoseconds next_mark(unsigned line) const {
    return is_exact(line) ? (std::max)(host_now(), *fake_cuda::idle_at(streams_[line])) : host_now();
  }
  nanoseconds horizon() const {
    if (times_tampered_) return (nanoseconds::max)();
    return host_now() + nanoseconds{1 + static_cast<std::int64_t>(rounding * static_cast<double>(host_now().count()))};
  }
  void advance(nanoseconds amount) { fake_cuda::advance(amount); }
  void launch(unsigned line, nanoseconds amount) {
    if (line == 2 && blocking_capture_) return;  // it would destroy the user's own capture
    if (fake_cuda::work(streams_[line], amount) != cudaSuccess) ++users_errors_;
    if (const auto idle = fake_cuda::idle_at(streams_[line]))
      WaitingCuda::work_is_done_at = (std::max)(WaitingCuda::work_is_done_at, *idle);
  }

  void operate(Bytes& bytes) {
    const fake_cuda::UserCode user;
    switch (bytes.below(17)) {
      case 0:
      case 1:
      case 2:
      case 3: return inject(bytes);
      case 4: note("the faults end"); return fake_cuda::clear_injections();
      case 5: return inject_time(bytes);
      case 6:
      case 7: note("the user's call fails"); return static_cast<void>(cudaSetDevice(99));
      case 8:
      case 9: note("the user asks for the last error"); return static_cast<void>(cudaGetLastError());
      case 10: {
        const int device = static_cast<int>(bytes.below(devices));
        note("the user's device is", device);
        return static_cast<void>(cudaSetDevice(device));
      }
      case 11:
      case 12: return begin_capture(bytes);
      case 13: return end_capture(bytes.below(lines));
      case 14: {
        auto mode = static_cast<cudaStreamCaptureMode>(bytes.below(3));
        note("the user's capture mode is", mode);
        return static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
      }
      case 15: {
        const unsigned line = bytes.below(lines);
        if (line == 2) return;
        note("the user asks for the state of the stream, which destroys a capture, of line", line);
        return static_cast<void>(cudaStreamQuery(streams_[line]));
      }
      default: return break_process(bytes);
    }
  }

  Certainty certainty(unsigned line) const { return {is_exact(line) && !times_tampered_, all_marked_}; }
  static bool close(nanoseconds a, nanoseconds b) {
    return std::fabs(static_cast<double>((a - b).count())) <= 1.0 + rounding * static_cast<double>(b.count());
  }
  bool may_put_off() const { return fake_cuda::last_error() != cudaSuccess; }
  void begin_wait() { WaitingCuda::waits = 0; }
  std::uint64_t backend_calls() const { return fake_cuda::calls(); }

  CallersState callers_state() const {
    return {fake_cuda::last_error(),
            fake_cuda::current_device(),
            fake_cuda::capture_mode(),
            fake_cuda::errors_set(),
            users_errors_,
            set_devices_hit_,
            exchanges_hit_};
  }

  void check_callers_state(const CallersState& before) const {
    const CallersState now = callers_state();
    if (!process_ends_ && error_calls_hit_ == 0 &&
        now.users_errors == before.users_errors) {  // nobody can look after an error that it is told wrong
      // A call of the timer's that fails replaces an error of the user's, and never leaves one where none was.
      const bool replaced =
          before.error != cudaSuccess && now.error != cudaSuccess && now.errors_set > before.errors_set;
      must(now.error == before.error || replaced, "the pending error is the user's");
      must(now.error == before.error || now.error != cudaErrorNotReady || not_ready_hit_,
           "while an error is pending nothing is asked that could replace it by \"not ready\"");
    }
    if (now.set_devices_hit == before.set_devices_hit) must(now.device == before.device, "the device is the user's");
    if (now.exchanges_hit == before.exchanges_hit) must(now.mode == before.mode, "the capture mode is the user's");
  }

  void check(std::uint64_t most_events) const {
    using fake_cuda::Violation;
    for (const Violation kind :
         {Violation::null_handle, Violation::unknown_handle, Violation::use_after_destroy, Violation::double_destroy,
          Violation::rerecord_in_flight, Violation::waiting_call, Violation::would_block, Violation::crash,
          Violation::wrong_device, Violation::capture_destroyed})
      must(fake_cuda::violations(kind) == 0, fake_cuda::name(kind));
    if (fake_cuda::violations(Violation::elapsed_unready) > 0)
      for (const fake_cuda::ViolationEntry& entry : fake_cuda::violations())
        must(entry.kind != Violation::elapsed_unready || entry.call.event == entry.call.second_event,
             "of an event that was not reached only its time to itself is asked");
    if (!may_abandon_)
      must(fake_cuda::live_events() <= most_events + destroys_hit_, "events are bounded by what is in flight");
  }

  void recover() {
    const fake_cuda::UserCode user;
    fake_cuda::clear_injections();
    fake_cuda::set_unloading(false);
    fake_cuda::set_fork_child(false);
    for (unsigned line = 0; line < lines; ++line) end_capture(line);
    cudaGetLastError();
  }

  bool is_healthy() const { return !device_faults_; }

  void check_all_given_back() const {
    check(0);
    for (const auto& capture : fake_cuda::captures()) {
      const bool by_the_user = std::strcmp(capture.invalidated_by, "cudaStreamQuery") == 0;
      must(capture.invalidated == by_the_user && (capture.ended || device_faults_),
           "a capture ends as it would have without the timer");
      must(by_the_user || capture.end_result == cudaSuccess, "a capture that nobody destroyed ends well");
    }
  }

 private:
  static constexpr unsigned devices = 2;
  static constexpr double rounding = 1.2e-7;  // event times are floats of milliseconds

  bool is_exact(unsigned line) const { return line == 0 || line == 3; }  // no other stream is ordered against it

  void inject(Bytes& bytes) {
    static constexpr const char* functions[] = {"cudaEventRecord",
                                                "cudaEventQuery",
                                                "cudaEventElapsedTime",
                                                "cudaThreadExchangeStreamCaptureMode",
                                                "cudaStreamIsCapturing",
                                                "cudaEventDestroy",
                                                "cudaPeekAtLastError",
                                                "cudaGetLastError",
                                                "cudaGetDevice",
                                                "cudaSetDevice",
                                                "cudaStreamGetDevice",
                                                "cudaEventCreateWithFlags",
                                                "*"};
    static constexpr int codes[] = {600, 400, 3, 4, 700, 709, 1, 2, 999, 900, 901, 902, 903, 904, 905, 906, 907};
    static constexpr std::uint64_t times[] = {1, 2, 1, fake_cuda::unlimited};
    const char* const function = bytes.one_of(functions);
    const int code = bytes.one_of(codes);
    const unsigned how = bytes.next();
    std::uint64_t left = times[how % 4];
    std::uint64_t skip = how / 4 % 4;
    note("calls fail from now on", static_cast<long long>(left));
    note(function, code);
    fake_cuda::Injection injection;
    injection.function = function;
    injection.code = static_cast<cudaError_t>(code);
    injection.times = fake_cuda::unlimited;
    injection.perform = how / 16 % 4 == 3 && std::strcmp(function, "cudaEventCreateWithFlags") != 0 &&
                        std::strcmp(function, "*") != 0;  // an event that was made with an error is nobody's
    if (injection.perform) note("after having done what they do");
    const bool performs = injection.perform;
    injection.only_if = [this, left, skip, code, performs](const fake_cuda::Call& call) mutable {
      if (call.user || left == 0) return false;
      if (skip > 0) {
        --skip;
        return false;
      }
      if (left != fake_cuda::unlimited) --left;
      count_hit(call.function, code, performs);
      return true;
    };
    fake_cuda::inject(std::move(injection));
    all_marked_ = false;
  }

  void count_hit(std::string_view function, int code, bool performs) {
    not_ready_hit_ = not_ready_hit_ || code == cudaErrorNotReady;
    const bool passes = code == 1 || code == 2 || code == 400 || code == 600 || (code >= 900 && code <= 908);
    may_abandon_ = may_abandon_ || !passes;
    if (function == "cudaPeekAtLastError" || function == "cudaGetLastError") ++error_calls_hit_;
    if (performs) return;
    if (function == "cudaSetDevice") ++set_devices_hit_;
    if (function == "cudaThreadExchangeStreamCaptureMode") ++exchanges_hit_;
    if (function == "cudaEventDestroy") ++destroys_hit_;
  }

  void inject_time(Bytes& bytes) {
    static constexpr float values[] = {-0.001F, std::numeric_limits<float>::quiet_NaN(), -50.0F,  1e30F,
                                       0.0F,    std::numeric_limits<float>::infinity(),  8.9e12F, 9.1e12F};
    const unsigned which = bytes.below(static_cast<unsigned>(std::size(values)));
    note("the next elapsed time is number", which);
    fake_cuda::inject_elapsed({values[which]});
    const bool fits = std::fabs(values[which]) < 9e12F;  // in nanoseconds; other times are refused
    times_tampered_ = times_tampered_ || fits;
    all_marked_ = false;
  }

  void begin_capture(Bytes& bytes) {
    const unsigned what = bytes.next();
    const unsigned line = what % lines;
    const auto mode = static_cast<cudaStreamCaptureMode>(what / 4 % 3);
    if (line == 2) return;  // the legacy stream cannot be captured
    note("begin a capture on line", line);
    note("in mode", mode);
    if (cudaStreamBeginCapture(streams_[line], mode) != cudaSuccess) return;
    blocking_capture_ = blocking_capture_ || line == 1;
    all_marked_ = false;
  }

  void end_capture(unsigned line) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (line == 2 || cudaStreamIsCapturing(streams_[line], &status) != cudaSuccess) return;
    if (status == cudaStreamCaptureStatusNone) return;
    note("end the capture on line", line);
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(streams_[line], &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    if (line == 1) blocking_capture_ = false;
  }

  void break_process(Bytes& bytes) {
    all_marked_ = false;
    may_abandon_ = true;
    switch (bytes.below(4)) {
      case 0:
        note("device 0 faults");
        device_faults_ = true;
        return fake_cuda::fault_device(0);
      case 1:
        note("a kernel faults after 1 ms");
        device_faults_ = true;
        return static_cast<void>(fake_cuda::kernel_fault(streams_[0], std::chrono::milliseconds{1}));
      case 2:
        note("the runtime unloads");
        process_ends_ = true;
        return fake_cuda::set_unloading(true);
      default:
        note("this is a forked child");
        process_ends_ = true;
        return fake_cuda::set_fork_child(true);
    }
  }

  cudaStream_t streams_[lines] = {};
  bool all_marked_ = true;
  bool times_tampered_ = false;
  bool blocking_capture_ = false;
  bool may_abandon_ = false;  // an error was met after which events are left alone
  bool device_faults_ = false;
  bool not_ready_hit_ = false;
  bool process_ends_ = false;  // every call fails, also those about the last error
  std::uint64_t users_errors_ = 0, error_calls_hit_ = 0, set_devices_hit_ = 0, exchanges_hit_ = 0, destroys_hit_ = 0;
};

}  // namespace fuzz
