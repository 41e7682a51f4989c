#pragma once

#include <torch/torch.h>

#include <functional>
#include <stdexcept>
#include <steptimer/progress_line.hpp>
#include <steptimer/steptimer.hpp>
#include <string_view>

#ifdef STEPTIMER_EXAMPLES_LIBTORCH_CUDA
#include <c10/cuda/CUDAStream.h>

#include <steptimer/cuda_backend.hpp>

#include "cuda_check.hpp"
#endif

#include "training_report.hpp"

namespace example {

// What differs between a LibTorch for the CPU and one for GPUs, which the build knows.
#ifdef STEPTIMER_EXAMPLES_LIBTORCH_CUDA

constexpr Device libtorch_runs = Device::behind_host;

/// Errors: UserError where there is no GPU that can be used.
inline torch::Device use_libtorch_device() {
  use_first_gpu();
  return {torch::kCUDA, 0};
}

/// The stream that LibTorch queues its work on.
inline steptimer::CudaBackend libtorch_timeline() { return c10::cuda::getCurrentCUDAStream().stream(); }

/// The same values in page-locked memory: a copy from there runs behind the host's back.
inline torch::Tensor page_locked(const torch::Tensor& values) { return values.pin_memory(); }

#else

constexpr Device libtorch_runs = Device::host;

inline torch::Device use_libtorch_device() { return torch::kCPU; }
inline steptimer::CpuBackend libtorch_timeline() { return {}; }
inline torch::Tensor page_locked(const torch::Tensor& values) { return values; }

#endif

/// Options of a timer whose steps the line shows, and whose warnings stand above it where it is shown. The first steps load
/// kernels and choose algorithms: they stay out of the summary.
inline steptimer::StepTimerOptions shown_on(steptimer::ProgressLine& line, bool quiet) {
  steptimer::StepTimerOptions options;
  options.warmup_steps = 5;
  options.on_record = std::ref(line);
  if (!quiet) options.on_warning = [&line](std::string_view warning) { line.print(warning); };
  return options;
}

/// Runs what calls LibTorch, and leaves the list of stack frames out of its errors.
template <class Body>
void run_libtorch(Body&& body) {
  try {
    body();
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

}  // namespace example
