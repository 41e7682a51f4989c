// A training step captured once and replayed as a CUDA graph. The hooks go around the launch of the graph.
//
// Inside the capture they would change nothing in the graph and measure nothing: a captured event has no time. The
// copies of the next batch are queued before on_batch_start(), so they count as waiting for data.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
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

/// What a function queues on a stream, as a graph that can be launched again and again.
class Graph {
 public:
  template <class Function>
  Graph(const Stream& stream, Function&& queue_work) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    queue_work();
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "cudaGraphInstantiate");
  }
  ~Graph() { cudaGraphExecDestroy(executable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(const Stream& stream) const { check(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

/// The one place on the device that the graph reads its batch from.
struct Input {
  PinnedArray<float> host_pixels{batch_size * digit_pixels};
  PinnedArray<std::uint8_t> host_labels{batch_size};
  DeviceArray<float> pixels{batch_size * digit_pixels};
  DeviceArray<std::uint8_t> labels{batch_size};
  Event copied;

  /// A graph's sizes are fixed: where the last batch of an epoch is short, some digits of the one before stay.
  void queue_copy(const Batch& batch, const Stream& stream) {
    copied.wait();  // until the copies out of pinned memory have run
    std::copy(batch.pixels.begin(), batch.pixels.end(), host_pixels.data());
    std::copy(batch.labels.begin(), batch.labels.end(), host_labels.data());
    check(cudaMemcpyAsync(pixels.data(), host_pixels.data(), pixels.bytes(), cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
    check(cudaMemcpyAsync(labels.data(), host_labels.data(), labels.bytes(), cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
    copied.record(stream);
  }
};

void run(int argc, char** argv) {
  const OptionTable table("cuda_graph", "times training steps that are launches of one CUDA graph");
  if (!table.parse(argc, argv)) return;
  const Digits digits = read_digits(find_digits_file(argv[0]));
  use_first_gpu();

  const Stream stream;
  Input input;
  GpuNetwork network(NetworkShape(512), batch_size, 1);
  BatchLoaderOptions loading;
  loading.batch = batch_size;
  loading.epochs = 10;
  loading.threads = 1;
  BatchLoader loader(digits, loading);
  Batch batch;
  Score first;
  steptimer::CudaTimer timer(stream);
  const WaitForDevice wait_at_the_end;

  const auto queue_step = [&] { network.train(input.pixels.data(), input.labels.data(), batch_size, 0.02F, stream); };
  queue_step();  // on zeros: CUDA loads a kernel at its first launch, which is no work for a capture
  network.queue_score_read(stream);
  stream.wait();
  const Graph graph(stream, queue_step);

  for (std::uint64_t step = 0; step < loader.steps(); ++step) {
    loader.next(batch);
    input.queue_copy(batch, stream);
    timer.on_batch_start();
    graph.launch(stream);
    timer.on_batch_end(batch.size());
    if ((step + 1) % loader.steps_per_epoch() != 0) continue;
    timer.pause();  // reading the loss of an epoch is no wait for data
    network.queue_score_read(stream);
    stream.wait();
    if (step + 1 == loader.steps_per_epoch()) first = network.score();
  }
  timer.finish();

  std::printf("loss %.3f -> %.3f in %d epochs\n", first.loss(), network.score().loss(),
              static_cast<int>(loading.epochs));
  std::printf("graph  %s\n", timing_text(timer.total()).c_str());
  expect(network.score().loss() < first.loss(), "the loss did not fall");
  expect(timer.counts().measured == loader.steps(), "a step was not measured");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("cuda_graph", [&] { run(argc, argv); });
}
