// A training loop with the timer on it, which counts what it queues, so that a witness can be held to it.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>
#include <vector>

#include "../../../examples/common/cuda_check.hpp"
#include "../../../examples/common/cuda_resources.hpp"
#include "../../../examples/common/gpu_loop.cuh"

namespace bench {

using example::keep_host_busy;
using example::queue_work;
using std::chrono::nanoseconds;

/// What a loop has done and what the timer says about it.
struct LoopReport {
  std::vector<std::size_t> queued;  // kernels, copies and memsets between the hooks of each step
  std::size_t queued_outside = 0;
  std::vector<steptimer::StepRecord> records;
  steptimer::StepSummary total;
  steptimer::StepCounts counts;
};

/// The verbs of a loop. Whatever it queues goes through here, or is told by count().
class MeasuredLoop {
 public:
  explicit MeasuredLoop(std::size_t steps) : timer_(stream_, options_for(steps)) {
    report_.queued.reserve(steps);
    report_.records.reserve(steps);
  }

  const example::Stream& stream() const { return stream_; }

  void load(nanoseconds time) { keep_host_busy(time); }

  void start() {
    report_.queued.push_back(0);
    in_step_ = true;
    timer_.on_batch_start();
  }
  void end() {
    timer_.on_batch_end();
    in_step_ = false;
  }
  void pause() { timer_.pause(); }
  void wait() { stream_.wait(); }

  void kernel(nanoseconds time) { kernel(time, stream_); }
  void kernel(nanoseconds time, const example::Stream& stream) {
    queue_work(time, stream);
    count(1);
  }
  void kernels(int number, nanoseconds time) {
    for (int i = 0; i < number; ++i) kernel(time);
  }
  void copy(const example::DeviceArray<char>& to, const example::PinnedArray<char>& from,
            const example::Stream& stream) {
    example::check(cudaMemcpyAsync(to.data(), from.data(), to.bytes(), cudaMemcpyHostToDevice, stream),
                   "cudaMemcpyAsync");
    count(1);
  }
  void replay(cudaGraphExec_t graph, std::size_t kernels) {
    example::check(cudaGraphLaunch(graph, stream_), "cudaGraphLaunch");
    count(kernels);
  }

  /// Waits for the device, which then has finished all that was queued.
  const LoopReport& finish() {
    timer_.finish();
    example::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    report_.total = timer_.total();
    report_.counts = timer_.counts();
    return report_;
  }

 private:
  steptimer::StepTimerOptions options_for(std::size_t steps) {
    steptimer::StepTimerOptions options;
    options.max_in_flight = steps;  // each step has its two marks, however far the host runs ahead
    options.on_record = [this](const steptimer::StepRecord& record) { report_.records.push_back(record); };
    return options;
  }
  void count(std::size_t activities) { (in_step_ ? report_.queued.back() : report_.queued_outside) += activities; }

  LoopReport report_;
  bool in_step_ = false;
  example::Stream stream_;
  steptimer::CudaTimer timer_;  // after the stream, so that it goes first
};

}  // namespace bench
