// The fake runtime's own controls: gates, log, injections, violations. What it imitates is compared with a
// real GPU by gpu/cuda_behaviours.cpp.

#include "../support/fake_cuda/fake_cuda.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "../support/catch.hpp"

using fake_cuda::Violation;
using namespace std::chrono_literals;

namespace {

cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
  const fake_cuda::UserCode user;
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, flags) == cudaSuccess);
  return stream;
}

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDefault) == cudaSuccess);
  return event;
}

cudaEvent_t recorded(cudaStream_t stream) {
  const cudaEvent_t event = new_event();
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  return event;
}

float elapsed_ms(cudaEvent_t start, cudaEvent_t end) {
  float ms = std::numeric_limits<float>::quiet_NaN();
  REQUIRE(cudaEventElapsedTime(&ms, start, end) == cudaSuccess);
  return ms;
}

}  // namespace

TEST_CASE("fake_cuda: device time moves with the clock and not otherwise") {
  fake_cuda::reset();
  const auto stream = new_stream();
  fake_cuda::advance(3ms);
  const auto start = recorded(stream);
  fake_cuda::work(stream, 10ms);
  const auto end = recorded(stream);

  CHECK(cudaEventQuery(start) == cudaSuccess);  // an idle stream reaches a mark at once
  for (int i = 0; i < 100; ++i) CHECK(cudaEventQuery(end) == cudaErrorNotReady);
  CHECK(fake_cuda::now() == 3ms);
  fake_cuda::advance(10ms - 1ns);
  CHECK(cudaEventQuery(end) == cudaErrorNotReady);
  fake_cuda::advance(1ns);
  CHECK(cudaEventQuery(end) == cudaSuccess);
  CHECK(elapsed_ms(start, end) == 10.0F);
  CHECK(fake_cuda::state(start).reached_at == 3ms);
  CHECK(fake_cuda::state(end).reached_at == 13ms);
  CHECK(fake_cuda::state(end).recorded_at == 3ms);
}

TEST_CASE("fake_cuda: work starts when it is queued or when the work before it has ended") {
  fake_cuda::reset();
  const auto stream = new_stream();
  fake_cuda::work(stream, 10ms);
  CHECK(fake_cuda::idle_at(stream) == 10ms);
  fake_cuda::work(stream, 10ms);
  CHECK(fake_cuda::idle_at(stream) == 20ms);
  CHECK(fake_cuda::queued(stream) == 2);
  fake_cuda::advance(30ms);
  CHECK(fake_cuda::queued(stream) == 0);
  fake_cuda::work(stream, 10ms);
  CHECK(fake_cuda::idle_at(stream) == 40ms);
}

TEST_CASE("fake_cuda: an event orders another stream by cudaStreamWaitEvent") {
  fake_cuda::reset();
  const auto first = new_stream();
  const auto second = new_stream();
  fake_cuda::work(first, 10ms);
  REQUIRE(cudaStreamWaitEvent(second, recorded(first), 0) == cudaSuccess);
  fake_cuda::work(second, 5ms);
  CHECK(fake_cuda::idle_at(second) == 15ms);
}

TEST_CASE("fake_cuda: a closed gate holds a stream and what depends on it") {
  fake_cuda::reset();
  const auto held = new_stream();
  const auto waiting = new_stream();
  const auto apart = new_stream();
  fake_cuda::Gate gate(held);
  fake_cuda::work(held, 10ms);
  const auto event = recorded(held);
  REQUIRE(cudaStreamWaitEvent(waiting, event, 0) == cudaSuccess);
  fake_cuda::work(waiting, 5ms);
  fake_cuda::work(apart, 1ms);

  fake_cuda::finish_all();
  CHECK(fake_cuda::now() == 1ms);
  fake_cuda::advance(99ms);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  CHECK_FALSE(fake_cuda::state(event).reached_at.has_value());
  CHECK_FALSE(fake_cuda::idle_at(waiting).has_value());

  gate.open();
  gate.open();
  CHECK(fake_cuda::state(event).reached_at == 110ms);
  CHECK(fake_cuda::idle_at(waiting) == 115ms);
  fake_cuda::finish_all();
  CHECK(fake_cuda::now() == 115ms);
}

