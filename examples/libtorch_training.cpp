// Learns handwritten digits with LibTorch, its DataLoader and a small convolutional network: on a GPU where LibTorch has
// CUDA, else on the CPU. The timer is five of these lines: its include, its construction, the two hooks, and finish().
//
// Try:  libtorch_training                                    the loader upscales each batch: that is the data wait
//       libtorch_training --prefetch 2                       its worker threads hide it
//       libtorch_training --loader-delay-ms 20               slow storage
//       libtorch_training --loader-delay-ms 20 --prefetch 8  hidden as well

#include <torch/torch.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <steptimer/progress_line.hpp>
#include <steptimer/steptimer.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "common/data_file.hpp"
#include "common/digits.hpp"
#include "common/libtorch_device.hpp"
#include "common/libtorch_digits.hpp"
#include "common/option_table.hpp"
#include "common/run_program.hpp"
#include "common/training_options.hpp"
#include "common/training_report.hpp"

namespace {

using namespace example;

/// What a worker thread of the DataLoader does for a batch: fetch it, upscale it, put it where the GPU can copy it from.
class UpscaledDigits : public torch::data::datasets::BatchDataset<UpscaledDigits, torch::data::Example<>> {
 public:
  UpscaledDigits(DigitTensors digits, std::chrono::nanoseconds delay) : digits_(std::move(digits)), delay_(delay) {}

  torch::data::Example<> get_batch(c10::ArrayRef<std::size_t> indices) override {
    const torch::Tensor chosen = torch::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
    std::this_thread::sleep_for(delay_);
    return {page_locked(upscale(digits_.images.index_select(0, chosen))),
            page_locked(digits_.labels.index_select(0, chosen))};
  }

  c10::optional<std::size_t> size() const override { return static_cast<std::size_t>(digits_.size()); }

 private:
  DigitTensors digits_;
  std::chrono::nanoseconds delay_;
};

torch::nn::Sequential make_network(std::int64_t channels) {
  using namespace torch::nn;
  const std::int64_t side = upscaled_side / 4;
  return Sequential(Conv2d(Conv2dOptions(1, channels, 3).padding(1)), ReLU(), MaxPool2d(2),
                    Conv2d(Conv2dOptions(channels, 2 * channels, 3).padding(1)), ReLU(), MaxPool2d(2), Flatten(),
                    Linear(2 * channels * side * side, 64), ReLU(), Linear(64, std::int64_t{digit_classes}));
}

TrainingReport train(const TrainingOptions& options, const DigitsSplit& digits) {
  const torch::Device device = use_libtorch_device();
  torch::manual_seed(options.seed);
  torch::nn::Sequential network = make_network(static_cast<std::int64_t>(options.hidden));
  network->to(device);
  torch::optim::Adam optimizer(network->parameters(), torch::optim::AdamOptions(3e-3));
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      UpscaledDigits(to_tensors(digits.training), options.loader_delay()),
      torch::data::DataLoaderOptions(options.batch).workers(options.prefetch));
  const std::uint64_t steps_per_epoch = (digits.training.size() + options.batch - 1) / options.batch;
  steptimer::ProgressLine line(options.epochs * steps_per_epoch, options.quiet ? nullptr : stdout, progress_interval);
  steptimer::StepTimer timer{libtorch_timeline(), shown_on(line, options.quiet)};
  Score learned;

  for (std::uint64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    std::uint64_t step = 0;
    for (auto& batch : *loader) {
      const torch::Tensor images = batch.data.to(device, /*non_blocking=*/true);
      const torch::Tensor labels = batch.target.to(device, /*non_blocking=*/true);
      timer.on_batch_start();  // the batch is in hand: from here on it is not data wait
      optimizer.zero_grad();
      const torch::Tensor outputs = network->forward(images);
      torch::nn::functional::cross_entropy(outputs, labels).backward();
      optimizer.step();
      if (options.reads_loss(++step, steps_per_epoch)) learned = read_score(outputs, labels);
      if (line.due() || step == steps_per_epoch) line.text(progress_text(epoch, options.epochs, learned));
      timer.on_batch_end(static_cast<std::uint64_t>(labels.size(0)));  // shows the line where it is due
    }
  }
  timer.finish();
  line.finish();

  const torch::NoGradGuard no_gradients;
  const DigitTensors held_out = to_upscaled_tensors(digits.held_out).to(device);
  const Score score = read_score(network->forward(held_out.images), held_out.labels);
  return {score, options.epochs * steps_per_epoch, timer.total(), {}, timer.status()};
}

void run(int argc, char** argv) {
  TrainingOptions options;
  options.epochs = 12;
  options.hidden = 8;
  OptionTable table("libtorch_training", "learns handwritten digits with LibTorch and says where a step's time goes");
  options.add_to(table, 512);
  options.add_sync_every_to(table);
  if (!table.parse(argc, argv)) return;

  const DigitsSplit digits = split_digits(read_digits(options.data.empty() ? find_digits_file(argv[0]) : options.data));
  check_batch_fits(options.batch, digits.training);

  const TrainingReport report = train(options, digits);
  print_summary(report, libtorch_runs);
  if (options.json) print_json("libtorch_training", report);
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("libtorch_training", [&] { example::run_libtorch([&] { run(argc, argv); }); });
}
