// How people time the steps of a training loop on a GPU. Each way is a small class with start() and end(), called where
// on_batch_start() and on_batch_end() would be; hook_cost and perturbation time these very classes. Host code: no nvcc
// is needed.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>
#include <utility>

#include "../../../examples/common/cuda_check.hpp"
#include "figures.hpp"
#if defined(STEPTIMER_BENCH_TORCH)
#include "c10_events.hpp"
#endif

namespace bench {

/// An event that takes the time.
class TimedEvent {
 public:
  TimedEvent() { example::check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~TimedEvent() { cudaEventDestroy(event_); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  void record(cudaStream_t stream) { example::check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void wait() const { example::check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  bool reached() const {
    const cudaError_t code = cudaEventQuery(event_);
    if (code != cudaErrorNotReady) return example::check(code, "cudaEventQuery"), true;
    (void)cudaGetLastError();  // some runtimes leave "not ready" behind, and the next launch would take it for its own
    return false;
  }
  float milliseconds_since(const TimedEvent& start) const {
    float milliseconds = 0;
    example::check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

struct EventPair {
  TimedEvent start, end;
};

class NoTimer {
 public:
  void start() {}
  void end() {}
};

class Steptimer {
 public:
  explicit Steptimer(cudaStream_t stream, std::uint64_t sample_every = 1) : timer_(stream, sampling(sample_every)) {}
  void start() { timer_.on_batch_start(); }
  void end() { timer_.on_batch_end(); }
  steptimer::StepCounts counts() const { return timer_.counts(); }

 private:
  static steptimer::StepTimerOptions sampling(std::uint64_t every) {
    steptimer::StepTimerOptions options;
    options.sample_every = every;
    return options;
  }

  steptimer::CudaTimer timer_;
};

/// One pair of events, waited for at the end of each step.
class EventSynchronise {
 public:
  explicit EventSynchronise(cudaStream_t stream) : stream_(stream) {}
  void start() { events_.start.record(stream_); }
  void end() {
    events_.end.record(stream_);
    events_.end.wait();
    float milliseconds = events_.end.milliseconds_since(events_.start);
    use(milliseconds);
  }

 private:
  cudaStream_t stream_;
  EventPair events_;
};

/// The host's clock, with the device brought to a stop before each look at it.
class DeviceSynchronise {
 public:
  void start() { start_ = time_with_device_idle(); }
  void end() {
    auto time = time_with_device_idle() - start_;
    use(time);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static Clock::time_point time_with_device_idle() {
    example::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return Clock::now();
  }

  Clock::time_point start_;
};

/// A new pair of events each step, destroyed once the device has reached it.
class FreshEventPair {
 public:
  explicit FreshEventPair(cudaStream_t stream) : stream_(stream) {}
  void start() {
    pending_.emplace_back();
    pending_.back().start.record(stream_);
  }
  void end() {
    pending_.back().end.record(stream_);
    while (!pending_.empty() && pending_.front().end.reached()) {
      float milliseconds = pending_.front().end.milliseconds_since(pending_.front().start);
      use(milliseconds);
      pending_.pop_front();
    }
  }

 private:
  cudaStream_t stream_;
  std::deque<EventPair> pending_;
};

/// Calls visit(name, pattern) with a std::shared_ptr to one of each pattern that is no steptimer.
template <class Visit>
void for_each_other_pattern(cudaStream_t stream, Visit&& visit) {
  visit("event synchronise", std::make_shared<EventSynchronise>(stream));
  visit("device synchronise twice", std::make_shared<DeviceSynchronise>());
  visit("fresh event pair", std::make_shared<FreshEventPair>(stream));
#if defined(STEPTIMER_BENCH_TORCH)
  visit("c10 events", std::make_shared<C10Events>(stream));
#endif
}

}  // namespace bench
