// A user's program: it times a few steps by each timer that its build found.

#include <chrono>
#include <cstdio>
#include <steptimer/steptimer.hpp>
#include <steptimer/version.hpp>
#include <string>
#include <thread>

#ifdef CONSUMER_cuda
#include <steptimer/cuda_backend.hpp>
#endif
#ifdef CONSUMER_format
#include <steptimer/format.hpp>
#endif
#ifdef CONSUMER_mpi
#include <steptimer/mpi.hpp>
#endif

int main() {
  const std::string version = std::to_string(STEPTIMER_VERSION_MAJOR) + "." + std::to_string(STEPTIMER_VERSION_MINOR) +
                              "." + std::to_string(STEPTIMER_VERSION_PATCH);
  std::printf("steptimer %s\n", version.c_str());
  if (version != CONSUMER_VERSION) {
    std::printf("the package says %s\n", CONSUMER_VERSION);
    return 1;
  }

  steptimer::CpuTimer timer;
  for (int step = 0; step < 3; ++step) {
    timer.on_batch_start();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    timer.on_batch_end(32);
  }
  timer.finish();
  std::printf("CPU: %d steps measured\n", static_cast<int>(timer.counts().measured));
  if (timer.counts().measured != 3) return 1;

#ifdef CONSUMER_format
  const std::string text = fmt::format("{}", timer.total());
  std::printf("%s\n", text.c_str());
  if (text.empty()) return 1;
#endif

#ifdef CONSUMER_mpi
  // Without MPI_Init() there are no ranks, and the program goes on.
  steptimer::MpiJob job(MPI_COMM_WORLD);
  std::printf("MPI: %s\n", job.status().call);
  if (job.ranks() != 0 || job.report()) return 1;
#endif

#ifdef CONSUMER_cuda
  // Without a device the timer turns itself off and the program goes on.
  steptimer::CudaTimer cuda_timer;
  for (int step = 0; step < 3; ++step) {
    cuda_timer.on_batch_start();
    cuda_timer.on_batch_end(32);
  }
  cuda_timer.finish();
  const steptimer::StepCounts counts = cuda_timer.counts();
  std::printf("CUDA: %d steps measured, %d failed %s\n", static_cast<int>(counts.measured),
              static_cast<int>(counts.failed), cuda_timer.status().message);
  if (counts.started != 3 || counts.measured + counts.failed != 3) return 1;
#endif
  return 0;
}
