// The body of both units: it is compiled with the meaning that stream 0 has in each.
#include <steptimer/cuda_backend.hpp>

#include "../../support/device_work.hpp"
#include "measured.hpp"

namespace {

Measured measure_on(cudaStream_t default_stream) {
  using std::chrono::milliseconds;
  steptimer::CudaTimer timer;
  for (int i = 0; i < 5; ++i) {
    timer.on_batch_start();
    device_work::work(default_stream, milliseconds{2});
    timer.on_batch_end();
  }
  device_work::wait_for(default_stream);
  timer.finish();
  return {timer.counts().measured, timer.counts().failed, timer.total().batch_min};
}

}  // namespace
