// A CUDA runtime without a GPU: what a test can set, move and ask.
//
// fake_cudart.cpp defines the runtime's own functions (cudaEventRecord and the others), so code written for
// CUDA is compiled unchanged and linked against it in place of libcudart. Device time is a virtual clock that
// host and device share; nothing moves it but the test. Codes and side effects are those measured on
// CUDA 13.0, also the odd ones.
//
//     fake_cuda::reset(1);                                  // a fresh process with one device
//     cudaStream_t s;  cudaStreamCreate(&s);
//     CudaTimer timer{s};
//     timer.on_batch_start();
//     fake_cuda::work(s, 90ms);                             // a kernel of 90 ms; the host goes on at once
//     timer.on_batch_end();
//     fake_cuda::advance(100ms);                            // now both clocks read 100 ms
//     timer.poll();
//     CHECK(fake_cuda::violations().empty());
//
// Threads: every function may be called from any thread, and also from destructors of static objects at exit.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fake_cuda {

using std::chrono::nanoseconds;

// --- the process

/// Starts over: a new process with `devices` devices, clock at 0, empty log, no injections, default settings.
/// Handles from before are unknown afterwards. With 0 devices every call answers cudaErrorNoDevice.
void reset(int devices = 1);

// --- the clock

[[nodiscard]] nanoseconds now();
void advance(nanoseconds by);    ///< runs the hooks of at() and when_done() that fall due, in order of time
void advance_to(nanoseconds t);  ///< does nothing if t has passed
void finish_all();               ///< moves the clock to the end of everything that no closed gate holds back

/// Calls `hook` when the clock reaches t. The hook may call any runtime function and anything here but reset().
void at(nanoseconds t, std::function<void()> hook);
/// Calls `hook` when all that is queued on `stream` now has run.
void when_done(cudaStream_t stream, std::function<void()> hook);

// --- work on streams

// Stream 0 is the legacy stream here. For the calling thread's own default stream pass cudaStreamPerThread.

/// Queues a kernel that runs for `duration`; on a capturing stream it becomes a node of the graph instead.
/// Returns what a launch would have returned, and like a launch sets the last error when it fails.
cudaError_t work(cudaStream_t stream, nanoseconds duration);

/// Queues a kernel that runs for `duration` and then touches an illegal address: from then on every call that
/// uses this device's context returns cudaErrorIllegalAddress, or another sticky code.
cudaError_t kernel_fault(cudaStream_t stream, nanoseconds duration = nanoseconds{0},
                         cudaError_t code = cudaErrorIllegalAddress);
/// The same at once and without a stream, with any sticky code.
void fault_device(int device, cudaError_t code = cudaErrorIllegalAddress);

/// Holds a stream: what is queued behind a closed gate is not reached, however far the clock moves.
class Gate {
 public:
  explicit Gate(cudaStream_t stream);
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open();  ///< the stream goes on at the present time; a second call does nothing

 private:
  std::uint64_t id_;
};

// --- settings (reset() returns all of them to the default given here)

