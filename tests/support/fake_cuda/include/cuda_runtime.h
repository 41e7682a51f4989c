/* The C++ face of the runtime: see cuda_runtime_api.h beside this file. */
#ifndef STEPTIMER_FAKE_CUDA_RUNTIME_H
#define STEPTIMER_FAKE_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>

#if defined(__cplusplus)
static inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned int flags) {
  return cudaEventCreateWithFlags(event, flags);
}
#endif

#endif
