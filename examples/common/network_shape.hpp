#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "digits.hpp"
#include "random.hpp"

namespace example {

/// What the CPU and the GPU program both train: three fully connected layers, ReLU between them, by SGD with momentum.
struct NetworkShape {
  static constexpr std::size_t layers = 3;
  static constexpr float momentum = 0.9F;

  explicit NetworkShape(std::size_t hidden) : widths{digit_pixels, hidden, hidden / 2, digit_classes} {}

  std::array<std::size_t, layers + 1> widths;

  std::size_t inputs(std::size_t layer) const { return widths[layer]; }
  std::size_t outputs(std::size_t layer) const { return widths[layer + 1]; }
  bool has_relu(std::size_t layer) const { return layer + 1 < layers; }

  /// Falls evenly to 0, so that the last steps settle what was learned. Wide layers need smaller steps.
  float learning_rate(std::uint64_t step, std::uint64_t steps) const {
    const float at_first = 0.04F * std::min(1.0F, 1024.0F / static_cast<float>(widths[1]));
    return at_first * (1.0F - static_cast<float>(step) / static_cast<float>(steps));
  }

  /// A layer's parameters, row by row: one row of weights for each input, then a row of biases.
  std::size_t parameters(std::size_t layer) const { return (inputs(layer) + 1) * outputs(layer); }

  /// Normally distributed weights of variance 2 / inputs, biases of 0.
  /// Source: K. He et al., Delving Deep into Rectifiers, 2015, section 2.2.
  std::vector<float> initial_parameters(std::size_t layer, std::uint64_t seed) const {
    std::mt19937 random = make_random(seed, RandomUse::weights, layer);
    std::normal_distribution<float> normal(0.0F, std::sqrt(2.0F / static_cast<float>(inputs(layer))));
    std::vector<float> parameters_of_layer(parameters(layer), 0.0F);
    const auto weights = static_cast<std::ptrdiff_t>(inputs(layer) * outputs(layer));
    std::generate_n(parameters_of_layer.begin(), weights, [&] { return normal(random); });
    return parameters_of_layer;
  }
};

}  // namespace example
