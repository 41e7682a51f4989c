// Learns what digits look like without their labels, as SimCLR does, with LibTorch: two augmented views of a digit are to
// be more alike than views of different digits. What was learned shows in a linear probe: one layer that tells the
// digits apart by what the frozen encoder makes of them, taught by few labels, beside the same on an encoder that has
// learned nothing.
//
// The data phase does what many do: it copies the batch from ordinary memory, which makes the host wait until the GPU
// has done all that is queued. A host clock calls that loading. The timer reads the GPU's own timeline.
//
// Try:  libtorch_simclr                        on a GPU where LibTorch has CUDA, else on the CPU, smaller
//       libtorch_simclr --loader-delay-ms 40   a data wait that is there

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

/// Turns, scales and moves each image a little, differently, and adds noise.
torch::Tensor augment_images(const torch::Tensor& images) {
  namespace functional = torch::nn::functional;
  const auto size = images.size(0);
  const auto around = [size](double middle, double reach) { return middle + reach * (2 * torch::rand({size}) - 1); };
  const torch::Tensor angle = around(0, 0.3);
  const torch::Tensor scale = around(1, 0.25);
  const torch::Tensor cosine = scale * angle.cos();
  const torch::Tensor sine = scale * angle.sin();
  const torch::Tensor moves = torch::stack(
      {torch::stack({cosine, -sine, around(0, 0.2)}, 1), torch::stack({sine, cosine, around(0, 0.2)}, 1)}, 1);
  const torch::Tensor places = functional::affine_grid(moves, images.sizes().vec(), /*align_corners=*/false);
  const torch::Tensor moved = functional::grid_sample(
      images, places,
      functional::GridSampleFuncOptions().mode(torch::kBilinear).padding_mode(torch::kZeros).align_corners(false));
  return moved + 0.1 * torch::randn_like(moved);
}

/// Batches of two views a digit: the first views of all, then the second ones. Labels are not used. With several worker
/// threads it is chance which of them draws which random number first.
class TwoViews : public torch::data::datasets::BatchDataset<TwoViews, torch::Tensor> {
 public:
  TwoViews(torch::Tensor images, std::chrono::nanoseconds delay) : images_(std::move(images)), delay_(delay) {}

  torch::Tensor get_batch(c10::ArrayRef<std::size_t> indices) override {
    const torch::Tensor chosen = torch::tensor(std::vector<std::int64_t>(indices.begin(), indices.end()));
    const torch::Tensor images = images_.index_select(0, chosen);
    std::this_thread::sleep_for(delay_);
    return augment_images(torch::cat({images, images}));
  }

  c10::optional<std::size_t> size() const override { return static_cast<std::size_t>(images_.size(0)); }

 private:
  torch::Tensor images_;
  std::chrono::nanoseconds delay_;
};

torch::nn::Sequential make_encoder(std::int64_t width) {
  using namespace torch::nn;
  Sequential encoder;
  const auto add_layer = [&encoder](std::int64_t from, std::int64_t to) {
    encoder->push_back(Conv2d(Conv2dOptions(from, to, 3).padding(1).bias(false)));
    encoder->push_back(GroupNorm(GroupNormOptions(1, to)));  // no image depends on the others in its batch
    encoder->push_back(ReLU());
  };
  add_layer(1, width);
  encoder->push_back(MaxPool2d(2));
  add_layer(width, 2 * width);
  add_layer(2 * width, 2 * width);
  encoder->push_back(MaxPool2d(2));
  add_layer(2 * width, 4 * width);
  add_layer(4 * width, 4 * width);
  encoder->push_back(AdaptiveAvgPool2d(1));
  encoder->push_back(Flatten());
  return encoder;
}

torch::nn::Sequential make_projection(std::int64_t features) {
  using namespace torch::nn;
  return Sequential(Linear(features, features), ReLU(), Linear(features, 64));
}

/// Logits with which each view looks for the other view of its digit among all views, and where that is.
struct Search {
  torch::Tensor logits, partners;
};

Search search_partners(const torch::Tensor& projections) {
  namespace functional = torch::nn::functional;
  constexpr double temperature = 0.1;
  const auto views = projections.size(0);
  const torch::Tensor directions = functional::normalize(projections, functional::NormalizeFuncOptions().dim(1));
  const torch::Tensor itself = torch::eye(views, directions.options().dtype(torch::kBool));
  const torch::Tensor logits = (torch::mm(directions, directions.t()) / temperature).masked_fill(itself, -1e9);
  return {logits, torch::arange(views, itself.options().dtype(torch::kLong)).roll(views / 2)};
}

