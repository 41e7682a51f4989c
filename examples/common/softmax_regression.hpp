#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "batch_loader.hpp"
#include "digits.hpp"
#include "score.hpp"

namespace example {

/// The smallest model that learns digits: one linear layer and a softmax, with the gradient kept until it is used.
class SoftmaxRegression {
 public:
  /// Adds the gradient of a batch to what is kept.
  Score accumulate(const Batch& batch) {
    Score score;
    for (std::size_t i = 0; i < batch.size(); ++i) add_digit(&batch.pixels[i * digit_pixels], batch.labels[i], score);
    digits_ += batch.size();
    score.digits = static_cast<unsigned>(batch.size());
    return score;
  }

  /// One step against the mean of the gradients kept, which starts new ones.
  void update(float learning_rate) {
    const float scale = learning_rate / static_cast<float>(digits_);
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= scale * gradient_[i];
    gradient_.fill(0);
    digits_ = 0;
  }

 private:
  void add_digit(const float* pixels, std::size_t label, Score& score) {
    std::array<float, digit_classes> values{};
    for (std::size_t c = 0; c < digit_classes; ++c) {
      for (std::size_t p = 0; p < digit_pixels; ++p) values[c] += pixels[p] * weights_[c * digit_pixels + p];
    }
    const float largest = *std::max_element(values.begin(), values.end());
    score.correct += values[label] == largest ? 1U : 0U;
    float sum = 0;
    for (const float value : values) sum += std::exp(value - largest);
    score.loss_sum += largest + std::log(sum) - values[label];

    for (std::size_t c = 0; c < digit_classes; ++c) {
      const float error = std::exp(values[c] - largest) / sum - (c == label ? 1.0F : 0.0F);
      for (std::size_t p = 0; p < digit_pixels; ++p) gradient_[c * digit_pixels + p] += error * pixels[p];
    }
  }

  std::array<float, digit_classes * digit_pixels> weights_{}, gradient_{};
  std::size_t digits_ = 0;
};

}  // namespace example
