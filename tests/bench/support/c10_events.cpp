#include "c10_events.hpp"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#if __has_include(<c10/cuda/CUDAEvent.h>)
#include <c10/cuda/CUDAEvent.h>
#else
#include <ATen/cuda/CUDAEvent.h>  // where older PyTorch has it
#endif

#include <deque>
#include <utility>
#include <vector>

#include "figures.hpp"

namespace bench {

namespace {

#if __has_include(<c10/cuda/CUDAEvent.h>)
using TorchEvent = c10::cuda::CUDAEvent;
#else
using TorchEvent = at::cuda::CUDAEvent;
#endif

struct TorchEventPair {
  TorchEvent start{cudaEventDefault};  // CUDAEvent's own default takes no time
  TorchEvent end{cudaEventDefault};
};

}  // namespace

struct C10Events::Parts {
  explicit Parts(cudaStream_t from) : stream(c10::cuda::getStreamFromExternal(from, c10::cuda::current_device())) {}

  c10::cuda::CUDAStream stream;
  std::deque<TorchEventPair> pending;
  std::vector<TorchEventPair> reusable;
};

C10Events::C10Events(cudaStream_t stream) : parts_(std::make_unique<Parts>(stream)) {}
C10Events::~C10Events() = default;

void C10Events::start() {
  auto& [stream, pending, reusable] = *parts_;
  if (reusable.empty()) {
    pending.emplace_back();
  } else {
    pending.push_back(std::move(reusable.back()));
    reusable.pop_back();
  }
  pending.back().start.record(stream);
}

void C10Events::end() {
  auto& [stream, pending, reusable] = *parts_;
  pending.back().end.record(stream);
  while (!pending.empty() && pending.front().end.query()) {
    float milliseconds = pending.front().start.elapsed_time(pending.front().end);
    use(milliseconds);
    reusable.push_back(std::move(pending.front()));
    pending.pop_front();
  }
}

}  // namespace bench
