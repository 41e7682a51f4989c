#pragma once

#include <cuda_runtime.h>

#include <random>

#include "cuda_check.hpp"
#include "cuda_resources.hpp"

/// The smallest language model there is, the next token from the last one, and text that it can learn.
namespace example::bigram {

constexpr unsigned vocabulary = 32;
constexpr unsigned tokens = 4096;  // predicted in a batch

/// Adds to the mean loss, one thread a token, and where one is wanted, to the gradient of the logits.
__global__ void predict(const int* text, const float* logits, float* gradient, float* loss, float share) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= tokens) return;
  const unsigned row = static_cast<unsigned>(text[i]) * vocabulary;
  const unsigned next = static_cast<unsigned>(text[i + 1]);
  float sum = 0;
  for (unsigned v = 0; v < vocabulary; ++v) sum += expf(logits[row + v]);
  atomicAdd(loss, share * (logf(sum) - logits[row + next]));
  if (gradient == nullptr) return;
  for (unsigned v = 0; v < vocabulary; ++v) {
    atomicAdd(&gradient[row + v], share * (expf(logits[row + v]) / sum - (v == next ? 1.0F : 0.0F)));
  }
}

__global__ void descend(float* logits, float* gradient, float learning_rate) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= vocabulary * vocabulary) return;
  logits[i] -= learning_rate * gradient[i];
  gradient[i] = 0;
}

/// A piece of text on its way to the device.
struct Text {
  PinnedArray<int> host{tokens + 1};
  DeviceArray<int> device{tokens + 1};
};

/// Gives text in which three tokens of four follow from the one before.
class TextLoader {
 public:
  void next_batch(Text& text, cudaStream_t stream) {
    for (unsigned i = 0; i <= tokens; ++i) {
      const unsigned number = static_cast<unsigned>(random_());
      last_ = (number % 4 != 0 ? 5 * last_ + 3 : number / 4) % vocabulary;
      text.host.data()[i] = static_cast<int>(last_);
    }
    check(cudaMemcpyAsync(text.device.data(), text.host.data(), text.host.bytes(), cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
  }

 private:
  std::mt19937 random_;
  unsigned last_ = 0;
};

/// Every call but read_loss() only queues work on the stream.
class Model {
 public:
  void forward(const Text& text, cudaStream_t stream) { predict_text(text, nullptr, 1.0F / tokens, stream); }
  /// Adds to the gradient of an update that `batches` batches make together.
  void forward_and_backward(const Text& text, int batches, cudaStream_t stream) {
    predict_text(text, gradient_.data(), 1.0F / (static_cast<float>(batches) * tokens), stream);
  }
  void update(cudaStream_t stream) {
    descend<<<vocabulary * vocabulary / threads, threads, 0, stream>>>(logits_.data(), gradient_.data(), 20.0F);
    check(cudaGetLastError(), "the launch of descend");
  }

  /// The mean loss since the last such call. Blocking: until the stream has got here.
  float read_loss(cudaStream_t stream) {
    check(cudaMemcpyAsync(host_loss_.data(), loss_.data(), sizeof(float), cudaMemcpyDeviceToHost, stream), "the loss");
    check(cudaMemsetAsync(loss_.data(), 0, sizeof(float), stream), "cudaMemsetAsync");
    loss_is_read_.record(stream);
    loss_is_read_.wait();
    return *host_loss_.data();
  }

 private:
  static constexpr unsigned threads = 256;

  void predict_text(const Text& text, float* gradient, float share, cudaStream_t stream) {
    predict<<<tokens / threads, threads, 0, stream>>>(text.device.data(), logits_.data(), gradient, loss_.data(),
                                                      share);
    check(cudaGetLastError(), "the launch of predict");
  }

  DeviceArray<float> logits_{vocabulary * vocabulary}, gradient_{vocabulary * vocabulary}, loss_{1};
  PinnedArray<float> host_loss_{1};
  Event loss_is_read_;
};

}  // namespace example::bigram
