#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "run_program.hpp"

namespace example {

/// Throws a std::runtime_error that names the call, unless the call succeeded.
inline void check(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  throw std::runtime_error(std::string(call) + " failed: " + ncclGetErrorString(result) +
                           "; run it with NCCL_DEBUG=INFO to see where it comes from");
}

/// The name of a new job, by which its ranks find each other.
inline ncclUniqueId new_id() {
  ncclUniqueId id{};
  check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
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
    throw UserError("--id needs the " + std::to_string(2 * sizeof id.internal) + " digits that rank 0 hands on");
  for (std::size_t i = 0; i < sizeof id.internal; ++i)
    id.internal[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return id;
}

/// One rank of a job of GPUs, on the device that is current. All of its calls are collective: every rank makes the same
/// ones in the same order.
class NcclRank {
 public:
  /// Waits until all ranks are there.
  NcclRank(const ncclUniqueId& id, std::uint32_t rank, std::uint32_t ranks)
      : rank_(rank), ranks_(ranks), exceptions_before_(std::uncaught_exceptions()) {
    check(ncclCommInitRank(&comm_, static_cast<int>(ranks), id, static_cast<int>(rank)), "ncclCommInitRank");
  }
  /// Where this rank fails it does not wait for the others, which wait for it.
  ~NcclRank() {
    if (std::uncaught_exceptions() > exceptions_before_)
      ncclCommAbort(comm_);
    else
      ncclCommDestroy(comm_);
  }
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

  /// Queues what brings everybody's bytes to all ranks, rank by rank; both places are on the device, and all ranks have
  /// equally many.
  void gather(const unsigned char* own, unsigned char* all, std::size_t bytes, cudaStream_t stream) const {
    check(ncclAllGather(own, all, bytes, ncclUint8, comm_, stream), "ncclAllGather");
  }

 private:
  ncclComm_t comm_ = nullptr;
  std::uint32_t rank_, ranks_;
  int exceptions_before_;
};

}  // namespace example
