// What CUDA does, as far as CudaBackend builds on it, where seeing it costs the process: one row a process,
// on the fake runtime and on a real GPU.
//
//     cuda_behaviours_isolated <row>     0: as expected, 1: not, 77: it cannot be seen here
//     cuda_behaviours_isolated list      the names of the rows
//
// The rows observe-* expect nothing. They print what happens where no one has promised anything, so that a
// run on the fake and one on a GPU can be compared.

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "../support/device_work.hpp"
#include "../support/isolated_rows.hpp"

using device_work::Stream;
using device_work::wait_for;
using device_work::work;
using namespace std::chrono_literals;

namespace {

using isolated_rows::failed;
using isolated_rows::passed;
using isolated_rows::skipped;

int outcome = passed;

void say(const char* what, const char* verdict, int got) {
  std::printf("%-72s %s %d\n", what, verdict, got);
  std::fflush(stdout);
}

void expect(const char* what, int got, int wanted) {
  if (got == wanted) return say(what, "ok", got);
  outcome = failed;
  say(what, "NOT AS EXPECTED:", got);
}

void observe(const char* what, int got) { say(what, "->", got); }

struct Pair {
  cudaEvent_t start = nullptr, end = nullptr;
};

// Two finished events on a stream; the stream and the events are left to the process.
Pair finished_pair(cudaStream_t stream) {
  Pair pair;
  expect("create start", cudaEventCreate(&pair.start), cudaSuccess);
  expect("create end", cudaEventCreate(&pair.end), cudaSuccess);
  expect("record start", cudaEventRecord(pair.start, stream), cudaSuccess);
  expect("work", work(stream, 1ms), cudaSuccess);
  expect("record end", cudaEventRecord(pair.end, stream), cudaSuccess);
  expect("wait", wait_for(stream), cudaSuccess);
  expect("query end", cudaEventQuery(pair.end), cudaSuccess);
  return pair;
}

cudaStream_t new_stream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  expect("create stream", cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  return stream;
}

bool has_context() {
  bool known = false;
  const bool has = device_work::has_context(0, known);
  if (!known) {
    std::printf("SKIPPED: this driver does not tell whether a device has a context\n");
    std::_Exit(skipped);
  }
  return has;
}

// Ends here, without destructors: what is left of CUDA may not survive them.
int leave() {
  std::fflush(nullptr);
  std::_Exit(outcome);
}

// A crash or a hang is one of the things that can be observed.
void end_by_signal(int signal) {
  static const char text[] = "-> crashed, or did not come back\n";
  if (write(STDOUT_FILENO, text, sizeof text - 1) < 0) std::_Exit(signal);
  std::_Exit(outcome);
}

// --- a kernel touches an illegal address

int kernel_fault() {
  const cudaStream_t stream = new_stream();
  const Pair pair = finished_pair(stream);
  expect("faulting launch", device_work::fault(stream), cudaSuccess);
  expect("the wait reports it", wait_for(stream), cudaErrorIllegalAddress);
  float ms = 0;
  cudaStreamCaptureStatus status{};
  cudaEvent_t event = nullptr;
  expect("query of a finished event", cudaEventQuery(pair.end), cudaErrorIllegalAddress);
  expect("it is the last error", cudaPeekAtLastError(), cudaErrorIllegalAddress);
  expect("elapsed of finished events", cudaEventElapsedTime(&ms, pair.start, pair.end), cudaErrorIllegalAddress);
  expect("record", cudaEventRecord(pair.start, stream), cudaErrorIllegalAddress);
  expect("is-capturing", cudaStreamIsCapturing(stream, &status), cudaErrorIllegalAddress);
  expect("destroy", cudaEventDestroy(pair.start), cudaErrorIllegalAddress);
  expect("create", cudaEventCreate(&event), cudaErrorIllegalAddress);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  expect("the capture mode can be exchanged all the same", cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  expect("the user's synchronisation still reports it", cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  return leave();
}

int observe_fault() {
  const cudaStream_t stream = new_stream();
  finished_pair(stream);
  device_work::fault(stream);
  wait_for(stream);
  int device = -1;
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  observe("get last error", cudaGetLastError());
  observe("get last error again", cudaGetLastError());
  observe("peek", cudaPeekAtLastError());
  observe("get device", cudaGetDevice(&device));
  observe("set device", cudaSetDevice(0));
  observe("device of the stream", cudaStreamGetDevice(stream, &device));
  observe("id of the stream", cudaStreamGetId(stream, &id));
  observe("exchange capture mode to relaxed", cudaThreadExchangeStreamCaptureMode(&mode));
  observe("the mode it gave back", mode);
  observe("query of the stream", cudaStreamQuery(stream));
  observe("device reset", cudaDeviceReset());
  observe("get last error", cudaGetLastError());
  return leave();
}

// --- cudaDeviceReset

int device_reset() {
  const cudaStream_t stream = new_stream();
  const Pair pair = finished_pair(stream);
  const auto before = std::chrono::steady_clock::now();
  expect("reset", cudaDeviceReset(), cudaSuccess);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - before);
  observe("microseconds it took", static_cast<int>(took.count()));
  expect("more than a call by call probe may leave out", took > 200us, 1);
  float ms = 0;
  expect("elapsed of finished events", cudaEventElapsedTime(&ms, pair.start, pair.end), cudaErrorContextIsDestroyed);
  expect("it is the last error", cudaGetLastError(), cudaErrorContextIsDestroyed);
  expect("elapsed of one with itself", cudaEventElapsedTime(&ms, pair.end, pair.end), cudaErrorContextIsDestroyed);
  expect("query", cudaEventQuery(pair.end), cudaErrorContextIsDestroyed);
  expect("it is the last error", cudaGetLastError(), cudaErrorContextIsDestroyed);
  return leave();
}

int new_work_after_reset() {
  new_stream();
  expect("reset", cudaDeviceReset(), cudaSuccess);
  const cudaStream_t stream = new_stream();
  const Pair pair = finished_pair(stream);
  float ms = 0;
  expect("elapsed", cudaEventElapsedTime(&ms, pair.start, pair.end), cudaSuccess);
  return leave();
}

int observe_reset() {
  const cudaStream_t stream = new_stream();
  const Pair pair = finished_pair(stream);
  observe("reset", cudaDeviceReset());
  observe("context", has_context());
  float ms = 0;
  int device = -1;
  observe("elapsed", cudaEventElapsedTime(&ms, pair.start, pair.end));
  observe("context after elapsed", has_context());
  observe("query", cudaEventQuery(pair.end));
  observe("context after query", has_context());
  observe("get last error", cudaGetLastError());
  observe("get device", cudaGetDevice(&device));
  observe("context after get device", has_context());
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  observe("exchange capture mode", cudaThreadExchangeStreamCaptureMode(&mode));
  observe("context after the exchange", has_context());
  // From here on anything may happen, a crash too.
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGALRM}) std::signal(signal, end_by_signal);
  observe("elapsed", cudaEventElapsedTime(&ms, pair.start, pair.end));
  observe("query", cudaEventQuery(pair.end));
  observe("device of the stream", cudaStreamGetDevice(stream, &device));
  return leave();
}

