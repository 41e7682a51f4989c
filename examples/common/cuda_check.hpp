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

/// Makes the first GPU current.
///
/// Errors: UserError where there is no GPU that can be used.
inline void use_first_gpu() {
  int gpus = 0;
  cudaError_t error = cudaGetDeviceCount(&gpus);
  if (error == cudaSuccess && gpus == 0) error = cudaErrorNoDevice;
  if (error == cudaSuccess) error = cudaSetDevice(0);
  if (error == cudaSuccess) return;
  throw UserError(std::string("there is no GPU to use (") + cudaGetErrorString(error) +
                  "); run it on a machine with an NVIDIA GPU and its driver");
}

}  // namespace example