TEST_CASE("fake_cuda: a gate opens at the end of its scope") {
  fake_cuda::reset();
  const auto stream = new_stream();
  { const fake_cuda::Gate gate(stream); }
  CHECK(fake_cuda::idle_at(stream) == 0ms);
}

TEST_CASE("fake_cuda: gates on one stream open one by one") {
  fake_cuda::reset();
  const auto stream = new_stream();
  fake_cuda::Gate first(stream);
  const auto a = recorded(stream);
  fake_cuda::Gate second(stream);
  const auto b = recorded(stream);
  second.open();
  CHECK(cudaEventQuery(a) == cudaErrorNotReady);
  fake_cuda::advance(1ms);
  first.open();
  CHECK(cudaEventQuery(a) == cudaSuccess);
  CHECK(fake_cuda::state(b).reached_at == 1ms);
}

TEST_CASE("fake_cuda: very many commands behind a gate are freed without trouble") {
  fake_cuda::reset();
  const auto stream = new_stream();
  const fake_cuda::Gate gate(stream);
  for (int i = 0; i < 200'000; ++i) fake_cuda::work(stream, 1ms);
  fake_cuda::reset();
  CHECK(fake_cuda::now() == 0ms);
}

TEST_CASE("fake_cuda: hooks run in order of time, when the clock gets there") {
  fake_cuda::reset();
  const auto stream = new_stream();
  std::vector<std::string> order;
  fake_cuda::work(stream, 5ms);
  fake_cuda::when_done(stream, [&] { order.push_back("done at " + std::to_string(fake_cuda::now() / 1ms)); });
  fake_cuda::at(2ms, [&] {
    order.emplace_back("at 2");
    fake_cuda::at(3ms, [&] { order.emplace_back("at 3"); });
  });
  fake_cuda::at(9ms, [&] { order.emplace_back("at 9"); });
  fake_cuda::advance(8ms);
  CHECK(order == std::vector<std::string>{"at 2", "at 3", "done at 5"});
  CHECK(fake_cuda::now() == 8ms);
}

TEST_CASE("fake_cuda: a wait moves the clock to the end of the work") {
  fake_cuda::reset();
  const auto stream = new_stream();
  fake_cuda::work(stream, 10ms);
  const auto event = recorded(stream);
  fake_cuda::work(stream, 10ms);

  SECTION("for an event") {
    CHECK(cudaEventSynchronize(event) == cudaSuccess);
    CHECK(fake_cuda::now() == 10ms);
  }
  SECTION("for a stream") {
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(fake_cuda::now() == 20ms);
  }
  SECTION("for the device") {
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(fake_cuda::now() == 20ms);
  }
  CHECK(fake_cuda::violations(Violation::waiting_call) == 1);
  CHECK(fake_cuda::violations(Violation::would_block) == 0);
}

TEST_CASE("fake_cuda: a wait can be made to fail instead") {
  fake_cuda::reset();
  fake_cuda::set_waits_advance(false);
  const auto stream = new_stream();
  fake_cuda::work(stream, 10ms);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorUnknown);
  CHECK(fake_cuda::now() == 0ms);
  CHECK(fake_cuda::violations(Violation::would_block) == 1);
}

TEST_CASE("fake_cuda: a wait behind a gate ends when the gate opens, or gives up") {
  fake_cuda::reset();
  const auto stream = new_stream();
  fake_cuda::Gate gate(stream);
  fake_cuda::work(stream, 10ms);

  SECTION("opened by another thread") {
    std::thread opener([&] {
      std::this_thread::sleep_for(5ms);
      gate.open();
    });
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    opener.join();
    CHECK(fake_cuda::now() == 10ms);
  }
  SECTION("opened by a hook") {
    fake_cuda::at(7ms, [&] { gate.open(); });
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(fake_cuda::now() == 17ms);
  }
  SECTION("never opened") {
    fake_cuda::set_gate_patience(1ms);
    CHECK(cudaStreamSynchronize(stream) == cudaErrorUnknown);
    CHECK(fake_cuda::violations(Violation::would_block) == 1);
  }
}

