// CudaBackend when CUDA fails, as a table: each call of the runtime's that a timer makes at a given moment fails, with
// each code, once, a few times, or for as long as the fault lasts; then the fault is over.

#include <steptimer/cuda_backend.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/watched_timer.hpp"

using namespace std::chrono_literals;
using namespace watched;
using std::chrono::nanoseconds;
using steptimer::TimerState;

namespace {

/// What is done to a timer when the fault sets in.
enum class Moment {
  start,
  start_again,
  end,
  poll,
  finish,
  finish_waiting,
  release,
  reset,
  move_assignment,
  destruction
};
constexpr Moment moments[] = {Moment::start,           Moment::start_again,    Moment::end,     Moment::poll,
                              Moment::finish,          Moment::finish_waiting, Moment::release, Moment::reset,
                              Moment::move_assignment, Moment::destruction};

const char* name(Moment moment) {
  switch (moment) {
    case Moment::start: return "start hook";
    case Moment::start_again: return "start hook of an open step";
    case Moment::end: return "end hook";
    case Moment::poll: return "poll";
    case Moment::finish: return "finish without time";
    case Moment::finish_waiting: return "finish";
    case Moment::release: return "release";
    case Moment::reset: return "reset";
    case Moment::move_assignment: return "move assignment";
    case Moment::destruction: return "destruction";
  }
  return "";
}

struct Case {
  const Setup* setup;
  bool warm;  ///< the timer has measured steps, has one that is done, and some in flight; else it is new
  Moment moment;
};

/// A timer that meets one fault at one moment, goes on while the fault lasts, and goes on after it.
class Faulty : public Watched {
 public:
  Faulty(const Case& c, std::optional<fake_cuda::Injection> injection) : Watched(*c.setup), case_(c) {
    prepare();
    fake_cuda::clear_log();
    if (injection) fake_cuda::inject(*std::move(injection));
    at_the_moment();
    for (const auto& call : fake_cuda::log())
      if (!call.user && !is_about_errors(call) && !puts_back(call, *c.setup)) calls.insert(call.function);
    if (timer_ != nullptr) meanwhile();
    count_failures();
    if (timer_ != nullptr) {
      afterwards();
      do_call("destruction at the end", [&] { timer_.reset(); });
    }
    const std::string violations = forbidden_violations();
    if (problem.empty()) problem = violations;
    own_stream_.reset();
  }

  std::set<std::string> calls;  ///< made at the moment
  std::uint64_t failures = 0;   ///< calls made to fail, those that destroy events left out
  std::uint64_t not_destroyed = 0;
  steptimer::StepCounts counts{};  ///< before the fault was over; like status, of no meaning after destruction
  steptimer::TimerStatus status{};
  std::size_t warnings_meanwhile = 0;
  std::uint64_t calls_when_off = 0;
  std::size_t records_afterwards = 0;
  bool finished_afterwards = true;

 private:
  void prepare() {
    const bool rebinds = !case_.warm && !in_an_open_step();
    bound_to_ = rebinds ? setup_.current_device : 0;
    if (case_.warm) {
      for (int i = 0; i < 4; ++i) kept_up_step();
      for (int i = 0; i < 3; ++i) step();
      fake_cuda::advance(15ms);  // the first of the three is done, the second runs
    }
    if (in_an_open_step()) {
      start();
      work();
    }
    set_device(setup_.current_device);
    raise_callers_error();
  }
  bool in_an_open_step() const { return case_.moment != Moment::start && case_.moment != Moment::poll; }

  void at_the_moment() {
    const auto call = [&](auto&& f, nanoseconds may_wait = 0ns) { do_call(name(case_.moment), f, may_wait); };
    switch (case_.moment) {
      case Moment::start:
      case Moment::start_again: call([&] { timer_->on_batch_start(); }); break;
      case Moment::end: call([&] { timer_->on_batch_end(7); }); break;
      case Moment::poll: call([&] { timer_->poll(); }); break;
      case Moment::finish: call([&] { timer_->finish(0ns); }); break;
      case Moment::finish_waiting: call([&] { timer_->finish(1ms); }, 1ms); break;
      case Moment::release: call([&] { timer_->release(); }); break;
      case Moment::reset: call([&] { timer_->reset(); }); break;
      case Moment::move_assignment: call([&] { *timer_ = CudaTimer{stream_, options()}; }); break;
      case Moment::destruction: call([&] { timer_.reset(); }); break;
    }
    if (case_.moment == Moment::release || case_.moment == Moment::move_assignment) bound_to_ = setup_.current_device;
  }

