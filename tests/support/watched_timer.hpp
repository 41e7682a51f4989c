// A timer on the fake runtime that is looked at from outside around every call, and what no failure of the runtime's
// excuses.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <steptimer/cuda_backend.hpp>

#include "catch.hpp"
#include "counts.hpp"
#include "device_work.hpp"
#include "fake_cuda/fake_cuda.hpp"
#include "virtual_cuda.hpp"

namespace watched {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;
using CudaTimer = VirtualCudaTimer;

inline void set_device(int device) {
  const fake_cuda::UserCode user;
  if (cudaSetDevice(device) != cudaSuccess) FAIL("no device " << device);
}

/// Errors after which CUDA has nothing more to say, ever.
inline bool stays(cudaError_t code) {
  return code == cudaErrorInitializationError || code == cudaErrorCudartUnloading || code == cudaErrorIllegalAddress ||
         code == cudaErrorContextIsDestroyed || code == cudaErrorLaunchFailure || code == cudaErrorUnknown;
}

/// The kinds of violation that no failure excuses.
inline std::string forbidden_violations() {
  std::string text;
  for (const auto& entry : fake_cuda::violations()) {
    switch (entry.kind) {
      case fake_cuda::Violation::crash:
      case fake_cuda::Violation::double_destroy:
      case fake_cuda::Violation::use_after_destroy:
      case fake_cuda::Violation::null_handle:
      case fake_cuda::Violation::unknown_handle:
      case fake_cuda::Violation::waiting_call:
      case fake_cuda::Violation::would_block:
      case fake_cuda::Violation::rerecord_in_flight:
      case fake_cuda::Violation::wrong_device:
      case fake_cuda::Violation::capture_destroyed:
        text += std::string(fake_cuda::name(entry.kind)) + ": " + entry.text + "; ";
        break;
      default: break;
    }
  }
  return text;
}

/// Where a timer is used, and what the caller has brought about before.
struct Setup {
  const char* name;
  int stream_device = 0;   ///< -1: stream 0, first used on device 0
  int current_device = 0;  ///< while the timer is used
  bool not_ready_leaves_an_error = false;
  cudaError_t callers_error = cudaSuccess;  ///< pending in the middle of each phase
};

inline const Setup setups[] = {
    {"a stream of the current device"},
    {"a stream of another device", 1, 0},
    {"stream 0 of the current device", -1, 0},
    {"stream 0 of another device", -1, 1},
    {"not-ready leaves an error", 0, 0, true},
    {"an error of the caller's is pending", 0, 0, false, cudaErrorInvalidConfiguration},
    {"both", 0, 0, true, cudaErrorInvalidConfiguration},
};

/// A timer whose every call is looked at from outside: what it left behind, and whether its counts add up.
class Watched {
 public:
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  std::string problem;  ///< the first thing that was not as it must be
  std::string calls_at_problem;
  std::vector<steptimer::StepRecord> records;
  std::vector<std::string> warnings;

 protected:
  explicit Watched(const Setup& setup) : setup_(setup) {
    fake_cuda::reset(2);
    fake_cuda::set_not_ready_sets_last_error(setup.not_ready_leaves_an_error);
    if (setup.stream_device >= 0) {
      set_device(setup.stream_device);
      own_stream_.emplace();
      stream_ = own_stream_->get();
    }
    set_device(0);
    timer_ = std::make_unique<CudaTimer>(stream_, options());
  }
  ~Watched() = default;

  steptimer::StepTimerOptions options() {
    steptimer::StepTimerOptions options;
    options.on_record = [this](const steptimer::StepRecord& record) { records.push_back(record); };
    options.on_warning = [this](std::string_view line) { warnings.emplace_back(line); };
    return options;
  }

  void work() {
    const int device = fake_cuda::current_device();
    if (setup_.stream_device < 0) set_device(bound_to_);
    device_work::work(stream_, 10ms);
    if (setup_.stream_device < 0) set_device(device);
  }
  void wait() {
    fake_cuda::finish_all();  // the user's own waiting; calls nothing that could be made to fail
  }
  void start() {
    do_call("start", [&] { timer_->on_batch_start(); });
  }
  void step() {
    start();
    work();
    do_call("end", [&] { timer_->on_batch_end(7); });
  }
  void kept_up_step() {
    step();
    wait();
    fake_cuda::advance(5ms);
  }

