// A loader thread fills two pinned buffers in turn, a stream of its own copies them to the device, events hand them on.
//
// The one line that matters for the timer: the step's stream is told to wait for the copy BEFORE on_batch_start(). A
// copy that comes late then counts as data wait; told after the hook, the same wait would hide in the batch time.
//
// Runs twice, with a loader that keeps up and with one that takes 4 ms a batch, and the data wait shows which.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <future>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>

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

constexpr std::size_t batch_size = 32;

struct Buffer {
  PinnedArray<float> host_pixels{batch_size * digit_pixels};
  PinnedArray<std::uint8_t> host_labels{batch_size};
  DeviceArray<float> pixels{batch_size * digit_pixels};
  DeviceArray<std::uint8_t> labels{batch_size};
  std::size_t size = 0;
  Event copied;  // the host side has been read
  Event used;    // the device side has been read

  /// On the loader thread.
  void fill(BatchLoader& loader) {
    Batch batch;
    loader.next(batch);
    copied.wait();
    std::copy(batch.pixels.begin(), batch.pixels.end(), host_pixels.data());
    std::copy(batch.labels.begin(), batch.labels.end(), host_labels.data());
    size = batch.size();
  }

  void queue_copy(const Stream& copies) {
    used.make_wait(copies);
    check(cudaMemcpyAsync(pixels.data(), host_pixels.data(), pixels.bytes(), cudaMemcpyHostToDevice, copies),
          "cudaMemcpyAsync");
    check(cudaMemcpyAsync(labels.data(), host_labels.data(), labels.bytes(), cudaMemcpyHostToDevice, copies),
          "cudaMemcpyAsync");
    copied.record(copies);
  }
};

steptimer::StepSummary train(const Digits& digits, std::chrono::milliseconds loader_delay) {
  BatchLoaderOptions loading;
  loading.batch = batch_size;
  loading.epochs = 3;
  loading.delay = loader_delay;
  BatchLoader loader(digits, loading);
  const Stream stream;
  const Stream copies;
  GpuNetwork network(NetworkShape(1024), batch_size, 1);
  Buffer buffers[2];
  steptimer::CudaTimer timer(stream);
  const WaitForDevice wait_at_the_end;
  const auto start_filling = [&](Buffer& buffer) {
    return std::async(std::launch::async, [&loader, &buffer] { buffer.fill(loader); });
  };
  std::future<void> filling = start_filling(buffers[0]);
  Score first;

  for (std::uint64_t step = 0; step < loader.steps(); ++step) {
    Buffer& buffer = buffers[step % 2];
    filling.get();  // until the loader thread is done; throws what it threw
    if (step + 1 < loader.steps()) filling = start_filling(buffers[(step + 1) % 2]);
    buffer.queue_copy(copies);
    buffer.copied.make_wait(stream);  // before the start: a copy not done yet is data wait
    timer.on_batch_start();
    network.train(buffer.pixels.data(), buffer.labels.data(), buffer.size, 0.02F, stream);
    timer.on_batch_end(buffer.size);
    buffer.used.record(stream);
    if ((step + 1) % loader.steps_per_epoch() != 0) continue;
    timer.pause();  // reading the loss of an epoch is no wait for data
    network.queue_score_read(stream);
    stream.wait();
    if (step + 1 == loader.steps_per_epoch()) first = network.score();
  }
  timer.finish();
  expect(network.score().loss() < first.loss(), "the loss did not fall");
  expect(timer.counts().measured == loader.steps(), "a step was not measured");
  return timer.total();
}

void run(int argc, char** argv) {
  const OptionTable table("pinned_double_buffering", "times steps whose batches come by a thread and a copy stream");
  if (!table.parse(argc, argv)) return;
  const Digits digits = read_digits(find_digits_file(argv[0]));
  use_first_gpu();

  const steptimer::StepSummary fast = train(digits, std::chrono::milliseconds{0});
  std::printf("loader that keeps up   %s\n", timing_text(fast).c_str());
  const steptimer::StepSummary slow = train(digits, std::chrono::milliseconds{4});
  std::printf("loader of 4 ms         %s\n", timing_text(slow).c_str());
  expect(slow.data_wait_percent() > 50.0, "a step takes far less than its batch, but the data wait is below 50 %");
  expect(slow.data_wait_percent() > fast.data_wait_percent(), "the slow loader was waited for less than the fast one");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("pinned_double_buffering", [&] { run(argc, argv); });
}
