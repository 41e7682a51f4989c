#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
#error "this unit is the one with the legacy default stream"
#endif
#include "measure.hpp"

Measured measure_on_legacy_stream() { return measure_on(cudaStreamLegacy); }
