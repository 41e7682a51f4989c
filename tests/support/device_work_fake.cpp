// device_work on the fake runtime.

#include <cstdlib>

#include "device_work.hpp"
#include "fake_cuda/fake_cuda.hpp"

namespace device_work {
namespace {

// The functions of fake_cuda take stream 0 for the legacy stream.
cudaStream_t meant(cudaStream_t stream) {
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
  if (stream == nullptr) return cudaStreamPerThread;
#endif
  return stream;
}

}  // namespace

bool exact() noexcept { return true; }

std::string skip_reason() { return {}; }

bool begin(int devices) {
  fake_cuda::reset(devices);
  // The runtime shuts down at exit, before the destructors of objects that are older than its first use.
  static const bool registered = std::atexit([] { fake_cuda::set_unloading(true); }) == 0;
  return registered;
}

bool begin_untouched(int devices) { return begin(devices); }

void end() {}

void in_forked_child() { fake_cuda::set_fork_child(true); }

bool has_context(int device, bool& known) {
  known = true;
  return fake_cuda::context(device).exists;
}

Stream::Stream(unsigned flags) {
  const fake_cuda::UserCode user;
  if (cudaStreamCreateWithFlags(&stream_, flags) != cudaSuccess) std::abort();
}

Stream::~Stream() {
  const fake_cuda::UserCode user;
  cudaStreamDestroy(stream_);
}

cudaError_t work(cudaStream_t stream, nanoseconds duration) { return fake_cuda::work(meant(stream), duration); }

cudaError_t fault(cudaStream_t stream, Fault kind) {
  const cudaError_t code = kind == Fault::trap ? cudaErrorLaunchFailure : cudaErrorIllegalAddress;
  return fake_cuda::kernel_fault(meant(stream), nanoseconds{0}, code);
}

Gate::Gate(cudaStream_t stream) : state_(new fake_cuda::Gate(meant(stream))) {}

void Gate::open() noexcept {
  delete static_cast<fake_cuda::Gate*>(state_);
  state_ = nullptr;
}

void host_sleep(nanoseconds duration) { fake_cuda::advance(duration); }

cudaError_t wait_for(cudaStream_t stream) {
  const fake_cuda::UserCode user;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  const cudaError_t code = cudaStreamSynchronize(stream);
  cudaThreadExchangeStreamCaptureMode(&mode);
  return code;
}

}  // namespace device_work
