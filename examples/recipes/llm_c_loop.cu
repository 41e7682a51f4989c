// A loop in the shape of llm.c: micro-steps of gradient accumulation, an update, one wait for the device a step to print
// the loss, validation now and then. The model is the smallest one there is: the next token from the last one.
//
// One pair of hooks a micro-step, each with its own batch in hand; the update belongs to the last micro-step. The
// window is as long as a step has micro-steps, so that the line of a step says what this step waited for.

#include <cuda_runtime.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>
#include <vector>

#include "../common/bigram_model.cuh"
#include "../common/cuda_check.hpp"
#include "../common/cuda_resources.hpp"
#include "../common/option_table.hpp"
#include "../common/run_program.hpp"
#include "../common/timing_text.hpp"

namespace {

using namespace example;
using namespace example::bigram;

constexpr int micro_steps = 4;
constexpr int steps = 40;
constexpr int validate_every = 10;

void run(int argc, char** argv) {
  const OptionTable table("llm_c_loop", "times a loop in the shape of llm.c");
  if (!table.parse(argc, argv)) return;
  use_first_gpu();

  const Stream stream;
  Model model;
  TextLoader loader;
  std::vector<Text> batches(micro_steps);  // a step waits for its copies, so the next one can use them again
  Text held_out;
  steptimer::StepTimerOptions options;
  options.window = micro_steps;
  steptimer::CudaTimer timer(stream, options);
  const WaitForDevice wait_at_the_end;

  loader.next_batch(held_out, stream);
  float first_loss = 0;
  float last_loss = 0;
  for (int step = 0;; ++step) {
    if (step % validate_every == 0 || step == steps) {
      timer.pause();  // validation is no wait for data
      model.forward(held_out, stream);
      last_loss = model.read_loss(stream);
      if (step == 0) first_loss = last_loss;
      std::printf("val loss %.6f\n", static_cast<double>(last_loss));
    }
    if (step == steps) break;

    const auto begin = std::chrono::steady_clock::now();
    for (int micro = 0; micro < micro_steps; ++micro) {
      Text& text = batches[static_cast<std::size_t>(micro)];
      loader.next_batch(text, stream);
      timer.on_batch_start();
      model.forward_and_backward(text, micro_steps, stream);
      if (micro + 1 == micro_steps) model.update(stream);
      timer.on_batch_end(tokens);
    }
    const float loss = model.read_loss(stream);  // the one wait of a step
    timer.poll();                                // and what the device has finished can be measured
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("step %3d/%d | train loss %.6f | %.2f ms | %.0f tok/s | data_wait %s\n", step + 1, steps,
                static_cast<double>(loss), 1e3 * seconds.count(), micro_steps * tokens / seconds.count(),
                known_or_na("%.1f %%", timer.window().data_wait_percent()).c_str());
  }
  timer.finish();

  std::printf("micro-step  %s\n", timing_text(timer.total()).c_str());
  expect(last_loss < first_loss - 1, "the loss did not fall");
  expect(timer.counts().measured == steps * micro_steps, "a micro-step was not measured");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("llm_c_loop", [&] { run(argc, argv); });
}
