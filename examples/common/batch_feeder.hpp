#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "batch_loader.hpp"
#include "cuda_check.hpp"
#include "cuda_resources.hpp"
#include "digits.hpp"

namespace example {

/// Brings batches to the device ahead of the steps that need them, on a stream of its own.
///
/// A batch goes loader -> pinned memory -> device memory. Two events a place guard the two hand-overs: the
/// host does not touch pinned memory before the copy out of it has run, and no copy touches device memory
/// before the step that reads it has run.
class BatchFeeder {
 public:
  /// A batch on its way to the device, or there.
  class Place {
   public:
    explicit Place(std::size_t max_size)
        : host_pixels_(max_size * digit_pixels),
          host_labels_(max_size),
          pixels_(max_size * digit_pixels),
          labels_(max_size) {}

    const float* pixels() const { return pixels_.data(); }
    const std::uint8_t* labels() const { return labels_.data(); }
    std::size_t size() const { return size_; }

   private:
    friend class BatchFeeder;
    PinnedArray<float> host_pixels_;
    PinnedArray<std::uint8_t> host_labels_;
    DeviceArray<float> pixels_;
    DeviceArray<std::uint8_t> labels_;
    std::size_t size_ = 0;
    Event copied_;  // the copies out of pinned memory have run
    Event used_;    // the step has read the device memory
  };

  BatchFeeder(BatchLoader& loader, std::size_t max_size) : loader_(loader) {
    for (std::size_t i = 0; i < places_ahead; ++i) places_.emplace_back(max_size);
  }

  /// Fetches the next batch and queues its copy to the device.
  ///
  /// Blocking: until the loader has a batch, and until the device is at most some steps behind. A host clock cannot
  ///           tell the second wait from the first, and books both as waiting for data.
  Place& fetch() {
    loader_.next(batch_);
    Place& place = places_[next_++ % places_ahead];
    place.copied_.wait();
    std::copy(batch_.pixels.begin(), batch_.pixels.end(), place.host_pixels_.data());
    std::copy(batch_.labels.begin(), batch_.labels.end(), place.host_labels_.data());
    place.size_ = batch_.size();

    place.used_.make_wait(copies_);
    copy(place.pixels_.data(), place.host_pixels_.data(), place.size_ * digit_pixels * sizeof(float));
    copy(place.labels_.data(), place.host_labels_.data(), place.size_);
    place.copied_.record(copies_);
    return place;
  }

  /// Makes the stream wait until the batch is on the device.
  void hand_over(const Place& place, cudaStream_t stream) { place.copied_.make_wait(stream); }

  /// Says that what is queued on the stream by now is all that needs the batch.
  void give_back(Place& place, cudaStream_t stream) { place.used_.record(stream); }

 private:
  static constexpr std::size_t places_ahead = 4;

  void copy(void* to, const void* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies_), "cudaMemcpyAsync");
  }

  BatchLoader& loader_;
  Batch batch_;
  std::deque<Place> places_;
  std::size_t next_ = 0;
  Stream copies_;
};

}  // namespace example
