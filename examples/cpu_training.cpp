// Learns handwritten digits on the CPU and says where a step's time goes: computing, or waiting for the next batch.
//
// Try:  cpu_training --loader-delay-ms 4                  the data wait is most of the time
//       cpu_training --loader-delay-ms 4 --prefetch 8     loader threads hide it
//       cpu_training --csv steps.csv --trace trace.json   each step in a file; open the trace in ui.perfetto.dev

#include <cstdint>
#include <cstdio>
#include <steptimer/progress_line.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/steptimer.hpp>
#include <steptimer/tee.hpp>
#include <string_view>
#include <utility>

#include "common/batch_loader.hpp"
#include "common/data_file.hpp"
#include "common/digits.hpp"
#include "common/network.hpp"
#include "common/option_table.hpp"
#include "common/record_files.hpp"
#include "common/run_program.hpp"
#include "common/training_options.hpp"
#include "common/training_report.hpp"

namespace {

using namespace example;

TrainingReport train(const TrainingOptions& options, const DigitsSplit& digits, RecordFiles& files) {
  const NetworkShape shape(options.hidden);
  Network network(shape, options.seed);
  BatchLoader loader(digits.training,
                     {options.batch, options.epochs, options.prefetch, options.loader_delay(), options.seed});
  steptimer::ProgressLine line(loader.steps(), options.quiet ? nullptr : stdout, progress_interval);
  steptimer::StepDistribution distribution;
  steptimer::StepTimerOptions timer_options;
  timer_options.on_record = steptimer::tee(line, distribution, files);
  if (!options.quiet) timer_options.on_warning = [&line](std::string_view warning) { line.print(warning); };
  steptimer::CpuTimer timer({}, timer_options);
  const auto mark = [&](const char* phase) {
    if (options.phases) timer.mark(phase);
  };
  Score held_out;
  Batch batch;
  std::uint64_t step = 0;

  for (std::uint64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    Score learned;
    for (std::uint64_t i = 0; i < loader.steps_per_epoch(); ++i, ++step) {
      {
        const auto fetching = timer.fetch();
        loader.next(batch);
      }
      timer.on_batch_start();  // the batch is in hand: from here on it is not data wait
      learned += network.train(batch, shape.learning_rate(step, loader.steps()), mark);
      if (line.due() || i + 1 == loader.steps_per_epoch()) line.text(progress_text(epoch, options.epochs, learned));
      timer.on_batch_end(batch.size());  // shows the line where it is due
    }
    timer.pause();  // the evaluation is no wait for data
    held_out = network.evaluate(digits.held_out);
  }
  timer.finish();
  line.finish();
  return {held_out, loader.steps(), timer.total(), std::move(distribution), timer.status()};
}

void run(int argc, char** argv) {
  TrainingOptions options;
  OptionTable table("cpu_training", "learns handwritten digits on the CPU and says where a step's time goes");
  RecordFiles files;
  options.add_to(table, 4096);
  options.add_phases_to(table);
  files.add_to(table);
  if (!table.parse(argc, argv)) return;

  const DigitsSplit digits = split_digits(read_digits(options.data.empty() ? find_digits_file(argv[0]) : options.data));
  check_batch_fits(options.batch, digits.training);
  files.open();

  const TrainingReport report = train(options, digits, files);
  print_summary(report, Device::host);
  files.close_and_print();
  if (options.json) print_json("cpu_training", report);
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("cpu_training", [&] { run(argc, argv); });
}