  void raise_callers_error() {
    if (setup_.callers_error != cudaSuccess) fake_cuda::set_last_error(setup_.callers_error);
  }
  void clear_callers_error() { fake_cuda::set_last_error(cudaSuccess); }

  template <class F>
  void do_call(const char* name, F&& f, nanoseconds may_wait = 0ns) {
    const cudaError_t error = fake_cuda::last_error();
    const int device = fake_cuda::current_device();
    const auto mode = fake_cuda::capture_mode();
    const nanoseconds time = fake_cuda::now();
    const std::size_t calls_before = fake_cuda::log().size();
    f();
    if (!problem.empty()) return;
    const auto log = fake_cuda::log();
    std::string calls_made;
    bool failed = false;
    for (std::size_t i = calls_before; i < log.size(); ++i) {
      calls_made += std::string(" ") + log[i].function + (log[i].injected ? "(!)" : "");
      failed = failed || log[i].injected;
    }
    const auto wrong = [&](const std::string& what) {
      problem = std::string(name) + " " + what;
      calls_at_problem = calls_made;
    };
    // A failing call replaces an error of the caller's, and CUDA has no way to put that back.
    if (error == cudaSuccess || !failed ? fake_cuda::last_error() != error : fake_cuda::last_error() == cudaSuccess)
      wrong("left last error " + std::to_string(fake_cuda::last_error()) + ", it was " + std::to_string(error));
    if (fake_cuda::current_device() != device) wrong("left another device current");
    if (fake_cuda::capture_mode() != mode) wrong("left another capture mode");
    if (fake_cuda::now() > time + may_wait) wrong("waited");
    if (timer_ != nullptr && !adds_up(timer_->counts())) wrong("left counts that do not add up");
  }

  const Setup setup_;
  std::optional<device_work::Stream> own_stream_;
  cudaStream_t stream_ = nullptr;
  int bound_to_ = 0;  ///< stream 0 of which device
  std::unique_ptr<CudaTimer> timer_;
};

/// The calls that only report on or clear the error state. They are the means of keeping it, so they are not made to
/// fail here.
inline bool is_about_errors(const fake_cuda::Call& call) {
  const std::string_view name = call.function;
  return name == "cudaPeekAtLastError" || name == "cudaGetLastError";
}

/// The calls that put back what was changed before; where such a call does nothing, nothing can be put back.
inline bool puts_back(const fake_cuda::Call& call, const Setup& setup) {
  const std::string_view name = call.function;
  if (name == "cudaThreadExchangeStreamCaptureMode") return call.value != cudaStreamCaptureModeRelaxed;
  return name == "cudaSetDevice" && call.device == setup.current_device;
}

/// The first thing wrong with the records of a life: times are those of the work, whatever failed around them.
inline std::string wrong_record(const std::vector<steptimer::StepRecord>& records) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto& r = records[i];
    const std::string step = "step " + std::to_string(r.step);
    if (r.batch_time != nanoseconds{10ms}) return step + " has batch_time " + std::to_string(r.batch_time.count());
    if (r.data_time && *r.data_time != nanoseconds{5ms} && *r.data_time != nanoseconds{0})
      return step + " has data_time " + std::to_string(r.data_time->count());
    if (r.items != 7) return step + " has items " + std::to_string(r.items);
  }
  return {};
}

/// What a sweep over many lives found wrong: each kind once, with the first life that showed it.
class Problems {
 public:
  void about(std::string life) { life_ = std::move(life); }
  void add(const std::string& problem) {
    if (problem.empty()) return;
    for (auto& known : known_) {
      if (known.problem != problem) continue;
      ++known.times;
      return;
    }
    known_.push_back({problem, life_, 1});
  }
  void expect(bool holds, const std::string& otherwise) {
    if (!holds) add(otherwise);
  }
  std::string text() const {
    std::string text;
    for (const auto& known : known_)
      text += known.problem + " [" + std::to_string(known.times) + " times, first: " + known.life + "]\n";
    return text;
  }

 private:
  struct Known {
    std::string problem;
    std::string life;
    int times;
  };
  std::string life_;
  std::vector<Known> known_;
};

}  // namespace watched