TEST_CASE("fake_cuda: a full queue would block the host") {
  fake_cuda::reset();
  const auto stream = new_stream();
  const fake_cuda::Gate gate(stream);  // the first command
  const auto event = new_event();
  for (int i = 0; i < 1020; ++i) fake_cuda::work(stream, 1ms);
  CHECK(fake_cuda::queued(stream) == 1021);
  CHECK(fake_cuda::violations().empty());
  CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(fake_cuda::violations(Violation::would_block) == 1);
}

TEST_CASE("fake_cuda: latency, tick and call cost are added where they belong") {
  fake_cuda::reset();
  const auto stream = new_stream();
  SECTION("latency delays a mark on an idle stream only") {
    fake_cuda::set_event_latency(4us);
    const auto idle = recorded(stream);
    CHECK(fake_cuda::state(idle).reached_at == 4us);
    fake_cuda::work(stream, 10ms);
    CHECK(fake_cuda::state(recorded(stream)).reached_at == 10ms + 4us);
    CHECK(fake_cuda::state(recorded(stream)).reached_at == 10ms + 4us);
  }
  SECTION("a tick rounds device times down") {
    fake_cuda::set_event_tick(32ns);
    const auto start = recorded(stream);
    fake_cuda::work(stream, 95ns);
    const auto end = recorded(stream);
    fake_cuda::finish_all();
    CHECK(elapsed_ms(start, end) == 64e-6F);
  }
  SECTION("each runtime call costs host time") {
    fake_cuda::set_call_cost(1us);
    const auto event = recorded(stream);
    while (cudaEventQuery(event) != cudaSuccess) {
    }
    CHECK(fake_cuda::now() == 3us);
  }
}

TEST_CASE("fake_cuda: times are rounded to float as CUDA rounds them") {
  fake_cuda::reset();
  const auto stream = new_stream();
  const auto start = recorded(stream);
  fake_cuda::work(stream, 123'456'789ns);
  const auto end = recorded(stream);
  fake_cuda::finish_all();
  CHECK(elapsed_ms(start, end) == 123.456789F);
}

TEST_CASE("fake_cuda: the log tells every call, its arguments and its answer") {
  fake_cuda::reset();
  const auto stream = new_stream();
  const auto start = recorded(stream);
  fake_cuda::work(stream, 10ms);
  const auto end = recorded(stream);
  fake_cuda::clear_log();
  CHECK(cudaEventQuery(end) == cudaErrorNotReady);
  fake_cuda::advance(10ms);
  CHECK(elapsed_ms(start, end) == 10.0F);
  std::thread([&] { CHECK(cudaEventRecord(start, stream) == cudaSuccess); }).join();

  const auto log = fake_cuda::log();
  REQUIRE(log.size() == 3);
  CHECK(log[0].function == std::string("cudaEventQuery"));
  CHECK(log[0].event == end);
  CHECK(log[0].result == cudaErrorNotReady);
  CHECK_FALSE(log[0].has_stream);
  CHECK(log[1].event == start);
  CHECK(log[1].second_event == end);
  CHECK(log[1].elapsed_ms == 10.0F);
  CHECK(log[1].time == 10ms);
  CHECK(log[2].has_stream);
  CHECK(log[2].stream == stream);
  CHECK(log[2].device == 0);
  CHECK(log[2].thread != log[1].thread);
  CHECK(fake_cuda::call_names() ==
        std::vector<std::string>{"cudaEventQuery", "cudaEventElapsedTime", "cudaEventRecord"});
  CHECK(fake_cuda::calls("cudaEventQuery") == 1);
  CHECK(fake_cuda::calls("cudaEventDestroy") == 0);
  CHECK(fake_cuda::calls() == 3);
}

