// What CUDA does, as far as CudaBackend builds on it. The same tests run on the fake runtime and on a real
// GPU: they show that the fake tells the truth. Codes are those measured on CUDA 13.0.
//
// What ends a process (a kernel fault, a device reset, a fork, an exit) is in cuda_behaviours_isolated.cpp.

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>

#include "../support/catch.hpp"
#include "../support/device_work.hpp"

using device_work::Gate;
using device_work::Stream;
using device_work::wait_for;
using device_work::work;
using namespace std::chrono_literals;

namespace {

// An event that is destroyed at the end of the scope, whatever state it is in.
class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    REQUIRE(cudaEventCreateWithFlags(&event_, flags) == cudaSuccess);
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// A capture that is over at the end of the scope, also when the test failed in between.
class Capture {
 public:
  explicit Capture(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) : stream_(stream) {
    REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
  }
  ~Capture() {
    if (!ended_) end();
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    cudaGetLastError();
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaError_t end() {
    ended_ = true;
    return cudaStreamEndCapture(stream_, &graph_);
  }
  cudaGraph_t graph() const { return graph_; }
  std::size_t nodes() const {
    std::size_t count = 0;
    REQUIRE(cudaGraphGetNodes(graph_, nullptr, &count) == cudaSuccess);
    return count;
  }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  bool ended_ = false;
};

// The thread's capture mode for a scope.
class Mode {
 public:
  explicit Mode(cudaStreamCaptureMode mode) : mode_(mode) { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~Mode() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

 private:
  cudaStreamCaptureMode mode_;
};

// Two events with 10 ms between them, both finished.
struct FinishedPair {
  Event start, end;

  FinishedPair() {
    const Stream stream;
    REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
    REQUIRE(work(stream, 10ms) == cudaSuccess);
    REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
    REQUIRE(wait_for(stream) == cudaSuccess);
    REQUIRE(cudaEventQuery(end) == cudaSuccess);
  }
};

// The legacy default stream, whatever stream 0 means in this build.
cudaStream_t legacy_stream() {
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
  return cudaStreamLegacy;
#else
  return nullptr;
#endif
}

// Runs f on another thread, because assertions belong to this one.
template <class F>
auto on_another_thread(F f) {
  std::optional<decltype(f())> result;
  std::thread([&] { result.emplace(f()); }).join();
  return *result;
}

// An error of the user's that no one has asked for yet.
constexpr cudaError_t users_error = cudaErrorInvalidDevice;
void leave_an_error() {
  REQUIRE(cudaSetDevice(9999) == users_error);
  REQUIRE(cudaPeekAtLastError() == users_error);
}

cudaStreamCaptureStatus status(cudaStream_t stream) {
  cudaStreamCaptureStatus answer = cudaStreamCaptureStatusNone;
  REQUIRE(cudaStreamIsCapturing(stream, &answer) == cudaSuccess);
  return answer;
}

float elapsed_ms(cudaEvent_t start, cudaEvent_t end) {
  float ms = 0;
  REQUIRE(cudaEventElapsedTime(&ms, start, end) == cudaSuccess);
  return ms;
}

// A measured time is never less than the work in it; on the fake it is exactly that.
void check_lasted(float ms, float expected_ms) {
  if (device_work::exact())
    CHECK(ms == expected_ms);
  else
    CHECK(ms > 0.98F * expected_ms);
}

}  // namespace

// --- errors

TEST_CASE("cuda: an error is pending until cudaGetLastError asks for it", "[behaviour]") {
  REQUIRE(device_work::begin());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  leave_an_error();
  CHECK(cudaPeekAtLastError() == users_error);
  CHECK(cudaGetLastError() == users_error);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("cuda: each thread has a last error of its own", "[behaviour]") {
  REQUIRE(device_work::begin());
  leave_an_error();
  CHECK(on_another_thread([] { return cudaPeekAtLastError(); }) == cudaSuccess);
  CHECK(cudaGetLastError() == users_error);
}

TEST_CASE("cuda: not ready is not an error that stays behind", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream stream;
  const Event start, end;
  Gate gate(stream);
  REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);

  CHECK(cudaEventQuery(end) == cudaErrorNotReady);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorNotReady);
  CHECK(cudaPeekAtLastError() == cudaSuccess);

