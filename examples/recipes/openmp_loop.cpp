// A plain CPU loop whose step is an OpenMP parallel region. The loader stays outside the hooks, on one thread.
//
// The timer is used by the thread that runs the loop, before and after the region: threads inside it need no timer.
// Built without OpenMP the same loop runs on one thread.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <random>
#include <steptimer/steptimer.hpp>
#include <vector>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "../common/option_table.hpp"
#include "../common/run_program.hpp"
#include "../common/timing_text.hpp"

namespace {

using namespace example;

constexpr std::size_t features = 32;
constexpr std::ptrdiff_t rows = 4096;
constexpr int steps = 200;

using Weights = std::array<float, features>;

struct Rows {
  std::vector<float> inputs = std::vector<float>(rows * features);
  std::vector<float> targets = std::vector<float>(rows);
};

float dot(const float* a, const float* b) {
  float sum = 0;
  for (std::size_t i = 0; i < features; ++i) sum += a[i] * b[i];
  return sum;
}

/// The loader: new rows for each step, made by a linear function that the model has to find.
void load(Rows& batch, std::mt19937& random) {
  Weights truth;
  for (std::size_t i = 0; i < features; ++i) truth[i] = static_cast<float>(i) / features;
  for (float& input : batch.inputs) input = static_cast<float>(random()) / 2147483648.0F - 1.0F;
  for (std::size_t row = 0; row < rows; ++row) batch.targets[row] = dot(&batch.inputs[row * features], truth.data());
}

/// One step of linear regression. Returns: the mean squared error before it.
float train(Weights& weights, const Rows& batch) {
  float gradient[features] = {};
  float loss = 0;
#pragma omp parallel for reduction(+ : gradient[:features], loss)
  for (std::ptrdiff_t row = 0; row < rows; ++row) {
    const float* const inputs = batch.inputs.data() + row * static_cast<std::ptrdiff_t>(features);
    const float error = dot(inputs, weights.data()) - batch.targets[static_cast<std::size_t>(row)];
    loss += error * error;
    for (std::size_t i = 0; i < features; ++i) gradient[i] += error * inputs[i];
  }
  for (std::size_t i = 0; i < features; ++i) weights[i] -= 0.5F * gradient[i] / rows;
  return loss / rows;
}

int most_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

void run(int argc, char** argv) {
  const OptionTable table("openmp_loop", "times a loop whose step runs on all cores by OpenMP");
  if (!table.parse(argc, argv)) return;

  steptimer::StepTimerOptions options;
  options.warmup_steps = 1;  // OpenMP starts its threads at the first region
  steptimer::CpuTimer timer({}, options);
  std::mt19937 random;
  Rows batch;
  Weights weights{};
  float first = 0;
  float last = 0;
  for (int step = 0; step < steps; ++step) {
    load(batch, random);
    timer.on_batch_start();
    last = train(weights, batch);
    timer.on_batch_end(rows);
    if (step == 0) first = last;
  }
  timer.finish();

  std::printf("%d threads in a step, loss %.4f -> %.4f\n", most_threads(), static_cast<double>(first),
              static_cast<double>(last));
  std::printf("%s: more threads make the batch time shorter, and the loader's share larger\n",
              timing_text(timer.total()).c_str());
  expect(last < first, "the loss did not fall");
  expect(timer.total().steps == steps - 1, "a step was not measured");
  expect(timer.total().data_mean() > std::chrono::microseconds{100}, "the loader's time is not in the data time");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("openmp_loop", [&] { run(argc, argv); });
}
