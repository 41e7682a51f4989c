// A CudaBackend whose host clock is the fake runtime's clock: host and device share one virtual time, so that what
// depends on either is exact.
#pragma once

#include <chrono>

#include <steptimer/cuda_backend.hpp>
#include <steptimer/step_timer.hpp>

#include "fake_cuda/fake_cuda.hpp"

class VirtualCuda : public steptimer::CudaBackend {
 public:
  using CudaBackend::CudaBackend;

  steptimer::HostTime host_now() const noexcept { return steptimer::HostTime{fake_cuda::now()}; }
  void host_wait(std::chrono::nanoseconds most) noexcept {
    constexpr std::chrono::nanoseconds between_polls = std::chrono::microseconds{50};
    fake_cuda::advance(most < between_polls ? most : between_polls);
  }
};

using VirtualCudaTimer = steptimer::StepTimer<VirtualCuda>;