TEST_CASE("fake_cuda: the user's calls are logged but not counted") {
  fake_cuda::reset();
  {
    const fake_cuda::UserCode user;
    cudaEvent_t event = nullptr;
    CHECK(cudaEventCreate(&event) == cudaSuccess);
    CHECK(cudaEventRecord(event, nullptr) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaEventDestroy(event) == cudaSuccess);
  }
  CHECK(fake_cuda::log().size() == 4);
  CHECK(fake_cuda::log()[0].user);
  CHECK(fake_cuda::call_names().empty());
  CHECK(fake_cuda::calls() == 0);
  CHECK(fake_cuda::events_created() == 0);
  CHECK(fake_cuda::events_destroyed() == 0);
  CHECK(fake_cuda::live_events() == 0);
  CHECK(fake_cuda::violations().empty());
}

TEST_CASE("fake_cuda: calls that leave an error behind are counted, but not the user's") {
  fake_cuda::reset();
  CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);  // tells of it, and sets none
  CHECK(fake_cuda::errors_set() == 1);
  {
    const fake_cuda::UserCode user;
    CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice);
  }
  CHECK(fake_cuda::errors_set() == 1);
  fake_cuda::clear_log();
  CHECK(fake_cuda::errors_set() == 0);
}

TEST_CASE("fake_cuda: the log can be left out") {
  fake_cuda::reset();
  fake_cuda::set_keep_log(false);
  new_event();
  CHECK(fake_cuda::log().empty());
  CHECK(fake_cuda::calls("cudaEventCreateWithFlags") == 1);
}

TEST_CASE("fake_cuda: a thread knows when it is inside a call") {
  fake_cuda::reset();
  CHECK_FALSE(fake_cuda::inside_call());
  bool inside = false;
  fake_cuda::inject({"cudaEventQuery", cudaSuccess, 0, 1, false, true, [&](const fake_cuda::Call&) {
                       inside = fake_cuda::inside_call();
                       return true;
                     }});
  cudaEventQuery(nullptr);
  CHECK(inside);
  CHECK_FALSE(fake_cuda::inside_call());
}

