// Learns handwritten digits on several GPUs, whose gradients are averaged by NCCL in every step, and says what the job as a
// whole waits for: the rank with the slow loader has the short steps, and all others show long ones and no data wait. One
// process a GPU, which the program or mpirun starts, or one process with a thread a GPU.
//
// Try:  nccl_training                                      on all GPUs of this machine
//       nccl_training --slow-rank 1 --loader-delay-ms 5    all wait for rank 1, and the job says so
//       ... --sync-every 1                                 nothing of the delay is hidden behind the step before
//       nccl_training --threads                            one process, a thread a GPU
//       mpirun -n 2 nccl_training --mpi                    where it was built with MPI, on any number of machines
//       nccl_training --ranks 2 --share-gpus               several ranks on one GPU, to try a job where there is no other

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/job_summary.hpp>
#include <steptimer/progress_line.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/steptimer.hpp>
#include <steptimer/tee.hpp>
#include <string>
#include <string_view>
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
#include "common/nccl_job.cuh"
#include "common/nccl_rank.cuh"
#include "common/option_table.hpp"
#include "common/run_program.hpp"
#include "common/score.hpp"
#include "common/threads.hpp"
#include "common/training_report.hpp"
#include "common/weights_hash.hpp"

#ifdef STEPTIMER_EXAMPLES_MPI
#include <steptimer/mpi.hpp>

#include "common/mpi_ranks.hpp"
#include "common/mpi_totals.hpp"
#endif

namespace {

using namespace example;

struct NcclOptions : JobOptions {
  std::uint32_t ranks = 0;  // 0: one a GPU, or what mpirun says
  bool threads = false;
  bool mpi = false;
  bool share_gpus = false;
  bool no_timer = false;
  std::optional<std::uint32_t> rank;  // of a process that rank 0 has started, with the job's id
  std::string id;

  /// Returns: whether there is something to train.
  bool parse(int argc, char** argv, std::FILE* help = stdout) {
    OptionTable table("nccl_training",
                      "learns handwritten digits on several GPUs and says which rank the job waits for");
    hidden = 1024;
    add_to(table, 16384);
    add_sync_every_to(table);
    table.add_count("--ranks", ranks, std::uint32_t{0}, std::uint32_t{1024}, "how many to train, 0 for one a GPU");
    table.add_switch("--threads", threads, "a thread a rank, instead of a process");
    table.add_switch("--mpi", mpi, "be one of the ranks that mpirun starts");
    table.add_switch("--share-gpus", share_gpus, "more ranks than GPUs, to try a job on few");
    table.add_switch("--no-timer", no_timer, "measure nothing, to see what measuring costs");
    table.add_count("--rank", rank, std::uint32_t{0}, std::uint32_t{1023}, "be this rank of a job, with --id");
    table.add_text("--id", "HEX", id, "the job's id, as rank 0 gives it to the others");
    if (!table.parse(argc, argv, help)) return false;

    if (rank.has_value() != !id.empty()) throw UserError("--rank and --id belong together; give both");
    if (rank && *rank >= ranks) throw UserError("--rank has to be below --ranks");
    if (rank && threads) throw UserError("--rank is of one process a rank; leave --threads away");
    if (mpi && (threads || rank || ranks != 0))
      throw UserError("with --mpi, mpirun says how many ranks there are; leave --ranks, --rank and --threads away");
    if (share_gpus && threads) throw UserError("--share-gpus needs a process a rank; leave --threads away");
    if (ranks != 0) check(ranks);
    return true;
  }
};

/// What a rank knows at the end, that of all ranks together.
struct JobResult {
  JobReport report;
  double seconds;  // of the loop, after the warm-up
  std::uint64_t digits;
};

/// Digits that wait on the device to be evaluated.
struct DigitsOnDevice {
  explicit DigitsOnDevice(const Digits& digits)
      : size(digits.size()), pixels(to_device(digits.pixels)), labels(to_device(digits.labels)) {}

