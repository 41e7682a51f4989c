// A string of bytes read as a program: every string is one, and where it ends, zeros follow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fuzz {

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) noexcept : next_(data), end_(data + size) {}

  bool used_up() const noexcept { return next_ == end_; }
  unsigned next() noexcept { return used_up() ? 0U : *next_++; }
  /// A number from 0 to n - 1.
  unsigned below(unsigned n) noexcept { return next() % n; }

  /// One of the elements of a fixed list.
  template <class T, std::size_t n>
  const T& one_of(const T (&list)[n]) noexcept {
    return list[next() % n];
  }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

}  // namespace fuzz
