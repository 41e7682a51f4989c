// Steps of a microsecond, on the CPU: what the hooks cost them, and what sample_every leaves of it.
//
// The same loop runs in turns with no timer (NullBackend compiles to nothing), with one that measures every step, and
// with one that measures every 100th; both format a line for each record. A step left out still costs two readings of
// the clock, and no record. Where steps are that short, what the timer does between two of them is itself a wait: with
// sampling it falls between steps that are not measured.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <steptimer/steptimer.hpp>
#include <string>
#include <vector>

#include "../common/data_file.hpp"
#include "../common/digits.hpp"
#include "../common/option_table.hpp"
#include "../common/run_program.hpp"
#include "../common/softmax_regression.hpp"
#include "../common/timing_text.hpp"

namespace {

using namespace example;

constexpr std::uint64_t steps = 20000;  // a turn
constexpr std::uint64_t turns = 15;
constexpr std::uint64_t every = 100;

/// Learns one digit a step. Returns: nanoseconds a step.
template <class Timer>
double train(SoftmaxRegression& model, const Digits& digits, Timer& timer) {
  Batch batch;
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t step = 0; step < steps; ++step) {
    const std::size_t digit = step % digits.size();
    batch.pixels.assign(digits.image(digit), digits.image(digit) + digit_pixels);
    batch.labels.assign(1, digits.labels[digit]);
    timer.on_batch_start();
    model.accumulate(batch);
    model.update(0.01F);
    timer.on_batch_end(1);
  }
  timer.pause();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / steps;
}

steptimer::StepTimerOptions logging(std::uint64_t sample_every, std::string& line) {
  steptimer::StepTimerOptions options;
  options.sample_every = sample_every;
  options.on_record = [&line](const steptimer::StepRecord& record) {
    line = format_text("step %llu took %lld ns", static_cast<unsigned long long>(record.step),
                       static_cast<long long>(record.batch_time.count()));
  };
  return options;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + turns / 2, values.end());
  return values[turns / 2];
}

void run(int argc, char** argv) {
  const OptionTable table("sampling", "shows what measuring costs microsecond steps, and what sampling saves of it");
  if (!table.parse(argc, argv)) return;
  const Digits digits = read_digits(find_digits_file(argv[0]));

  steptimer::StepTimer<steptimer::NullBackend> no_timer;
  std::string line;
  steptimer::CpuTimer each_step({}, logging(1, line));
  steptimer::CpuTimer sampled({}, logging(every, line));

  SoftmaxRegression model;
  std::vector<double> without;
  std::vector<double> with_each;
  std::vector<double> with_sampled;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    without.push_back(train(model, digits, no_timer));
    with_each.push_back(train(model, digits, each_step));
    with_sampled.push_back(train(model, digits, sampled));
  }
  each_step.finish();
  sampled.finish();

  const double bare = median(without);
  std::printf("no timer      %7.1f ns a step\n", bare);
  std::printf("every step   %+8.1f ns, data_wait %s\n", median(with_each) - bare,
              known_or_na("%.1f %%", each_step.total().data_wait_percent()).c_str());
  std::printf("every 100th  %+8.1f ns, data_wait %s\n", median(with_sampled) - bare,
              known_or_na("%.1f %%", sampled.total().data_wait_percent()).c_str());

  const steptimer::StepCounts counts = sampled.counts();
  expect(each_step.counts().measured == turns * steps, "a step was not measured");
  expect(counts.measured == turns * steps / every, "a sampled step was not measured");
  expect(counts.not_sampled == turns * steps - counts.measured, "the steps between the samples are not accounted for");
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("sampling", [&] { run(argc, argv); });
}
