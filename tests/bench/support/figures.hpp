// Figures out of many timings.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace bench {

/// The value that a share `p` (0 to 1) of the values does not exceed: nearest rank, so one of the values. NaN of none.
inline double percentile(std::vector<double> values, double p) {
  if (values.empty()) return std::nan("");
  const double rank = std::ceil(p * static_cast<double>(values.size()));
  const std::size_t at = std::min(values.size() - 1, static_cast<std::size_t>(std::max(rank - 1, 0.0)));
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

inline double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

/// Keeps a value from being optimised away.
template <class T>
void use(T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace bench
