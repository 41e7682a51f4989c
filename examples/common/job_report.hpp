#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <steptimer/diagnosis.hpp>
#include <steptimer/format.hpp>
#include <steptimer/job_summary.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/step_summary.hpp>
#include <string>
#include <utility>
#include <vector>

#include "json_object.hpp"
#include "score.hpp"
#include "training_report.hpp"

namespace example {

/// What the ranks of a job know together.
struct JobTotals {
  bool has_one_network;                       // whether all ended with the same weights
  std::vector<steptimer::StepSummary> ranks;  // what each rank's own timer says; only needed where it is printed
  steptimer::StepSummary timing;              // of all ranks' steps
  steptimer::StepDistribution distribution;   // of all ranks' steps
  steptimer::JobSteps steps;
};

/// Throws where the ranks have not trained one network.
inline void require_one_network(const JobTotals& totals) {
  if (totals.has_one_network) return;
  throw std::runtime_error(
      "the ranks ended with different weights, so they have not trained one network; check that all of them run on "
      "processors of one kind");
}

/// What a data-parallel training program has to say at its end, however its ranks' numbers came together.
struct JobReport {
  TrainingReport training;  // timing and distribution are those of all ranks' steps
  Score untrained;          // of the held-out digits, before the first step
  steptimer::JobSteps steps;
  std::vector<steptimer::StepSummary> ranks;

  JobReport(const Score& before, const Score& after, std::uint64_t trained, const steptimer::TimerStatus& status,
            JobTotals&& totals)
      : training{after, trained, totals.timing, std::move(totals.distribution), status},
        untrained(before),
        steps(std::move(totals.steps)),
        ranks(std::move(totals.ranks)) {}
};

/// How many steps each rank is blamed for.
inline std::vector<std::uint64_t> blamed_steps(const steptimer::JobSteps& steps) {
  std::vector<std::uint64_t> blamed(steps.ranks(), 0);
  for (const steptimer::RankBlame& blame : steps.blame()) blamed[blame.rank] = blame.steps;
  return blamed;
}

/// One sentence: which rank the job waits for and what that costs, or that it is no single one.
inline std::string verdict(const JobReport& report) {
  const steptimer::JobSummary job = report.steps.summary();
  const std::optional<double> wait = job.data_wait_percent();
  if (!wait) return "no step was measured on all ranks, so nothing can be said; let it run on";
  if (job.ranks == 1) return steptimer::diagnose(report.training.timing).advice;
  if (const auto rank = job.guilty_rank()) {
    const double cost = 100 * *in_seconds(job.most_blamed.excess) / *in_seconds(job.cycle_total);
    return fmt::format(
        "all ranks wait for rank {}: its loader costs the job {:.1f} % of its time; it had its batch last in {} of {} "
        "steps",
        *rank, cost, job.most_blamed.steps, job.steps);
  }
  if (*wait < steptimer::DiagnosisThresholds{}.data_moderate_percent)
    return fmt::format("no rank stands out, and only {:.1f} % of the job's time is spent waiting for data", *wait);
  return fmt::format(
      "no rank stands out: {:.0f} % of the job's time is spent waiting for data, and no single loader is behind it",
      *wait);
}

inline void print_job(const JobReport& report) {
  const TrainingReport& training = report.training;
  const steptimer::JobSummary job = report.steps.summary();
  const std::vector<std::uint64_t> blamed = blamed_steps(report.steps);
  fmt::print("accuracy   {:.2f} % of {} held-out digits after {} steps\n", 100 * training.held_out.accuracy(),
             training.held_out.digits, training.steps);
  fmt::print("loss       {:.3f} before the training, {:.3f} after it, of the held-out digits\n",
             report.untrained.loss(), training.held_out.loss());
  fmt::print("{}\n", job);
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank)
    fmt::print("rank {:<5} {} | blamed for {}\n", rank, report.ranks[rank], blamed[rank]);
  fmt::print("all ranks  {}\n", training.timing);
  fmt::print("           {}\n", training.distribution);
  fmt::print("verdict    {}\n", verdict(report));
}

/// One line for programs to read; null for what is not known. What does not begin with job_ or guilty_ is, as in other
/// programs, the sum over the timers' own steps.
inline JsonObject to_job_json(const char* program, const JobReport& report) {
  const steptimer::JobSummary job = report.steps.summary();
  const std::vector<std::uint64_t> blamed = blamed_steps(report.steps);
  const auto guilty = job.guilty_rank();
  std::vector<JsonObject> ranks;
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const steptimer::StepSummary& own = report.ranks[rank];
    ranks.push_back(JsonObject()
                        .add("rank", std::uint64_t{rank})
                        .add("data_wait_percent", own.data_wait_percent())
                        .add("batch_mean_s", in_seconds(own.batch_mean()))
                        .add("data_mean_s", in_seconds(own.data_mean()))
                        .add("blamed_steps", blamed[rank]));
  }
  return to_json(program, report.training)
      .add("untrained_loss", report.untrained.loss())
      .add("ranks", std::uint64_t{job.ranks})
      .add("job_data_wait_percent", job.data_wait_percent())
      .add("job_steps", job.steps)
      .add("left_out", job.left_out)
      .add("stall_mean_s", in_seconds(job.stall_mean()))
      .add("cycle_mean_s", in_seconds(job.cycle_mean()))
      .add("guilty_rank", guilty ? std::optional<double>(*guilty) : std::nullopt)
      .add("guilty_share", job.blamed_share())
      .add("per_rank", ranks);
}

inline void print_job_json(const JsonObject& json) { std::printf("%s\n", json.str().c_str()); }

}  // namespace example
