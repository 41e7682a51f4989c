// device_work on a real GPU.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "device_work.hpp"

namespace device_work {
namespace {

constexpr unsigned long long gate_limit_ns = 20'000'000'000ULL;
constexpr unsigned gate_slots = 1024;

__device__ unsigned long long device_nanoseconds() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__global__ void spin(unsigned long long duration) {
  const unsigned long long start = device_nanoseconds();
  while (device_nanoseconds() - start < duration) {
  }
}

// Waits until the flag has reached `turn`: flags only grow, so one can serve again while an older kernel still looks.
__global__ void wait_for_flag(const volatile unsigned* flag, unsigned turn) {
  const unsigned long long start = device_nanoseconds();
  while (*flag < turn && device_nanoseconds() - start < gate_limit_ns) {
  }
}

__global__ void touch_illegal_address(int* address) { *address = 1; }

__global__ void stop_itself() { __trap(); }

struct Flags {
  std::mutex mutex;
  volatile unsigned* host = nullptr;
  unsigned next = 0;
  unsigned turns[gate_slots] = {};
};

Flags& flags() {
  static auto* const made = new Flags;
  return *made;
}

struct Turn {
  unsigned slot;
  unsigned number;
};

void must(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "device_work: %s: %s\n", what, cudaGetErrorString(code));
  std::abort();
}

// Pinned memory cannot be had during a capture, and a kernel's first launch loads its code, so both come before.
void load(int device) {
  static auto* const loaded = new std::set<int>;
  if (!loaded->insert(device).second) return;
  must(cudaSetDevice(device), "cudaSetDevice");
  if (flags().host == nullptr) {
    void* memory = nullptr;
    must(cudaHostAlloc(&memory, gate_slots * sizeof(unsigned), cudaHostAllocPortable | cudaHostAllocMapped),
         "cudaHostAlloc");
    flags().host = static_cast<volatile unsigned*>(memory);
    for (unsigned i = 0; i < gate_slots; ++i) flags().host[i] = 0;
  }
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  spin<<<1, 1, 0, stream>>>(1000);
  wait_for_flag<<<1, 1, 0, stream>>>(flags().host, 0);
  must(cudaGetLastError(), "launch");
  cudaFuncAttributes attributes{};
  must(cudaFuncGetAttributes(&attributes, touch_illegal_address), "cudaFuncGetAttributes");
  must(cudaFuncGetAttributes(&attributes, stop_itself), "cudaFuncGetAttributes");
  must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  must(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

}  // namespace

bool exact() noexcept { return false; }

std::string skip_reason() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return {};
  return std::string("no CUDA device: ") + cudaGetErrorString(code == cudaSuccess ? cudaErrorNoDevice : code);
}

bool begin_untouched(int devices) {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count >= devices;
}

bool begin(int devices) {
  if (!begin_untouched(devices)) return false;
  for (int device = devices - 1; device >= 0; --device) load(device);
  must(cudaSetDevice(0), "cudaSetDevice");
  (void)cudaGetLastError();
  return true;
}

void end() {
  volatile unsigned*& host = flags().host;
  if (host != nullptr) must(cudaFreeHost(const_cast<unsigned*>(host)), "cudaFreeHost");
  host = nullptr;
}

void in_forked_child() {}

bool has_context(int device, bool& known) {
  using GetState = int (*)(int, unsigned*, int*);
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  known = cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", &function, 12000, cudaEnableDefault, &found) ==
              cudaSuccess &&
          found == cudaDriverEntryPointSuccess;
  unsigned device_flags = 0;
  int active = 0;
  known = known && reinterpret_cast<GetState>(function)(device, &device_flags, &active) == 0;
  return active != 0;
}

Stream::Stream(unsigned flags) { must(cudaStreamCreateWithFlags(&stream_, flags), "cudaStreamCreateWithFlags"); }

Stream::~Stream() { cudaStreamDestroy(stream_); }

// cudaLaunchKernel rather than <<<>>>: its answer is that of this launch, also while an older error is pending.
cudaError_t work(cudaStream_t stream, nanoseconds duration) {
  auto count = static_cast<unsigned long long>(duration.count());
  void* arguments[] = {&count};
  return cudaLaunchKernel(reinterpret_cast<const void*>(spin), dim3(1), dim3(1), arguments, 0, stream);
}

cudaError_t fault(cudaStream_t stream, Fault kind) {
  if (kind == Fault::trap)
    return cudaLaunchKernel(reinterpret_cast<const void*>(stop_itself), dim3(1), dim3(1), nullptr, 0, stream);
  int* address = nullptr;
  void* arguments[] = {&address};
  return cudaLaunchKernel(reinterpret_cast<const void*>(touch_illegal_address), dim3(1), dim3(1), arguments, 0, stream);
}

Gate::Gate(cudaStream_t stream) {
  Flags& all = flags();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.host == nullptr) must(cudaErrorInitializationError, "a Gate before begin()");
  const unsigned slot = all.next++ % gate_slots;
  const Turn turn{slot, ++all.turns[slot]};
  const volatile unsigned* flag = all.host + slot;
  unsigned number = turn.number;
  void* arguments[] = {&flag, &number};
  must(cudaLaunchKernel(reinterpret_cast<const void*>(wait_for_flag), dim3(1), dim3(1), arguments, 0, stream), "gate");
  state_ = new Turn(turn);
}

void Gate::open() noexcept {
  auto* const turn = static_cast<Turn*>(state_);
  if (turn == nullptr) return;
  state_ = nullptr;
  const std::lock_guard<std::mutex> lock(flags().mutex);
  volatile unsigned& flag = flags().host[turn->slot];
  if (flag < turn->number) flag = turn->number;
  delete turn;
}

void host_sleep(nanoseconds duration) { std::this_thread::sleep_for(duration); }

cudaError_t wait_for(cudaStream_t stream) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  const cudaError_t code = cudaStreamSynchronize(stream);
  cudaThreadExchangeStreamCaptureMode(&mode);
  return code;
}

}  // namespace device_work
