// A file of its own: where the compiler sees these functions beside code that allocates, it inlines some and warns that
// they do not match the others.
#include "counted_calls.hpp"

#include <cstdlib>
#include <new>
#if defined(STEPTIMER_BENCH_CUDA)
#include <cuda_runtime_api.h>
#endif

long bench::allocations = 0;
long bench::events_made = 0;

void* operator new(std::size_t size) {
  ++bench::allocations;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++bench::allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size) { return operator new(size); }
void* operator new[](std::size_t size, const std::nothrow_t& tag) noexcept { return operator new(size, tag); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

#if defined(STEPTIMER_BENCH_CUDA)
// The linker sends this program's calls of cudaEventCreateWithFlags here (--wrap).
extern "C" cudaError_t __real_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
extern "C" cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  ++bench::events_made;
  return __real_cudaEventCreateWithFlags(event, flags);
}
#endif
