/// Which of n sorted values a quantile is. Not API.
#pragma once

#include <cstdint>

namespace steptimer {
namespace detail {

inline bool is_probability(double p) noexcept { return p >= 0.0 && p <= 1.0; }  // false for a NaN, too

/// The nearest rank: ceil(p * count), and 1 for p = 0; for count > 0.
///
/// A product that is above a whole number by no more than rounding is that number: 0.07 * 100 is 7.000000000000001, and
/// the 7th of 100 is meant.
inline std::uint64_t nearest_rank(double p, std::uint64_t count) noexcept {
  if (p >= 1.0) return count;
  const double position = p * static_cast<double>(count);
  const auto whole = static_cast<std::uint64_t>(position);
  constexpr double rounding = 4.5e-16;  // half a unit in the last place of p, and one of the product's
  const bool between = position - static_cast<double>(whole) > position * rounding;
  const std::uint64_t rank = between ? whole + 1 : whole;
  return rank == 0 ? 1 : rank;
}

}  // namespace detail
}  // namespace steptimer
