#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "cuda_check.hpp"

namespace example {

/// A stream of its own, which no other stream waits for: not even the legacy default stream.
class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// A point in a stream that the host or another stream can wait for. Waiting for one never recorded ends at once.
class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  /// Whether a wait would end at once.
  bool is_over() const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state != cudaErrorNotReady) check(state, "cudaEventQuery");
    return state == cudaSuccess;
  }
  void make_wait(cudaStream_t stream) const { check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent"); }

 private:
  cudaEvent_t event_ = nullptr;
};

/// `size` values of T in memory of one kind, zero at first.
template <class T, class Memory>
class CudaArray {
 public:
  explicit CudaArray(std::size_t size) : size_(size) {
    void* data = nullptr;
    Memory::allocate(&data, bytes());
    data_ = static_cast<T*>(data);
  }
  ~CudaArray() { Memory::free(data_); }
  CudaArray(CudaArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  CudaArray& operator=(CudaArray&&) = delete;

  T* data() const { return data_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

struct DeviceMemory {
  static void allocate(void** data, std::size_t bytes) {
    check(cudaMalloc(data, bytes), "cudaMalloc");
    cudaError_t cleared = cudaMemset(*data, 0, bytes);
    if (cleared == cudaSuccess) cleared = cudaDeviceSynchronize();  // it need not have run when it returns
    if (cleared != cudaSuccess) free(*data);
    check(cleared, "cudaMemset");
  }
  static void free(void* data) { cudaFree(data); }
};

/// Page-locked: only from and to such memory does a copy run behind the host's back.
struct PinnedMemory {
  static void allocate(void** data, std::size_t bytes) {
    check(cudaMallocHost(data, bytes), "cudaMallocHost");
    for (std::size_t i = 0; i < bytes; ++i) static_cast<unsigned char*>(*data)[i] = 0;
  }
  static void free(void* data) { cudaFreeHost(data); }
};

template <class T>
using DeviceArray = CudaArray<T, DeviceMemory>;
template <class T>
using PinnedArray = CudaArray<T, PinnedMemory>;

/// Copies values to the device and waits until they are there: a non-blocking stream would not.
template <class T>
DeviceArray<T> to_device(const std::vector<T>& values) {
  DeviceArray<T> array(values.size());
  check(cudaMemcpy(array.data(), values.data(), array.bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return array;
}

/// Waits for all work at the end of its scope. Declared last it goes first, so that nothing is freed in use.
struct WaitForDevice {
  WaitForDevice() = default;
  ~WaitForDevice() { cudaDeviceSynchronize(); }
  WaitForDevice(const WaitForDevice&) = delete;
  WaitForDevice& operator=(const WaitForDevice&) = delete;
};

}  // namespace example
