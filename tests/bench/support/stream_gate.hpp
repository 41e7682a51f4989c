// Holds a stream back, so that what is queued on it stays in flight.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <thread>

#include "../../../examples/common/cuda_check.hpp"

namespace bench {

/// While it lives, nothing queued after it on the stream runs; its end lets the stream go and waits for it. With about
/// a thousand commands queued the host would block, and never come to let it go.
class StreamGate {
 public:
  explicit StreamGate(cudaStream_t stream) : stream_(stream) {
    example::check(cudaLaunchHostFunc(stream_, hold, &open_), "cudaLaunchHostFunc");
  }
  ~StreamGate() {
    open_ = true;
    (void)cudaStreamSynchronize(stream_);  // an error that stays is met by the next call
  }
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

 private:
  static void hold(void* open) {
    while (!static_cast<std::atomic<bool>*>(open)->load()) std::this_thread::yield();
  }

  cudaStream_t stream_;
  std::atomic<bool> open_{false};
};

}  // namespace bench
