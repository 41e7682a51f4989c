/// A line of text in memory of its own, put together without allocating, throwing or asking the locale. Not API.
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace steptimer {
namespace detail {

/// The beginning of `text` that is at most `bytes` long and ends between two characters of UTF-8.
inline std::string_view cut(std::string_view text, std::size_t bytes) noexcept {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0u) == 0x80u) --bytes;
  return text.substr(0, bytes);
}

/// Holds up to `capacity` bytes; what is more is cut off.
template <std::size_t capacity>
class TextLine {
 public:
  std::string_view view() const noexcept { return {text_, size_}; }
  std::size_t size() const noexcept { return size_; }
  void clear() noexcept { size_ = 0; }

  void append(std::string_view text) noexcept {
    for (const char c : cut(text, capacity - size_)) text_[size_++] = c;
  }
  void append(char c, std::size_t times) noexcept {
    for (; times > 0 && size_ < capacity; --times) text_[size_++] = c;
  }
  /// The same, with a blank for what would move the cursor.
  void append_printable(std::string_view text) noexcept {
    for (const char c : cut(text, capacity - size_)) {
      const auto code = static_cast<unsigned char>(c);
      text_[size_++] = code < 0x20 || code == 0x7F ? ' ' : c;
    }
  }
  void append_number(std::uint64_t number) noexcept {
    char digits[24];
    const int length = std::snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(number));
    if (length > 0) append({digits, static_cast<std::size_t>(length)});
  }
  /// With one decimal below 1000, in whole above; for numbers that are not negative.
  void append_short(double number) noexcept {
    constexpr double most = 1e17;
    if (number > most) number = most;
    if (number >= 999.95) return append_number(static_cast<std::uint64_t>(std::llround(number)));
    const auto tenths = static_cast<std::uint64_t>(std::llround(10 * number));
    append_number(tenths / 10);
    append(".");
    append_number(tenths % 10);
  }
  /// As a clock shows it, in whole seconds that have passed: 0:07, 12:34, 1:02:03.
  void append_clock(std::chrono::nanoseconds time) noexcept {
    const auto seconds = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(time).count());
    const std::uint64_t minutes = seconds / 60;
    if (minutes >= 60) {
      append_number(minutes / 60);
      append(minutes % 60 < 10 ? ":0" : ":");
    }
    append_number(minutes % 60);
    append(seconds % 60 < 10 ? ":0" : ":");
    append_number(seconds % 60);
  }

 private:
  std::size_t size_ = 0;
  char text_[capacity];
};

}  // namespace detail
}  // namespace steptimer
