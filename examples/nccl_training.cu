// Learns handwritten digits on several GPUs, whose gradients are averaged by NCCL in every step, and says what the job as a
// whole waits for: the rank with the slow loader has the short steps, and all others show long ones and no data wait. One
// process a GPU, which the program starts itself, or one process with a thread a GPU.
//
// Try:  nccl_training                                      on all GPUs of this machine
//       nccl_training --slow-rank 1 --loader-delay-ms 5    all wait for rank 1, and the job says so
//       ... --sync-every 1                                 nothing of the delay is hidden behind the step before
//       nccl_training --threads                            one process, a thread a GPU

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/job_summary.hpp>
#include <steptimer/progress_line.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/steptimer.hpp>
#include <steptimer/tee.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/batch_feeder.hpp"
#include "common/batch_loader.hpp"
#include "common/child_ranks.hpp"
#include "common/cuda_check.hpp"
#include "common/cuda_resources.hpp"
#include "common/data_file.hpp"
#include "common/digits.hpp"
#include "common/gpu_network.cuh"
#include "common/job_options.hpp"
#include "common/job_report.hpp"
#include "common/nccl_rank.cuh"
#include "common/option_table.hpp"
#include "common/run_program.hpp"
#include "common/training_report.hpp"
#include "common/weights_hash.hpp"

namespace {

using namespace example;

struct NcclOptions : JobOptions {
  std::uint32_t ranks = 0;  // 0: as many as there are GPUs
  bool threads = false;
  bool no_timer = false;
  std::optional<std::uint32_t> rank;  // of a process that rank 0 has started, with the job's id
  std::string id;

  void add_to(OptionTable& table) {
    hidden = 1024;
    JobOptions::add_to(table, 16384);
    add_sync_every_to(table);
    table.add_count("--ranks", ranks, std::uint32_t{1}, std::uint32_t{1024}, "GPUs to use (default: all there are)");
    table.add_switch("--threads", threads, "a thread a GPU, instead of a process");
    table.add_switch("--no-timer", no_timer, "measure nothing, to see what measuring costs");
    table.add_count("--rank", rank, std::uint32_t{0}, std::uint32_t{1023}, "be this rank of a job, with --id");
    table.add_text("--id", "HEX", id, "the job's id, as rank 0 gives it to the others");
  }
};

/// What a rank knows at the end, that of all ranks together.
struct JobResult {
  JobReport report;
  double seconds;  // of the loop, after the warm-up
  std::uint64_t digits;
};

/// The steps of all ranks, as each has sent its own.
steptimer::JobSteps gather_steps(const steptimer::JobSteps& own, const NcclRank& ranks) {
  steptimer::JobSteps all = own;
  steptimer::JobSteps other = own;
  const std::vector<steptimer::JobStep> sent = ranks.gather(own.data(), own.size());
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    std::copy_n(sent.begin() + static_cast<std::ptrdiff_t>(rank * own.size()), own.size(), other.data());
    if (rank != ranks.rank()) all.add(other);
  }
  return all;
}

steptimer::StepDistribution gather_distribution(const steptimer::StepDistribution& own, const NcclRank& ranks) {
  steptimer::StepDistribution all;
  const auto sent = ranks.gather(reinterpret_cast<const unsigned char*>(&own), sizeof own);
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    steptimer::StepDistribution one;
    std::memcpy(&one, sent.data() + rank * sizeof one, sizeof one);
    all = merge(all, one);
  }
  return all;
}

Score evaluate(GpuNetwork& network, const Digits& digits, std::size_t batch, const Stream& stream) {
  const DeviceArray<float> pixels = to_device(digits.pixels);
  const DeviceArray<std::uint8_t> labels = to_device(digits.labels);
  for (std::size_t first = 0; first < digits.size(); first += batch) {
    network.evaluate(pixels.data() + first * digit_pixels, labels.data() + first,
                     std::min(batch, digits.size() - first), stream);
  }
  network.queue_score_read(stream);
  stream.wait();
  return network.score();
}

/// Runs f. Where it throws, the process ends at once: to unwind would be to wait for a device that itself waits for the other
/// ranks, in an all-reduce to which this one does not come. They are ended by the first of them, or with it.
template <class F>
void run_or_end_job(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nccl_training: %s\n", error.what());
    std::_Exit(1);
  }
}