TEST_CASE("fake_cuda: injected answers") {
  fake_cuda::reset();
  const auto stream = new_stream();
  const auto event = recorded(stream);

  SECTION("the next call") {
    fake_cuda::fail_next("cudaEventQuery", cudaErrorLaunchFailure);
    CHECK(cudaEventQuery(event) == cudaErrorLaunchFailure);
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
    CHECK(cudaEventQuery(event) == cudaSuccess);
  }
  SECTION("the n-th call") {
    fake_cuda::fail_nth("cudaEventQuery", 3, cudaErrorLaunchFailure);
    CHECK(cudaEventQuery(event) == cudaSuccess);
    CHECK(cudaStreamQuery(stream) == cudaSuccess);
    CHECK(cudaEventQuery(event) == cudaSuccess);
    CHECK(cudaEventQuery(event) == cudaErrorLaunchFailure);
    CHECK(cudaEventQuery(event) == cudaSuccess);
  }
  SECTION("every call, until cleared") {
    fake_cuda::fail_always("cudaEventQuery", cudaErrorLaunchFailure);
    for (int i = 0; i < 10; ++i) CHECK(cudaEventQuery(event) == cudaErrorLaunchFailure);
    fake_cuda::clear_injections();
    CHECK(cudaEventQuery(event) == cudaSuccess);
  }
  SECTION("any function") {
    fake_cuda::fail_next("*", cudaErrorLaunchFailure);
    CHECK(cudaSetDevice(0) == cudaErrorLaunchFailure);
    CHECK(cudaSetDevice(0) == cudaSuccess);
  }
  SECTION("without the call") {
    fake_cuda::fail_next("cudaEventDestroy", cudaErrorLaunchFailure);
    CHECK(cudaEventDestroy(event) == cudaErrorLaunchFailure);
    CHECK(fake_cuda::live_events() == 1);
    CHECK(cudaEventDestroy(event) == cudaSuccess);
    CHECK(fake_cuda::violations().empty());
  }
  SECTION("with the call") {
    fake_cuda::Injection injection;
    injection.function = "cudaEventDestroy";
    injection.code = cudaErrorLaunchFailure;
    injection.perform = true;
    fake_cuda::inject(injection);
    CHECK(cudaEventDestroy(event) == cudaErrorLaunchFailure);
    CHECK(fake_cuda::live_events() == 0);
  }
  SECTION("for one event only") {
    const auto other = recorded(stream);
    fake_cuda::Injection injection;
    injection.function = "cudaEventQuery";
    injection.code = cudaErrorNotReady;
    injection.only_if = [&](const fake_cuda::Call& call) { return call.event == other; };
    fake_cuda::inject(injection);
    CHECK(cudaEventQuery(event) == cudaSuccess);
    CHECK(cudaEventQuery(other) == cudaErrorNotReady);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK(cudaEventQuery(other) == cudaSuccess);
  }
  SECTION("without setting the last error") {
    fake_cuda::Injection injection;
    injection.function = "cudaEventQuery";
    injection.code = cudaErrorLaunchFailure;
    injection.sets_last_error = false;
    fake_cuda::inject(injection);
    CHECK(cudaEventQuery(event) == cudaErrorLaunchFailure);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
  }
  SECTION("times") {
    const auto end = recorded(stream);
    fake_cuda::inject_elapsed({-1.78F, 0.0F, std::numeric_limits<float>::quiet_NaN()});
    CHECK(elapsed_ms(event, event) == 0.0F);  // an event and itself: not counted
    CHECK(elapsed_ms(event, end) == -1.78F);
    CHECK(elapsed_ms(event, end) == 0.0F);
    CHECK(std::isnan(elapsed_ms(event, end)));
    CHECK(elapsed_ms(event, end) == 0.0F);
  }
}

TEST_CASE("fake_cuda: a hook before a call can slip something in") {
  fake_cuda::reset();
  const auto captured = new_stream();
  const auto stream = new_stream();
  const auto event = recorded(stream);
  fake_cuda::set_before_call([&](std::string_view function) {
    const fake_cuda::UserCode user;
    if (function == "cudaEventQuery")
      std::thread([&] { cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal); }).join();
  });
  CHECK(cudaEventQuery(event) == cudaErrorStreamCaptureUnsupported);
  REQUIRE(fake_cuda::captures().size() == 1);
  CHECK(fake_cuda::captures()[0].invalidated);
  CHECK(fake_cuda::captures()[0].invalidated_by == std::string("cudaEventQuery"));
  CHECK(fake_cuda::violations(Violation::capture_destroyed) == 1);
}

TEST_CASE("fake_cuda: a not-ready runtime that leaves an error behind") {
  fake_cuda::reset();
  fake_cuda::set_not_ready_sets_last_error(true);
  const auto stream = new_stream();
  fake_cuda::work(stream, 1ms);
  const auto event = recorded(stream);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaErrorNotReady);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaErrorNotReady);
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, event, event) == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaErrorNotReady);
}

