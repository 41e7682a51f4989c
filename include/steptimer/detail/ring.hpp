/// A queue over one block of memory, for hooks that may neither throw nor allocate once warm. Not API.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace steptimer {
namespace detail {

/// A double-ended queue that grows by doubling, never shrinks, and says so when memory is out instead of throwing.
template <class T>
class Ring {
  static_assert(std::is_nothrow_move_assignable<T>::value, "elements are moved inside noexcept hooks");

 public:
  Ring() = default;
  Ring(Ring&& other) noexcept { swap(other); }
  Ring& operator=(Ring&& other) noexcept {
    Ring moved(std::move(other));
    swap(moved);
    return *this;
  }

  std::size_t size() const noexcept { return end_ - begin_; }
  bool empty() const noexcept { return end_ == begin_; }
  T& operator[](std::size_t i) noexcept { return slots_[(begin_ + i) & mask_]; }
  const T& operator[](std::size_t i) const noexcept { return slots_[(begin_ + i) & mask_]; }
  T& front() noexcept { return slots_[begin_ & mask_]; }
  const T& front() const noexcept { return slots_[begin_ & mask_]; }
  T& back() noexcept { return slots_[(end_ - 1) & mask_]; }
  const T& back() const noexcept { return slots_[(end_ - 1) & mask_]; }

  /// Makes room for so many elements, if there is memory.
  void reserve(std::size_t size) noexcept {
    std::size_t capacity = slots_ ? mask_ + 1 : 8;
    while (capacity < size) capacity *= 2;
    if (!slots_ || capacity > mask_ + 1) (void)grow_to(capacity);
  }

  /// Appends a slot whose content is unspecified (new, or left from its last use); nullptr where memory is out.
  T* push_back() noexcept {
    if (size() > mask_ || !slots_) {
      if (!grow_to(slots_ ? 2 * (mask_ + 1) : 8)) return nullptr;
    }
    return &slots_[end_++ & mask_];
  }
  void pop_front() noexcept { ++begin_; }
  void pop_back() noexcept { --end_; }
  /// Takes the oldest element off and appends a slot, as push_back() does; for a ring that holds something.
  T* rotate() noexcept {
    ++begin_;
    return &slots_[end_++ & mask_];
  }
  void clear() noexcept { begin_ = end_; }

 private:
  bool grow_to(std::size_t capacity) noexcept {
    std::unique_ptr<T[]> slots(new (std::nothrow) T[capacity]);
    if (!slots) return false;
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) slots[i] = std::move((*this)[i]);
    slots_ = std::move(slots);
    mask_ = capacity - 1;
    begin_ = 0;
    end_ = count;
    return true;
  }
  void swap(Ring& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(mask_, other.mask_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

  std::unique_ptr<T[]> slots_;
  std::size_t mask_ = 0;   // capacity - 1; the capacity is a power of two
  std::size_t begin_ = 0;  // both count on for ever; their low bits are places
  std::size_t end_ = 0;
};

}  // namespace detail
}  // namespace steptimer