/// Trains one linear layer on the features that a frozen encoder gives some digits, and tries it on those held out.
Score probe(torch::nn::Sequential& encoder, const DigitTensors& labelled, const DigitTensors& held_out) {
  constexpr int rounds = 300;
  const auto features_of = [&encoder](const torch::Tensor& images) {
    const torch::NoGradGuard no_gradients;
    return encoder->forward(images);
  };
  const torch::Tensor features = features_of(labelled.images);
  const torch::Tensor middle = features.mean(0);
  const torch::Tensor spread = features.std(0) + 1e-5;

  torch::nn::Linear layer(features.size(1), std::int64_t{digit_classes});
  layer->to(features.device());
  torch::optim::Adam optimizer(layer->parameters(), torch::optim::AdamOptions(1e-2));
  for (int round = 0; round < rounds; ++round) {
    optimizer.zero_grad();
    const torch::Tensor outputs = layer->forward((features - middle) / spread);
    torch::nn::functional::cross_entropy(outputs, labelled.labels).backward();
    optimizer.step();
  }
  const torch::Tensor held_out_features = (features_of(held_out.images) - middle) / spread;
  return read_score(layer->forward(held_out_features), held_out.labels);
}

/// Trains the encoder, with a projection behind it that nothing else uses.
///
/// Returns: a report in which only the score is still missing.
TrainingReport pretrain(torch::nn::Sequential& encoder, const torch::Tensor& images, torch::Device device,
                        const TrainingOptions& options) {
  torch::nn::Sequential projection = make_projection(4 * static_cast<std::int64_t>(options.hidden));
  projection->to(device);
  std::vector<torch::Tensor> parameters = encoder->parameters();
  for (const torch::Tensor& parameter : projection->parameters()) parameters.push_back(parameter);
  torch::optim::Adam optimizer(parameters, torch::optim::AdamOptions(1e-3));
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      TwoViews(images, options.loader_delay()),
      torch::data::DataLoaderOptions(options.batch).workers(options.prefetch).drop_last(true));
  const std::uint64_t steps_per_epoch = static_cast<std::uint64_t>(images.size(0)) / options.batch;
  steptimer::ProgressLine line(options.epochs * steps_per_epoch, options.quiet ? nullptr : stdout, progress_interval);
  steptimer::StepTimer timer{libtorch_timeline(), shown_on(line, options.quiet)};
  Score found;  // how many views found their partner

  for (std::uint64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    std::uint64_t step = 0;
    for (const torch::Tensor& batch : *loader) {
      const torch::Tensor views = batch.to(device);  // waits until the GPU has done the step before
      timer.on_batch_start();
      optimizer.zero_grad();
      const Search search = search_partners(projection->forward(encoder->forward(views)));
      torch::nn::functional::cross_entropy(search.logits, search.partners).backward();  // NT-Xent
      optimizer.step();
      if (options.reads_loss(++step, steps_per_epoch)) found = read_score(search.logits, search.partners);
      if (line.due() || step == steps_per_epoch) line.text(progress_text(epoch, options.epochs, found));
      timer.on_batch_end(options.batch);  // shows the line where it is due
    }
  }
  timer.finish();
  line.finish();
  return {Score{}, options.epochs * steps_per_epoch, timer.total(), {}, timer.status()};
}

struct Outcome {
  Score untrained;
  TrainingReport report;
};

Outcome train(const TrainingOptions& options, const DigitsSplit& digits) {
  constexpr std::int64_t few = 100;  // with a label for every digit, features made by chance would do, too
  const torch::Device device = use_libtorch_device();
  torch::manual_seed(options.seed);
  const DigitTensors training = to_upscaled_tensors(digits.training);
  const DigitTensors labelled =
      DigitTensors{training.images.slice(0, 0, few), training.labels.slice(0, 0, few)}.to(device);
  const DigitTensors held_out = to_upscaled_tensors(digits.held_out).to(device);

  torch::nn::Sequential encoder = make_encoder(static_cast<std::int64_t>(options.hidden));
  encoder->to(device);
  const Score untrained = probe(encoder, labelled, held_out);
  TrainingReport report = pretrain(encoder, training.images, device, options);
  report.held_out = probe(encoder, labelled, held_out);
  return {untrained, std::move(report)};
}

void run(int argc, char** argv) {
  constexpr bool on_gpu = libtorch_runs == Device::behind_host;
  TrainingOptions options;
  options.epochs = on_gpu ? 30 : 12;
  options.batch = 128;
  options.hidden = on_gpu ? 192 : 8;
  OptionTable table("libtorch_simclr", "learns about digits without their labels, and says where a step's time goes");
  options.add_to(table, 512);
  options.add_sync_every_to(table);
  if (!table.parse(argc, argv)) return;

  const DigitsSplit digits = split_digits(read_digits(options.data.empty() ? find_digits_file(argv[0]) : options.data));
  check_batch_fits(options.batch, digits.training);

  const Outcome outcome = train(options, digits);
  const double untrained = outcome.untrained.accuracy();
  print_summary(outcome.report, libtorch_runs);
  std::printf("untrained  %.2f %% is what the same probe reaches on an encoder that has learned nothing\n",
              100 * untrained);
  if (!options.json) return;
  JsonObject json = to_json("libtorch_simclr", outcome.report);
  json.add("untrained_accuracy", untrained);
  json.add("accuracy_gain", outcome.report.held_out.accuracy() - untrained);
  std::printf("%s\n", json.str().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("libtorch_simclr", [&] { example::run_libtorch([&] { run(argc, argv); }); });
}
