// A backend of your own: the device is a worker that runs behind its host, a mark is a task in its queue.
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <steptimer/step_timer.hpp>
#include <thread>

using namespace std::chrono_literals;
using steptimer::HostTime;
using steptimer::MarkStatus;

struct Worker {
  using Finished = std::shared_future<HostTime>;
  Finished last;

  Finished post(const std::function<void()>& work) {  // runs after all that was posted before; the caller goes on
    last = std::async(std::launch::async, [before = last, work]() mutable {
      if (before.valid()) before.wait();
      before = {};
      work();
      return std::chrono::steady_clock::now();
    });
    return last;
  }
};

struct WorkerBackend : steptimer::BackendDefaults {
  using Mark = Worker::Finished;
  Worker* worker;
  explicit WorkerBackend(Worker& device) : worker(&device) {}
  MarkStatus record(Mark& mark, HostTime) noexcept try {
    mark = worker->post([] {});
    return MarkStatus::ok;
  } catch (...) {
    return MarkStatus::refused;  // no thread to be had: this step has no times, the next one may
  }
  MarkStatus query(const Mark& mark) noexcept {
    return mark.wait_for(0s) == std::future_status::ready ? MarkStatus::ok : MarkStatus::not_ready;
  }
  MarkStatus elapsed(const Mark& from, const Mark& to, std::chrono::nanoseconds& result) noexcept {
    result = to.get() - from.get();
    return MarkStatus::ok;
  }
};

int main() {
  Worker worker;
  steptimer::StepTimer timer{WorkerBackend(worker)};
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(i % 2 == 0 ? 30ms : 0ms);  // the loader: 15 ms a batch, two at a time
    const auto step = timer.step();
    worker.post([] { std::this_thread::sleep_for(10ms); });  // posted: the host is back at once
  }
  timer.finish();
  const steptimer::StepSummary total = timer.total();
  std::printf("data_wait %.1f %%, a host clock would have claimed %.1f %%\n", total.data_wait_percent().value_or(0),
              total.host_data_wait_percent().value_or(0));
}