/// true: a not-ready answer of a query or of elapsed leaves cudaErrorNotReady behind as the last error, as
/// HIP does. Default false: CUDA 13.0 leaves the last error alone.
void set_not_ready_sets_last_error(bool on);
/// false: a Synchronize call whose work has not finished returns cudaErrorUnknown at once, with a would_block
/// violation. Default true: it moves the clock to the end of that work.
void set_waits_advance(bool on);
/// How long, in real time, a Synchronize call behind a closed gate waits for another thread to open it before
/// it gives up with cudaErrorUnknown and a would_block violation. Default 2 s.
void set_gate_patience(std::chrono::milliseconds limit);
/// Virtual time that every runtime call takes on the host. Default 0. Use it where code polls until something is done.
void set_call_cost(nanoseconds cost);
/// From the host's record call to the mark on an idle stream. Default 0 (about 4 us on a real device).
void set_event_latency(nanoseconds latency);
/// Resolution of device times, rounded down. Default 1 ns (32 ns on a real device).
void set_event_tick(nanoseconds tick);
/// Queued commands on one stream beyond which the host would block. Default 1021.
void set_queue_depth(std::size_t commands);
/// true: the process is exiting and the runtime has shut down: everything returns cudaErrorCudartUnloading.
void set_unloading(bool on);
/// true: this is a child forked after CUDA had started: query and elapsed work on finished events, everything
/// else returns cudaErrorInitializationError and sets the last error.
void set_fork_child(bool on);
/// What every call returns when there are 0 devices. Default cudaErrorNoDevice. With no driver at all
/// CUDA 13.0 gives cudaErrorInsufficientDriver, also from cudaPeekAtLastError.
void set_no_device_error(cudaError_t code);
/// false: calls are counted but not kept in log(). Default true. For runs of very many steps.
void set_keep_log(bool on);
/// Called without any lock held just before each runtime call takes effect, with the function's name. It may
/// itself call runtime functions (for them the hook is not called again on that thread).
void set_before_call(std::function<void(std::string_view function)> hook);

// --- the call log

struct Call {
  const char* function = "";           ///< "cudaEventRecord": without the _ptsz suffix
  bool per_thread_variant = false;     ///< it was the _ptsz function: stream 0 meant the thread's own stream
  cudaStream_t stream = nullptr;       ///< as passed
  bool has_stream = false;             ///< the function takes a stream
  cudaEvent_t event = nullptr;         ///< as passed, or as created
  cudaEvent_t second_event = nullptr;  ///< the end of cudaEventElapsedTime
  int device = -1;                     ///< as passed to or answered by the function; else the current one
  long long value = 0;                 ///< flags or capture mode as passed
  float elapsed_ms = 0.0F;             ///< what cudaEventElapsedTime answered
  cudaError_t result = cudaSuccess;
  int thread = 0;  ///< ordinal of the calling thread
  nanoseconds time{0};
  bool user = false;      ///< made inside a UserCode scope
  bool injected = false;  ///< the result was put there by an injection
};

[[nodiscard]] std::vector<Call> log();
/// The functions called outside UserCode scopes, in order: for comparing whole sequences.
[[nodiscard]] std::vector<std::string> call_names();
void clear_log();  ///< forgets log, counters and violations; nothing else
/// Calls of a function outside UserCode scopes; of all functions without a name.
[[nodiscard]] std::uint64_t calls(std::string_view function);
[[nodiscard]] std::uint64_t calls();
/// Calls outside UserCode scopes that set the last error.
[[nodiscard]] std::uint64_t errors_set();
/// True on a thread that is inside a runtime call of the fake: a counting operator new uses it to leave out
/// the fake's own allocations.
[[nodiscard]] bool inside_call() noexcept;

/// While one lives, calls of this thread count as the user's: they are logged with user = true and are left
/// out of counters, violations and event counts.
class UserCode {
 public:
  UserCode() noexcept;
  ~UserCode();
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;
};

// --- what went wrong

enum class Violation {
  null_handle,         ///< a null event was passed (cudaErrorInvalidResourceHandle, sets the last error)
  unknown_handle,      ///< never handed out, or from before reset()
  use_after_destroy,   ///< a destroyed event or stream was used
  double_destroy,      ///< a destroyed event or stream was destroyed again
  rerecord_in_flight,  ///< an event was recorded again before its earlier mark was reached
  waiting_call,        ///< a function that may wait for the device: any Synchronize
  would_block,         ///< the call would have blocked the host: queue full, or a wait behind a closed gate
  crash,               ///< a handle from before a device reset was used in a way that has been seen to crash
  default_stream,      ///< the legacy stream was used
  wrong_device,        ///< event and stream, or two events, of different devices
  elapsed_unready,     ///< elapsed on events that are not both recorded and finished
  capture_destroyed,   ///< a capture was invalidated by this call
};

