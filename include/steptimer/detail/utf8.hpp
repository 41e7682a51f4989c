/// Characters of more than one byte. Not API.
#pragma once

#include <cstddef>
#include <string_view>

namespace steptimer {
namespace detail {

/// The beginning of `text` that is at most `bytes` long and ends between two characters of UTF-8.
inline std::string_view cut(std::string_view text, std::size_t bytes) noexcept {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0u) == 0x80u) --bytes;
  return text.substr(0, bytes);
}

/// The bytes of the control character that `text` begins with, 0 where it is none: U+0000 to U+001F, U+007F, and U+0080
/// to U+009F, which some terminals obey as they do an escape sequence.
inline std::size_t control_character_bytes(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x20 || byte(0) == 0x7F) return 1;
  return byte(0) == 0xC2 && text.size() > 1 && byte(1) >= 0x80 && byte(1) < 0xA0 ? 2 : 0;
}

}  // namespace detail
}  // namespace steptimer