  /// The training goes on, whether the fault does or not.
  void meanwhile() {
    if (case_.moment == Moment::start || case_.moment == Moment::start_again) {
      work();
      do_call("end", [&] { timer_->on_batch_end(7); });
    }
    for (int i = 0; i < 2; ++i) step();
    do_call("poll", [&] { timer_->poll(); });
    counts = timer_->counts();
    status = timer_->status();
    warnings_meanwhile = warnings.size();
  }

  /// The fault is over.
  void count_failures() {
    for (const auto& call : fake_cuda::log()) {
      if (!call.injected) continue;
      const bool destroys = std::string_view(call.function) == "cudaEventDestroy";
      ++(destroys ? not_destroyed : failures);
    }
    fake_cuda::clear_injections();
    clear_callers_error();
  }

  void afterwards() {
    if (status.state == TimerState::failed) {
      const std::uint64_t calls_before = fake_cuda::calls();
      for (int i = 0; i < 3; ++i) step();
      do_call("poll", [&] { timer_->poll(); });
      do_call("finish", [&] { timer_->finish(0ns); });
      calls_when_off = fake_cuda::calls() - calls_before;
      do_call("release", [&] { timer_->release(); });
      bound_to_ = setup_.current_device;
    }
    wait();
    do_call("finish", [&] { finished_afterwards = timer_->finish(0ns); });
    records_afterwards = records.size();
    for (int i = 0; i < 4; ++i) kept_up_step();
    do_call("finish", [&] { finished_afterwards = timer_->finish(0ns) && finished_afterwards; });
    records_afterwards = records.size() - records_afterwards;
  }

  const Case case_;
};

fake_cuda::Injection fault(const Setup& setup, const std::string& function, cudaError_t code, std::uint64_t times) {
  fake_cuda::Injection injection;
  injection.function = function;
  injection.code = code;
  injection.times = times;
  injection.only_if = [&setup](const fake_cuda::Call& call) {
    return !call.user && !is_about_errors(call) && !puts_back(call, setup);
  };
  return injection;
}

/// Whether two warnings are of one kind: they begin alike, and give a reason in brackets.
bool a_kind_is_told_twice(const std::vector<std::string>& warnings) {
  std::set<std::string> kinds;
  return std::any_of(warnings.begin(), warnings.end(),
                     [&](const std::string& line) { return !kinds.insert(line.substr(0, line.find(" ("))).second; });
}

void check(const Case& c, const Faulty& timer, cudaError_t code, Problems& problems) {
  problems.expect(timer.failures + timer.not_destroyed > 0, "nothing was made to fail");
  problems.add(timer.problem);
  problems.add(wrong_record(timer.records));
  problems.expect(!a_kind_is_told_twice(timer.warnings), "a kind of trouble is told twice");
  const std::uint64_t given_back = fake_cuda::events_destroyed() + timer.not_destroyed;
  if (c.moment == Moment::destruction)
    return problems.expect(fake_cuda::events_destroyed() <= fake_cuda::events_created(),
                           "more events are destroyed than made");

  problems.expect(timer.calls_when_off == 0, "a timer that is off calls CUDA");
  problems.expect(timer.finished_afterwards, "something is pending for ever");
  problems.expect(timer.records_afterwards == 4,
                  "after the fault " + std::to_string(timer.records_afterwards) + " of 4 steps are measured");
  const auto& status = timer.status;
  problems.expect(status.error_code == 0 || status.error_code == code, "the status has another code");
  problems.expect((status.error_code == 0) == (*status.call == '\0') || code >= 900, "the status names no call");
  if (timer.failures == 0) {
    problems.expect(status.state == TimerState::ok, "the timer is off, and nothing of its has failed");
  } else if (!stays(code)) {
    problems.expect(status.state == TimerState::ok, "the timer has turned itself off");
    problems.expect(timer.counts.failed <= timer.failures, "a failure costs more than its step");
    problems.expect(given_back == fake_cuda::events_created(), "events are not given back");
  } else if (c.moment == Moment::start || c.moment == Moment::start_again || c.moment == Moment::end ||
             c.moment == Moment::poll) {
    problems.expect(status.state == TimerState::failed, "the timer goes on");
    problems.expect(timer.counts.failed > 0 || timer.counts.started == 0, "no step counts as failed");
    problems.expect(timer.counts.pending == 0, "steps of a lost timeline are still pending");
    problems.expect(timer.warnings_meanwhile > 0, "nothing was said");
  }
}

constexpr cudaError_t codes[] = {cudaErrorInvalidValue,
                                 cudaErrorMemoryAllocation,
                                 cudaErrorInitializationError,
                                 cudaErrorCudartUnloading,
                                 cudaErrorInvalidResourceHandle,
                                 cudaErrorNotReady,
                                 cudaErrorIllegalAddress,
                                 cudaErrorContextIsDestroyed,
                                 cudaErrorLaunchFailure,
                                 cudaErrorStreamCaptureUnsupported,
                                 cudaErrorStreamCaptureInvalidated,
                                 cudaErrorStreamCaptureMerge,
                                 cudaErrorStreamCaptureUnmatched,
                                 cudaErrorStreamCaptureUnjoined,
                                 cudaErrorStreamCaptureIsolation,
                                 cudaErrorStreamCaptureImplicit,
                                 cudaErrorCapturedEvent,
                                 cudaErrorUnknown};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Setup& setup : setups)
    for (const bool warm : {false, true})
      for (const Moment moment : moments) cases.push_back({&setup, warm, moment});
  return cases;
}

