// CudaBackend when CUDA fails: every call in turn, with codes that pass and codes that stay; runtimes with other
// habits; a process that ends, forks or resets its device.

#include <steptimer/cuda_backend.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/counts.hpp"
#include "support/device_work.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/recorded_steps.hpp"
#include "support/virtual_cuda.hpp"

using namespace std::chrono_literals;
using fake_cuda::Violation;
using std::chrono::nanoseconds;
using steptimer::StepCounts;
using steptimer::StepTimerOptions;
using steptimer::TimerState;
using CudaTimer = VirtualCudaTimer;

namespace {

void set_device(int device) {
  const fake_cuda::UserCode user;
  if (cudaSetDevice(device) != cudaSuccess) FAIL("no device " << device);
}

/// The user resets the device, which takes its time.
void reset_device() {
  const fake_cuda::UserCode user;
  CHECK(cudaDeviceReset() == cudaSuccess);
  fake_cuda::advance(50ms);
}

void run_step(CudaTimer& timer, cudaStream_t stream, nanoseconds work) {
  timer.on_batch_start();
  device_work::work(stream, work);
  timer.on_batch_end();
}

void run_steps_kept_up(CudaTimer& timer, cudaStream_t stream, int steps) {
  for (int i = 0; i < steps; ++i) {
    run_step(timer, stream, 1ms);
    device_work::wait_for(stream);
  }
}

/// Errors after which CUDA has nothing more to say, ever.
bool stays(cudaError_t code) {
  return code == cudaErrorInitializationError || code == cudaErrorCudartUnloading || code == cudaErrorIllegalAddress ||
         code == cudaErrorContextIsDestroyed || code == cudaErrorUnknown;
}

/// The kinds of violation that no failure excuses.
std::string forbidden_violations() {
  std::string text;
  for (const auto& entry : fake_cuda::violations()) {
    switch (entry.kind) {
      case Violation::crash:
      case Violation::double_destroy:
      case Violation::use_after_destroy:
      case Violation::null_handle:
      case Violation::unknown_handle:
      case Violation::waiting_call:
      case Violation::would_block:
      case Violation::rerecord_in_flight:
      case Violation::wrong_device:
      case Violation::capture_destroyed:
        text += std::string(fake_cuda::name(entry.kind)) + ": " + entry.text + "; ";
        break;
      default: break;
    }
  }
  return text;
}

struct Setup {
  const char* name;
  int stream_device = 0;   ///< -1: stream 0, first used on device 0
  int current_device = 0;  ///< while the timer is used
  bool not_ready_leaves_an_error = false;
  cudaError_t callers_error = cudaSuccess;  ///< pending in the middle of each phase
};

const Setup setups[] = {
    {"a stream of the current device"},
    {"a stream of another device", 1, 0},
    {"stream 0 of the current device", -1, 0},
    {"stream 0 of another device", -1, 1},
    {"not-ready leaves an error", 0, 0, true},
    {"an error of the caller's is pending", 0, 0, false, cudaErrorInvalidConfiguration},
    {"both", 0, 0, true, cudaErrorInvalidConfiguration},
};

/// One life of a timer, in which every call of its is looked at from outside: what it left behind, what it counted.
class Life {
 public:
  Life(const Setup& setup, std::optional<fake_cuda::Injection> injection) : setup_(setup) {
    fake_cuda::reset(2);
    fake_cuda::set_not_ready_sets_last_error(setup.not_ready_leaves_an_error);
    if (setup.stream_device >= 0) {
      set_device(setup.stream_device);
      own_stream_.emplace();
      stream_ = own_stream_->get();
    }
    set_device(0);
    if (injection) fake_cuda::inject(*std::move(injection));
    live();
    own_stream_.reset();
  }

  std::string problem;  ///< the first thing that was not as it must be
  std::string calls_at_problem;
  std::vector<steptimer::StepRecord> records;
  std::vector<std::string> warnings;
  StepCounts before_release;  ///< after the first phase, when all that can be measured has been
  steptimer::TimerStatus status_before_release{};
  std::vector<fake_cuda::Call> calls;  ///< those of the timer
  std::size_t calls_before_release = 0;
  std::uint64_t events_created = 0, events_destroyed = 0;