  std::size_t size;
  DeviceArray<float> pixels;
  DeviceArray<std::uint8_t> labels;
};

Score evaluate(GpuNetwork& network, const DigitsOnDevice& digits, std::size_t batch, const Stream& stream) {
  for (std::size_t first = 0; first < digits.size; first += batch) {
    network.evaluate(digits.pixels.data() + first * digit_pixels, digits.labels.data() + first,
                     std::min(batch, digits.size - first), stream);
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

/// Trains on the current device. `make_job` makes a NcclJob or a MpiNcclJob, which brings the ranks' steps together. Where
/// ranks share a process, `barrier` waits for all of them.
template <class MakeJob, class Barrier>
JobResult train(const NcclOptions& options, const DigitsSplit& digits, const NcclRank& rank, MakeJob&& make_job,
                Barrier&& barrier) {
  constexpr std::uint64_t warmup_steps = 5, most_steps_kept = 100000, steps_a_report = 100;
  using Clock = std::chrono::steady_clock;
  const Stream stream;
  const NetworkShape shape(options.hidden);
  GpuNetwork network(shape, options.batch, options.seed);  // the same on all ranks, and it stays so
  const Digits shard = shard_of(digits.training, rank.rank(), rank.size());
  const DigitsOnDevice held_out(digits.held_out);
  BatchLoader loader(shard, options.loading(rank.rank()));
  BatchFeeder feeder(loader, options.batch);
  const std::uint64_t steps = loader.steps();
  auto job = make_job(stream, static_cast<std::size_t>(std::min(steps, most_steps_kept)),
                      static_cast<std::size_t>(steps_a_report));
  steptimer::ProgressLine line(steps, rank.is_first() && !options.quiet ? stdout : nullptr, progress_interval);
  steptimer::StepDistribution distribution;
  steptimer::StepTimerOptions timer_options;
  timer_options.enabled = !options.no_timer;
  timer_options.warmup_steps = warmup_steps;
  timer_options.on_record = steptimer::tee(job, distribution, line);
  steptimer::CudaTimer timer(stream, timer_options);  // after the stream, so that it goes first
  const WaitForDevice wait_at_the_end;
  const Score untrained = evaluate(network, held_out, options.batch, stream);
  Clock::time_point begin = Clock::now();
  std::uint64_t digits_learned = 0;
  std::uint64_t step_of_epoch = 0;
  std::optional<JobResult> result;

  barrier();  // from here on nothing is allocated, which could wait for the device of a rank that waits for this one
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
                             [&](float* velocity, std::size_t size) { rank.average(velocity, size, stream); });
      if (reads_loss) network.queue_score_read(stream);
      feeder.give_back(*batch, stream);
      if (!options.no_timer && (step + 1) % steps_a_report == 0) job.start_report();  // waits for nobody
      timer.on_batch_end(batch->size());
      digits_learned += batch->size();

      if (const auto report = job.poll_report()) line.print(fmt::format("{}", report->summary()));
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

    JobTotals totals = job.totals(timer.total(), distribution, hash_of(network));
    require_one_network(totals);
    const Score trained = evaluate(network, held_out, options.batch, stream);
    result.emplace(JobResult{
        {untrained, trained, steps, timer.status(), std::move(totals)}, seconds, digits_learned * rank.size()});
  });
  barrier();        // before anything is freed
  timer.release();  // its events go before the stream does
  return std::move(*result);
}

void print(const JobResult& result, const NcclOptions& options) {
  print_job(result.report);
  const double digits_per_second = static_cast<double>(result.digits) / result.seconds;
  std::printf("throughput %.0f digits/s over the loop\n", digits_per_second);
  if (options.json) {
    print_job_json(to_job_json("nccl_training", result.report)
                       .add("loop_seconds", result.seconds)
                       .add("loop_items_per_second", digits_per_second));
  }
}

/// NCCL wants a device of its own for each rank of a machine: ranks that share one are told to be on machines of their own.
void set_host_id(std::uint32_t rank, const NcclOptions& options) {
  if (options.share_gpus) setenv("NCCL_HOSTID", ("nccl_training-" + std::to_string(rank)).c_str(), 1);
}

/// Makes current what is left for that one of the ranks on this machine.
void use_gpu_of(std::uint32_t local_rank) {
  use_gpu(static_cast<int>(local_rank % static_cast<std::uint32_t>(count_gpus())));
}

template <class Barrier>
void train_as(std::uint32_t number, const ncclUniqueId& id, const NcclOptions& options, const DigitsSplit& digits,
              Barrier&& barrier) {
  use_gpu_of(number);
  const NcclRank rank(id, number, options.ranks);
  const auto make_job = [&](const Stream& stream, std::size_t steps, std::size_t window) {
    return NcclJob(rank, stream, steps, window);
  };
  const JobResult result = train(options, digits, rank, make_job, barrier);
  if (rank.is_first()) print(result, options);
}

/// A thread a rank; where one fails, the others would wait for it for ever.
void train_in_threads(const NcclOptions& options, const DigitsSplit& digits) {
  const ncclUniqueId id = new_id();
  ThreadBarrier barrier(options.ranks);
  std::vector<std::thread> threads;
  run_or_end_job([&] {
    for (std::uint32_t rank = 0; rank < options.ranks; ++rank) {
      threads.push_back(start_thread([&, rank] {
        const int code =
            run_program("nccl_training", [&] { train_as(rank, id, options, digits, [&] { barrier.wait(); }); });
        if (code != 0) std::_Exit(code);
      }));
    }
  });
  for (std::thread& thread : threads) thread.join();
}

