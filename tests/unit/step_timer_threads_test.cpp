// What threads may do with timers. For the thread sanitizer above all: it sees what an assertion cannot.
#include "catch.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <queue>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <steptimer/steptimer.hpp>

using namespace std::chrono_literals;
using steptimer::CpuTimer;
using steptimer::StepRecord;
using steptimer::StepSummary;
using steptimer::StepTimerOptions;

namespace {

void take_steps(CpuTimer& timer, int steps) {
  for (int i = 0; i < steps; ++i) {
    timer.on_batch_start();
    timer.on_batch_end(1);
  }
}

template <class F>
void on_threads(int count, F&& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("timers of several threads share nothing, and their sums can be merged") {
  constexpr int threads = 4;
  std::vector<StepSummary> totals(threads);
  on_threads(threads, [&](int i) {
    CpuTimer timer;
    take_steps(timer, 1000 * (i + 1));
    timer.finish();
    totals[static_cast<std::size_t>(i)] = timer.total();
  });
  StepSummary all;
  for (const StepSummary& total : totals) all = merge(all, total);
  CHECK(all.steps == 10000);
  CHECK(all.items == 10000);
}

TEST_CASE("a timer may be handed from thread to thread, made on one and destroyed on another") {
  std::mutex mutex;
  auto timer = std::make_unique<CpuTimer>();
  on_threads(4, [&](int) {
    for (int i = 0; i < 50; ++i) {
      const std::lock_guard<std::mutex> its_turn(mutex);
      take_steps(*timer, 20);
    }
  });
  timer->finish();
  CHECK(timer->counts().measured == 4000);
  std::thread([gone = std::move(timer)]() mutable { gone.reset(); }).join();
  CHECK(timer == nullptr);
}

TEST_CASE("records may be handed to a thread that reads them while the loop goes on") {
  std::mutex mutex;
  std::condition_variable something_new;
  std::queue<StepRecord> handed_over;
  bool done = false;
  std::vector<StepRecord> read;
  std::thread reader([&] {
    std::unique_lock<std::mutex> lock(mutex);
    while (!done || !handed_over.empty()) {
      something_new.wait(lock, [&] { return done || !handed_over.empty(); });
      for (; !handed_over.empty(); handed_over.pop()) read.push_back(handed_over.front());
    }
  });
  StepTimerOptions options;
  options.on_record = [&](const StepRecord& record) {
    const std::lock_guard<std::mutex> lock(mutex);
    handed_over.push(record);
    something_new.notify_one();
  };
  CpuTimer timer({}, options);
  take_steps(timer, 2000);
  timer.finish();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
  }
  something_new.notify_one();
  reader.join();
  REQUIRE(read.size() == 2000);
  StepSummary sum;
  for (std::size_t i = 0; i < read.size(); ++i) {
    REQUIRE(read[i].step == i);
    sum = merge(sum, summary_of(read[i]));
  }
  CHECK(sum.batch_total == timer.total().batch_total);
  CHECK(sum.data_total == timer.total().data_total);
}

TEST_CASE("misuse on several threads at once is told by each timer to its own on_warning") {
  std::vector<int> told(4);
  on_threads(4, [&](int i) {
    StepTimerOptions options;
    options.on_warning = [&, i](std::string_view) { ++told[static_cast<std::size_t>(i)]; };
    CpuTimer timer({}, options);
    for (int k = 0; k < 100; ++k) {
      timer.on_batch_end();
      timer.on_batch_start();
      timer.on_batch_start();
      timer.on_batch_end();
    }
  });
  CHECK(told == std::vector<int>{2, 2, 2, 2});
}