[[nodiscard]] const char* name(Violation kind) noexcept;

struct ViolationEntry {
  Violation kind;
  Call call;
  std::string text;  ///< one sentence
};

[[nodiscard]] std::vector<ViolationEntry> violations();
[[nodiscard]] std::size_t violations(Violation kind);
/// One line a violation, for failure messages; empty if there are none.
[[nodiscard]] std::string violation_text();

// --- injected answers

struct Injection {
  std::string function;  ///< "cudaEventQuery"; "*" for any function
  cudaError_t code = cudaErrorUnknown;
  std::uint64_t skip = 0;   ///< calls to let through first
  std::uint64_t times = 1;  ///< calls to answer; unlimited below
  bool perform = false;     ///< true: do what the call does, then answer `code` nevertheless
  /// Success never does; not-ready only in the mode of set_not_ready_sets_last_error().
  bool sets_last_error = true;
  /// A further condition on the arguments; calls that fail it are not counted. It must call nothing of this.
  std::function<bool(const Call&)> only_if;
};
inline constexpr std::uint64_t unlimited = ~std::uint64_t{0};

void inject(Injection injection);  ///< of several that match a call, the oldest not yet used up answers
void fail_next(std::string_view function, cudaError_t code);
void fail_nth(std::string_view function, std::uint64_t n, cudaError_t code);  ///< n = 1 is the next call
void fail_always(std::string_view function, cudaError_t code);
void clear_injections();
/// The next successful cudaEventElapsedTime calls on two different events answer these milliseconds instead,
/// one value a call.
void inject_elapsed(std::vector<float> milliseconds);

// --- state

[[nodiscard]] std::uint64_t events_created();  ///< outside UserCode scopes, since reset()
[[nodiscard]] std::uint64_t events_destroyed();
[[nodiscard]] std::uint64_t live_events();
[[nodiscard]] std::uint64_t most_live_events();  ///< the highest live_events() so far

struct EventState {
  int number = -1;  ///< ordinal of its creation since reset(), from 0; -1: unknown handle
  int device = -1;
  bool live = false;      ///< not destroyed, and its device not reset
  bool captured = false;  ///< its last record was inside a capture
  std::uint64_t records = 0;
  cudaStream_t stream = nullptr;  ///< of its last record, as passed
  nanoseconds recorded_at{0};     ///< host time of its last record
  /// Device time of its mark; absent if it was never recorded or a closed gate holds it.
  std::optional<nanoseconds> reached_at;
  bool finished = false;  ///< recorded, and the clock has passed reached_at
};
[[nodiscard]] EventState state(cudaEvent_t event);
[[nodiscard]] std::vector<cudaEvent_t> all_events();  ///< every event since reset(), also destroyed ones

/// When all that is queued on a stream now will have run; absent while a closed gate holds it.
[[nodiscard]] std::optional<nanoseconds> idle_at(cudaStream_t stream);
[[nodiscard]] std::size_t queued(cudaStream_t stream);  ///< commands that have not run yet

struct ContextState {
  bool exists = false;
  std::uint64_t times_made = 0;
  const char* made_by = "";  ///< the function that made it the last time
  cudaError_t fault = cudaSuccess;
};
[[nodiscard]] ContextState context(int device);
[[nodiscard]] std::vector<int> devices_with_context();

struct CaptureState {
  std::uint64_t id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool ended = false;
  bool invalidated = false;
  const char* invalidated_by = "";  ///< the function whose call did it
  cudaError_t end_result = cudaSuccess;
  std::size_t nodes = 0;
};
[[nodiscard]] std::vector<CaptureState> captures();  ///< every capture since reset(), in order of their begin

/// This thread's view, asked without a runtime call, so that asking disturbs nothing.
[[nodiscard]] cudaError_t last_error();
void set_last_error(cudaError_t code);
[[nodiscard]] int current_device();
[[nodiscard]] cudaStreamCaptureMode capture_mode();

}  // namespace fake_cuda
