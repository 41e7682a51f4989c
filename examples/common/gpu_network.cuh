#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda_check.hpp"
#include "cuda_resources.hpp"
#include "network_kernels.cuh"
#include "network_shape.hpp"
#include "score.hpp"

namespace example {

/// NetworkShape on a GPU. Calls only queue work on the stream; the host waits nowhere but in parameters().
class GpuNetwork {
 public:
  GpuNetwork(const NetworkShape& shape, std::size_t max_rows, std::uint64_t seed) : shape_(shape) {
    for (std::size_t n = 0; n < NetworkShape::layers; ++n) {
      layers_.push_back({to_device(shape.initial_parameters(n, seed)), DeviceArray<float>(shape.parameters(n)),
                         DeviceArray<float>(max_rows * shape.outputs(n)),
                         DeviceArray<float>(max_rows * shape.outputs(n))});
    }
  }

  /// Queues one step of training; `inputs` and `labels` are on the device.
  /// `mark` is called with the name of each part before its first launch.
  template <class Mark>
  void train(const float* inputs, const std::uint8_t* labels, std::size_t digits, float learning_rate,
             cudaStream_t stream, Mark&& mark) {
    const auto rows = static_cast<unsigned>(digits);
    learn(inputs, labels, rows, stream, mark,
          [&](std::size_t n, const float* layer_inputs) { update(n, layer_inputs, rows, learning_rate, stream); });
  }

  /// The same, with combine(velocity, size) called to queue what is to happen to each layer's new velocity on the device
  /// before the layer moves by it. Where several networks that are alike average their velocities there, they average
  /// their gradients: what the velocity was before is the same in all of them.
  template <class Combine>
  void train_combined(const float* inputs, const std::uint8_t* labels, std::size_t digits, float learning_rate,
                      cudaStream_t stream, Combine&& combine) {
    const auto rows = static_cast<unsigned>(digits);
    const auto no_mark = [](const char*) {};
    learn(inputs, labels, rows, stream, no_mark, [&](std::size_t n, const float* layer_inputs) {
      accelerate(n, layer_inputs, rows, stream);
      combine(layers_[n].velocity.data(), shape_.parameters(n));
      move(n, learning_rate, stream);
    });
  }

  void train(const float* inputs, const std::uint8_t* labels, std::size_t digits, float learning_rate,
             cudaStream_t stream) {
    train(inputs, labels, digits, learning_rate, stream, [](const char*) {});
  }

  /// Queues the scoring of some digits, without learning from them.
  void evaluate(const float* inputs, const std::uint8_t* labels, std::size_t digits, cudaStream_t stream) {
    const auto rows = static_cast<unsigned>(digits);
    forward(inputs, rows, stream);
    score_logits(labels, nullptr, rows, stream);
  }

  /// Queues the copy to the host of the score of everything since the last such call, which starts a new one.
  void queue_score_read(cudaStream_t stream) {
    check(cudaMemcpyAsync(host_score_.data(), score_.data(), sizeof(Score), cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    check(cudaMemsetAsync(score_.data(), 0, sizeof(Score), stream), "cudaMemsetAsync");
  }

  /// A layer's parameters, copied to the host. Waits for the device.
  std::vector<float> parameters(std::size_t n) const {
    std::vector<float> values(shape_.parameters(n));
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(
        cudaMemcpy(values.data(), layers_[n].parameters.data(), values.size() * sizeof(float), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
    return values;
  }

  /// The score read last. Only to be asked for when the stream has been waited for.
  const Score& score() const { return *host_score_.data(); }

 private:
  struct Layer {
    DeviceArray<float> parameters, velocity;
    DeviceArray<float> outputs;   // one row a digit
    DeviceArray<float> gradient;  // of the loss by what comes out before the ReLU
  };

  static constexpr unsigned threads = 256;
  static unsigned blocks(unsigned numbers) { return (numbers + threads - 1) / threads; }
  unsigned in(std::size_t n) const { return static_cast<unsigned>(shape_.inputs(n)); }
  unsigned out(std::size_t n) const { return static_cast<unsigned>(shape_.outputs(n)); }

  template <class Mark, class Update>
  void learn(const float* inputs, const std::uint8_t* labels, unsigned rows, cudaStream_t stream, Mark&& mark,
             Update&& update_layer) {
    mark("forward");
    forward(inputs, rows, stream);
    score_logits(labels, layers_.back().gradient.data(), rows, stream);
    mark("backward");
    for (std::size_t n = NetworkShape::layers; n-- > 0;) {
      if (n > 0) backward(n, rows, stream);
      update_layer(n, n > 0 ? layers_[n - 1].outputs.data() : inputs);
    }
  }

  void forward(const float* inputs, unsigned rows, cudaStream_t stream) {
    for (std::size_t n = 0; n < NetworkShape::layers; ++n) {
      const Layer& layer = layers_[n];
      kernels::forward<<<blocks(rows * out(n)), threads, 0, stream>>>(
          inputs, layer.parameters.data(), layer.outputs.data(), rows, in(n), out(n), shape_.has_relu(n));
      check(cudaGetLastError(), "the launch of kernels::forward");
      inputs = layer.outputs.data();
    }
  }

  void score_logits(const std::uint8_t* labels, float* gradient, unsigned rows, cudaStream_t stream) {
    kernels::score_logits<<<blocks(rows), threads, 0, stream>>>(layers_.back().outputs.data(), labels, gradient, rows,
                                                                score_.data());
    check(cudaGetLastError(), "the launch of kernels::score_logits");
  }

  void backward(std::size_t n, unsigned rows, cudaStream_t stream) {
    const Layer& layer = layers_[n];
    const Layer& below = layers_[n - 1];
    kernels::backward<<<blocks(rows * in(n)), threads, 0, stream>>>(layer.gradient.data(), layer.parameters.data(),
                                                                    below.outputs.data(), below.gradient.data(), rows,
                                                                    in(n), out(n));
    check(cudaGetLastError(), "the launch of kernels::backward");
  }

  void update(std::size_t n, const float* inputs, unsigned rows, float learning_rate, cudaStream_t stream) {
    const Layer& layer = layers_[n];
    kernels::update<<<blocks((in(n) + 1) * out(n)), threads, 0, stream>>>(
        inputs, layer.gradient.data(), layer.parameters.data(), layer.velocity.data(), rows, in(n), out(n),
        learning_rate, NetworkShape::momentum);
    check(cudaGetLastError(), "the launch of kernels::update");
  }

  void accelerate(std::size_t n, const float* inputs, unsigned rows, cudaStream_t stream) {
    const Layer& layer = layers_[n];
    kernels::accelerate<<<blocks((in(n) + 1) * out(n)), threads, 0, stream>>>(
        inputs, layer.gradient.data(), layer.velocity.data(), rows, in(n), out(n), NetworkShape::momentum);
    check(cudaGetLastError(), "the launch of kernels::accelerate");
  }

  void move(std::size_t n, float learning_rate, cudaStream_t stream) {
    const Layer& layer = layers_[n];
    const unsigned size = (in(n) + 1) * out(n);
    kernels::move<<<blocks(size), threads, 0, stream>>>(layer.parameters.data(), layer.velocity.data(), size,
                                                        learning_rate);
    check(cudaGetLastError(), "the launch of kernels::move");
  }

  NetworkShape shape_;
  std::vector<Layer> layers_;
  DeviceArray<Score> score_{1};
  PinnedArray<Score> host_score_{1};
};

}  // namespace example