/// A process a rank, of which this is the first and starts the others.
void train_in_processes(const NcclOptions& options, const DigitsSplit& digits, std::vector<std::string> arguments) {
  const ncclUniqueId id = new_id();
  arguments.insert(arguments.end(), {"--ranks", std::to_string(options.ranks), "--id", to_text(id)});
  const ChildRanks others("nccl_training", arguments, options.ranks);
  train_as(0, id, options, digits, [] {});
}

/// The digits, where there are GPUs for so many ranks on this machine and they are not too many for the digits.
DigitsSplit prepare(const NcclOptions& options, std::uint32_t ranks_here, const char* program) {
  const auto gpus = static_cast<std::uint32_t>(count_gpus());
  if (ranks_here > gpus && !options.share_gpus) {
    throw UserError(std::to_string(ranks_here) + " ranks need as many GPUs, and there are only " +
                    std::to_string(gpus) + "; ask for no more, or give --share-gpus");
  }
  DigitsSplit digits = split_digits(read_digits(options.data.empty() ? find_digits_file(program) : options.data));
  check_batch_fits(options.batch, shard_of(digits.training, 0, options.ranks), "of each rank");
  return digits;
}

void run(int argc, char** argv) {
  NcclOptions options;
  if (!options.parse(argc, argv)) return;
  if (options.mpi)
    throw UserError("this nccl_training was built without MPI; install it and build again, or leave --mpi away");
  for (const char* const size : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (std::getenv(size) != nullptr)
      throw UserError(
          "started by mpirun, each of these would be a job of its own; give --mpi, or start one without mpirun");
  }
  // Where a kernel is loaded at its first launch, a thread may wait for the device of another, in which that waits for it.
  if (options.threads) setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  if (options.ranks == 0) options.ranks = static_cast<std::uint32_t>(count_gpus());
  options.check(options.ranks);
  const DigitsSplit digits = prepare(options, options.ranks, argv[0]);

  set_host_id(options.rank.value_or(0), options);
  if (options.rank) {
    train_as(*options.rank, to_id(options.id), options, digits, [] {});
  } else if (options.threads) {
    train_in_threads(options, digits);
  } else {
    train_in_processes(options, digits, std::vector<std::string>(argv + 1, argv + argc));
  }
}

#ifdef STEPTIMER_EXAMPLES_MPI

/// The same as NcclJob, by MPI: the reports cost the device nothing.
class MpiNcclJob {
 public:
  MpiNcclJob(MpiRanks& ranks, std::size_t steps, std::size_t window)
      : ranks_(ranks), steps_(MPI_COMM_WORLD, steps), recent_(MPI_COMM_WORLD, window) {}

  void operator()(const steptimer::StepRecord& record) {
    steps_(record);
    recent_(record);
  }
  void start_report() { recent_.start_report(); }
  std::optional<steptimer::JobSteps> poll_report() { return recent_.poll_report(); }
  JobTotals totals(const steptimer::StepSummary& timing, const steptimer::StepDistribution& distribution,
                   std::uint64_t weights) {
    return totals_of(steps_, ranks_, timing, distribution, weights);
  }

 private:
  MpiRanks& ranks_;
  steptimer::MpiJob steps_, recent_;
};

/// One of the ranks that mpirun has started, on any number of machines.
void run_with_mpi(MpiRanks& ranks, int argc, char** argv) {
  NcclOptions options;
  DigitsSplit digits;
  bool has_work = false;
  const MpiRanks::Place place = ranks.place_on_this_machine();
  ranks.together([&] {
    has_work = options.parse(argc, argv, ranks.is_first() ? stdout : nullptr);
    if (!has_work) return;
    options.ranks = ranks.size();
    options.check(options.ranks);
    digits = prepare(options, place.ranks, argv[0]);
  });
  if (!has_work) return;

  set_host_id(ranks.rank(), options);
  ncclUniqueId id{};
  ranks.together([&] {
    use_gpu_of(place.rank);
    if (ranks.is_first()) id = new_id();
  });
  ranks.broadcast(id);
  const NcclRank rank(id, ranks.rank(), ranks.size());
  const auto make_job = [&](const Stream&, std::size_t steps, std::size_t window) {
    return MpiNcclJob(ranks, steps, window);
  };
  const JobResult result = train(options, digits, rank, make_job, [] {});
  if (rank.is_first()) print(result, options);
}

#endif

}  // namespace

int main(int argc, char** argv) {
#ifdef STEPTIMER_EXAMPLES_MPI
  const auto is_mpi = [](const char* argument) { return std::string_view(argument) == "--mpi"; };
  if (std::any_of(argv, argv + argc, is_mpi)) {
    example::MpiRanks ranks(argc, argv);
    return ranks.finish(example::run_program("nccl_training", [&] { run_with_mpi(ranks, argc, argv); }));
  }
#endif
  return example::run_program("nccl_training", [&] { run(argc, argv); });
}
