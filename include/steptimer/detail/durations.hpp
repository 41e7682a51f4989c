/// Arithmetic on durations that never overflows and never divides by zero. Not API.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace steptimer {
namespace detail {

/// 100 * part / whole. Nothing where the whole is zero: 0 / 0 is not a share of anything.
inline std::optional<double> percent(std::chrono::nanoseconds part, std::chrono::nanoseconds whole) noexcept {
  if (whole.count() <= 0) return std::nullopt;
  const double percent = 100.0 * static_cast<double>(part.count()) / static_cast<double>(whole.count());
  return percent > 100.0 && part <= whole ? 100.0 : percent;  // rounding, from 25 hours on
}

/// a - b for non-negative a and b, never below zero.
inline std::chrono::nanoseconds difference_or_zero(std::chrono::nanoseconds a, std::chrono::nanoseconds b) noexcept {
  return a > b ? a - b : std::chrono::nanoseconds{0};
}

/// a + b for non-negative a and b, staying at the largest duration instead of overflowing.
inline std::chrono::nanoseconds saturating_sum(std::chrono::nanoseconds a, std::chrono::nanoseconds b) noexcept {
  constexpr auto most = static_cast<std::uint64_t>((std::numeric_limits<std::int64_t>::max)());
  const std::uint64_t sum = static_cast<std::uint64_t>(a.count()) + static_cast<std::uint64_t>(b.count());
  return std::chrono::nanoseconds{static_cast<std::int64_t>(sum < most ? sum : most)};
}

}  // namespace detail
}  // namespace steptimer
