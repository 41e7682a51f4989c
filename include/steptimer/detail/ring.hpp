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

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](std::size_t i) noexcept { return slots_[(first_ + i) & (capacity_ - 1)]; }
  const T& operator[](std::size_t i) const noexcept { return slots_[(first_ + i) & (capacity_ - 1)]; }
  T& front() noexcept { return (*this)[0]; }
  T& back() noexcept { return (*this)[size_ - 1]; }
  const T& back() const noexcept { return (*this)[size_ - 1]; }

  /// Makes room for so many elements, if there is memory.
  void reserve(std::size_t size) noexcept {
    std::size_t capacity = capacity_ == 0 ? 8 : capacity_;
    while (capacity < size) capacity *= 2;
    if (capacity > capacity_) (void)grow_to(capacity);
  }

  /// Appends a slot whose content is unspecified (new, or left from its last use); nullptr where memory is out.
  T* push_back() noexcept {
    if (size_ == capacity_ && !grow()) return nullptr;
    ++size_;
    return &back();
  }
  void pop_front() noexcept {
    first_ = (first_ + 1) & (capacity_ - 1);
    --size_;
  }
  void pop_back() noexcept { --size_; }
  /// Takes the oldest element off and appends a slot, as push_back() does; for a ring that holds something.
  T* rotate() noexcept {
    first_ = (first_ + 1) & (capacity_ - 1);
    return &back();
  }
  void clear() noexcept { size_ = 0; }

 private:
  bool grow() noexcept { return grow_to(capacity_ == 0 ? 8 : capacity_ * 2); }
  bool grow_to(std::size_t capacity) noexcept {
    std::unique_ptr<T[]> slots(new (std::nothrow) T[capacity]);
    if (!slots) return false;
    for (std::size_t i = 0; i < size_; ++i) slots[i] = std::move((*this)[i]);
    slots_ = std::move(slots);
    capacity_ = capacity;
    first_ = 0;
    return true;
  }
  void swap(Ring& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(capacity_, other.capacity_);
    std::swap(first_, other.first_);
    std::swap(size_, other.size_);
  }

  std::unique_ptr<T[]> slots_;
  std::size_t capacity_ = 0;  // a power of two, or 0
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace detail
}  // namespace steptimer
