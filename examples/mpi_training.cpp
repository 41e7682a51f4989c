// Learns handwritten digits on several processes, whose gradients are averaged by MPI in every step, and says what the job
// as a whole waits for. The all-reduce hides the culprit: the rank with the slow loader has the short steps, and all others
// show long ones and no data wait. Put together step by step, they say which rank it is and what it costs.
//
// Try:  mpirun -n 4 mpi_training --slow-rank 2 --loader-delay-ms 5               all wait for rank 2, and the job says so
//       mpirun -n 4 mpi_training --slow-rank 2 --loader-delay-ms 5 --prefetch 8  loader threads hide it
//       mpirun -n 4 mpi_training --loader-delay-ms 5                             all wait alike, so nobody is to blame

#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <steptimer/format.hpp>
#include <steptimer/mpi.hpp>
#include <steptimer/progress_line.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/steptimer.hpp>
#include <steptimer/tee.hpp>
#include <utility>
#include <vector>

#include "common/batch_loader.hpp"
#include "common/data_file.hpp"
#include "common/digits.hpp"
#include "common/job_options.hpp"
#include "common/job_report.hpp"
#include "common/mpi_ranks.hpp"
#include "common/mpi_totals.hpp"
#include "common/network.hpp"
#include "common/option_table.hpp"
#include "common/run_program.hpp"
#include "common/training_report.hpp"
#include "common/weights_hash.hpp"

namespace {

using namespace example;

JobReport train(const JobOptions& options, const DigitsSplit& digits, MpiRanks& ranks) {
  constexpr std::uint64_t steps_a_report = 100, most_steps_kept = 100000;
  const NetworkShape shape(options.hidden);
  Network network(shape, options.seed);  // the same on all ranks, and it stays so
  const Digits shard = shard_of(digits.training, ranks.rank(), ranks.size());
  BatchLoader loader(shard, options.loading(ranks.rank()));
  steptimer::MpiJob job(MPI_COMM_WORLD, static_cast<std::size_t>(std::min(loader.steps(), most_steps_kept)));
  steptimer::ProgressLine line(loader.steps(), ranks.is_first() && !options.quiet ? stdout : nullptr,
                               progress_interval);
  steptimer::StepDistribution distribution;
  steptimer::StepTimerOptions timer_options;
  timer_options.warmup_steps = 5;
  timer_options.on_record = steptimer::tee(job, distribution, line);
  steptimer::CpuTimer timer({}, timer_options);
  const Score untrained = network.evaluate(digits.held_out);
  Batch batch;

  for (std::uint64_t step = 0; step < loader.steps(); ++step) {
    {
      const auto fetching = timer.fetch();
      loader.next(batch);
    }
    timer.on_batch_start();  // the batch is in hand: what follows is work, or waiting for the other ranks
    network.train(
        batch, shape.learning_rate(step, loader.steps()), [](const char*) {},
        [&](std::vector<float>& velocity) { ranks.average(velocity); });
    if ((step + 1) % steps_a_report == 0) job.start_report();  // waits for nobody; the answer comes some steps later
    if (const auto steps = job.poll_report()) line.print(fmt::format("{}", steps->summary()));
    timer.on_batch_end(batch.size());
  }
  timer.finish();
  line.finish();

  JobTotals totals = totals_of(job, ranks, timer.total(), distribution, hash_of(network));
  ranks.together([&] { require_one_network(totals); });
  return {untrained, network.evaluate(digits.held_out), loader.steps(), timer.status(), std::move(totals)};
}

void run(MpiRanks& ranks, int argc, char** argv) {
  JobOptions options;
  DigitsSplit digits;
  bool has_work = false;
  ranks.together([&] {
    OptionTable table("mpi_training",
                      "learns handwritten digits on all ranks of an MPI job and says which rank it waits for");
    options.add_to(table, 4096);
    has_work = table.parse(argc, argv, ranks.is_first() ? stdout : nullptr);
    if (!has_work) return;
    options.check(ranks.size());
    digits = split_digits(read_digits(options.data.empty() ? find_digits_file(argv[0]) : options.data));
    check_batch_fits(options.batch, shard_of(digits.training, ranks.rank(), ranks.size()), "of each rank");
  });
  const bool are_alike = ranks.agree_on(has_work) && ranks.agree_on(options.epochs) && ranks.agree_on(options.batch) &&
                         ranks.agree_on(options.hidden) && ranks.agree_on(digits.training.size());
  ranks.together([&] {
    if (!are_alike) throw UserError("the ranks were not given the same options; give all of them the same");
  });
  if (!has_work) return;

  const JobReport report = train(options, digits, ranks);
  if (!ranks.is_first()) return;
  print_job(report);
  if (options.json) print_job_json(to_job_json("mpi_training", report));
}

}  // namespace

int main(int argc, char** argv) {
  example::MpiRanks ranks(argc, argv);
  return ranks.finish(example::run_program("mpi_training", [&] { run(ranks, argc, argv); }));
}
