#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <steptimer/job_summary.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/step_record.hpp>
#include <steptimer/step_summary.hpp>
#include <type_traits>
#include <vector>

#include "cuda_check.hpp"
#include "cuda_resources.hpp"
#include "job_report.hpp"
#include "nccl_rank.cuh"

namespace example {

/// Brings everybody's values to all ranks, as bytes and on the device's own time. All of its memory is there before the
/// training begins: to allocate later could wait for a device that itself waits for this rank.
template <class Value>
class NcclGather {
  static_assert(std::is_trivially_copyable<Value>::value, "values are sent as bytes");

 public:
  /// For `size` values of each rank.
  NcclGather(const NcclRank& rank, std::size_t size)
      : rank_(rank),
        size_(size),
        host_own_(bytes()),
        own_(bytes()),
        all_(bytes() * rank.size()),
        host_all_(bytes() * rank.size()) {}

  /// Queues it for the values that are here now. Waits for the gathering before, where that is still under way.
  void start(const Value* own, cudaStream_t stream) {
    done_.wait();
    std::memcpy(host_own_.data(), own, bytes());
    copy(own_.data(), host_own_.data(), bytes(), cudaMemcpyHostToDevice, stream);
    rank_.gather(own_.data(), all_.data(), bytes(), stream);
    copy(host_all_.data(), all_.data(), bytes() * rank_.size(), cudaMemcpyDeviceToHost, stream);
    done_.record(stream);
  }

  bool is_done() const { return done_.is_over(); }
  void wait() const { done_.wait(); }

  /// Copies a rank's values. Only to be asked for when it is done.
  void read(std::uint32_t rank, Value* values) const {
    std::memcpy(values, host_all_.data() + rank * bytes(), bytes());
  }

 private:
  std::size_t bytes() const { return size_ * sizeof(Value); }
  static void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync");
  }

  const NcclRank& rank_;
  std::size_t size_;
  PinnedArray<unsigned char> host_own_;
  DeviceArray<unsigned char> own_, all_;
  PinnedArray<unsigned char> host_all_;
  Event done_;
};

/// The steps of a job over NCCL: those of each rank, and at any time those of all together. Where the ranks have MPI, too,
/// steptimer::MpiJob does the same.
class NcclJob {
 public:
  /// Keeps the last `steps` steps for the end, and the last `window` for the reports before it. What is gathered is queued
  /// on the stream.
  NcclJob(const NcclRank& rank, const Stream& stream, std::size_t steps, std::size_t window)
      : rank_(rank),
        stream_(stream),
        steps_(rank.size(), steps),
        recent_(rank.size(), window),
        all_steps_(rank, steps),
        report_(rank, window),
        totals_(rank, 1) {}

  /// Keeps a record; for on_record.
  void operator()(const steptimer::StepRecord& record) {
    steps_.add(rank_.rank(), record);
    recent_.add(rank_.rank(), record);
  }

  /// Queues a report of the last steps. Waits for no rank, unless the report before has not run yet.
  void start_report() {
    report_.start(recent_.data(), stream_);
    is_awaited_ = true;
  }

  /// The last report, once, when it is there.
  std::optional<steptimer::JobSteps> poll_report() {
    if (!is_awaited_ || !report_.is_done()) return std::nullopt;
    is_awaited_ = false;
    return put_together(report_, recent_.size());
  }

  /// What all ranks have at the end, on all of them. Waits for the other ranks.
  JobTotals totals(const steptimer::StepSummary& timing, const steptimer::StepDistribution& distribution,
                   std::uint64_t weights) {
    Totals own;
    own.timing = timing;
    own.weights = weights;
    std::memcpy(own.distribution, &distribution, sizeof own.distribution);
    totals_.start(&own, stream_);
    all_steps_.start(steps_.data(), stream_);
    stream_.wait();

    JobTotals all{true, {}, {}, {}, put_together(all_steps_, steps_.size())};
    for (std::uint32_t rank = 0; rank < rank_.size(); ++rank) {
      Totals other;
      totals_.read(rank, &other);
      steptimer::StepDistribution spread;
      std::memcpy(static_cast<void*>(&spread), other.distribution, sizeof other.distribution);
      all.has_one_network = all.has_one_network && other.weights == weights;
      all.ranks.push_back(other.timing);
      all.timing = merge(all.timing, other.timing);
      all.distribution = merge(all.distribution, spread);
    }
    return all;
  }

 private:
  /// What a rank sends at its end.
  struct Totals {
    steptimer::StepSummary timing;
    std::uint64_t weights = 0;
    unsigned char distribution[sizeof(steptimer::StepDistribution)];  // which is not to be copied as such
  };

  steptimer::JobSteps put_together(const NcclGather<steptimer::JobStep>& gathered, std::size_t window) const {
    steptimer::JobSteps all(rank_.size(), window);
    steptimer::JobSteps one = all;
    for (std::uint32_t rank = 0; rank < rank_.size(); ++rank) {
      gathered.read(rank, one.data());
      all.add(one);
    }
    return all;
  }

  const NcclRank& rank_;
  const Stream& stream_;
  steptimer::JobSteps steps_, recent_;  // this rank's own
  NcclGather<steptimer::JobStep> all_steps_, report_;
  NcclGather<Totals> totals_;
  bool is_awaited_ = false;
};

}  // namespace example
