// The code in README.md, as it stands there, and what the text beside it says of it. The first block is a program of its
// own, examples/quick_start.cpp; that about MPI is a row of mpi/mpi_job_isolated.cpp.
#include "catch.hpp"

#if defined(README_BLOCKS)

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string_view>

#include <steptimer/csv_writer.hpp>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/progress_line.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/steptimer.hpp>
#include <steptimer/tee.hpp>
#include <steptimer/trace_writer.hpp>

#include "device_work.hpp"

using namespace std::chrono_literals;

static_assert(README_BLOCKS == 7, "a block that is new in README.md is compiled here, too");

namespace {

struct Batch {
  std::size_t size() const { return 32; }
};

struct Loader {
  steptimer::ManualBackend& device;
  Batch next() {
    device.advance(40ms);
    return {};
  }
};

}  // namespace

TEST_CASE("README: where the hooks go, and what the loop then reads") {
  steptimer::ManualBackend device;
  steptimer::StepTimer timer{device};
  Loader loader{device};
  const auto train = [&](const Batch&) {
    device.launch(60ms);
    device.synchronize();
  };
  const int steps = 20;
#include "readme/block_1.inc"
  const steptimer::StepSummary total = timer.total();
  CHECK(total.batch_mean() == 60ms);
  CHECK(total.data_mean() == 40ms);
  CHECK(*total.data_wait_percent() == 40.0);
  CHECK(total.gaps == 19);  // twenty fetches make nineteen waits
}

TEST_CASE("README: a pause keeps validation out") {
  steptimer::ManualBackend device;
  steptimer::StepTimer timer{device};
  const int model = 0;
  const auto validate = [&](int) { device.advance(60s); };
  timer.on_batch_start();
  device.advance(1ms);
  timer.on_batch_end();
#include "readme/block_2.inc"
  timer.on_batch_start();
  timer.on_batch_end();
  timer.finish();
  CHECK(timer.total().gaps == 0);
  CHECK(timer.total().batch_total == 1ms);
}

TEST_CASE("README: options are given with the backend") {
  REQUIRE(device_work::begin());
  const device_work::Stream own_stream;
  const cudaStream_t stream = own_stream;
  std::uint64_t logged = 0;
  const auto log = [&](std::uint64_t, std::chrono::nanoseconds) { ++logged; };
#include "readme/block_3.inc"
  for (int i = 0; i < 12; ++i) {
    cpu_timer.on_batch_start();
    cpu_timer.on_batch_end();
    cuda_timer.on_batch_start();
    cuda_timer.on_batch_end();
  }
  device_work::wait_for(stream);
  cpu_timer.finish();
  cuda_timer.finish();
  CHECK(logged == 24);
  CHECK(cpu_timer.total().steps == 2);
  CHECK(cuda_timer.total().steps == 2);
}

TEST_CASE("README: several writers at once") {
  const std::uint64_t total_steps = 0;
  steptimer::StepTimerOptions options;
#include "readme/block_4.inc"
  {
    steptimer::CpuTimer timer{{}, options};
    timer.on_batch_start();
    timer.on_batch_end();
    timer.finish();
  }
  CHECK(distribution.batch_time.count() == 1);
  csv.flush();
  CHECK(std::ifstream("steps.csv").get() == 's');
}

TEST_CASE("README: a device that you move") {
#include "readme/block_6.inc"
  CHECK(timer.total().batch_total == 90ms);
}

#endif
