#pragma once

#include <mpi.h>

#include <cstdint>
#include <stdexcept>
#include <steptimer/mpi.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/step_summary.hpp>
#include <string>
#include <utility>

#include "job_report.hpp"
#include "mpi_ranks.hpp"

namespace example {

/// What all ranks have at the end, on all of them, but for the single ranks' timings, which only the first one has. Throws
/// on all ranks together where MPI failed on any. Waits for the other ranks.
inline JobTotals totals_of(steptimer::MpiJob& job, MpiRanks& ranks, const steptimer::StepSummary& own,
                           const steptimer::StepDistribution& own_distribution, std::uint64_t weights) {
  auto steps = job.report();
  const auto timing = steptimer::merge_over_ranks(own, MPI_COMM_WORLD);
  auto distribution = steptimer::merge_over_ranks(own_distribution, MPI_COMM_WORLD);
  ranks.together([&] {
    if (!steps || !timing || !distribution)
      throw std::runtime_error(std::string("the ranks' times could not be brought together: MPI failed in ") +
                               job.status().call);
  });
  return {ranks.agree_on(weights), ranks.gather(own), *timing, std::move(*distribution), std::move(*steps)};
}

}  // namespace example
