// CudaBackend and CudaTimer: what they are, asked in plain C++ without nvcc.

#include <cuda_runtime_api.h>

#include <chrono>
#include <steptimer/cuda_backend.hpp>
#include <steptimer/steptimer.hpp>
#include <type_traits>
#include <utility>

using namespace steptimer;

static_assert(is_backend_v<CudaBackend>);
static_assert(!std::is_copy_constructible_v<CudaBackend>, "it owns its events");
static_assert(!std::is_copy_assignable_v<CudaBackend>, "it owns its events");
static_assert(std::is_nothrow_move_constructible_v<CudaBackend>);
static_assert(std::is_nothrow_move_assignable_v<CudaBackend>);
static_assert(std::is_nothrow_destructible_v<CudaBackend>);
static_assert(std::is_nothrow_default_constructible_v<CudaBackend>, "the default stream");
static_assert(std::is_convertible_v<cudaStream_t, CudaBackend>, "CudaTimer timer{stream};");

static_assert(std::is_same_v<CudaTimer, StepTimer<CudaBackend>>);
static_assert(!std::is_copy_constructible_v<CudaTimer>);
static_assert(!std::is_copy_assignable_v<CudaTimer>);
static_assert(std::is_nothrow_move_constructible_v<CudaTimer>);
static_assert(std::is_nothrow_move_assignable_v<CudaTimer>);
static_assert(std::is_constructible_v<CudaTimer, cudaStream_t>);
static_assert(std::is_constructible_v<CudaTimer, cudaStream_t, StepTimerOptions>);
static_assert(noexcept(std::declval<CudaTimer&>().on_batch_start()));
static_assert(noexcept(std::declval<CudaTimer&>().on_batch_end(64)));
static_assert(noexcept(std::declval<CudaTimer&>().poll()));
