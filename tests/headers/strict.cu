// The same for nvcc, beside a kernel.

#include "strict.cpp"

__global__ void kernel(float* x) { *x += 1.0f; }

void launch(float* x, cudaStream_t stream);
void launch(float* x, cudaStream_t stream) {
  steptimer::CudaTimer timer{stream};
  timer.on_batch_start();
  kernel<<<1, 1, 0, stream>>>(x);
  timer.on_batch_end();
}
