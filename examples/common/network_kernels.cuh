#pragma once

#include <cuda_runtime.h>

#include "score.hpp"

/// A network's mathematics on the GPU: one thread for each number that comes out. Matrices lie row by row,
/// one row a digit; parameters as in NetworkShape, one row of weights for each input and one of biases.
///
/// Simple on purpose: the example is about when things run, not about the fastest matrix product.
namespace example::kernels {

constexpr unsigned classes = 10;

__device__ inline unsigned thread_number() { return blockIdx.x * blockDim.x + threadIdx.x; }

/// outputs = inputs * weights + biases, and no less than 0 where there is a ReLU.
__global__ void forward(const float* inputs, const float* parameters, float* outputs, unsigned rows, unsigned in,
                        unsigned out, bool relu) {
  const unsigned number = thread_number();
  if (number >= rows * out) return;
  const unsigned row = number / out;
  const unsigned o = number % out;
  float sum = parameters[in * out + o];
  for (unsigned i = 0; i < in; ++i) sum += inputs[row * in + i] * parameters[i * out + o];
  outputs[number] = relu && sum < 0 ? 0.0F : sum;
}

/// Adds to the score, one thread a digit, and where a gradient is wanted, writes that of the mean loss by the logits.
__global__ void score_logits(const float* logits, const unsigned char* labels, float* gradient, unsigned rows,
                             Score* score) {
  const unsigned row = thread_number();
  if (row >= rows) return;
  const float* const mine = logits + row * classes;
  unsigned best = 0;
  for (unsigned c = 1; c < classes; ++c) {
    if (mine[c] > mine[best]) best = c;
  }
  float sum = 0;
  for (unsigned c = 0; c < classes; ++c) sum += expf(mine[c] - mine[best]);

  const unsigned label = labels[row];
  atomicAdd(&score->loss_sum, mine[best] + logf(sum) - mine[label]);
  atomicAdd(&score->correct, best == label ? 1U : 0U);
  atomicAdd(&score->digits, 1U);
  if (gradient == nullptr) return;
  for (unsigned c = 0; c < classes; ++c) {
    const float probability = expf(mine[c] - mine[best]) / sum;
    gradient[row * classes + c] = (probability - (c == label ? 1.0F : 0.0F)) / static_cast<float>(rows);
  }
}

/// From a layer's gradient to that of the layer below it, whose outputs are this one's inputs.
__global__ void backward(const float* gradient, const float* parameters, const float* inputs, float* gradient_below,
                         unsigned rows, unsigned in, unsigned out) {
  const unsigned number = thread_number();
  if (number >= rows * in) return;
  const unsigned row = number / in;
  const unsigned i = number % in;
  float sum = 0;
  for (unsigned o = 0; o < out; ++o) sum += gradient[row * out + o] * parameters[i * out + o];
  gradient_below[number] = inputs[number] > 0 ? sum : 0.0F;
}

/// The velocity of a parameter, of SGD with momentum, after its gradient was added.
__device__ inline float accelerated(unsigned number, const float* inputs, const float* gradient, const float* velocity,
                                    unsigned rows, unsigned in, unsigned out, float momentum) {
  const unsigned i = number / out;
  const unsigned o = number % out;
  float sum = 0;
  for (unsigned row = 0; row < rows; ++row) {
    const float input = i < in ? inputs[row * in + i] : 1.0F;
    sum += input * gradient[row * out + o];
  }
  return momentum * velocity[number] + sum;
}

/// Gradient of the parameters, and a step of SGD with momentum against it.
__global__ void update(const float* inputs, const float* gradient, float* parameters, float* velocity, unsigned rows,
                       unsigned in, unsigned out, float learning_rate, float momentum) {
  const unsigned number = thread_number();
  if (number >= (in + 1) * out) return;
  velocity[number] = accelerated(number, inputs, gradient, velocity, rows, in, out, momentum);
  parameters[number] -= learning_rate * velocity[number];
}

/// The same in two halves, for what has to happen to the velocity in between.
__global__ void accelerate(const float* inputs, const float* gradient, float* velocity, unsigned rows, unsigned in,
                           unsigned out, float momentum) {
  const unsigned number = thread_number();
  if (number < (in + 1) * out)
    velocity[number] = accelerated(number, inputs, gradient, velocity, rows, in, out, momentum);
}
__global__ void move(float* parameters, const float* velocity, unsigned size, float learning_rate) {
  const unsigned number = thread_number();
  if (number < size) parameters[number] -= learning_rate * velocity[number];
}

}  // namespace example::kernels
