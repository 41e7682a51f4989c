#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace example {

template <class F>
std::thread start_thread(F&& f) {
  try {
    return std::thread(std::forward<F>(f));
  } catch (const std::system_error&) {
    throw std::runtime_error("another thread could not be started; see whether there are too many");
  }
}

/// Where threads wait until all of them have come, as often as they like.
class ThreadBarrier {
 public:
  explicit ThreadBarrier(std::size_t threads) : threads_(threads) {}

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::uint64_t round = round_;
    if (++waiting_ < threads_) {
      all_came_.wait(lock, [&] { return round_ != round; });
      return;
    }
    waiting_ = 0;
    ++round_;
    all_came_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_came_;
  std::size_t threads_, waiting_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace example