  SECTION("nor does it replace the user's") {
    leave_an_error();
    CHECK(cudaEventQuery(end) == cudaErrorNotReady);
    CHECK(cudaPeekAtLastError() == users_error);
    CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorNotReady);
    CHECK(cudaGetLastError() == users_error);
  }
  gate.open();
  REQUIRE(wait_for(stream) == cudaSuccess);
  CHECK(cudaEventQuery(end) == cudaSuccess);
}

TEST_CASE("cuda: a call that succeeds leaves the user's pending error", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream stream;
  const FinishedPair pair;
  leave_an_error();

  cudaEvent_t event = nullptr;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDefault) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == users_error);
  CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == users_error);
  CHECK(cudaEventQuery(pair.end) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == users_error);
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, pair.start, pair.end) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == users_error);
  CHECK(status(stream) == cudaStreamCaptureStatusNone);
  CHECK(cudaPeekAtLastError() == users_error);
  int device = -1;
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(cudaStreamGetDevice(stream, &device) == cudaSuccess);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == users_error);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == users_error);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  CHECK(cudaGetLastError() == users_error);
}

TEST_CASE("cuda: a call that fails replaces the user's pending error", "[behaviour]") {
  REQUIRE(device_work::begin());
  leave_an_error();
  CHECK(cudaEventQuery(nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("cuda: a null event is refused everywhere", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream stream;
  const Event event;
  float ms = 0;
  CHECK(cudaEventQuery(nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(nullptr, stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventElapsedTime(&ms, nullptr, event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventElapsedTime(&ms, event, nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
}

// --- events and time

TEST_CASE("cuda: an event is reached when the work before it has run", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream stream;
  const Event start, end;
  Gate gate(stream);
  REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
  REQUIRE(work(stream, 20ms) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
  device_work::host_sleep(5ms);
  CHECK(cudaEventQuery(start) == cudaErrorNotReady);
  gate.open();
  REQUIRE(wait_for(stream) == cudaSuccess);
  CHECK(cudaEventQuery(start) == cudaSuccess);
  CHECK(cudaEventQuery(end) == cudaSuccess);
  check_lasted(elapsed_ms(start, end), 20.0F);
  CHECK(elapsed_ms(start, start) == 0.0F);
  CHECK(elapsed_ms(end, start) == -elapsed_ms(start, end));
}

TEST_CASE("cuda: a time between events spans the stream's idle time", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream stream;
  const Event start, end;
  REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
  REQUIRE(wait_for(stream) == cudaSuccess);
  device_work::host_sleep(30ms);
  REQUIRE(work(stream, 5ms) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
  REQUIRE(wait_for(stream) == cudaSuccess);
  check_lasted(elapsed_ms(start, end), 35.0F);
}

TEST_CASE("cuda: an event that was never recorded says it is done", "[behaviour]") {
  REQUIRE(device_work::begin());
  const FinishedPair pair;
  const Event never;
  CHECK(cudaEventQuery(never) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, pair.start, never) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventElapsedTime(&ms, never, pair.end) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
}

TEST_CASE("cuda: an event without timing has no time", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream stream;
  const FinishedPair pair;
  const Event untimed(cudaEventDisableTiming);
  REQUIRE(cudaEventRecord(untimed, stream) == cudaSuccess);
  REQUIRE(wait_for(stream) == cudaSuccess);
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, pair.start, untimed) == cudaErrorInvalidResourceHandle);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
}

TEST_CASE("cuda: recording an event again while it is in flight moves it, with success", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream stream;
  const Event start, end;
  Gate gate(stream);
  REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
  REQUIRE(work(stream, 50ms) == cudaSuccess);
  CHECK(cudaEventRecord(start, stream) == cudaSuccess);
  CHECK(cudaEventQuery(start) == cudaErrorNotReady);
  gate.open();
  REQUIRE(wait_for(stream) == cudaSuccess);
  check_lasted(-elapsed_ms(start, end), 50.0F);
}

TEST_CASE("cuda: an event may be destroyed in flight", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream stream;
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDefault) == cudaSuccess);
  Gate gate(stream);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  gate.open();
  CHECK(wait_for(stream) == cudaSuccess);
}

// --- streams

TEST_CASE("cuda: two streams run side by side", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream held, other;
  Gate gate(held);
  const Event behind_gate, beside;
  REQUIRE(cudaEventRecord(behind_gate, held) == cudaSuccess);
  REQUIRE(cudaEventRecord(beside, other) == cudaSuccess);
  REQUIRE(wait_for(other) == cudaSuccess);
  CHECK(cudaEventQuery(beside) == cudaSuccess);
  CHECK(cudaEventQuery(behind_gate) == cudaErrorNotReady);
  gate.open();
  REQUIRE(wait_for(held) == cudaSuccess);
}

TEST_CASE("cuda: a time between events on two streams is plausible nonsense", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream working, idle;
  const Event start, end;
  REQUIRE(cudaEventRecord(start, working) == cudaSuccess);
  REQUIRE(work(working, 200ms) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, idle) == cudaSuccess);
  REQUIRE(wait_for(working) == cudaSuccess);
  REQUIRE(wait_for(idle) == cudaSuccess);
  CHECK(elapsed_ms(start, end) < 100.0F);
}

TEST_CASE("cuda: an event on the legacy stream orders all blocking streams", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream a(cudaStreamDefault), b(cudaStreamDefault), apart;
  const Event begin, between, end;
  REQUIRE(cudaEventRecord(begin, a) == cudaSuccess);
  REQUIRE(work(a, 50ms) == cudaSuccess);

  SECTION("an event on the legacy stream: one after the other") {
    REQUIRE(cudaEventRecord(between, legacy_stream()) == cudaSuccess);
    REQUIRE(work(b, 50ms) == cudaSuccess);
    REQUIRE(cudaEventRecord(end, b) == cudaSuccess);
    REQUIRE(wait_for(b) == cudaSuccess);
    check_lasted(elapsed_ms(begin, end), 100.0F);
  }
  SECTION("an event on a non-blocking stream: side by side") {
    REQUIRE(cudaEventRecord(between, apart) == cudaSuccess);
    REQUIRE(work(b, 50ms) == cudaSuccess);
    REQUIRE(cudaEventRecord(end, b) == cudaSuccess);
    REQUIRE(wait_for(b) == cudaSuccess);
    REQUIRE(wait_for(a) == cudaSuccess);
    CHECK(elapsed_ms(begin, end) < 90.0F);
  }
  SECTION("a non-blocking stream is not held up by it") {
    REQUIRE(cudaEventRecord(between, legacy_stream()) == cudaSuccess);
    REQUIRE(cudaEventRecord(end, apart) == cudaSuccess);
    REQUIRE(wait_for(apart) == cudaSuccess);
    REQUIRE(wait_for(a) == cudaSuccess);
    CHECK(elapsed_ms(begin, end) < 40.0F);
  }
}

TEST_CASE("cuda: an event on the legacy stream does not wait for a non-blocking stream", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream apart;
  const Event begin, end;
  REQUIRE(cudaEventRecord(begin, apart) == cudaSuccess);
  REQUIRE(work(apart, 200ms) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, legacy_stream()) == cudaSuccess);
  REQUIRE(wait_for(apart) == cudaSuccess);
  REQUIRE(wait_for(legacy_stream()) == cudaSuccess);
  CHECK(elapsed_ms(begin, end) < 100.0F);
}

TEST_CASE("cuda: the per-thread default stream is a stream like others", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Event start, end;
  CHECK(status(cudaStreamPerThread) == cudaStreamCaptureStatusNone);
  REQUIRE(cudaEventRecord(start, cudaStreamPerThread) == cudaSuccess);
  REQUIRE(work(cudaStreamPerThread, 10ms) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, cudaStreamPerThread) == cudaSuccess);
  REQUIRE(wait_for(cudaStreamPerThread) == cudaSuccess);
  check_lasted(elapsed_ms(start, end), 10.0F);
}

TEST_CASE("cuda: a stream knows its device, also while another captures", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream capturing, other;
  int device = -1;
  CHECK(cudaStreamGetDevice(other, &device) == cudaSuccess);
  CHECK(device == 0);
  device = -1;
  CHECK(cudaStreamGetDevice(nullptr, &device) == cudaSuccess);
  CHECK(device == 0);

  Capture capture(capturing);
  REQUIRE(work(capturing, 1ms) == cudaSuccess);
  device = -1;
  CHECK(cudaStreamGetDevice(other, &device) == cudaSuccess);
  CHECK(device == 0);
  CHECK(on_another_thread([&] { return cudaStreamGetDevice(other, &device); }) == cudaSuccess);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(capture.end() == cudaSuccess);
  CHECK(capture.nodes() == 1);
}

TEST_CASE("cuda: asking for the device of a stream that captures destroys the capture", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream capturing;
  Capture capture(capturing);
  int device = -1;
  CHECK(cudaStreamGetDevice(capturing, &device) == cudaErrorStreamCaptureUnsupported);
  CHECK(capture.end() == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
}

// --- capture

TEST_CASE("cuda: the capture mode belongs to the thread", "[behaviour]") {
  REQUIRE(device_work::begin());
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(mode == cudaStreamCaptureModeGlobal);
  CHECK(on_another_thread([] {
          cudaStreamCaptureMode theirs = cudaStreamCaptureModeThreadLocal;
          cudaThreadExchangeStreamCaptureMode(&theirs);
          return theirs;
        }) == cudaStreamCaptureModeGlobal);
  REQUIRE(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(mode == cudaStreamCaptureModeRelaxed);
}

TEST_CASE("cuda: a plain query during a capture destroys it", "[behaviour]") {
  REQUIRE(device_work::begin());
  const FinishedPair pair;
  const Stream stream;
  const auto query = [&] { return cudaEventQuery(pair.end); };
  cudaError_t answer = cudaSuccess;

  const auto check_destroyed = [&](Capture& capture) {
    CHECK(answer == cudaErrorStreamCaptureUnsupported);
    CHECK(status(stream) == cudaStreamCaptureStatusInvalidated);
    CHECK(status(stream) == cudaStreamCaptureStatusInvalidated);
    CHECK(capture.end() == cudaErrorStreamCaptureInvalidated);
    CHECK(capture.graph() == nullptr);
    CHECK(status(stream) == cudaStreamCaptureStatusNone);
  };
  const auto check_unharmed = [&](Capture& capture) {
    CHECK(answer == cudaSuccess);
    CHECK(status(stream) == cudaStreamCaptureStatusActive);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK(capture.end() == cudaSuccess);
    CHECK(capture.nodes() == 1);
  };

  SECTION("global, from the same thread") {
    Capture capture(stream);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    answer = query();
    CHECK(cudaGetLastError() == cudaErrorStreamCaptureUnsupported);
    check_destroyed(capture);
  }
  SECTION("global, from another thread") {
    Capture capture(stream);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    answer = on_another_thread(query);
    check_destroyed(capture);
  }
  SECTION("thread-local, from the same thread") {
    Capture capture(stream, cudaStreamCaptureModeThreadLocal);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    answer = query();
    check_destroyed(capture);
  }
  SECTION("thread-local, from another thread: allowed") {
    Capture capture(stream, cudaStreamCaptureModeThreadLocal);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    answer = on_another_thread(query);
    check_unharmed(capture);
  }
  SECTION("relaxed: allowed") {
    Capture capture(stream, cudaStreamCaptureModeRelaxed);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    answer = query();
    check_unharmed(capture);
  }
  SECTION("global, from the same thread with its mode relaxed: allowed") {
    Capture capture(stream);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    {
      const Mode relaxed(cudaStreamCaptureModeRelaxed);
      answer = query();
    }
    check_unharmed(capture);
  }
  SECTION("thread-local, from the same thread with its mode relaxed: allowed") {
    Capture capture(stream, cudaStreamCaptureModeThreadLocal);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    {
      const Mode relaxed(cudaStreamCaptureModeRelaxed);
      answer = query();
    }
    check_unharmed(capture);
  }
  SECTION("global, from another thread with its mode relaxed: allowed") {
    Capture capture(stream);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    answer = on_another_thread([&] {
      const Mode relaxed(cudaStreamCaptureModeRelaxed);
      return query();
    });
    check_unharmed(capture);
  }
  SECTION("global, from another thread with its mode thread-local: allowed") {
    Capture capture(stream);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    answer = on_another_thread([&] {
      const Mode thread_local_mode(cudaStreamCaptureModeThreadLocal);
      return query();
    });
    check_unharmed(capture);
  }
}

TEST_CASE("cuda: a relaxed query of a pending event leaves a capture unharmed", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream timed, captured;
  const Event pending;
  Gate gate(timed);
  REQUIRE(cudaEventRecord(pending, timed) == cudaSuccess);
  Capture capture(captured);
  REQUIRE(work(captured, 1ms) == cudaSuccess);
  {
    const Mode relaxed(cudaStreamCaptureModeRelaxed);
    CHECK(cudaEventQuery(pending) == cudaErrorNotReady);
  }
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(capture.end() == cudaSuccess);
  CHECK(capture.nodes() == 1);
  gate.open();
  CHECK(wait_for(timed) == cudaSuccess);
}

TEST_CASE("cuda: what is legal during a capture without further ado", "[behaviour]") {
  REQUIRE(device_work::begin());
  const auto mode = GENERATE(cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal);
  const FinishedPair pair;
  const Stream captured, other;
  const auto everything = [&]() -> cudaError_t {
    cudaError_t first_bad = cudaSuccess;
    const auto note = [&](cudaError_t code) {
      if (first_bad == cudaSuccess) first_bad = code;
    };
    cudaEvent_t event = nullptr;
    int device = -1;
    float ms = 0;
    cudaStreamCaptureStatus answer = cudaStreamCaptureStatusNone;
    note(cudaEventCreateWithFlags(&event, cudaEventDefault));
    note(cudaStreamIsCapturing(other, &answer));
    note(cudaStreamIsCapturing(captured, &answer));
    note(cudaEventRecord(event, other));
    note(cudaEventElapsedTime(&ms, pair.start, pair.end));
    note(cudaEventElapsedTime(&ms, pair.end, pair.end));
    note(cudaGetDevice(&device));
    note(cudaSetDevice(device));
    note(cudaEventDestroy(event));
    note(cudaPeekAtLastError());
    return first_bad;
  };

  Capture capture(captured, mode);
  REQUIRE(work(captured, 1ms) == cudaSuccess);
  CHECK(everything() == cudaSuccess);
  CHECK(on_another_thread(everything) == cudaSuccess);
  CHECK(status(captured) == cudaStreamCaptureStatusActive);
  CHECK(capture.end() == cudaSuccess);
  CHECK(capture.nodes() == 1);
  check_lasted(elapsed_ms(pair.start, pair.end), 10.0F);
  CHECK(wait_for(other) == cudaSuccess);
}

TEST_CASE("cuda: an event recorded on a capturing stream cannot be timed", "[behaviour]") {
  REQUIRE(device_work::begin());
  const FinishedPair pair;
  const Stream stream;
  const Event event;
  float ms = 0;

  SECTION("the record adds no node, and later nothing can be had from the event") {
    Capture capture(stream);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    CHECK(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK(capture.end() == cudaSuccess);
    CHECK(capture.nodes() == 1);
    CHECK(cudaEventQuery(event) == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaEventElapsedTime(&ms, pair.start, event) == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  }
  SECTION("a query during the capture destroys it, even with the mode relaxed") {
    Capture capture(stream);
    REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
    {
      const Mode relaxed(cudaStreamCaptureModeRelaxed);
      CHECK(cudaEventQuery(event) == cudaErrorCapturedEvent);
    }
    CHECK(status(stream) == cudaStreamCaptureStatusInvalidated);
    CHECK(capture.end() == cudaErrorStreamCaptureInvalidated);
    cudaGetLastError();
    CHECK(cudaEventQuery(event) == cudaErrorInvalidValue);
  }
  SECTION("asking for its time is refused, and spares the capture") {
    Capture capture(stream);
    REQUIRE(work(stream, 1ms) == cudaSuccess);
    REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&ms, pair.start, event) == cudaErrorCapturedEvent);
    CHECK(cudaGetLastError() == cudaErrorCapturedEvent);
    CHECK(capture.end() == cudaSuccess);
    CHECK(capture.nodes() == 1);
  }
  cudaGetLastError();
  // Recorded again on a stream that does not capture, it is an event like others.
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  REQUIRE(wait_for(stream) == cudaSuccess);
  CHECK(cudaEventQuery(event) == cudaSuccess);
}

TEST_CASE("cuda: a capture reaches other streams through an event", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream origin, forked;
  const Event fork, join, mark;
  Capture capture(origin);
  REQUIRE(work(origin, 1ms) == cudaSuccess);
  REQUIRE(cudaEventRecord(fork, origin) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(forked, fork, 0) == cudaSuccess);
  CHECK(status(forked) == cudaStreamCaptureStatusActive);
  REQUIRE(work(forked, 1ms) == cudaSuccess);
  CHECK(cudaEventRecord(mark, forked) == cudaSuccess);
  REQUIRE(cudaEventRecord(join, forked) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(origin, join, 0) == cudaSuccess);
  CHECK(capture.end() == cudaSuccess);
  CHECK(capture.nodes() == 2);
  CHECK(status(forked) == cudaStreamCaptureStatusNone);
}

TEST_CASE("cuda: the legacy stream is unusable while a blocking stream captures", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream blocking(cudaStreamDefault), apart;
  const Event event;
  cudaStreamCaptureStatus answer = cudaStreamCaptureStatusNone;

  SECTION("asking whether it captures is an error, but harmless") {
    Capture capture(blocking);
    REQUIRE(work(blocking, 1ms) == cudaSuccess);
    CHECK(cudaStreamIsCapturing(legacy_stream(), &answer) == cudaErrorStreamCaptureImplicit);
    CHECK(cudaGetLastError() == cudaErrorStreamCaptureImplicit);
    CHECK(status(blocking) == cudaStreamCaptureStatusActive);
    CHECK(capture.end() == cudaSuccess);
    CHECK(capture.nodes() == 1);
  }
  SECTION("a record on it destroys the capture") {
    Capture capture(blocking);
    REQUIRE(work(blocking, 1ms) == cudaSuccess);
    CHECK(cudaEventRecord(event, legacy_stream()) == cudaErrorStreamCaptureImplicit);
    CHECK(cudaGetLastError() == cudaErrorStreamCaptureImplicit);
    CHECK(status(blocking) == cudaStreamCaptureStatusInvalidated);
    CHECK(capture.end() == cudaErrorStreamCaptureInvalidated);
  }
  SECTION("a non-blocking stream that captures does not matter") {
    Capture capture(apart);
    REQUIRE(work(apart, 1ms) == cudaSuccess);
    CHECK(status(legacy_stream()) == cudaStreamCaptureStatusNone);
    CHECK(cudaEventRecord(event, legacy_stream()) == cudaSuccess);
    CHECK(capture.end() == cudaSuccess);
    CHECK(capture.nodes() == 1);
    CHECK(wait_for(legacy_stream()) == cudaSuccess);
  }
}

TEST_CASE("cuda: the launches of a graph can be timed by events around them", "[behaviour]") {
  REQUIRE(device_work::begin());
  const Stream stream;
  Capture capture(stream);
  REQUIRE(work(stream, 10ms) == cudaSuccess);
  REQUIRE(capture.end() == cudaSuccess);
  REQUIRE(capture.nodes() == 1);
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, capture.graph(), 0) == cudaSuccess);
  const Event start, end;
  for (int replay = 0; replay < 3; ++replay) {
    REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
    REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
    REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
    REQUIRE(wait_for(stream) == cudaSuccess);
    check_lasted(elapsed_ms(start, end), 10.0F);
  }
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
}

// --- several devices

TEST_CASE("cuda: events and streams of different devices do not mix", "[behaviour]") {
  if (!device_work::begin(2)) {
    WARN("skipped: it needs two devices");
    return;
  }
  const Stream here;
  const Event first, last;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  {
    const Stream there;
    const Event event;
    int device = -1;
    CHECK(cudaStreamGetDevice(here, &device) == cudaSuccess);
    CHECK(device == 0);

    // An event with the stream of its own device, whatever device is current.
    CHECK(cudaEventRecord(first, here) == cudaSuccess);
    CHECK(cudaEventRecord(event, there) == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    CHECK(cudaEventRecord(event, there) == cudaSuccess);
    REQUIRE(wait_for(here) == cudaSuccess);
    REQUIRE(wait_for(there) == cudaSuccess);
    CHECK(cudaEventQuery(event) == cudaSuccess);
    CHECK(cudaPeekAtLastError() == cudaSuccess);

    CHECK(cudaEventRecord(last, there) == cudaErrorInvalidResourceHandle);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord(event, here) == cudaErrorInvalidResourceHandle);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, first, event) == cudaErrorInvalidResourceHandle);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);

    // A capture on one device is destroyed by a plain query of an event of another.
    Capture capture(there);
    CHECK(cudaEventQuery(first) == cudaErrorStreamCaptureUnsupported);
    CHECK(capture.end() == cudaErrorStreamCaptureInvalidated);
  }
  CHECK(cudaSetDevice(0) == cudaSuccess);
  cudaGetLastError();
}
