// Learns handwritten digits on a GPU that runs behind the host, and says where a step's time goes: computing, or waiting
// for the next batch. Beside it stands what a host clock alone would have claimed.
//
// Try:  cuda_training                                     host and device asynchronous, loss read every 10th step
//       cuda_training --loader-delay-ms 4                 the data wait is real
//       cuda_training --loader-delay-ms 4 --prefetch 32   loader threads hide it
//       cuda_training --hidden 8192                       the device is busy; the host clock claims a data wait

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/progress_line.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/steptimer.hpp>
#include <steptimer/tee.hpp>
#include <string_view>
#include <utility>

#include "common/batch_feeder.hpp"
#include "common/batch_loader.hpp"
#include "common/cuda_check.hpp"
#include "common/cuda_resources.hpp"
#include "common/data_file.hpp"
#include "common/digits.hpp"
#include "common/gpu_network.cuh"
#include "common/option_table.hpp"
#include "common/record_files.hpp"
#include "common/run_program.hpp"
#include "common/training_options.hpp"
#include "common/training_report.hpp"

namespace {

using namespace example;

/// Digits that stay on the device to see what was learned.
class HeldOutDigits {
 public:
  explicit HeldOutDigits(const Digits& digits)
      : size_(digits.size()), pixels_(to_device(digits.pixels)), labels_(to_device(digits.labels)) {}

  Score evaluate(GpuNetwork& network, std::size_t batch, const Stream& stream) const {
    for (std::size_t first = 0; first < size_; first += batch) {
      network.evaluate(pixels_.data() + first * digit_pixels, labels_.data() + first, std::min(batch, size_ - first),
                       stream);
    }
    network.queue_score_read(stream);
    stream.wait();
    return network.score();
  }

 private:
  std::size_t size_;
  DeviceArray<float> pixels_;
  DeviceArray<std::uint8_t> labels_;
};

TrainingReport train(const TrainingOptions& options, const DigitsSplit& digits, RecordFiles& files) {
  const Stream stream;
  const HeldOutDigits held_out_digits(digits.held_out);
  const NetworkShape shape(options.hidden);
  GpuNetwork network(shape, options.batch, options.seed);
  BatchLoader loader(digits.training,
                     {options.batch, options.epochs, options.prefetch, options.loader_delay(), options.seed});
  BatchFeeder feeder(loader, options.batch);
  steptimer::ProgressLine line(loader.steps(), options.quiet ? nullptr : stdout, progress_interval);
  steptimer::StepDistribution distribution;
  steptimer::StepTimerOptions timer_options;
  timer_options.warmup_steps = 5;  // CUDA loads a kernel at its first launch
  timer_options.on_record = steptimer::tee(line, distribution, files);
  if (!options.quiet) timer_options.on_warning = [&line](std::string_view warning) { line.print(warning); };
  steptimer::CudaTimer timer(stream, timer_options);  // after the stream, so that it goes first
  const auto mark = [&](const char* phase) {
    if (options.phases) timer.mark(phase);
  };
  const WaitForDevice wait_at_the_end;
  Score held_out;
  Score learned;
  const auto update_text = [&](std::uint64_t epoch) {
    line.text(progress_text(epoch, options.epochs, learned) + host_clock_text(timer.window()));
  };

  const std::uint64_t steps = loader.steps();
  std::uint64_t step = 0;
  BatchFeeder::Place* batch = &feeder.fetch();
  for (std::uint64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    for (std::uint64_t i = 1; i <= loader.steps_per_epoch(); ++i) {
      const bool reads_loss = options.reads_loss(i, loader.steps_per_epoch());

      feeder.hand_over(*batch, stream);  // before the start: a copy not done yet is data wait
      timer.on_batch_start();
      network.train(batch->pixels(), batch->labels(), batch->size(), shape.learning_rate(step, steps), stream, mark);
      if (reads_loss) network.queue_score_read(stream);
      feeder.give_back(*batch, stream);
      if (line.due()) update_text(epoch);
      timer.on_batch_end(batch->size());  // shows the line where it is due

      if (++step < steps) {
        const auto fetching = timer.fetch();
        batch = &feeder.fetch();  // while the device works on the step
      }
      if (reads_loss) {
        stream.wait();
        learned = network.score();
      }
    }
    update_text(epoch);
    timer.pause();  // the evaluation is no wait for data
    held_out = held_out_digits.evaluate(network, options.batch, stream);
  }

  timer.finish();  // the last steps are measured when the device is done with them
  line.finish();
  TrainingReport report{held_out, steps, timer.total(), std::move(distribution), timer.status()};
  timer.release();  // its events go before the stream does
  return report;
}

void run(int argc, char** argv) {
  TrainingOptions options;
  options.hidden = 1024;
  OptionTable table("cuda_training", "learns handwritten digits on a GPU and says where a step's time goes");
  RecordFiles files;
  options.add_to(table, 16384);
  options.add_sync_every_to(table);
  options.add_phases_to(table);
  files.add_to(table);
  if (!table.parse(argc, argv)) return;

  const DigitsSplit digits = split_digits(read_digits(options.data.empty() ? find_digits_file(argv[0]) : options.data));
  check_batch_fits(options.batch, digits.training);
  files.open();
  use_first_gpu();

  const TrainingReport report = train(options, digits, files);
  print_summary(report, Device::behind_host);
  files.close_and_print();
  if (options.json) print_json("cuda_training", report);
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("cuda_training", [&] { run(argc, argv); });
}