 private:
  void live() {
    StepTimerOptions options;
    options.on_record = [this](const steptimer::StepRecord& record) { records.push_back(record); };
    options.on_warning = [this](std::string_view line) { warnings.emplace_back(line); };
    timer_ = std::make_unique<CudaTimer>(stream_, options);

    // Steps with which the device keeps up, the first of them on device 0.
    kept_up_step();
    kept_up_step();
    set_device(setup_.current_device);
    for (int i = 0; i < 3; ++i) kept_up_step();
    raise_callers_error();
    kept_up_step();
    // Steps with which it does not.
    for (int i = 0; i < 3; ++i) step();
    do_call("poll", [&] { timer_->poll(); });
    wait();
    for (int i = 0; i < 2; ++i) step();
    clear_callers_error();
    // An unbalanced one.
    do_call("start", [&] { timer_->on_batch_start(); });
    step();
    do_call("pause", [&] { timer_->pause(); });
    wait();
    step();
    wait();
    for (int i = 0; i < 3; ++i) do_call("finish", [&] { timer_->finish(0ns); });
    before_release = timer_->counts();
    status_before_release = timer_->status();
    calls_before_release = static_cast<std::size_t>(fake_cuda::calls());

    // In flight at a release, a move, a reset and the end.
    step();
    do_call("start", [&] { timer_->on_batch_start(); });
    raise_callers_error();
    do_call("release", [&] { timer_->release(); });
    bound_to_ = setup_.current_device;
    for (int i = 0; i < 3; ++i) step();
    clear_callers_error();
    do_call("move", [&] { timer_ = std::make_unique<CudaTimer>(std::move(*timer_)); });
    step();
    do_call("reset", [&] { timer_->reset(); });
    wait();
    kept_up_step();
    kept_up_step();
    raise_callers_error();
    step();
    do_call("move assignment", [&] { *timer_ = CudaTimer{stream_, options}; });
    step();
    step();
    do_call("destruction", [&] { timer_.reset(); });

    for (const auto& call : fake_cuda::log())
      if (!call.user) calls.push_back(call);
    events_created = fake_cuda::events_created();
    events_destroyed = fake_cuda::events_destroyed();
    const std::string violations = forbidden_violations();
    if (problem.empty()) problem = violations;
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
  void step() {
    do_call("start", [&] { timer_->on_batch_start(); });
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
  void do_call(const char* name, F&& f) {
    const cudaError_t error = fake_cuda::last_error();
    const int device = fake_cuda::current_device();
    const auto mode = fake_cuda::capture_mode();
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
bool is_about_errors(const fake_cuda::Call& call) {
  const std::string_view name = call.function;
  return name == "cudaPeekAtLastError" || name == "cudaGetLastError";
}

/// The calls that put back what was changed before; where such a call does nothing, nothing can be put back.
bool puts_back(const fake_cuda::Call& call, const Setup& setup) {
  const std::string_view name = call.function;
  if (name == "cudaThreadExchangeStreamCaptureMode") return call.value != cudaStreamCaptureModeRelaxed;
  return name == "cudaSetDevice" && call.device == setup.current_device;
}

/// The calls that change something for a while.
bool switches(const fake_cuda::Call& call) {
  const std::string_view name = call.function;
  return name == "cudaThreadExchangeStreamCaptureMode" || name == "cudaSetDevice";
}

/// The first thing wrong with the records of a life: times are those of the work, whatever failed around them.
std::string wrong_record(const std::vector<steptimer::StepRecord>& records) {
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

/// The first call after one whose error stays, up to the release that gives the timer another chance; it may only look
/// at the error or put something back.
std::string call_after(const Life& life, std::vector<fake_cuda::Call>::const_iterator failed, const Setup& setup) {
  const auto end = life.calls.begin() + static_cast<std::ptrdiff_t>(life.calls_before_release);
  const auto next = std::find_if(
      failed + 1, end, [&](const fake_cuda::Call& call) { return !is_about_errors(call) && !puts_back(call, setup); });
  return next == end ? std::string() : std::string("CUDA is still called: ") + next->function;
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

constexpr cudaError_t failures[] = {cudaErrorInvalidValue,
                                    cudaErrorMemoryAllocation,
                                    cudaErrorInitializationError,
                                    cudaErrorCudartUnloading,
                                    cudaErrorInvalidResourceHandle,
                                    cudaErrorNotReady,
                                    cudaErrorIllegalAddress,
                                    cudaErrorContextIsDestroyed,
                                    cudaErrorStreamCaptureUnsupported,
                                    cudaErrorStreamCaptureInvalidated,
                                    cudaErrorStreamCaptureImplicit,
                                    cudaErrorCapturedEvent,
                                    cudaErrorUnknown};

}  // namespace

// --- every call in turn

TEST_CASE("without any failure every step of a timer's life is accounted for") {
  for (const Setup& setup : setups) {
    INFO(setup.name);
    const Life life(setup, std::nullopt);
    CHECK(life.problem == "");
    CHECK(wrong_record(life.records) == "");
    CHECK(life.before_release.measured == 13);
    CHECK(life.before_release.dropped == 1);
    CHECK(life.before_release.failed == 0);
    CHECK(life.before_release.pending == 0);
    CHECK(life.events_created == life.events_destroyed);
    CHECK(life.warnings.size() == 1);  // of the unbalanced start
    CHECK(life.status_before_release.state == TimerState::ok);
    CHECK(life.status_before_release.error_code == 0);
  }
}

TEST_CASE("any call may fail once, and costs no more than its step or, if the error stays, the timer") {
  const cudaError_t code = GENERATE(from_range(std::begin(failures), std::end(failures)));
  const bool perform = GENERATE(false, true);
  INFO("code " << code << (perform ? ", after the call did its work" : ", instead of the call"));
  Problems problems;
  for (const Setup& setup : setups) {
    for (std::size_t n = 0;; ++n) {
      fake_cuda::Injection injection;
      injection.function = "*";
      injection.code = code;
      injection.perform = perform;
      injection.only_if = [&setup, perform](const fake_cuda::Call& call) {
        return !call.user && !is_about_errors(call) && !(perform ? switches(call) : puts_back(call, setup));
      };
      injection.skip = n;
      const Life life(setup, injection);
      const auto failed = std::find_if(life.calls.begin(), life.calls.end(), [](const auto& c) { return c.injected; });
      if (failed == life.calls.end()) break;
      const std::string_view function = failed->function;
      problems.about(std::string(setup.name) + ", call " + std::to_string(n) + ", " + failed->function +
                     life.calls_at_problem);
      problems.add(life.problem);
      problems.add(wrong_record(life.records));
      // A call that passes costs no event: but for one not destroyed, or made and not handed out.
      if (!stays(code) && function != (perform ? "cudaEventCreateWithFlags" : "cudaEventDestroy"))
        problems.expect(life.events_created == life.events_destroyed, "events are not given back");
      const bool before_release = failed - life.calls.begin() < static_cast<std::ptrdiff_t>(life.calls_before_release);
      if (!before_release || function == "cudaEventDestroy") continue;

      const StepCounts& counts = life.before_release;
      const auto& status = life.status_before_release;
      problems.expect(counts.pending == 0, "steps are still pending");
      if (stays(code)) {
        problems.add(call_after(life, failed, setup));
        problems.expect(status.state == TimerState::failed, "the timer goes on");
        problems.expect(counts.failed > 0, "no step counts as failed");
      } else {
        problems.expect(status.state == TimerState::ok, "the timer has turned itself off");
        problems.expect(counts.failed <= 1, "more than its step is lost");
        problems.expect(counts.measured + counts.dropped + counts.failed == 14, "steps went elsewhere");
      }
      // A stream under capture, or in the way of one, is no error: the step is only impossible.
      const bool about_capture = function == "cudaStreamIsCapturing" && code >= 900 && code < 910;
      if (counts.failed == 0 || about_capture) continue;
      problems.expect(status.error_code == code, "the status has another code");
      problems.expect(status.call == function, "the status names another call: " + std::string(status.call));
      problems.expect(*status.message != '\0', "the status has no message");
    }
  }
  CHECK(problems.text() == "");
}

TEST_CASE("any call may fail for ever, or all of one function, and the training goes on") {
  const cudaError_t code = GENERATE(from_range(std::begin(failures), std::end(failures)));
  INFO("code " << code);
  Problems problems;
  for (const Setup& setup : setups) {
    std::vector<std::string> functions{"*"};
    for (const auto& call : Life(setup, std::nullopt).calls)
      if (std::find(functions.begin(), functions.end(), call.function) == functions.end())
        functions.emplace_back(call.function);
    for (const std::string& function : functions) {
      const std::size_t stride = function == "*" ? 1 : 7;
      for (std::size_t n = 0;; n += stride) {
        fake_cuda::Injection injection;
        injection.function = function;
        injection.code = code;
        injection.times = fake_cuda::unlimited;
        injection.skip = n;
        injection.only_if = [&setup](const fake_cuda::Call& call) {
          return !call.user && !is_about_errors(call) && !puts_back(call, setup);
        };
        const Life life(setup, injection);
        const auto failed =
            std::find_if(life.calls.begin(), life.calls.end(), [](const auto& c) { return c.injected; });
        if (failed == life.calls.end()) break;
        problems.about(std::string(setup.name) + ", " + function + " from call " + std::to_string(n) + " on, first " +
                       failed->function + life.calls_at_problem);
        problems.add(life.problem);
        problems.add(wrong_record(life.records));
        problems.expect(life.warnings.size() <= 4, "warnings are told again and again");
        problems.expect(life.events_destroyed <= life.events_created, "more events destroyed than made");
      }
    }
  }
  CHECK(problems.text() == "");
}

TEST_CASE("a call that changes something for a while or puts it back, and fails although it did so, leaves no trace") {
  const cudaError_t code = GENERATE(from_range(std::begin(failures), std::end(failures)));
  const bool putting_back = GENERATE(false, true);
  INFO("code " << code << (putting_back ? ", from the call that puts back" : ", from the call that changes"));
  Problems problems;
  for (const Setup& setup : setups) {
    for (std::size_t n = 0;; ++n) {
      fake_cuda::Injection injection;
      injection.function = "*";
      injection.code = code;
      injection.perform = true;
      injection.skip = n;
      injection.only_if = [&setup, putting_back](const fake_cuda::Call& call) {
        return !call.user && switches(call) && puts_back(call, setup) == putting_back;
      };
      const Life life(setup, injection);
      const auto failed = std::find_if(life.calls.begin(), life.calls.end(), [](const auto& c) { return c.injected; });
      if (failed == life.calls.end()) break;
      problems.about(std::string(setup.name) + ", call " + std::to_string(n) + ", " + failed->function +
                     life.calls_at_problem);
      problems.add(life.problem);
      problems.add(wrong_record(life.records));
    }
  }
  CHECK(problems.text() == "");
}

TEST_CASE("an error that looks pending or cannot be cleared stops nothing") {
  const std::string function = GENERATE("cudaPeekAtLastError", "cudaGetLastError");
  const cudaError_t code = GENERATE(from_range(std::begin(failures), std::end(failures)));
  const bool always = GENERATE(false, true);
  INFO(function << " answers " << code << (always ? " always" : " once"));
  for (std::size_t n = 0; n < 40; ++n) {
    fake_cuda::Injection injection;
    injection.function = function;
    injection.code = code;
    injection.skip = n;
    injection.times = always ? fake_cuda::unlimited : 1;
    const Life life(setups[0], injection);
    CHECK(forbidden_violations() == "");
    CHECK(wrong_record(life.records) == "");
    CHECK(adds_up(life.before_release));
    CHECK(life.status_before_release.state == TimerState::ok);
    CHECK(life.events_created == life.events_destroyed);
  }
}

// --- what the status says

TEST_CASE("an error that stays turns the timer off, once and for good") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  run_steps_kept_up(timer, stream, 4);
  run_step(timer, stream, 1ms);
  fake_cuda::kernel_fault(stream);
  fake_cuda::finish_all();
  const auto measured = timer.counts().measured;
  for (int i = 0; i < 10'000; ++i) {
    timer.on_batch_start();
    timer.on_batch_end();
  }
  CHECK(timer.status().state == TimerState::failed);
  CHECK(timer.status().error_code == cudaErrorIllegalAddress);
  CHECK(*timer.status().call != '\0');
  CHECK(std::string_view(timer.status().message) == "an illegal memory access was encountered");
  CHECK(timer.counts().started == 10'005);
  CHECK(timer.counts().measured == measured);
  CHECK(timer.counts().pending == 0);
  CHECK(timer.counts().failed == 10'005 - measured);
  CHECK(adds_up(timer.counts()));
  CHECK(recorded.warnings().size() == 1);
  CHECK(timer.finish());

  fake_cuda::clear_log();
  timer.on_batch_start();
  timer.on_batch_end();
  timer.poll();
  timer.finish();
  timer.reset();
  CHECK(fake_cuda::calls() == 0);  // CUDA is left alone from then on
  CHECK(timer.status().state == TimerState::failed);
  const fake_cuda::UserCode user;
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

TEST_CASE("a timer that has turned itself off tries again after a release") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  {
    CudaTimer timer{stream.get(), recorded.options()};
    run_steps_kept_up(timer, stream, 3);
    fake_cuda::fail_next("cudaEventRecord", cudaErrorUnknown);
    run_step(timer, stream, 1ms);
    CHECK(timer.status().state == TimerState::failed);
    timer.reset();
    CHECK(timer.status().state == TimerState::failed);
    run_steps_kept_up(timer, stream, 2);
    CHECK(timer.counts().failed == 2);
    timer.release();
    CHECK(timer.status().state == TimerState::ok);
    CHECK(timer.status().error_code == 0);
    run_steps_kept_up(timer, stream, 3);
    CHECK(timer.finish());
    CHECK(timer.counts().measured == 3);
    CHECK(timer.counts().started == 5);
    CHECK(adds_up(timer.counts()));
  }
  CHECK(forbidden_violations() == "");
}

TEST_CASE("a first failure that passes is remembered and one that stays takes its place") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  run_steps_kept_up(timer, stream, 3);
  fake_cuda::fail_next("cudaEventRecord", cudaErrorInvalidResourceHandle);
  run_step(timer, stream, 1ms);
  fake_cuda::fail_next("cudaStreamIsCapturing", cudaErrorInvalidValue);
  run_step(timer, stream, 1ms);
  CHECK(timer.status().state == TimerState::ok);
  CHECK(timer.status().error_code == cudaErrorInvalidResourceHandle);
  CHECK(std::string_view(timer.status().call) == "cudaEventRecord");
  CHECK(timer.counts().failed == 2);
  CHECK(recorded.warnings().size() == 1);
  fake_cuda::fault_device(0, cudaErrorLaunchFailure);
  run_step(timer, stream, 1ms);
  CHECK(timer.status().state == TimerState::failed);
  CHECK(timer.status().error_code == cudaErrorLaunchFailure);
  CHECK(recorded.warnings().size() == 2);
  CHECK(adds_up(timer.counts()));
}

// --- runtimes with other habits

TEST_CASE("a runtime whose not-ready answer leaves an error behind: the caller's survives, and nothing is lost") {
  REQUIRE(device_work::begin());
  fake_cuda::set_not_ready_sets_last_error(true);
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  const bool learned = GENERATE(false, true);
  INFO((learned ? "the timer has seen it" : "the timer has not seen it yet"));
  std::uint64_t steps = 0;
  if (learned) {
    run_step(timer, stream, 10ms);
    run_step(timer, stream, 10ms);
    steps += 2;
    timer.poll();
    CHECK(fake_cuda::last_error() == cudaSuccess);
  }
  fake_cuda::set_last_error(cudaErrorInvalidConfiguration);
  for (int i = 0; i < 10; ++i, ++steps) {
    run_step(timer, stream, 10ms);
    timer.poll();
    CHECK(fake_cuda::last_error() == cudaErrorInvalidConfiguration);
    if (i > 5) fake_cuda::advance(20ms);
  }
  CHECK_FALSE(timer.finish(0ns));
  CHECK(fake_cuda::last_error() == cudaErrorInvalidConfiguration);
  {
    const fake_cuda::UserCode user;
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  }
  device_work::wait_for(stream);
  CHECK(timer.finish());
  CHECK(fake_cuda::last_error() == cudaSuccess);
  REQUIRE(recorded.size() == steps);
  for (const auto& record : recorded.records()) CHECK(record.batch_time == nanoseconds{10ms});
}

TEST_CASE("steps given up before the device reached any leave the caller's error alone") {
  const bool not_ready_leaves_an_error = GENERATE(false, true);
  const int how = GENERATE(0, 1, 2, 3, 4);
  INFO("not-ready leaves an error: " << not_ready_leaves_an_error << ", way " << how);
  const cudaError_t callers = GENERATE(cudaSuccess, cudaErrorInvalidConfiguration);
  REQUIRE(device_work::begin());
  fake_cuda::set_not_ready_sets_last_error(not_ready_leaves_an_error);
  const device_work::Stream stream;
  {
    const RecordedSteps recorded;
    device_work::Gate gate(stream);
    CudaTimer timer{stream.get(), recorded.options()};
    for (int i = 0; i < 3; ++i) run_step(timer, stream, 1ms);
    fake_cuda::set_last_error(callers);
    if (how == 0) timer.reset();
    if (how == 1) timer.release();
    if (how == 2) timer = CudaTimer{stream.get()};
    if (how == 3) {
      timer.on_batch_start();
      timer.on_batch_start();
    }
  }  // and 4: destroyed here
  CHECK(fake_cuda::last_error() == callers);
  CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
  CHECK(forbidden_violations() == "");
}

TEST_CASE("an error of the caller's stays pending through every hook") {
  const bool not_ready_leaves_an_error = GENERATE(false, true);
  const bool keeps_up = GENERATE(false, true);
  REQUIRE(device_work::begin());
  fake_cuda::set_not_ready_sets_last_error(not_ready_leaves_an_error);
  const device_work::Stream stream;
  const RecordedSteps recorded;
  {
    CudaTimer timer{stream.get(), recorded.options()};
    const auto check_pending = [] { CHECK(fake_cuda::last_error() == cudaErrorInvalidConfiguration); };
    fake_cuda::set_last_error(cudaErrorInvalidConfiguration);
    for (int i = 0; i < 20; ++i) {
      timer.on_batch_start();
      check_pending();
      device_work::work(stream, 10ms);
      timer.on_batch_end();
      check_pending();
      if (keeps_up) fake_cuda::advance(10ms);
    }
    timer.poll();
    check_pending();
    timer.finish(0ns);
    check_pending();
    CHECK(timer.counts().stale == 0);
    fake_cuda::finish_all();
    fake_cuda::set_last_error(cudaSuccess);
    CHECK(timer.finish());
    CHECK(recorded.size() == 20);
    fake_cuda::set_last_error(cudaErrorInvalidConfiguration);
    run_step(timer, stream, 1ms);
    timer.release();
    check_pending();
    run_step(timer, stream, 1ms);
    timer.reset();
    check_pending();
  }
  CHECK(fake_cuda::last_error() == cudaErrorInvalidConfiguration);
  CHECK(recorded.warnings().empty());
}

TEST_CASE("without a device the timer turns itself off at the first step") {
  const cudaError_t code = GENERATE(cudaErrorNoDevice, cudaErrorInsufficientDriver);
  const bool on_default_stream = GENERATE(true, false);
  fake_cuda::reset(1);
  const device_work::Stream stream;
  const cudaStream_t handle = on_default_stream ? nullptr : stream.get();
  {
    const RecordedSteps recorded;
    CudaTimer timer{handle, recorded.options()};
    fake_cuda::reset(0);
    fake_cuda::set_no_device_error(code);
    for (int i = 0; i < 5; ++i) {
      timer.on_batch_start();
      timer.on_batch_end();
    }
    timer.poll();
    CHECK(timer.finish());
    CHECK(timer.status().state == TimerState::failed);
    CHECK(timer.status().error_code == code);
    CHECK(timer.counts().failed == 5);
    CHECK(adds_up(timer.counts()));
    CHECK(recorded.warnings().size() == 1);
  }
  fake_cuda::reset(1);
}

// --- the end of a process, its children, a device that is reset

TEST_CASE("a timer that outlives the runtime is silent and touches nothing") {
  const bool finished_before = GENERATE(false, true);
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  {
    CudaTimer timer{stream.get(), recorded.options()};
    if (finished_before) run_steps_kept_up(timer, stream, 4);
    for (int i = 0; i < 3; ++i) run_step(timer, stream, 1ms);
    timer.on_batch_start();
    fake_cuda::set_unloading(true);
  }
  CHECK(forbidden_violations() == "");
  CHECK(recorded.warnings().empty());
  CHECK(fake_cuda::calls("cudaEventDestroy") <= 1);

  REQUIRE(device_work::begin());
  const device_work::Stream next_stream;
  {
    CudaTimer timer{next_stream.get(), recorded.options()};
    if (finished_before) run_steps_kept_up(timer, next_stream, 4);
    run_step(timer, next_stream, 1ms);
    fake_cuda::set_unloading(true);
    for (int i = 0; i < 3; ++i) {
      timer.on_batch_start();
      timer.on_batch_end();
    }
    timer.finish();
    CHECK(timer.status().state == TimerState::failed);
    CHECK(timer.status().error_code == cudaErrorCudartUnloading);
    CHECK(adds_up(timer.counts()));
    timer.release();
  }
  CHECK(forbidden_violations() == "");
  fake_cuda::set_unloading(false);
}

TEST_CASE("in a forked child the timer turns itself off") {
  const bool finished_before = GENERATE(false, true);
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  {
    CudaTimer timer{stream.get(), recorded.options()};
    if (finished_before) run_steps_kept_up(timer, stream, 4);
    run_step(timer, stream, 1ms);
    fake_cuda::set_fork_child(true);
    fake_cuda::clear_log();
    for (int i = 0; i < 100; ++i) {
      timer.on_batch_start();
      timer.on_batch_end();
      timer.poll();
    }
    CHECK(timer.finish());
    CHECK(timer.status().state == TimerState::failed);
    CHECK(timer.status().error_code == cudaErrorInitializationError);
    CHECK(adds_up(timer.counts()));
    CHECK(fake_cuda::calls() < 20);
    CHECK(recorded.warnings().size() == 1);
  }
  CHECK(forbidden_violations() == "");
  fake_cuda::set_fork_child(false);
}

TEST_CASE("a child that only destroys its timer does no harm") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  {
    CudaTimer timer{stream.get(), recorded.options()};
    run_steps_kept_up(timer, stream, 4);
    run_step(timer, stream, 1ms);
    fake_cuda::set_fork_child(true);
  }
  CHECK(forbidden_violations() == "");
  CHECK(recorded.warnings().empty());
  fake_cuda::set_fork_child(false);
}

TEST_CASE("a timer released before a device reset can be used again after it") {
  REQUIRE(device_work::begin());
  const RecordedSteps recorded;
  {
    CudaTimer timer{0, recorded.options()};  // stream 0 survives a reset; another stream would not
    run_steps_kept_up(timer, nullptr, 3);
    run_step(timer, nullptr, 1ms);
    timer.release();
    CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
    reset_device();
    run_steps_kept_up(timer, nullptr, 3);
    CHECK(timer.finish());
    CHECK(timer.status().state == TimerState::ok);
    CHECK(timer.counts().measured == 6);
    CHECK(timer.counts().stale == 1);
    CHECK(adds_up(timer.counts()));
  }
  CHECK(forbidden_violations() == "");
  CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
}

TEST_CASE("a device reset under a timer costs the timer and nothing else") {
  struct Way {
    const char* name;
    std::function<void(std::unique_ptr<CudaTimer>&)> call;
    bool turns_off;
  };
  const Way ways[] = {
      {"hooks",
       [](auto& t) {
         for (int i = 0; i < 5; ++i) {
           t->on_batch_start();
           t->on_batch_end();
         }
       },
       true},
      {"end of the open step", [](auto& t) { t->on_batch_end(); }, true},
      {"poll", [](auto& t) { t->poll(); }, true},
      {"finish", [](auto& t) { t->finish(); }, true},
      {"release", [](auto& t) { t->release(); }, false},
      {"reset", [](auto& t) { t->reset(); }, false},
      {"move", [](auto& t) { t = std::make_unique<CudaTimer>(std::move(*t)); }, false},
      {"nothing", [](auto&) {}, false},
  };
  for (const Way& way : ways) {
    INFO(way.name);
    REQUIRE(device_work::begin());
    cudaStream_t stream = nullptr;  // goes with the device
    {
      const fake_cuda::UserCode user;
      REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    }
    const RecordedSteps recorded;
    auto timer = std::make_unique<CudaTimer>(stream, recorded.options());
    run_steps_kept_up(*timer, stream, 4);
    run_step(*timer, stream, 1ms);
    timer->on_batch_start();
    reset_device();
    way.call(timer);
    CHECK(adds_up(timer->counts()));
    if (way.turns_off) {
      CHECK(timer->status().state == TimerState::failed);
      CHECK(timer->status().error_code == cudaErrorContextIsDestroyed);
    }
    timer.reset();
    CHECK(forbidden_violations() == "");
    CHECK(fake_cuda::last_error() == cudaSuccess);
    CHECK(fake_cuda::calls("cudaEventDestroy") == 0);  // abandoned: there is nothing left to destroy
    CHECK_FALSE(fake_cuda::context(0).exists);         // and no context was made by asking
  }
}

TEST_CASE("a device reset before the first finished step: giving steps up is still safe") {
  const bool forget = GENERATE(true, false);
  INFO((forget ? "by reset()" : "by destruction"));
  REQUIRE(device_work::begin());
  cudaStream_t stream = nullptr;
  {
    const fake_cuda::UserCode user;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  }
  {
    const RecordedSteps recorded;
    CudaTimer timer{stream, recorded.options()};
    run_step(timer, stream, 1ms);
    run_step(timer, stream, 1ms);
    reset_device();
    if (forget) timer.reset();
    CHECK(adds_up(timer.counts()));
  }
  CHECK(forbidden_violations() == "");
  CHECK(fake_cuda::last_error() == cudaSuccess);
  CHECK_FALSE(fake_cuda::context(0).exists);
}

TEST_CASE("an error that is pending from the first step on and never read does not stop the timer for good") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  fake_cuda::set_last_error(cudaErrorInvalidValue);
  CudaTimer timer{stream.get()};
  for (int i = 0; i < 2000; ++i) {
    run_step(timer, stream, 1ms);
    device_work::wait_for(stream);
  }
  CHECK(timer.finish());
  CHECK(timer.counts().measured == 2000);
  CHECK(fake_cuda::last_error() == cudaErrorInvalidValue);
  fake_cuda::set_last_error(cudaSuccess);
}

// --- what one failure costs, case by case

TEST_CASE("a poll that meets an error that stays turns the timer off") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  run_steps_kept_up(timer, stream, 3);
  timer.on_batch_start();
  fake_cuda::fail_next("cudaEventQuery", cudaErrorIllegalAddress);
  CHECK(timer.poll() == 0);
  CHECK(timer.status().state == TimerState::failed);
  CHECK(timer.status().error_code == cudaErrorIllegalAddress);
  CHECK(std::string_view(timer.status().call) == "cudaEventQuery");
  CHECK(timer.counts().pending == 0);
}

TEST_CASE("events given up a while after their record leave the caller's error alone") {
  REQUIRE(device_work::begin());
  fake_cuda::set_not_ready_sets_last_error(true);
  const device_work::Stream stream;
  {
    const RecordedSteps recorded;
    const device_work::Gate gate(stream);
    CudaTimer timer{stream.get(), recorded.options()};
    for (int i = 0; i < 3; ++i) run_step(timer, stream, 1ms);
    fake_cuda::advance(1ms);  // long enough for a device to have been reset meanwhile
    fake_cuda::set_last_error(cudaErrorInvalidConfiguration);
    timer.reset();
    CHECK(fake_cuda::last_error() == cudaErrorInvalidConfiguration);
  }
  fake_cuda::set_last_error(cudaSuccess);
  CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
}

TEST_CASE("a call that fails while an error of the caller's is pending leaves one pending") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  run_steps_kept_up(timer, stream, 3);
  fake_cuda::set_last_error(cudaErrorInvalidConfiguration);
  fake_cuda::fail_next("cudaEventRecord", cudaErrorInvalidResourceHandle);
  timer.on_batch_start();
  CHECK(timer.counts().failed == 1);
  CHECK(fake_cuda::last_error() != cudaSuccess);
  fake_cuda::set_last_error(cudaSuccess);
}

TEST_CASE("an event whose record is refused is given back") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  {
    const RecordedSteps recorded;
    CudaTimer timer{stream.get(), recorded.options()};
    run_steps_kept_up(timer, stream, 3);
    fake_cuda::fail_next("cudaEventRecord", cudaErrorInvalidResourceHandle);
    timer.on_batch_start();
    CHECK(timer.counts().failed == 1);
  }
  CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
  CHECK(forbidden_violations() == "");
}

TEST_CASE("a stream under capture does not hide the error before it") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  run_steps_kept_up(timer, stream, 3);
  fake_cuda::fail_next("cudaEventRecord", cudaErrorInvalidResourceHandle);
  run_step(timer, stream, 1ms);
  {
    const fake_cuda::UserCode user;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  }
  timer.on_batch_start();
  {
    const fake_cuda::UserCode user;
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  }
  CHECK(timer.counts().failed == 2);
  CHECK(timer.status().error_code == cudaErrorInvalidResourceHandle);
  CHECK(std::string_view(timer.status().call) == "cudaEventRecord");
}

TEST_CASE("a moved timer keeps the error that it met") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  const RecordedSteps recorded;
  CudaTimer timer{stream.get(), recorded.options()};
  run_steps_kept_up(timer, stream, 3);
  fake_cuda::fail_next("cudaEventRecord", cudaErrorInvalidResourceHandle);
  run_step(timer, stream, 1ms);
  const CudaTimer moved{std::move(timer)};
  CHECK(moved.status().error_code == cudaErrorInvalidResourceHandle);
  CHECK(std::string_view(moved.status().call) == "cudaEventRecord");
}

TEST_CASE("a moved timer goes on with the events of the one it came from") {
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  {
    const RecordedSteps recorded;
    CudaTimer timer{stream.get(), recorded.options()};
    run_steps_kept_up(timer, stream, 4);
    const auto created = fake_cuda::events_created();
    CudaTimer moved{std::move(timer)};
    run_steps_kept_up(moved, stream, 4);
    CHECK(fake_cuda::events_created() == created);
  }
  CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
}
