// What the device did while examples/cuda_training trained, which does not know that it is watched: a library that the
// CUDA driver loads into the program, and that writes the truth down at its end.
//
//     CUDA_INJECTION64_PATH=.../libcuda_training_truth.so STEPTIMER_TRUTH_CSV=truth.csv cuda_training
//
// The truth is over those gaps that the timer of the program is told to measure: not over its warm-up, and not where it
// pauses. At the end of an epoch it does, for an evaluation: then kernels of no step run on the step's stream.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "support/csv_file.hpp"
#include "support/device_activity.hpp"
#include "support/device_truth.hpp"

namespace {

using namespace bench;

constexpr std::size_t warmup_steps = 5;  // as in cuda_training

DeviceTruth truth_of(const StepsOnDevice& device) {
  const BusyTimes others(device.outside);
  DeviceTruth truth;
  for (std::size_t n = warmup_steps; n + 1 < device.steps.size(); ++n) {
    if (!other_kernels_between(device, n)) truth.add(device.steps[n], device.steps[n + 1], others);
  }
  return truth;
}

void write_truth() {
  const char* const path = std::getenv("STEPTIMER_TRUTH_CSV");
  if (path == nullptr) throw std::runtime_error("set STEPTIMER_TRUTH_CSV to the file that the truth goes to");
  const DeviceTruth truth = truth_of(steps_of(DeviceActivity::start().take()));
  CsvFile csv(path, "workload,cycle_ms,truth_percent,steps,outside_percent");
  csv.row({"cuda_training", Cell(truth.cycle_ms(), 4), Cell(truth.percent(), 3), Cell(truth.gaps),
           Cell(truth.outside_percent(), 3)});
}

/// A program that is being watched is not to be stopped by it.
template <class Body>
bool reported(Body&& body) noexcept {
  try {
    body();
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_training_truth: %s\n", error.what());
    return false;
  }
}

void at_exit() { reported(write_truth); }

}  // namespace

/// Called by the CUDA driver when it starts; returns 1 for success.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const bool watching = reported([] { DeviceActivity::start(); });
  if (watching) std::atexit(at_exit);
  return watching ? 1 : 0;
}
