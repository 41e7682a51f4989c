// Work for a device, so that one test source runs on the fake runtime and on a real GPU.
//
// device_work_fake.cpp and device_work_gpu.cu implement it; a program links one of the two. On the fake, time is
// virtual and exact; on a device it is real, so a test compares it with == only if exact(), else by one loose bound.
// What happens here is the user's part of a test: the fake counts none of it against the code under test.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <string>

namespace device_work {

using std::chrono::nanoseconds;

/// True on the fake.
[[nodiscard]] bool exact() noexcept;

/// Why no test can run here, or "".
[[nodiscard]] std::string skip_reason();

/// Call first in each test: a fresh state with device 0 current and no error pending. On the fake a new
/// process with `devices` devices, on a GPU the process there is, with its kernels loaded. False: fewer
/// devices than that.
[[nodiscard]] bool begin(int devices = 1);

/// The same without a context on any device and without an own kernel loaded: for work() alone.
[[nodiscard]] bool begin_untouched(int devices);

/// Call last in a program whose leaks are looked for: gives back what begin() has taken.
void end();

/// On the fake, makes a forked child behave like one; on a GPU it does by itself.
void in_forked_child();

/// Whether a device has a context in this process, without making one. Real devices must support asking: if
/// not, `known` becomes false.
[[nodiscard]] bool has_context(int device, bool& known);

/// A stream of the current device, destroyed at the end of the scope.
class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }
  operator cudaStream_t() const noexcept { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Queues a kernel that keeps the stream busy for `duration`. Returns what the launch returned.
cudaError_t work(cudaStream_t stream, nanoseconds duration);

enum class Fault {
  illegal_address,  ///< cudaErrorIllegalAddress
  trap,             ///< the kernel stops itself: cudaErrorLaunchFailure
};

/// Queues a kernel that costs its process the device. On a GPU only in a process that ends soon after.
cudaError_t fault(cudaStream_t stream, Fault kind = Fault::illegal_address);

/// Holds a stream until open() or the end of the scope. On a GPU a kernel waits for a flag that the host
/// sets, and gives up after 20 s. Never wait for the stream, and queue no more than some hundreds of
/// commands, while it is closed.
class Gate {
 public:
  explicit Gate(cudaStream_t stream);
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() noexcept;

 private:
  void* state_ = nullptr;
};

/// Lets the host do nothing for a while.
void host_sleep(nanoseconds duration);

/// Waits until all that is queued on the stream has run, also while a capture is going on elsewhere.
cudaError_t wait_for(cudaStream_t stream);

}  // namespace device_work
