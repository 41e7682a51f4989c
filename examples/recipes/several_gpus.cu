// Several GPUs in one process: one thread, one stream and one timer for each. Runs with any number of GPUs from 1.
//
// A timer binds to the device of its stream; nothing is shared, so nothing is locked. Each GPU trains a network of its
// own here and never waits for another, so their summaries may be merged. Where they wait for each other in every step
// (an all-reduce), read them one by one: the one with the short batch time is the one that waited for data.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <future>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>
#include <vector>

#include "../common/batch_feeder.hpp"
#include "../common/batch_loader.hpp"
#include "../common/cuda_check.hpp"
#include "../common/cuda_resources.hpp"
#include "../common/data_file.hpp"
#include "../common/digits.hpp"
#include "../common/gpu_network.cuh"
#include "../common/option_table.hpp"
#include "../common/run_program.hpp"
#include "../common/timing_text.hpp"

namespace {

using namespace example;

struct Result {
  Score first_epoch, last_epoch;
  std::uint64_t steps = 0;
  steptimer::StepSummary timing;
};

/// What each thread does. The current device is the thread's own.
Result train_on(int device, const Digits& digits) {
  check(cudaSetDevice(device), "cudaSetDevice");
  BatchLoaderOptions loading;
  loading.epochs = 10;
  loading.threads = 1;
  loading.seed = static_cast<std::uint64_t>(device);
  BatchLoader loader(digits, loading);
  const Stream stream;
  GpuNetwork network(NetworkShape(512), loading.batch, loading.seed);
  BatchFeeder feeder(loader, loading.batch);
  steptimer::CudaTimer timer(stream);
  const WaitForDevice wait_at_the_end;
  Result result;

  for (std::uint64_t epoch = 0; epoch < loading.epochs; ++epoch) {
    for (std::uint64_t i = 0; i < loader.steps_per_epoch(); ++i) {
      BatchFeeder::Place& batch = feeder.fetch();
      feeder.hand_over(batch, stream);
      timer.on_batch_start();
      network.train(batch.pixels(), batch.labels(), batch.size(), 0.02F, stream);
      timer.on_batch_end(batch.size());
      feeder.give_back(batch, stream);
    }
    timer.pause();  // reading the loss of an epoch is no wait for data
    network.queue_score_read(stream);
    stream.wait();
    (epoch == 0 ? result.first_epoch : result.last_epoch) = network.score();
  }
  timer.finish();
  result.steps = loader.steps();
  result.timing = timer.total();
  return result;
}

void run(int argc, char** argv) {
  const OptionTable table("several_gpus", "times one loop on each GPU of this machine");
  if (!table.parse(argc, argv)) return;
  const Digits digits = read_digits(find_digits_file(argv[0]));
  use_first_gpu();
  int gpus = 0;
  check(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");

  std::vector<std::future<Result>> threads;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    threads.push_back(std::async(std::launch::async, [gpu, &digits] { return train_on(gpu, digits); }));
  }
  steptimer::StepSummary all;
  std::uint64_t steps = 0;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const Result result = threads[static_cast<std::size_t>(gpu)].get();  // throws what the thread threw
    std::printf("GPU %d     loss %.3f -> %.3f | %s\n", gpu, result.first_epoch.loss(), result.last_epoch.loss(),
                timing_text(result.timing).c_str());
    expect(result.last_epoch.loss() < result.first_epoch.loss(), "the loss did not fall");
    all = merge(all, result.timing);
    steps += result.steps;
  }
  std::printf("all %d     %s for one GPU\n", gpus, timing_text(all).c_str());
  expect(all.steps == steps, "a step was not measured");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("several_gpus", [&] { run(argc, argv); });
}
