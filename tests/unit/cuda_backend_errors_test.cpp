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
#include "support/watched_timer.hpp"

using namespace std::chrono_literals;
using fake_cuda::Violation;
using std::chrono::nanoseconds;
using steptimer::StepCounts;
using steptimer::StepTimerOptions;
using steptimer::TimerState;
using namespace watched;

namespace {

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

/// What may be the first thing done to a timer whose device, or runtime, has gone, with a step open and one pending.
struct Way {
  const char* name;
  std::function<void(std::unique_ptr<CudaTimer>&)> call;
  bool turns_off;
  bool marks = false;
};
const Way ways[] = {
    {"hooks",
     [](auto& t) {
       for (int i = 0; i < 5; ++i) {
         t->on_batch_start();
         t->on_batch_end();
       }
     },
     true, true},
    {"end of the open step", [](auto& t) { t->on_batch_end(); }, true, true},
    {"poll", [](auto& t) { t->poll(); }, true},
    {"finish", [](auto& t) { t->finish(); }, true},
    {"release", [](auto& t) { t->release(); }, false},
    {"reset", [](auto& t) { t->reset(); }, false},
    {"move", [](auto& t) { t = std::make_unique<CudaTimer>(std::move(*t)); }, false},
    {"move assignment", [](auto& t) { *t = CudaTimer{}; }, false},
    {"nothing", [](auto&) {}, false},
};

/// One life of a timer, from its first step to its end, in which everything happens once.
class Life : public Watched {
 public:
  Life(const Setup& setup, std::optional<fake_cuda::Injection> injection) : Watched(setup) {
    if (injection) fake_cuda::inject(*std::move(injection));
    live();
    own_stream_.reset();
  }

  StepCounts before_release;  ///< after the first phase, when all that can be measured has been
  steptimer::TimerStatus status_before_release{};
  std::vector<fake_cuda::Call> calls;  ///< those of the timer
  std::size_t calls_before_release = 0;
  std::uint64_t events_created = 0, events_destroyed = 0;

