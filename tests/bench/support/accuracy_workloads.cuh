// The loops that the timer's accuracy is looked at on: what a training loop does to its device, boiled down.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "measured_loop.cuh"

namespace bench {

using namespace std::chrono_literals;

using Step = std::function<void(int number)>;  // from 1

struct Workload {
  std::string name;
  nanoseconds cycle;                         // of a step, about
  int period;                                // steps after which the loop repeats itself
  std::function<Step(MeasuredLoop&)> begin;  // gives the loop's body; may use the device before
  bool short_and_device_bound = false;
};

/// Host time that the loader takes for a batch.
using Loader = std::function<nanoseconds(int step)>;

inline Loader always(nanoseconds time) {
  return [time](int) { return time; };
}

inline Loader every(int period, nanoseconds time) {
  return [=](int step) { return step % period == 0 ? time : 0ns; };
}

/// Lognormal about a mean, with a fixed seed; not seldom twice the mean and more.
inline Loader jittery(nanoseconds mean) {
  constexpr double spread = 0.8;
  const double median = static_cast<double>(mean.count()) * std::exp(-spread * spread / 2);
  return [random = std::mt19937(3), times = std::lognormal_distribution<double>(std::log(median), spread)](
             int) mutable { return nanoseconds{std::llround(times(random))}; };
}

/// Load, queue one kernel, and in every n-th step (0: never) wait for the device, as a loop does that reads its loss.
inline std::function<Step(MeasuredLoop&)> plain(Loader loader, nanoseconds kernel, int wait_every) {
  return [=](MeasuredLoop& loop) -> Step {
    return [=, &loop](int step) {
      loop.load(loader(step));
      loop.start();
      loop.kernel(kernel);
      if (wait_every != 0 && step % wait_every == 0) loop.wait();
      loop.end();
    };
  };
}

inline Step launch_bound(MeasuredLoop& loop) {
  return [&loop](int) {
    loop.load(50us);
    loop.start();
    loop.kernels(300, 0ns);
    loop.end();
  };
}

// ---- gradient accumulation, validation ----

inline Step accumulate_in_one_step(MeasuredLoop& loop) {
  return [&loop](int) {
    loop.load(10ms);
    loop.start();
    loop.kernels(4, 2ms);
    loop.kernel(200us);  // the optimizer
    loop.end();
  };
}

inline Step accumulate_in_micro_steps(MeasuredLoop& loop) {
  return [&loop](int micro_step) {
    loop.load(2500us);
    loop.start();
    loop.kernel(2ms);
    if (micro_step % 4 == 0) loop.kernel(200us);
    loop.end();
  };
}

inline std::function<Step(MeasuredLoop&)> validation_every_20_steps(bool paused) {
  return [=](MeasuredLoop& loop) -> Step {
    return [=, &loop](int step) {
      loop.load(1ms);
      loop.start();
      loop.kernel(5ms);
      loop.end();
      loop.wait();
      if (step % 20 != 0) return;
      if (paused) loop.pause();
      loop.kernels(10, 2ms);
      loop.wait();
      loop.load(5ms);
    };
  };
}

// ---- copies to the device ----

enum class Side { before_start, after_start };

/// Batches in page-locked memory, and where they go.
struct BatchMemory {
  explicit BatchMemory(std::size_t bytes) : host(bytes), device(bytes) {}
  example::PinnedArray<char> host;
  example::DeviceArray<char> device;
};

inline std::function<Step(MeasuredLoop&)> copies_on_step_stream(Side side) {
  return [=](MeasuredLoop& loop) -> Step {
    return [=, &loop, batch = std::make_shared<BatchMemory>(std::size_t{8} << 20)](int) {
      loop.load(500us);
      if (side == Side::before_start) loop.copy(batch->device, batch->host, loop.stream());
      loop.start();
      if (side == Side::after_start) loop.copy(batch->device, batch->host, loop.stream());
      loop.kernel(2ms);
      loop.end();
    };
  };
}

/// A stream that brings batches, and the point in it that a step has to wait for.
struct CopyStream {
  BatchMemory batch{std::size_t{64} << 20};
  example::Stream stream;
  example::Event copied;
};

/// A copy takes longer than a step, so each step waits for its own.
inline std::function<Step(MeasuredLoop&)> copies_on_copy_stream(Side waits) {
  return [=](MeasuredLoop& loop) -> Step {
    return [=, &loop, copies = std::make_shared<CopyStream>()](int) {
      loop.load(100us);
      loop.copy(copies->batch.device, copies->batch.host, copies->stream);
      copies->copied.record(copies->stream);
      if (waits == Side::before_start) copies->copied.make_wait(loop.stream());
      loop.start();
      if (waits == Side::after_start) copies->copied.make_wait(loop.stream());
      loop.kernel(600us);
      loop.end();
    };
  };
}

// ---- a graph, two streams ----

/// Kernels as a CUDA graph, which has been launched once.
class KernelGraph {
 public:
  KernelGraph(int kernels, nanoseconds time, const example::Stream& stream) {
    cudaGraph_t graph = nullptr;
    example::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int i = 0; i < kernels; ++i) queue_work(time, stream);
    example::check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t made = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    example::check(made, "cudaGraphInstantiate");
    example::check(cudaGraphLaunch(graph_, stream), "cudaGraphLaunch");
    stream.wait();
  }
  ~KernelGraph() { cudaGraphExecDestroy(graph_); }
  KernelGraph(const KernelGraph&) = delete;
  KernelGraph& operator=(const KernelGraph&) = delete;

