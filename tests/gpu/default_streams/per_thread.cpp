#define CUDA_API_PER_THREAD_DEFAULT_STREAM 1
#include "measure.hpp"

Measured measure_on_per_thread_stream() { return measure_on(cudaStreamPerThread); }
