#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda_check.hpp"
#include "cuda_resources.hpp"
#include "run_program.hpp"

namespace example {

/// Throws a std::runtime_error that names the call, unless the call succeeded.
inline void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw std::runtime_error(std::string(call) + " failed: " + ncclGetErrorString(result) +
                           "; run it with NCCL_DEBUG=INFO to see where it comes from");
}

/// A job's id as text, to be handed to another process.
inline std::string to_text(const ncclUniqueId& id) {
  std::string text;
  for (const char byte : id.internal) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

inline ncclUniqueId to_id(const std::string& text) {
  ncclUniqueId id{};
  if (text.size() != 2 * sizeof id.internal || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw UserError("--id needs the " + std::to_string(2 * sizeof id.internal) + " digits that rank 0 has printed");
  for (std::size_t i = 0; i < sizeof id.internal; ++i)
    id.internal[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return id;
}

/// One rank of a job of GPUs, on the device that is current. All of its calls are collective: every rank makes the same
/// ones in the same order.
class NcclRank {
 public:
  /// Waits until all ranks are there.
  NcclRank(const ncclUniqueId& id, std::uint32_t rank, std::uint32_t ranks) : rank_(rank), ranks_(ranks) {
    check(ncclCommInitRank(&comm_, static_cast<int>(ranks), id, static_cast<int>(rank)), "ncclCommInitRank");
  }
  ~NcclRank() { ncclCommDestroy(comm_); }
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return ranks_; }
  /// The one that speaks for all.
  bool is_first() const { return rank_ == 0; }

  /// Queues what puts the mean over the ranks in the place of each number on the device; the same bits on all of them.
  void average(float* numbers, std::size_t size, cudaStream_t stream) const {
    check(ncclAllReduce(numbers, numbers, size, ncclFloat, ncclAvg, comm_, stream), "ncclAllReduce");
  }

  /// Everybody's values, rank by rank, on all of them; all have equally many. Values are sent as bytes. Waits.
  template <class Value>
  std::vector<Value> gather(const Value* own, std::size_t size) const {
    const Stream stream;
    const std::size_t bytes = size * sizeof(Value);
    std::vector<Value> all(size * ranks_, *own);
    const DeviceArray<unsigned char> from(bytes);
    const DeviceArray<unsigned char> to(bytes * ranks_);
    check(cudaMemcpy(from.data(), own, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(ncclAllGather(from.data(), to.data(), bytes, ncclChar, comm_, stream), "ncclAllGather");
    stream.wait();
    check(cudaMemcpy(all.data(), to.data(), bytes * ranks_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return all;
  }
  template <class Value>
  std::vector<Value> gather(const Value& own) const {
    return gather(&own, 1);
  }

  /// Whether all ranks have the same number here.
  bool agree_on(std::uint64_t number) const {
    for (const std::uint64_t other : gather(number))
      if (other != number) return false;
    return true;
  }

 private:
  ncclComm_t comm_ = nullptr;
  std::uint32_t rank_, ranks_;
};

}  // namespace example