std::string description(const Case& c) {
  return std::string(name(c.moment)) + (c.warm ? ", warm, " : ", new, ") + c.setup->name;
}

}  // namespace

TEST_CASE("without a fault the timers of this table measure all that they can") {
  std::set<std::string> made_to_fail;
  for (const Case& c : all_cases()) {
    INFO(description(c));
    const Faulty timer(c, std::nullopt);
    CHECK(timer.problem == "");
    CHECK(wrong_record(timer.records) == "");
    CHECK(timer.failures == 0);
    if (c.moment != Moment::destruction) CHECK(timer.records_afterwards == 4);
    CHECK(fake_cuda::events_created() == fake_cuda::events_destroyed());
    made_to_fail.insert(timer.calls.begin(), timer.calls.end());
  }
  CHECK(made_to_fail == std::set<std::string>{"cudaEventCreateWithFlags", "cudaEventDestroy", "cudaEventElapsedTime",
                                              "cudaEventQuery", "cudaEventRecord", "cudaGetDevice", "cudaSetDevice",
                                              "cudaStreamGetDevice", "cudaStreamIsCapturing",
                                              "cudaThreadExchangeStreamCaptureMode"});
}

TEST_CASE("each call of the runtime's may fail at each moment, with each code, however often, and the training goes on",
          "[case-17][case-19][case-21][case-22]") {
  const cudaError_t code = GENERATE(from_range(std::begin(codes), std::end(codes)));
  INFO("code " << code);
  Problems problems;
  std::size_t lives = 0;
  for (const Case& c : all_cases()) {
    for (const std::string& function : Faulty(c, std::nullopt).calls) {
      for (const std::uint64_t times : {std::uint64_t{1}, std::uint64_t{3}, fake_cuda::unlimited}) {
        const Faulty timer(c, fault(*c.setup, function, code, times));
        problems.about(function + " at the " + description(c) + ", " +
                       (times == fake_cuda::unlimited ? "always" : std::to_string(times) + " times") +
                       timer.calls_at_problem);
        check(c, timer, code, problems);
        ++lives;
      }
    }
  }
  CHECK(problems.text() == "");
  CHECK(lives > 1'000);
}