TEST_CASE("fake_cuda: what is done wrong with handles is noticed") {
  fake_cuda::reset();
  const auto stream = new_stream();
  const auto event = recorded(stream);

  SECTION("null") {
    CHECK(cudaEventDestroy(nullptr) == cudaErrorInvalidResourceHandle);
    CHECK(fake_cuda::violations(Violation::null_handle) == 1);
  }
  SECTION("destroyed twice") {
    CHECK(cudaEventDestroy(event) == cudaSuccess);
    CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
    CHECK(fake_cuda::violations(Violation::double_destroy) == 1);
    CHECK(fake_cuda::events_destroyed() == 1);
  }
  SECTION("used after it was destroyed") {
    CHECK(cudaEventDestroy(event) == cudaSuccess);
    CHECK(cudaEventQuery(event) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
    CHECK(fake_cuda::violations(Violation::use_after_destroy) == 2);
  }
  SECTION("a destroyed stream") {
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    CHECK(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
    CHECK(fake_cuda::violations(Violation::use_after_destroy) == 1);
  }
  SECTION("from another process") {
    fake_cuda::reset();
    CHECK(cudaEventQuery(event) == cudaErrorInvalidResourceHandle);
    CHECK(fake_cuda::violations(Violation::unknown_handle) == 1);
    CHECK(fake_cuda::violation_text().find("unknown_handle") == 0);
  }
  SECTION("recorded again in flight") {
    fake_cuda::work(stream, 1ms);
    CHECK(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(fake_cuda::violations().empty());
    CHECK(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(fake_cuda::violations(Violation::rerecord_in_flight) == 1);
  }
  SECTION("the legacy stream") {
    CHECK(cudaEventRecord(event, nullptr) == cudaSuccess);
    CHECK(cudaEventRecord(event, cudaStreamLegacy) == cudaSuccess);
    CHECK(cudaEventRecord(event, cudaStreamPerThread) == cudaSuccess);
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
    CHECK(fake_cuda::violations(Violation::default_stream) == 1);
    CHECK(fake_cuda::log().back().per_thread_variant);
#else
    CHECK(fake_cuda::violations(Violation::default_stream) == 2);
    CHECK_FALSE(fake_cuda::log().back().per_thread_variant);
#endif
  }
  SECTION("elapsed before the events have finished") {
    fake_cuda::work(stream, 1ms);
    const auto end = recorded(stream);
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, event, end) == cudaErrorNotReady);
    CHECK(fake_cuda::violations(Violation::elapsed_unready) == 1);
  }
}

TEST_CASE("fake_cuda: events are counted") {
  fake_cuda::reset();
  const auto first = new_event();
  const auto second = new_event();
  CHECK(cudaEventDestroy(first) == cudaSuccess);
  CHECK(fake_cuda::events_created() == 2);
  CHECK(fake_cuda::events_destroyed() == 1);
  CHECK(fake_cuda::live_events() == 1);
  CHECK(fake_cuda::most_live_events() == 2);
  CHECK(fake_cuda::all_events() == std::vector<cudaEvent_t>{first, second});
  CHECK_FALSE(fake_cuda::state(first).live);
  CHECK(fake_cuda::state(second).live);
  CHECK(fake_cuda::state(second).number == 1);
  CHECK(fake_cuda::state(nullptr).number == -1);
}

TEST_CASE("fake_cuda: a kernel fault sticks to its device") {
  fake_cuda::reset(2);
  const auto stream = new_stream();
  const auto event = recorded(stream);
  fake_cuda::kernel_fault(stream, 5ms);
  CHECK(cudaEventQuery(event) == cudaSuccess);
  fake_cuda::advance(5ms);
  CHECK(cudaEventQuery(event) == cudaErrorIllegalAddress);
  CHECK(cudaEventRecord(event, stream) == cudaErrorIllegalAddress);
  CHECK(fake_cuda::work(stream, 1ms) == cudaErrorIllegalAddress);
  CHECK(fake_cuda::context(0).fault == cudaErrorIllegalAddress);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK(recorded(new_stream()) != nullptr);
  CHECK(cudaEventDestroy(event) == cudaErrorIllegalAddress);

  fake_cuda::fault_device(1, cudaErrorLaunchFailure);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
}

TEST_CASE("fake_cuda: after a device reset old handles are dangerous") {
  fake_cuda::reset();
  const auto stream = new_stream();
  const auto event = recorded(stream);
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  CHECK(fake_cuda::devices_with_context().empty());
  CHECK(fake_cuda::live_events() == 0);

  SECTION("a bare query or elapsed is not") {
    float ms = 0;
    CHECK(cudaEventQuery(event) == cudaErrorContextIsDestroyed);
    CHECK(cudaEventElapsedTime(&ms, event, event) == cudaErrorContextIsDestroyed);
    CHECK(fake_cuda::violations().empty());
    CHECK(fake_cuda::devices_with_context().empty());
  }
  SECTION("unless something has made the context again") {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
    CHECK(fake_cuda::context(0).exists);
    CHECK(fake_cuda::context(0).made_by == std::string("cudaThreadExchangeStreamCaptureMode"));
    CHECK(cudaEventQuery(event) == cudaErrorContextIsDestroyed);
    CHECK(fake_cuda::violations(Violation::crash) == 1);
  }
  SECTION("everything else is") {
    cudaStreamCaptureStatus status{};
    CHECK(cudaStreamIsCapturing(stream, &status) == cudaErrorContextIsDestroyed);
    CHECK(cudaEventRecord(event, stream) == cudaErrorContextIsDestroyed);
    CHECK(cudaEventDestroy(event) == cudaErrorContextIsDestroyed);
    CHECK(fake_cuda::violations(Violation::crash) == 3);
  }
}

TEST_CASE("fake_cuda: contexts are made by the first call that needs one") {
  fake_cuda::reset(2);
  int device = -1;
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(fake_cuda::devices_with_context().empty());
  CHECK(cudaSetDevice(1) == cudaSuccess);
  CHECK(fake_cuda::devices_with_context() == std::vector<int>{1});
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  CHECK(fake_cuda::current_device() == 1);
}

TEST_CASE("fake_cuda: the states of a whole process") {
  fake_cuda::reset();
  const auto stream = new_stream();
  const auto event = recorded(stream);
  float ms = 0;

  SECTION("unloading") {
    fake_cuda::set_unloading(true);
    CHECK(cudaEventQuery(event) == cudaErrorCudartUnloading);
    CHECK(cudaPeekAtLastError() == cudaErrorCudartUnloading);
    CHECK(cudaEventDestroy(event) == cudaErrorCudartUnloading);
    CHECK(fake_cuda::live_events() == 0);
    CHECK(cudaEventDestroy(event) == cudaErrorCudartUnloading);
    CHECK(fake_cuda::violations(Violation::double_destroy) == 1);
  }
  SECTION("a forked child") {
    fake_cuda::work(stream, 1ms);
    const auto pending = recorded(stream);
    fake_cuda::set_fork_child(true);
    CHECK(cudaEventQuery(event) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&ms, event, event) == cudaSuccess);
    CHECK(cudaEventQuery(pending) == cudaErrorInitializationError);
    CHECK(cudaEventRecord(event, stream) == cudaErrorInitializationError);
    CHECK(fake_cuda::last_error() == cudaErrorInitializationError);
    CHECK(cudaPeekAtLastError() == cudaErrorInitializationError);
  }
  SECTION("no device") {
    fake_cuda::reset(0);
    int count = -1;
    CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
    cudaEvent_t made = nullptr;
    CHECK(cudaEventCreate(&made) == cudaErrorNoDevice);
    fake_cuda::set_no_device_error(cudaErrorInsufficientDriver);
    CHECK(cudaPeekAtLastError() == cudaErrorInsufficientDriver);
    CHECK(cudaEventDestroy(nullptr) == cudaErrorInsufficientDriver);
  }
}

TEST_CASE("fake_cuda: captures that go wrong say how") {
  fake_cuda::reset();
  const auto origin = new_stream();
  const auto other = new_stream();
  cudaGraph_t graph = nullptr;
  unsigned long long id = 0;
  cudaStreamCaptureStatus status{};

  CHECK(cudaStreamEndCapture(origin, &graph) == cudaErrorIllegalState);
  REQUIRE(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal) == cudaErrorIllegalState);
  CHECK(cudaStreamGetCaptureInfo(origin, &status, &id) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive);
  CHECK(id == 1);

  SECTION("ended by another thread") {
    cudaError_t code = cudaSuccess;
    std::thread([&] { code = cudaStreamEndCapture(origin, &graph); }).join();
    CHECK(code == cudaErrorStreamCaptureWrongThread);
    CHECK(cudaStreamEndCapture(origin, &graph) == cudaSuccess);
  }
  SECTION("work that was not joined") {
    REQUIRE(cudaStreamWaitEvent(other, recorded(origin), 0) == cudaSuccess);
    REQUIRE(fake_cuda::work(other, 1ms) == cudaSuccess);
    CHECK(cudaStreamEndCapture(origin, &graph) == cudaErrorStreamCaptureUnjoined);
  }
  SECTION("dependent on work outside") {
    CHECK(cudaStreamWaitEvent(origin, recorded(other), 0) == cudaErrorStreamCaptureIsolation);
    CHECK(cudaStreamEndCapture(origin, &graph) == cudaErrorStreamCaptureInvalidated);
  }
  SECTION("used while invalidated") {
    CHECK(cudaStreamSynchronize(origin) == cudaErrorStreamCaptureUnsupported);
    CHECK(fake_cuda::work(origin, 1ms) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaEventRecord(new_event(), origin) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(origin, &graph) == cudaErrorStreamCaptureInvalidated);
  }
  REQUIRE(fake_cuda::captures().size() == 1);
  CHECK(fake_cuda::captures()[0].ended);
}