  operator cudaGraphExec_t() const { return graph_; }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

inline Step replayed_graph(MeasuredLoop& loop) {
  constexpr int kernels = 20;
  return [&loop, graph = std::make_shared<KernelGraph>(kernels, 100us, loop.stream())](int) {
    loop.load(1ms);
    loop.start();
    loop.replay(*graph, kernels);
    loop.end();
    loop.wait();
  };
}

struct SideStream {
  example::Stream stream;
  example::Event forked, joined;
};

inline Step two_streams(MeasuredLoop& loop) {
  return [&loop, side = std::make_shared<SideStream>()](int) {
    loop.load(1ms);
    loop.start();
    side->forked.record(loop.stream());
    side->forked.make_wait(side->stream);
    loop.kernel(2ms);
    loop.kernel(4ms, side->stream);
    side->joined.record(side->stream);
    side->joined.make_wait(loop.stream());
    loop.end();
    loop.wait();
  };
}

// ---- two reports from the field ----

/// Pictures go to the device in a copy that waits for all work before it, and are loaded after it. The host queues a
/// kernel in half the time that it takes, so a host clock sees the rest of the step in the copy.
inline Step simclr_like(MeasuredLoop& loop) {
  return [&loop, batch = std::make_shared<BatchMemory>(std::size_t{4} << 20)](int) {
    loop.copy(batch->device, batch->host, loop.stream());
    loop.wait();
    loop.load(9ms);
    loop.start();
    for (int i = 0; i < 60; ++i) {
      loop.kernel(1500us);
      loop.load(650us);  // the host's own work for the next one
    }
    loop.end();
  };
}

/// The host reads a number in the midst of each step and queues the rest behind it, so the device never runs dry and
/// the host has hardly a gap. How long that rest takes depends on the batch, here by a fixed seed: from start to start
/// the host sees the rest of the step before, the device that of the step itself.
inline Step dinov2_like(MeasuredLoop& loop) {
  return [&loop, random = std::mt19937(7), rest = std::uniform_real_distribution<double>(8e6, 11.4e6)](int) mutable {
    loop.load(170us);
    loop.start();
    loop.kernels(6, 2ms);
    loop.wait();
    loop.kernel(nanoseconds{std::llround(rest(random))});
    loop.end();
  };
}

inline std::vector<Workload> accuracy_workloads() {
  return {
      {"data-bound 6 + 4 ms no sync", 6ms, 1, plain(always(6ms), 4ms, 0)},
      {"compute-bound 1 + 9 ms sync each step", 10ms, 1, plain(always(1ms), 9ms, 1)},
      {"compute-bound 1 + 9 ms no sync", 9ms, 1, plain(always(1ms), 9ms, 0)},
      {"compute-bound 0.5 + 9 ms sync every 10", 9ms, 10, plain(always(500us), 9ms, 10)},
      {"compute-bound 0.5 + 9 ms sync every 50", 9ms, 50, plain(always(500us), 9ms, 50)},
      {"jittery loader 3 ms + 5 ms no sync", 5ms, 1, plain(jittery(3ms), 5ms, 0)},
      {"jittery loader 3 ms + 5 ms sync every 10", 6ms, 10, plain(jittery(3ms), 5ms, 10)},
      {"loader stalls 40 ms every 8th + 5 ms", 5ms, 8, plain(every(8, 40ms), 5ms, 0)},
      {"launch-bound 300 kernels", 1500us, 1, launch_bound},
      {"100 us steps loader 20 us", 100us, 1, plain(always(20us), 100us, 0), true},
      {"accumulation 4 micro-steps a hook pair", 10ms, 1, accumulate_in_one_step},
      {"accumulation a hook pair a micro-step", 2500us, 4, accumulate_in_micro_steps},
      {"validation every 20 steps with pause()", 7ms, 20, validation_every_20_steps(true)},
      {"validation every 20 steps without pause()", 7ms, 20, validation_every_20_steps(false)},
      {"copy on step stream before start", 2200us, 1, copies_on_step_stream(Side::before_start)},
      {"copy on step stream after start", 2200us, 1, copies_on_step_stream(Side::after_start)},
      {"copy stream waited for before start", 1300us, 1, copies_on_copy_stream(Side::before_start)},
      {"copy stream waited for after start (limit)", 1300us, 1, copies_on_copy_stream(Side::after_start)},
      {"graph of 20 kernels", 3ms, 1, replayed_graph},
      {"two streams forked and joined", 5ms, 1, two_streams},
      {"loader stalls 30 ms every 10th hidden", 5ms, 10, plain(every(10, 30ms), 5ms, 0)},
      {"loader stalls 30 ms every 10th not hidden", 3ms, 10, plain(every(10, 30ms), 2ms, 0)},
      {"device-bound 50 us", 50us, 1, plain(always(5us), 50us, 0)},
      {"device-bound 100 us", 100us, 1, plain(always(10us), 100us, 0), true},
      {"device-bound 1 ms", 1ms, 1, plain(always(100us), 1ms, 0)},
      {"device-bound 10 ms", 10ms, 1, plain(always(1ms), 10ms, 0)},
      {"device-bound 100 ms", 100ms, 1, plain(always(10ms), 100ms, 0)},
      {"loader-bound 100 us loader 200 us", 200us, 1, plain(always(200us), 100us, 0)},
      {"SimCLR-like", 100ms, 1, simclr_like},
      {"DINOv2-like", 22ms, 1, dinov2_like},
  };
}

}  // namespace bench