 private:
  void live() {
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
    start();
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
    start();
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
    do_call("move assignment", [&] { *timer_ = CudaTimer{stream_, options()}; });
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
};

/// The calls that change something for a while.
bool switches(const fake_cuda::Call& call) {
  const std::string_view name = call.function;
  return name == "cudaThreadExchangeStreamCaptureMode" || name == "cudaSetDevice";
}

/// The first call after one whose error stays, up to the release that gives the timer another chance; it may only look
/// at the error or put something back.
std::string call_after(const Life& life, std::vector<fake_cuda::Call>::const_iterator failed, const Setup& setup) {
  const auto end = life.calls.begin() + static_cast<std::ptrdiff_t>(life.calls_before_release);
  const auto next = std::find_if(
      failed + 1, end, [&](const fake_cuda::Call& call) { return !is_about_errors(call) && !puts_back(call, setup); });
  return next == end ? std::string() : std::string("CUDA is still called: ") + next->function;
}

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

TEST_CASE("an error that stays turns the timer off, once and for good", "[case-21]") {
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

TEST_CASE("whatever a kernel does to its device, the first call to see it turns the timer off and the user sees it too",
          "[case-21]") {
  const cudaError_t code =
      GENERATE(cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorLaunchTimeout, cudaErrorAssert,
               cudaErrorHardwareStackError, cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
               cudaErrorInvalidAddressSpace, cudaErrorInvalidPc, cudaErrorECCUncorrectable, cudaErrorUnknown);
  const bool measured_before = GENERATE(false, true);
  INFO("code " << code << (measured_before ? ", steps were measured before" : ", in the first step"));
  for (const Way& way : ways) {
    INFO(way.name);
    REQUIRE(device_work::begin());
    const device_work::Stream stream;
    const RecordedSteps recorded;
    auto timer = std::make_unique<CudaTimer>(stream.get(), recorded.options());
    if (measured_before) run_steps_kept_up(*timer, stream, 4);
    run_step(*timer, stream, 1ms);
    timer->on_batch_start();
    fake_cuda::fault_device(0, code);
    fake_cuda::advance(50ms);
    way.call(timer);
    CHECK(adds_up(timer->counts()));
    if (way.turns_off) {
      CHECK(timer->status().state == TimerState::failed);
      CHECK(timer->status().error_code == code);
      CHECK(timer->counts().pending == 0);
      CHECK(recorded.warnings().size() <= 2);  // of the open step, and of this
    }
    timer.reset();
    CHECK(forbidden_violations() == "");
    CHECK(fake_cuda::last_error() == cudaSuccess);
    const fake_cuda::UserCode user;
    CHECK(cudaDeviceSynchronize() == code);
  }
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

TEST_CASE("a runtime whose not-ready answer leaves an error behind: the caller's survives, and nothing is lost",
          "[case-19]") {
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

TEST_CASE("steps given up before the device reached any leave the caller's error alone", "[case-19]") {
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

TEST_CASE("an error of the caller's stays pending through every hook", "[case-19]") {
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

TEST_CASE("a timer that outlives the runtime is silent and touches nothing", "[case-46]") {
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

TEST_CASE("when the runtime has gone, whatever is done first to a timer is silent or said once, and harmless",
          "[case-46]") {
  const bool measured_before = GENERATE(false, true);
  INFO((measured_before ? "steps were measured before" : "the first step is pending"));
  for (const Way& way : ways) {
    INFO(way.name);
    REQUIRE(device_work::begin());
    const device_work::Stream stream;
    const RecordedSteps recorded;
    auto timer = std::make_unique<CudaTimer>(stream.get(), recorded.options());
    if (measured_before) run_steps_kept_up(*timer, stream, 4);
    run_step(*timer, stream, 1ms);
    timer->on_batch_start();
    fake_cuda::advance(50ms);
    fake_cuda::set_unloading(true);
    fake_cuda::clear_log();
    way.call(timer);
    CHECK(adds_up(timer->counts()));
    if (way.marks) {
      CHECK(timer->status().state == TimerState::failed);
      CHECK(timer->status().error_code == cudaErrorCudartUnloading);
    } else {  // an answer of "unloading" looks like an error of the caller's, so a reading is put off
      CHECK(recorded.warnings().empty());
    }
    CHECK(recorded.warnings().size() <= 2);
    timer.reset();
    CHECK(forbidden_violations() == "");
    CHECK(fake_cuda::calls() <= 12);
    fake_cuda::set_unloading(false);
  }
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

TEST_CASE("a timer released before a device reset can be used again after it", "[case-49]") {
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

TEST_CASE("after a timer has given its events back and the device was reset, a fresh timer measures its steps",
          "[case-49]") {
  const int how = GENERATE(0, 1, 2);
  const bool in_flight = GENERATE(false, true);
  const char* const ways_to_give_back[] = {"release", "assignment of a timer without steps", "destruction"};
  INFO(ways_to_give_back[how] << (in_flight ? ", steps in flight" : ", nothing in flight"));
  REQUIRE(device_work::begin());
  const auto make_stream = [] {
    const fake_cuda::UserCode user;
    cudaStream_t stream = nullptr;  // goes with the device
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    return stream;
  };
  const RecordedSteps recorded;
  {
    const cudaStream_t stream = make_stream();
    auto timer = std::make_unique<CudaTimer>(stream, recorded.options());
    run_steps_kept_up(*timer, stream, 3);
    for (int i = 0; i < 3 && in_flight; ++i) run_step(*timer, stream, 1ms);
    if (how == 0) timer->release();
    if (how == 1) *timer = CudaTimer{};
    if (how == 2) timer.reset();
    reset_device();

    const cudaStream_t next_stream = make_stream();
    const RecordedSteps of_the_fresh_one;
    CudaTimer fresh{next_stream, of_the_fresh_one.options()};
    run_steps_kept_up(fresh, next_stream, 3);
    CHECK(fresh.finish());
    REQUIRE(of_the_fresh_one.size() == 3);
    for (const auto& record : of_the_fresh_one.records()) CHECK(record.batch_time == nanoseconds{1ms});
    CHECK(of_the_fresh_one.warnings().empty());
  }
  CHECK(recorded.warnings().empty());
  CHECK(forbidden_violations() == "");
  CHECK(fake_cuda::last_error() == cudaSuccess);
  CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
}

TEST_CASE("the reset of another device is nothing to a timer", "[case-49][case-29]") {
  REQUIRE(device_work::begin(2));
  const device_work::Stream stream;
  const RecordedSteps recorded;
  {
    CudaTimer timer{stream.get(), recorded.options()};
    run_steps_kept_up(timer, stream, 3);
    run_step(timer, stream, 1ms);
    timer.on_batch_start();
    set_device(1);
    reset_device();
    timer.on_batch_end();
    for (int i = 0; i < 3; ++i) run_step(timer, stream, 1ms);
    CHECK(timer.finish());
    CHECK(fake_cuda::current_device() == 1);
    CHECK(timer.counts().measured == 8);
    CHECK(timer.counts().failed == 0);
    timer.release();
    run_step(timer, stream, 1ms);
  }
  set_device(0);
  CHECK(recorded.warnings().empty());
  CHECK(forbidden_violations() == "");
  CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
}

TEST_CASE("a device reset under a timer costs the timer and nothing else", "[case-49]") {
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

TEST_CASE("a device reset before the first finished step: giving steps up is still safe", "[case-49]") {
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
  const bool is_moved = GENERATE(false, true);
  REQUIRE(device_work::begin());
  const device_work::Stream stream;
  fake_cuda::set_last_error(cudaErrorInvalidValue);
  CudaTimer timer{stream.get()};
  for (int i = 0; i < 2000; ++i) {
    run_step(timer, stream, 1ms);
    device_work::wait_for(stream);
    if (!is_moved) continue;
    CudaTimer moved{std::move(timer)};
    timer = std::move(moved);
  }
  CHECK(timer.finish());
  CHECK(timer.counts().measured == 2000);
  CHECK(fake_cuda::last_error() == cudaErrorInvalidValue);
  fake_cuda::set_last_error(cudaSuccess);
}

// --- what the caller does wrong

TEST_CASE("a stream that has been destroyed costs the steps marked on it, and those before it are measured") {
  REQUIRE(device_work::begin());
  const RecordedSteps recorded;
  auto stream = std::make_unique<device_work::Stream>();
  {
    CudaTimer timer{stream->get(), recorded.options()};
    for (int i = 0; i < 3; ++i) run_step(timer, *stream, 1ms);
    timer.on_batch_start();
    stream.reset();
    timer.on_batch_end();
    for (int i = 0; i < 5; ++i) {
      timer.on_batch_start();
      timer.on_batch_end();
    }
    CHECK(fake_cuda::last_error() == cudaSuccess);
    fake_cuda::finish_all();
    fake_cuda::advance(10ms);
    CHECK(timer.finish());
    CHECK(recorded.size() == 3);
    CHECK(timer.counts().failed == 6);
    CHECK(adds_up(timer.counts()));
    CHECK(recorded.warnings().size() == 1);
    CHECK(timer.status().state == TimerState::ok);
    CHECK(timer.status().error_code == cudaErrorInvalidResourceHandle);
  }
  CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
}

TEST_CASE("on_record may call anything of a timer, with nothing of the timer's in force") {
  const int what = GENERATE(range(0, 9));
  const bool on_another_device = GENERATE(false, true);
  INFO("call " << what);
  REQUIRE(device_work::begin(2));
  if (on_another_device) set_device(1);
  const device_work::Stream stream;
  set_device(0);
  fake_cuda::set_last_error(cudaSuccess);
  CudaTimer* self = nullptr;
  int calls = 0;
  StepTimerOptions options;
  options.on_warning = [](std::string_view) {};
  options.on_record = [&](const steptimer::StepRecord& record) {
    CHECK(record.batch_time <= 1ms);
    CHECK(fake_cuda::current_device() == 0);
    CHECK(fake_cuda::capture_mode() == cudaStreamCaptureModeGlobal);
    if (++calls > 20) return;
    switch (what) {
      case 0: CHECK(self->poll() == 0); break;
      case 1: self->finish(); break;
      case 2: self->reset(); break;
      case 3: self->release(); break;
      case 4: self->on_batch_start(); break;
      case 5: self->on_batch_end(); break;
      case 6: self->pause(); break;
      case 7: run_step(*self, stream, 1ms); break;
      default: throw calls;
    }
    CHECK(adds_up(self->counts()));
  };
  {
    CudaTimer timer{stream.get(), options};
    self = &timer;
    for (int i = 0; i < 5; ++i) run_step(timer, stream, 1ms);
    device_work::wait_for(stream);
    timer.poll();
    for (int i = 0; i < 5; ++i) {
      run_step(timer, stream, 1ms);
      device_work::wait_for(stream);
    }
    timer.finish(0ns);
    CHECK(calls >= 1);
    if (what == 8) CHECK(calls == 1);
    CHECK(adds_up(timer.counts()));
    CHECK(timer.status().state == TimerState::ok);
  }
  CHECK(fake_cuda::current_device() == 0);
  CHECK(fake_cuda::capture_mode() == cudaStreamCaptureModeGlobal);
  CHECK(fake_cuda::last_error() == cudaSuccess);
  CHECK(forbidden_violations() == "");
  CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
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