TEST_CASE("fake_cuda: a graph takes the time of what was captured") {
  fake_cuda::reset();
  const auto origin = new_stream();
  const auto other = new_stream();
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal) == cudaSuccess);
  fake_cuda::work(origin, 2ms);
  REQUIRE(cudaStreamWaitEvent(other, recorded(origin), 0) == cudaSuccess);
  fake_cuda::work(other, 10ms);
  fake_cuda::work(origin, 3ms);
  REQUIRE(cudaStreamWaitEvent(origin, recorded(other), 0) == cudaSuccess);
  fake_cuda::work(origin, 1ms);
  REQUIRE(cudaStreamEndCapture(origin, &graph) == cudaSuccess);
  CHECK(fake_cuda::idle_at(origin) == 0ms);

  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaGraphLaunch(exec, origin) == cudaSuccess);
  CHECK(fake_cuda::idle_at(origin) == 13ms);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  CHECK(cudaGraphLaunch(exec, origin) == cudaErrorInvalidValue);
  CHECK(fake_cuda::violations(Violation::unknown_handle) == 1);
}

TEST_CASE("fake_cuda: threads may call at the same time") {
  fake_cuda::reset();
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      cudaStream_t stream = nullptr;
      cudaEvent_t event = nullptr;
      if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) ++bad;
      if (cudaEventCreate(&event) != cudaSuccess) ++bad;
      for (int i = 0; i < 500; ++i) {
        fake_cuda::work(stream, 1us);
        if (cudaEventRecord(event, stream) != cudaSuccess) ++bad;
        fake_cuda::advance(1us);
        if (cudaEventSynchronize(event) != cudaSuccess) ++bad;
      }
      if (cudaEventDestroy(event) != cudaSuccess) ++bad;
    });
  for (auto& thread : threads) thread.join();
  CHECK(bad == 0);
  CHECK(fake_cuda::calls("cudaEventRecord") == 2000);
  CHECK(fake_cuda::live_events() == 0);
}

TEST_CASE("fake_cuda: errors have names") {
  CHECK(cudaGetErrorName(cudaErrorNotReady) == std::string("cudaErrorNotReady"));
  CHECK(cudaGetErrorString(cudaErrorNotReady) == std::string("device not ready"));
  CHECK(cudaGetErrorName(static_cast<cudaError_t>(9998)) == std::string("unrecognized error code"));
}
