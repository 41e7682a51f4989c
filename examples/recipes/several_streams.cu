// Work on several streams. Two networks learn from the same batch, each on a stream of its own that is forked from the
// step's stream and joined to it again: one timer on the step's stream sees both. A third network, which never
// learns, is judged on a stream that nothing else waits for: no timer of another stream can see that, so it has its own.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>

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

/// A network that learns beside the step's stream.
struct Branch {
  GpuNetwork network;
  Stream stream;
  Event forked, done;

  Branch(const NetworkShape& shape, std::size_t batch, std::uint64_t seed) : network(shape, batch, seed) {}

  void train(const BatchFeeder::Place& batch, const Stream& step_stream) {
    forked.record(step_stream);
    forked.make_wait(stream);  // fork: not before the step's batch is there
    network.train(batch.pixels(), batch.labels(), batch.size(), 0.02F, stream);
    done.record(stream);
  }
  void join(const Stream& step_stream) { done.make_wait(step_stream); }

  Score read_score() {
    network.queue_score_read(stream);
    stream.wait();
    return network.score();
  }
};

void run(int argc, char** argv) {
  const OptionTable table("several_streams", "times steps that fork to two streams, and a stream on its own");
  if (!table.parse(argc, argv)) return;
  const DigitsSplit digits = split_digits(read_digits(find_digits_file(argv[0])));
  use_first_gpu();

  const NetworkShape shape(512);
  BatchLoaderOptions loading;
  loading.epochs = 10;
  loading.threads = 1;
  BatchLoader loader(digits.training, loading);
  const DeviceArray<float> judged_pixels = to_device(digits.held_out.pixels);
  const DeviceArray<std::uint8_t> judged_labels = to_device(digits.held_out.labels);
  const Stream stream;
  const Stream judging;
  BatchFeeder feeder(loader, loading.batch);
  Branch left(shape, loading.batch, 1);
  Branch right(shape, loading.batch, 2);
  GpuNetwork judged(shape, digits.held_out.size(), 3);
  steptimer::CudaTimer timer(stream);
  steptimer::CudaTimer judging_timer(judging);
  const WaitForDevice wait_at_the_end;
  Score first;

  for (std::uint64_t step = 0; step < loader.steps(); ++step) {
    BatchFeeder::Place& batch = feeder.fetch();
    feeder.hand_over(batch, stream);
    timer.on_batch_start();
    left.train(batch, stream);
    right.train(batch, stream);
    left.join(stream);
    right.join(stream);  // before the end mark: what is not joined by then is not in the step
    timer.on_batch_end(batch.size());
    feeder.give_back(batch, stream);

    if (step % 50 == 0) {
      const auto judging_step = judging_timer.step(digits.held_out.size());
      judged.evaluate(judged_pixels.data(), judged_labels.data(), digits.held_out.size(), judging);
    }
    if (step == 0) first = left.read_score();
  }
  timer.finish();
  judging_timer.finish();
  const Score last = left.read_score();

  std::printf("loss %.3f in the first step, %.3f on average after it\n", first.loss(), last.loss());
  judged.queue_score_read(judging);
  judging.wait();
  std::printf("accuracy %.1f %% of a network that never learns\n", 100 * judged.score().accuracy());
  std::printf("two joined streams    %s\n", timing_text(timer.total()).c_str());
  std::printf("stream of its own     %s (nobody waits between two evaluations)\n",
              timing_text(judging_timer.total()).c_str());
  expect(last.loss() < first.loss(), "the loss did not fall");
  expect(timer.counts().measured == loader.steps(), "a step was not measured");
  expect(judging_timer.counts().measured == judging_timer.counts().started, "an evaluation was not measured");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("several_streams", [&] { run(argc, argv); });
}
