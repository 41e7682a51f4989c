#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "digits.hpp"
#include "score.hpp"

namespace example {

constexpr std::int64_t upscaled_side = 32;

/// Digits as tensors: images of n x 1 x 8 x 8, or upscaled, and n labels.
struct DigitTensors {
  torch::Tensor images, labels;

  std::int64_t size() const { return labels.size(0); }
  DigitTensors to(torch::Device device) const { return {images.to(device), labels.to(device)}; }
};

inline DigitTensors to_tensors(const Digits& digits) {
  const auto size = static_cast<std::int64_t>(digits.size());
  const auto side = std::int64_t{digit_side};
  const std::vector<std::int64_t> labels(digits.labels.begin(), digits.labels.end());
  return {torch::tensor(digits.pixels).reshape({size, 1, side, side}), torch::tensor(labels)};
}

inline torch::Tensor upscale(const torch::Tensor& images) {
  namespace functional = torch::nn::functional;
  return functional::interpolate(images, functional::InterpolateFuncOptions()
                                             .size(std::vector<std::int64_t>{upscaled_side, upscaled_side})
                                             .mode(torch::kBilinear)
                                             .align_corners(false));
}

inline DigitTensors to_upscaled_tensors(const Digits& digits) {
  const DigitTensors tensors = to_tensors(digits);
  return {upscale(tensors.images), tensors.labels};
}

/// Reads how many were told apart: `outputs` are the logits of each. Waits for the device.
inline Score read_score(const torch::Tensor& outputs, const torch::Tensor& labels) {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor loss = torch::nn::functional::cross_entropy(outputs, labels);
  const torch::Tensor correct = (outputs.argmax(1) == labels).sum();
  const auto size = labels.size(0);
  return {loss.item<float>() * static_cast<float>(size), static_cast<unsigned>(correct.item<std::int64_t>()),
          static_cast<unsigned>(size)};
}

}  // namespace example
