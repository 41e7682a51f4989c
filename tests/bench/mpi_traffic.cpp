// So many reports of a job, for mpi.sh to see what MPI sends for them:
//
//     mpirun -n RANKS mpi_traffic REPORTS WINDOW
//
// Rank 0 says how long a report took, and how long start_report() did.

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <steptimer/mpi.hpp>

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  using Microseconds = std::chrono::duration<double, std::micro>;
  MPI_Init(&argc, &argv);
  const int reports = argc == 3 ? std::atoi(argv[1]) : 0;
  const auto window = static_cast<std::size_t>(argc == 3 ? std::atoi(argv[2]) : 0);
  {
    steptimer::MpiJob job(MPI_COMM_WORLD, window);
    for (std::uint64_t step = 0; step < window; ++step) {
      steptimer::StepRecord record;
      record.step = step;
      record.wall_gap = record.data_time = std::chrono::milliseconds(1);
      job(record);
    }
    std::vector<double> to_start, to_complete;
    for (int report = 0; report < reports; ++report) {
      const auto begin = Clock::now();
      job.start_report();
      to_start.push_back(Microseconds(Clock::now() - begin).count());
      while (!job.poll_report()) {
      }
      to_complete.push_back(Microseconds(Clock::now() - begin).count());
    }
    const auto median = [](std::vector<double>& times) {
      std::sort(times.begin(), times.end());
      return times[times.size() / 2];
    };
    if (job.rank() == 0 && reports > 0)
      std::printf("%.1f us to start a report, %.1f us to complete it\n", median(to_start), median(to_complete));
  }
  MPI_Finalize();
  return 0;
}
