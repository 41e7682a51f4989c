#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "run_program.hpp"

namespace example {

struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws a CudaError that names the call, unless the call succeeded.
inline void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  const std::string advice = error == cudaErrorMemoryAllocation
                                 ? "; use a smaller --hidden or --batch, or a GPU with more free memory"
                                 : "; run it under compute-sanitizer to see where it comes from";
  throw CudaError(std::string(call) + " failed: " + cudaGetErrorString(error) + advice);
}

/// What a person can do about a GPU that cannot be used.
inline UserError no_gpu(cudaError_t error) {
  return UserError(std::string("there is no GPU to use (") + cudaGetErrorString(error) +
                   "); run it on a machine with an NVIDIA GPU and its driver");
}

/// How many GPUs there are.
///
/// Errors: UserError where there is none.
inline int count_gpus() {
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error != cudaSuccess) throw no_gpu(error);
  if (gpus == 0) throw no_gpu(cudaErrorNoDevice);
  return gpus;
}

/// Makes a GPU current.
///
/// Errors: UserError where it cannot be used.
inline void use_gpu(int gpu) {
  const cudaError_t error = cudaSetDevice(gpu);
  if (error != cudaSuccess) throw no_gpu(error);
}

/// Makes the first GPU current.
///
/// Errors: UserError where there is no GPU that can be used.
inline void use_first_gpu() {
  (void)count_gpus();
  use_gpu(0);
}

}  // namespace example
