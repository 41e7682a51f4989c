/// A line of text in memory of its own, put together without allocating, throwing or asking the locale. Not API.
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "utf8.hpp"

namespace steptimer {
namespace detail {

/// The beginning of a line that is at most `bytes` long: whole fields, which " | " parts, of the first field whole
/// words. So no number is cut: its beginning would be another number.
inline std::string_view cut_at_field(std::string_view line, std::size_t bytes) noexcept {
  if (line.size() <= bytes) return line;
  for (const std::string_view between : {std::string_view(" | "), std::string_view(" ")})
    if (const std::size_t end = line.rfind(between, bytes); end != std::string_view::npos) return line.substr(0, end);
  return cut(line, bytes);
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
  /// The same, with a blank for each control character: it would move the cursor, or worse.
  void append_printable(std::string_view text) noexcept {
    text = cut(text, capacity - size_);
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t control = control_character_bytes(text.substr(i));
      text_[size_++] = control > 0 ? ' ' : text[i];
      i += control > 0 ? control : 1;
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
