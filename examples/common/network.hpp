#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "batch_loader.hpp"
#include "network_shape.hpp"
#include "score.hpp"

namespace example {

/// NetworkShape on the CPU, in plain loops whose innermost ones run along memory so that the compiler can vectorise.
class Network {
 public:
  Network(const NetworkShape& shape, std::uint64_t seed) : shape_(shape), layers_(NetworkShape::layers) {
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      layers_[n].parameters = shape.initial_parameters(n, seed);
      layers_[n].velocity.assign(layers_[n].parameters.size(), 0.0F);
    }
  }

  /// One step of training.
  /// `mark` is called with the name of each part as it begins, `combine` with each layer's new velocity before the layer
  /// moves by it. Where several networks that are alike average their velocities there, they average their gradients:
  /// what the velocity was before is the same in all of them.
  template <class Mark, class Combine>
  Score train(const Batch& batch, float learning_rate, Mark&& mark, Combine&& combine) {
    mark("forward");
    forward(batch.pixels.data(), batch.size());
    const Score score = score_logits(batch.labels.data(), batch.size());
    mark("backward");
    logits_to_gradient(batch.labels.data(), batch.size());
    for (std::size_t n = layers_.size(); n-- > 0;) {
      const float* inputs = n == 0 ? batch.pixels.data() : layers_[n - 1].outputs.data();
      if (n > 0) backward(n, batch.size());
      accelerate(n, inputs, batch.size());
      combine(layers_[n].velocity);
      move(n, learning_rate);
    }
    return score;
  }

  template <class Mark>
  Score train(const Batch& batch, float learning_rate, Mark&& mark) {
    return train(batch, learning_rate, mark, [](const std::vector<float>&) {});
  }

  Score train(const Batch& batch, float learning_rate) {
    return train(batch, learning_rate, [](const char*) {});
  }

  Score evaluate(const Digits& digits) {
    forward(digits.pixels.data(), digits.size());
    return score_logits(digits.labels.data(), digits.size());
  }

  const std::vector<float>& parameters(std::size_t layer) const { return layers_[layer].parameters; }

 private:
  struct Layer {
    std::vector<float> parameters, velocity;
    std::vector<float> outputs;   // one row a digit
    std::vector<float> gradient;  // of the loss by what comes out before the ReLU
  };

  void forward(const float* inputs, std::size_t rows) {
    for (std::size_t n = 0; n < layers_.size(); ++n) {
      Layer& layer = layers_[n];
      const std::size_t in = shape_.inputs(n);
      const std::size_t out = shape_.outputs(n);
      layer.outputs.resize(rows * out);
      layer.gradient.resize(rows * out);
      for (std::size_t row = 0; row < rows; ++row) {
        float* const output = layer.outputs.data() + row * out;
        const float* const biases = layer.parameters.data() + in * out;
        std::copy(biases, biases + out, output);
        for (std::size_t i = 0; i < in; ++i) add_scaled(inputs[row * in + i], weights(n, i), output, out);
        if (shape_.has_relu(n)) {
          for (std::size_t o = 0; o < out; ++o) output[o] = std::max(output[o], 0.0F);
        }
      }
      inputs = layer.outputs.data();
    }
  }

  /// Cross-entropy of the softmax of the logits. They are left as the logarithms of the probabilities.
  Score score_logits(const std::uint8_t* labels, std::size_t rows) {
    Score score;
    for (std::size_t row = 0; row < rows; ++row) {
      float* const logits = layers_.back().outputs.data() + row * digit_classes;
      const float* const best = std::max_element(logits, logits + digit_classes);
      score.correct += best - logits == labels[row] ? 1U : 0U;
      const float largest = *best;
      float sum = 0;
      for (std::size_t c = 0; c < digit_classes; ++c) sum += std::exp(logits[c] - largest);
      const float log_sum = largest + std::log(sum);
      for (std::size_t c = 0; c < digit_classes; ++c) logits[c] -= log_sum;
      score.loss_sum -= logits[labels[row]];
    }
    score.digits = static_cast<unsigned>(rows);
    return score;
  }

  void logits_to_gradient(const std::uint8_t* labels, std::size_t rows) {
    const Layer& layer = layers_.back();
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const log_probabilities = layer.outputs.data() + row * digit_classes;
      float* const gradient = layers_.back().gradient.data() + row * digit_classes;
      for (std::size_t c = 0; c < digit_classes; ++c) {
        const float wanted = c == labels[row] ? 1.0F : 0.0F;
        gradient[c] = (std::exp(log_probabilities[c]) - wanted) / static_cast<float>(rows);
      }
    }
  }

  /// From the gradient of layer n to that of the layer below it.
  void backward(std::size_t n, std::size_t rows) {
    const std::size_t in = shape_.inputs(n);
    const std::size_t out = shape_.outputs(n);
    Layer& below = layers_[n - 1];
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const gradient = layers_[n].gradient.data() + row * out;
      for (std::size_t i = 0; i < in; ++i) {
        const bool active = below.outputs[row * in + i] > 0;
        below.gradient[row * in + i] = active ? dot(weights(n, i), gradient, out) : 0.0F;
      }
    }
  }

  /// Adds the gradient by layer n's parameters to its velocity.
  void accelerate(std::size_t n, const float* inputs, std::size_t rows) {
    const std::size_t in = shape_.inputs(n);
    const std::size_t out = shape_.outputs(n);
    Layer& layer = layers_[n];
    for (float& velocity : layer.velocity) velocity *= NetworkShape::momentum;
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const gradient = layer.gradient.data() + row * out;
      for (std::size_t i = 0; i < in; ++i) {
        add_scaled(inputs[row * in + i], gradient, layer.velocity.data() + i * out, out);
      }
      add_scaled(1.0F, gradient, layer.velocity.data() + in * out, out);
    }
  }

  void move(std::size_t n, float learning_rate) {
    Layer& layer = layers_[n];
    add_scaled(-learning_rate, layer.velocity.data(), layer.parameters.data(), layer.parameters.size());
  }

  const float* weights(std::size_t n, std::size_t input) const {
    return layers_[n].parameters.data() + input * shape_.outputs(n);
  }

  static void add_scaled(float factor, const float* from, float* to, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) to[i] += factor * from[i];
  }

  /// In eight sums, which vectorise where one would not: the order of float additions is part of the result.
  static float dot(const float* a, const float* b, std::size_t size) {
    constexpr std::size_t lanes = 8;
    float sums[lanes] = {};
    std::size_t i = 0;
    for (; i + lanes <= size; i += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    }
    for (; i < size; ++i) sums[0] += a[i] * b[i];
    float total = 0;
    for (const float sum : sums) total += sum;
    return total;
  }

  NetworkShape shape_;
  std::vector<Layer> layers_;
};

}  // namespace example