JobResult train(const NcclOptions& options, const DigitsSplit& digits, const NcclRank& ranks) {
  constexpr std::uint64_t warmup_steps = 5, most_steps_kept = 100000;
  using Clock = std::chrono::steady_clock;
  const Stream stream;
  const NetworkShape shape(options.hidden);
  GpuNetwork network(shape, options.batch, options.seed);  // the same on all ranks, and it stays so
  const Digits shard = shard_of(digits.training, ranks.rank(), ranks.size());
  BatchLoader loader(shard, options.loading(ranks.rank()));
  BatchFeeder feeder(loader, options.batch);
  const std::uint64_t steps = loader.steps();
  steptimer::JobSteps own_steps(ranks.size(), static_cast<std::size_t>(std::min(steps, most_steps_kept)));
  const auto add_step = [&](const steptimer::StepRecord& record) { own_steps.add(ranks.rank(), record); };
  steptimer::ProgressLine line(steps, ranks.is_first() && !options.quiet ? stdout : nullptr, progress_interval);
  steptimer::StepDistribution distribution;
  steptimer::StepTimerOptions timer_options;
  timer_options.enabled = !options.no_timer;
  timer_options.warmup_steps = warmup_steps;
  timer_options.on_record = steptimer::tee(add_step, distribution, line);
  steptimer::CudaTimer timer(stream, timer_options);  // after the stream, so that it goes first
  const WaitForDevice wait_at_the_end;
  Clock::time_point begin = Clock::now();
  std::uint64_t digits_learned = 0;
  std::uint64_t step_of_epoch = 0;

  std::optional<JobResult> result;
  run_or_end_job([&] {
    BatchFeeder::Place* batch = &feeder.fetch();
    for (std::uint64_t step = 0; step < steps; ++step) {
      if (step == warmup_steps) {
        stream.wait();
        timer.pause();
        begin = Clock::now();
        digits_learned = 0;
      }
      step_of_epoch = step_of_epoch % loader.steps_per_epoch() + 1;
      const bool reads_loss = options.reads_loss(step_of_epoch, loader.steps_per_epoch());

      feeder.hand_over(*batch, stream);  // before the start: a copy not done yet is data wait
      timer.on_batch_start();
      network.train_combined(batch->pixels(), batch->labels(), batch->size(), shape.learning_rate(step, steps), stream,
                             [&](float* velocity, std::size_t size) { ranks.average(velocity, size, stream); });
      if (reads_loss) network.queue_score_read(stream);
      feeder.give_back(*batch, stream);
      timer.on_batch_end(batch->size());
      digits_learned += batch->size();

      if (reads_loss) {
        stream.wait();
        line.text(progress_text(step / loader.steps_per_epoch() + 1, options.epochs, network.score()));
      }
      if (step + 1 < steps) {
        const auto fetching = timer.fetch();
        batch = &feeder.fetch();  // while the device works on the step, unless it was waited for
      }
    }
    stream.wait();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    timer.finish();
    line.finish();

    if (!ranks.agree_on(hash_of(network)))
      throw std::runtime_error("the ranks ended with different weights, so they have not trained one network");
    const Score held_out = evaluate(network, digits.held_out, options.batch, stream);
    const std::vector<steptimer::StepSummary> summaries = ranks.gather(timer.total());
    steptimer::StepSummary timing;
    for (const steptimer::StepSummary& summary : summaries) timing = merge(timing, summary);
    result.emplace(JobResult{{{held_out, steps, timing, gather_distribution(distribution, ranks), timer.status()},
                              gather_steps(own_steps, ranks),
                              summaries},
                             seconds,
                             digits_learned * ranks.size()});
  });
  timer.release();  // its events go before the stream does
  return std::move(*result);
}

void train_as(std::uint32_t rank, const ncclUniqueId& id, const NcclOptions& options, const DigitsSplit& digits) {
  use_gpu(static_cast<int>(rank));
  const NcclRank ranks(id, rank, options.ranks);
  const JobResult result = train(options, digits, ranks);
  if (!ranks.is_first()) return;
  print_job(result.report);
  std::printf("throughput %.0f digits/s over the loop\n", static_cast<double>(result.digits) / result.seconds);
  if (options.json) {
    print_job_json(to_job_json("nccl_training", result.report)
                       .add("loop_seconds", result.seconds)
                       .add("loop_items_per_second", static_cast<double>(result.digits) / result.seconds));
  }
}

/// A thread a rank; where one fails, the others would wait for it for ever.
void train_in_threads(const ncclUniqueId& id, const NcclOptions& options, const DigitsSplit& digits) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const int code = run_program("nccl_training", [&] { train_as(rank, id, options, digits); });
      if (code != 0) std::_Exit(code);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

ncclUniqueId new_id() {
  ncclUniqueId id{};
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

void run(int argc, char** argv) {
  NcclOptions options;
  OptionTable table("nccl_training", "learns handwritten digits on several GPUs and says which rank the job waits for");
  options.add_to(table);
  if (!table.parse(argc, argv)) return;
  if (options.rank.has_value() != !options.id.empty()) throw UserError("--rank and --id belong together; give both");
  if (options.rank && options.threads) throw UserError("--rank is of one process a GPU; leave --threads away");

  const auto gpus = static_cast<std::uint32_t>(count_gpus());
  if (options.ranks == 0) options.ranks = gpus;
  if (options.ranks > gpus) {
    throw UserError("--ranks " + std::to_string(options.ranks) + " needs as many GPUs, and here are " +
                    std::to_string(gpus) + "; ask for no more");
  }
  options.check(options.ranks);
  const DigitsSplit digits = split_digits(read_digits(options.data.empty() ? find_digits_file(argv[0]) : options.data));
  check_batch_fits(options.batch, shard_of(digits.training, 0, options.ranks), "of each rank");

  if (options.rank) {
    if (*options.rank >= options.ranks) throw UserError("--rank has to be below --ranks");
    train_as(*options.rank, to_id(options.id), options, digits);
  } else if (options.threads) {
    train_in_threads(new_id(), options, digits);
  } else {
    const ncclUniqueId id = new_id();
    std::vector<std::string> arguments(argv + 1, argv + argc);
    arguments.insert(arguments.end(), {"--ranks", std::to_string(options.ranks), "--id", to_text(id)});
    const ChildRanks others("nccl_training", arguments, options.ranks);
    train_as(0, id, options, digits);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("nccl_training", [&] { run(argc, argv); });
}
