#pragma once

#include <algorithm>
#include <cstddef>
#include <random>

#include "digits.hpp"

namespace example {

/// Writes a digit moved by up to one pixel each way and made a little noisy: no two epochs see the same image.
inline void augment(const float* image, float* out, std::mt19937& random) {
  constexpr int side = int{digit_side};
  constexpr float noise = 0.1F;
  // Taken off the generator directly: the standard distributions cost several times as much.
  const auto fraction = [&random] { return static_cast<float>(random()) / 4294967296.0F; };
  const int down = static_cast<int>(random() % 3) - 1;
  const int right = static_cast<int>(random() % 3) - 1;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x, ++out) {
      const int from_y = y - down;
      const int from_x = x - right;
      const bool inside = from_y >= 0 && from_y < side && from_x >= 0 && from_x < side;
      const float pixel = inside ? image[from_y * side + from_x] : 0.0F;
      *out = std::clamp(pixel + noise * (2 * fraction() - 1), 0.0F, 1.0F);
    }
  }
}

}  // namespace example
