// The events of PyTorch's C++ side, as a way to time a step. PyTorch's headers stay in c10_events.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace bench {

/// A pair of c10's CUDAEvents each step, asked in later steps whether the device has reached it, then used again.
class C10Events {
 public:
  explicit C10Events(cudaStream_t stream);
  ~C10Events();
  C10Events(const C10Events&) = delete;
  C10Events& operator=(const C10Events&) = delete;
  void start();
  void end();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace bench
