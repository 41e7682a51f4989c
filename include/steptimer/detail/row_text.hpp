/// One row of a file, put together in place. Not API.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "utf8.hpp"

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

  /// Within the quotes of a JSON string. At most 40 bytes of the text are kept; a blank stands for a control character.
  RowText& escaped(std::string_view text) noexcept {
    for (const char c : cut(text, 40)) {
      if (c == '\\') {
        this->text("\\u005c");  // Perfetto takes the quote after an escaped backslash for an escaped quote
        continue;
      }
      if (c == '"') this->text("\\");
      const char shown = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
      this->text({&shown, 1});
    }
    return *this;
  }

  RowText& number(std::uint64_t number) noexcept {
    size_ = static_cast<std::size_t>(std::to_chars(chars_ + size_, chars_ + sizeof chars_, number).ptr - chars_);
    return *this;
  }

  RowText& seconds(std::chrono::nanoseconds time) noexcept { return fixed<9>(time.count()); }
  RowText& microseconds(std::chrono::nanoseconds time) noexcept { return fixed<3>(time.count()); }
  RowText& percent(double percent) noexcept { return fixed<6>(std::llround(percent * 1e6)); }

 private:
  /// A whole number of the last decimal's unit, with all decimals.
  template <int decimals>
  RowText& fixed(std::int64_t units) noexcept {
    if (units < 0) text("-");
    const auto bits = static_cast<std::uint64_t>(units);
    std::uint64_t rest = units < 0 ? 0 - bits : bits;
    char fraction[1 + decimals] = {'.'};
    for (int place = decimals; place > 0; --place, rest /= 10) fraction[place] = static_cast<char>('0' + rest % 10);
    return number(rest).text({fraction, sizeof fraction});
  }

  char chars_[4096];  // up to size_; the longest row, a record's events in a trace, is under 4,000 bytes
  std::size_t size_ = 0;
};

}  // namespace detail
}  // namespace steptimer
