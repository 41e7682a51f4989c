#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "augmentation.hpp"
#include "digits.hpp"
#include "random.hpp"
#include "threads.hpp"

namespace example {

/// Some digits to learn from in one step.
struct Batch {
  std::vector<float> pixels;
  std::vector<std::uint8_t> labels;

  std::size_t size() const { return labels.size(); }
};

struct BatchLoaderOptions {
  std::size_t batch = 32;
  std::uint64_t epochs = 1;
  std::size_t threads = 0;            // 0: next() prepares the batch itself
  std::chrono::nanoseconds delay{0};  // sleep a batch, as slow storage would cause
  std::uint64_t seed = 1;
};

/// Gives shuffled, augmented batches in a fixed order: what is in batch n depends on the seed and n alone,
/// not on how many threads prepare batches ahead or on which of them comes first.
///
/// Threads: next() by one thread at a time. The loader's own threads end with it, also when an exception unwinds.
class BatchLoader {
 public:
  BatchLoader(const Digits& digits, BatchLoaderOptions options)
      : digits_(digits), options_(options), slots_(2 * options.threads) {
    try {
      for (std::size_t i = 0; i < options.threads; ++i) threads_.push_back(start_thread([this] { prepare_ahead(); }));
    } catch (...) {
      stop();
      throw;
    }
  }
  ~BatchLoader() { stop(); }
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  std::uint64_t steps_per_epoch() const { return (digits_.size() + options_.batch - 1) / options_.batch; }
  std::uint64_t steps() const { return options_.epochs * steps_per_epoch(); }

  /// Puts the next batch into `batch`, whose memory is used again. May be called steps() times.
  ///
  /// Blocking: until the batch is prepared.
  /// Errors:   what a loader thread threw is thrown here.
  void next(Batch& batch) {
    if (threads_.empty()) {
      prepare(taken_++, order_, batch);
      std::this_thread::sleep_for(options_.delay);
      return;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    Slot& slot = slot_of(taken_);
    batch_is_ready_.wait(lock, [&] { return slot.ready || error_ != nullptr; });
    if (!slot.ready) std::rethrow_exception(error_);
    std::swap(batch, slot.batch);
    slot.ready = false;
    ++taken_;
    slot_is_free_.notify_all();
  }

 private:
  struct Slot {
    Batch batch;
    bool ready = false;
  };

  struct EpochOrder {
    std::uint64_t epoch = UINT64_MAX;
    std::vector<std::size_t> indices;
  };

  Slot& slot_of(std::uint64_t number) { return slots_[static_cast<std::size_t>(number % slots_.size())]; }

  void shuffle(std::uint64_t epoch, EpochOrder& order) const {
    order.epoch = epoch;
    order.indices.resize(digits_.size());
    std::iota(order.indices.begin(), order.indices.end(), std::size_t{0});
    std::shuffle(order.indices.begin(), order.indices.end(), make_random(options_.seed, RandomUse::order, epoch));
  }

  void prepare(std::uint64_t number, EpochOrder& order, Batch& batch) const {
    const std::uint64_t epoch = number / steps_per_epoch();
    if (order.epoch != epoch) shuffle(epoch, order);
    const auto first = static_cast<std::size_t>(number % steps_per_epoch()) * options_.batch;
    const std::size_t size = std::min(options_.batch, digits_.size() - first);

    std::mt19937 random = make_random(options_.seed, RandomUse::augmentation, number);
    batch.pixels.resize(size * digit_pixels);
    batch.labels.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t index = order.indices[first + i];
      augment(digits_.image(index), batch.pixels.data() + i * digit_pixels, random);
      batch.labels[i] = digits_.labels[index];
    }
  }

  /// What each loader thread does: take the next number, wait until its slot is free, fill the slot.
  void prepare_ahead() {
    EpochOrder order;
    std::unique_lock<std::mutex> lock(mutex_);
    try {
      while (!stopping_ && claimed_ < steps()) {
        const std::uint64_t number = claimed_++;
        slot_is_free_.wait(lock, [&] { return stopping_ || number < taken_ + slots_.size(); });
        if (stopping_) return;
        Slot& slot = slot_of(number);  // nobody else touches it until it is ready
        lock.unlock();
        prepare(number, order, slot.batch);
        lock.lock();
        // Sleeping on a condition that only stop() notifies ends a long delay early.
        stop_is_asked_.wait_for(lock, options_.delay, [&] { return stopping_; });
        slot.ready = true;
        batch_is_ready_.notify_one();
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      error_ = std::current_exception();
      batch_is_ready_.notify_one();
    }
  }

  void stop() noexcept {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    stop_is_asked_.notify_all();
    slot_is_free_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  const Digits& digits_;
  const BatchLoaderOptions options_;
  EpochOrder order_;  // of next() when there are no threads

  std::mutex mutex_;  // guards all that follows; a slot's batch is its preparer's until it is ready
  std::condition_variable batch_is_ready_, slot_is_free_, stop_is_asked_;
  std::vector<Slot> slots_;
  std::uint64_t claimed_ = 0, taken_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace example
