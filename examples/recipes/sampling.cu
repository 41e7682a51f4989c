// Steps of some microseconds, on a GPU: what the hooks cost them, and what sample_every leaves of it.
//
// The same loop runs in turns with no timer (NullBackend compiles to nothing), with one that measures every step, and
// with one that measures every 100th. A step that is measured costs two events on the stream and the questions after
// them; a step left out costs two readings of the host's clock. (The step after a measured one still gets its start
// event: the measured step's gap ends there.)

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>
#include <vector>

#include "../common/cuda_check.hpp"
#include "../common/cuda_resources.hpp"
#include "../common/option_table.hpp"
#include "../common/run_program.hpp"
#include "../common/timing_text.hpp"

namespace {

using namespace example;

constexpr std::uint64_t steps = 5000;  // a turn
constexpr std::uint64_t turns = 15;
constexpr std::uint64_t every = 100;
constexpr unsigned size = 4096;

/// A step of gradient descent on the sum of (x - 1)^2.
__global__ void descend(float* x) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) x[i] -= 0.001F * 2 * (x[i] - 1);
}

/// Returns: nanoseconds a step.
template <class Timer>
double train(float* x, Timer& timer, const Stream& stream) {
  constexpr unsigned threads = 256;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t step = 0; step < steps; ++step) {
    timer.on_batch_start();
    descend<<<size / threads, threads, 0, stream>>>(x);
    timer.on_batch_end();
  }
  check(cudaGetLastError(), "a launch of descend");
  timer.pause();
  stream.wait();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / steps;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + turns / 2, values.end());
  return values[turns / 2];
}

void run(int argc, char** argv) {
  const OptionTable table("sampling_cuda", "shows what measuring costs short GPU steps, and what sampling saves of it");
  if (!table.parse(argc, argv)) return;
  use_first_gpu();

  const Stream stream;
  const DeviceArray<float> x(size);
  steptimer::StepTimer<steptimer::NullBackend> no_timer;
  steptimer::CudaTimer each_step(stream);
  steptimer::StepTimerOptions options;
  options.sample_every = every;
  steptimer::CudaTimer sampled(stream, options);
  const WaitForDevice wait_at_the_end;

  train(x.data(), no_timer, stream);  // CUDA loads a kernel at its first launch
  std::vector<double> without;
  std::vector<double> with_each;
  std::vector<double> with_sampled;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    without.push_back(train(x.data(), no_timer, stream));
    with_each.push_back(train(x.data(), each_step, stream));
    with_sampled.push_back(train(x.data(), sampled, stream));
  }
  each_step.finish();
  sampled.finish();
  float found = 0;
  check(cudaMemcpy(&found, x.data(), sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");

  const double bare = median(without);
  std::printf("no timer      %7.1f ns a step\n", bare);
  std::printf("every step   %+8.1f ns, data_wait %s\n", median(with_each) - bare,
              known_or_na("%.1f %%", each_step.total().data_wait_percent()).c_str());
  std::printf("every 100th  %+8.1f ns, data_wait %s\n", median(with_sampled) - bare,
              known_or_na("%.1f %%", sampled.total().data_wait_percent()).c_str());

  const steptimer::StepCounts counts = sampled.counts();
  expect(found > 0.99F && found < 1.01F, "the descent did not reach its minimum");
  expect(each_step.counts().measured + each_step.counts().stale == turns * steps, "a step is not accounted for");
  expect(counts.measured == turns * steps / every, "a sampled step was not measured");
  expect(counts.not_sampled == turns * steps - counts.measured, "the steps between the samples are not accounted for");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("sampling_cuda", [&] { run(argc, argv); });
}
