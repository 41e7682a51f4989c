#pragma once

#include <array>
#include <atomic>
#include <type_traits>

namespace example {

/// The latest of the values that one thread publishes, for another that looks now and then. Neither ever waits.
///
/// Three places: one is the writer's, one the reader's, and the third is exchanged for either of them in one atomic step.
/// So a value is never written while it is read.
template <class T>
class LatestValue {
  static_assert(std::is_nothrow_copy_assignable_v<T>, "publishing must not throw");

 public:
  /// By the one writing thread.
  void publish(const T& value) noexcept {
    places_[writing_] = value;
    writing_ = shared_.exchange(writing_ | is_new, std::memory_order_acq_rel) & place;
  }

  /// By one reading thread at a time; a T{} before the first publish().
  const T& read() noexcept {
    if ((shared_.load(std::memory_order_relaxed) & is_new) != 0)
      reading_ = shared_.exchange(reading_, std::memory_order_acq_rel) & place;
    return places_[reading_];
  }

 private:
  static constexpr unsigned place = 3;
  static constexpr unsigned is_new = 4;

  std::array<T, 3> places_{};
  unsigned writing_ = 0;
  std::atomic<unsigned> shared_{1};
  unsigned reading_ = 2;
};

}  // namespace example