// --- which calls make a context

int mode_exchange_makes_a_context() {
  int count = 0;
  int device = -1;
  expect("device count", cudaGetDeviceCount(&count), cudaSuccess);
  expect("peek", cudaPeekAtLastError(), cudaSuccess);
  expect("get device", cudaGetDevice(&device), cudaSuccess);
  expect("context", has_context(), false);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  expect("exchange capture mode", cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  expect("context", has_context(), true);
  expect("reset", cudaDeviceReset(), cudaSuccess);
  expect("context", has_context(), false);
  expect("exchange capture mode", cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  expect("context", has_context(), true);
  return leave();
}

int observe_first_calls() {
  cudaStreamCaptureStatus status{};
  int device = -1;
  float ms = 0;
  observe("query of a null event", cudaEventQuery(nullptr));
  observe("context", has_context());
  observe("elapsed of null events", cudaEventElapsedTime(&ms, nullptr, nullptr));
  observe("context", has_context());
  observe("device of stream 0", cudaStreamGetDevice(nullptr, &device));
  observe("context", has_context());
  observe("is-capturing of stream 0", cudaStreamIsCapturing(nullptr, &status));
  observe("context", has_context());
  observe("set device", cudaSetDevice(0));
  observe("context", has_context());
  return leave();
}

// --- a child of fork

int fork_child() {
  const cudaStream_t stream = new_stream();
  const Pair pair = finished_pair(stream);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return skipped;
  if (child == 0) {
    alarm(20);
    device_work::in_forked_child();
    float ms = 0;
    int device = -1;
    cudaStreamCaptureStatus status{};
    cudaEvent_t event = nullptr;
    expect("child: query", cudaEventQuery(pair.end), cudaSuccess);
    expect("child: elapsed", cudaEventElapsedTime(&ms, pair.start, pair.end), cudaSuccess);
    expect("child: is-capturing", cudaStreamIsCapturing(stream, &status), cudaErrorInitializationError);
    expect("child: record", cudaEventRecord(pair.start, stream), cudaErrorInitializationError);
    expect("child: create", cudaEventCreate(&event), cudaErrorInitializationError);
    expect("child: get device", cudaGetDevice(&device), cudaErrorInitializationError);
    expect("child: destroy", cudaEventDestroy(pair.start), cudaErrorInitializationError);
    expect("child: it is the last error", cudaPeekAtLastError(), cudaErrorInitializationError);
    leave();
  }
  int how = 0;
  if (waitpid(child, &how, 0) != child) return failed;
  expect("the child's exit code", WIFEXITED(how) ? WEXITSTATUS(how) : -1, passed);
  expect("parent: record", cudaEventRecord(pair.start, stream), cudaSuccess);
  return leave();
}

// --- process exit

struct DestroyedAtExit {
  cudaEvent_t event = nullptr;
  int wanted = 0;
  const char* what = "";

  ~DestroyedAtExit() {
    if (event == nullptr) return;
    expect(what, cudaEventDestroy(event), wanted);
    std::fflush(nullptr);
    if (outcome != passed) std::_Exit(outcome);
  }
};

DestroyedAtExit older_than_cuda;

int exit_of_older_object() {
  const cudaStream_t stream = new_stream();
  older_than_cuda.wanted = cudaErrorCudartUnloading;
  older_than_cuda.what = "destroy by an object older than the first CUDA call";
  older_than_cuda.event = finished_pair(stream).end;
  return outcome;
}

int exit_of_younger_object() {
  const cudaStream_t stream = new_stream();
  static DestroyedAtExit younger;
  younger.wanted = cudaSuccess;
  younger.what = "destroy by a function's static object";
  younger.event = finished_pair(stream).end;
  return outcome;
}

// --- capture, where nothing is promised

int observe_capture() {
  const cudaStream_t stream = new_stream();
  const cudaStream_t other = new_stream();
  const Pair pair = finished_pair(other);
  float ms = 0;
  int device = -1;
  cudaEvent_t event = nullptr;
  cudaStreamCaptureStatus status{};
  cudaGraph_t graph = nullptr;
  cudaEventCreate(&event);

  const auto begin = [&](cudaStream_t on, cudaStreamCaptureMode mode) { cudaStreamBeginCapture(on, mode); };
  const auto end = [&](cudaStream_t on) {
    cudaStreamIsCapturing(on, &status);
    observe("  status before the end", status);
    observe("  end", cudaStreamEndCapture(on, &graph));
    observe("  last error", cudaGetLastError());
  };

  begin(stream, cudaStreamCaptureModeGlobal);
  observe("query of a finished event, plain", cudaEventQuery(pair.end));
  observe("the same again", cudaEventQuery(pair.end));
  observe("record on the invalidated stream", cudaEventRecord(event, stream));
  observe("elapsed of finished events", cudaEventElapsedTime(&ms, pair.start, pair.end));
  end(stream);

  begin(stream, cudaStreamCaptureModeGlobal);
  cudaEventRecord(event, stream);
  observe("query of an event of this capture, plain", cudaEventQuery(event));
  end(stream);

  begin(stream, cudaStreamCaptureModeRelaxed);
  cudaEventRecord(event, stream);
  observe("elapsed of an event of this capture", cudaEventElapsedTime(&ms, pair.start, event));
  end(stream);

  begin(stream, cudaStreamCaptureModeRelaxed);
  cudaEventRecord(event, stream);
  observe("destroy of an event of this capture", cudaEventDestroy(event));
  end(stream);
  cudaEventCreate(&event);

  begin(stream, cudaStreamCaptureModeGlobal);
  observe("query of a never recorded event, plain", cudaEventQuery(event));
  end(stream);

  begin(stream, cudaStreamCaptureModeGlobal);
  observe("query of another stream, plain", cudaStreamQuery(other));
  end(stream);

  begin(stream, cudaStreamCaptureModeThreadLocal);
  observe("query of another stream, plain, thread-local", cudaStreamQuery(other));
  end(stream);

  begin(stream, cudaStreamCaptureModeGlobal);
  cudaStream_t made = nullptr;
  observe("create stream", cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  observe("get last error", cudaGetLastError());
  end(stream);

  const cudaStream_t blocking = new_stream(cudaStreamDefault);
  begin(blocking, cudaStreamCaptureModeGlobal);
  observe("device of stream 0 while a blocking stream captures", cudaStreamGetDevice(cudaStreamLegacy, &device));
  observe("is-capturing of stream 0", cudaStreamIsCapturing(cudaStreamLegacy, &status));
  observe("the same from another thread", [&] {
    int code = 0;
    std::thread([&] {
      cudaStreamCaptureStatus theirs{};
      code = cudaStreamIsCapturing(cudaStreamLegacy, &theirs);
    }).join();
    return code;
  }());
  end(blocking);

  begin(blocking, cudaStreamCaptureModeRelaxed);
  observe("the same for a relaxed capture", cudaStreamIsCapturing(cudaStreamLegacy, &status));
  observe("record on stream 0", cudaEventRecord(event, cudaStreamLegacy));
  observe("is-capturing of stream 0, capture invalidated", cudaStreamIsCapturing(cudaStreamLegacy, &status));
  observe("record on stream 0, capture invalidated", cudaEventRecord(event, cudaStreamLegacy));
  end(blocking);
  return leave();
}

struct Row {
  const char* name;
  int (*run)();
  bool begin;  // false: it must see the first CUDA call of the process
};

constexpr Row rows[] = {{"kernel-fault", kernel_fault, true},
                        {"device-reset", device_reset, true},
                        {"new-work-after-reset", new_work_after_reset, true},
                        {"mode-exchange-makes-a-context", mode_exchange_makes_a_context, false},
                        {"fork-child", fork_child, true},
                        {"exit-of-older-object", exit_of_older_object, true},
                        {"exit-of-younger-object", exit_of_younger_object, true},
                        {"observe-first-calls", observe_first_calls, false},
                        {"observe-fault", observe_fault, true},
                        {"observe-reset", observe_reset, true},
                        {"observe-capture", observe_capture, true}};

}  // namespace

int main(int argc, char** argv) {
  return isolated_rows::main_of("cuda_behaviours_isolated", rows, argc, argv, [](const Row& row) {
    alarm(60);  // a process that hangs on a GPU is ended
    const std::string reason = row.begin ? device_work::skip_reason() : std::string();
    int count = 0;
    if (!reason.empty() || (!row.begin && cudaGetDeviceCount(&count) != cudaSuccess)) {
      std::printf("SKIPPED: %s\n", reason.empty() ? "no CUDA device" : reason.c_str());
      return skipped;
    }
    if (row.begin && !device_work::begin()) return skipped;
    return row.run();
  });
}
