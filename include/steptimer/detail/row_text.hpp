/// One row of a file, put together in place. Not API.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace steptimer {
namespace detail {

/// Text of bounded length. Numbers are made by integer arithmetic: exact, and no locale has a say in them.
class RowText {
 public:
  std::string_view view() const noexcept { return {chars_, size_}; }

  RowText& text(std::string_view text) noexcept {
    const std::size_t length = (std::min)(text.size(), sizeof chars_ - size_);
    std::memcpy(chars_ + size_, text.data(), length);
    size_ += length;
    return *this;
  }

  RowText& number(std::uint64_t number) noexcept {
    size_ = static_cast<std::size_t>(std::to_chars(chars_ + size_, chars_ + sizeof chars_, number).ptr - chars_);
    return *this;
  }

  RowText& seconds(std::chrono::nanoseconds time) noexcept { return fixed(time.count(), 1'000'000'000); }
  RowText& microseconds(std::chrono::nanoseconds time) noexcept { return fixed(time.count(), 1'000); }
  RowText& percent(double percent) noexcept { return fixed(std::llround(percent * 1e6), 1'000'000); }

 private:
  /// `units` of 1 / `one`, a power of ten, with all its decimals.
  RowText& fixed(std::int64_t units, std::uint64_t one) noexcept {
    if (units < 0) text("-");
    const auto bits = static_cast<std::uint64_t>(units);
    const std::uint64_t size = units < 0 ? 0 - bits : bits;
    number(size / one).text(".");
    const std::uint64_t rest = size % one;
    for (std::uint64_t place = one / 10; place > 1 && rest < place; place /= 10) text("0");
    return number(rest);
  }

  char chars_[2048];  // the longest row, a record's events in a trace, is a little over half of it
  std::size_t size_ = 0;
};

}  // namespace detail
}  // namespace steptimer
