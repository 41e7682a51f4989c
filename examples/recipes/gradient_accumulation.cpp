// Gradient accumulation: four micro-steps, then one update of the weights. Two timers, one question each.
//
//   micro_timer   a step is one micro-batch: its data_wait is that of the loop. The update is put inside the last
//                 micro-step, which is therefore longer than the others; outside it would be booked as data wait.
//   step_timer    a step is one update: its steps/s and its batch time are what a training log calls a step. Its
//                 data_wait only knows the fetch before the first micro-batch; the others happen within its step.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <steptimer/steptimer.hpp>

#include "../common/batch_loader.hpp"
#include "../common/data_file.hpp"
#include "../common/digits.hpp"
#include "../common/option_table.hpp"
#include "../common/run_program.hpp"
#include "../common/softmax_regression.hpp"
#include "../common/timing_text.hpp"

namespace {

using namespace example;

constexpr std::uint64_t micro_steps = 4;
constexpr std::uint64_t updates = 60;

void run(int argc, char** argv) {
  const OptionTable table("gradient_accumulation", "times micro-steps and updates of gradient accumulation");
  if (!table.parse(argc, argv)) return;
  const Digits digits = read_digits(find_digits_file(argv[0]));

  BatchLoaderOptions loading;
  loading.epochs = 5;
  loading.delay = std::chrono::milliseconds{2};  // slow storage, so that there is something to see
  BatchLoader loader(digits, loading);
  SoftmaxRegression model;
  Batch batch;
  Score first;
  Score last;
  steptimer::CpuTimer micro_timer;
  steptimer::CpuTimer step_timer;

  for (std::uint64_t update = 0; update < updates; ++update) {
    Score score;
    std::uint64_t items = 0;
    for (std::uint64_t micro = 0; micro < micro_steps; ++micro) {
      loader.next(batch);
      if (micro == 0) step_timer.on_batch_start();
      micro_timer.on_batch_start();
      score += model.accumulate(batch);
      items += batch.size();
      if (micro + 1 == micro_steps) model.update(0.5F);
      micro_timer.on_batch_end(batch.size());
    }
    step_timer.on_batch_end(items);
    (update == 0 ? first : last) = score;
  }
  micro_timer.finish();
  step_timer.finish();

  const steptimer::StepSummary micro = micro_timer.total();
  const steptimer::StepSummary step = step_timer.total();
  std::printf("loss %.3f -> %.3f\n", first.loss(), last.loss());
  std::printf("micro-step  %s   <- the loop's data wait\n", timing_text(micro).c_str());
  std::printf("update      %s   <- sees one fetch of %d\n", timing_text(step).c_str(), static_cast<int>(micro_steps));

  expect(last.loss() < first.loss(), "the loss did not fall");
  expect(micro.steps == updates * micro_steps && step.steps == updates, "a step was not measured");
  expect(micro.items == step.items, "the two timers counted different items");
  expect(micro.data_mean() >= loading.delay, "the micro-steps waited less than a fetch takes");
  expect(step.data_total < micro.data_total, "an update cannot wait longer than its micro-steps do");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("gradient_accumulation", [&] { run(argc, argv); });
}
