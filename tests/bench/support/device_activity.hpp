// The witness: what the device did, as CUPTI records it, and the calls by which a timer's marks were recorded.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "device_truth.hpp"

namespace bench {

/// Records kernels, copies and memsets of the whole process from its construction on. A process has one, for good:
/// CUPTI knows a single subscriber, and may hand over a buffer as late as the end of the process.
///
/// A timer's marks are told from other events by how these were made: with flags 0, so that they keep the time. All
/// other events of the program must be made with cudaEventDisableTiming.
///
/// While it runs it only keeps buffers and call numbers; records are read in take().
class DeviceActivity {
 public:
  /// Errors: std::runtime_error where CUPTI cannot be used, with its reason.
  static DeviceActivity& start();

  DeviceActivity(const DeviceActivity&) = delete;
  DeviceActivity& operator=(const DeviceActivity&) = delete;

  /// What has been recorded since the last call. To be called when the device has finished all that was queued.
  DeviceTrace take();

 private:
  using Buffer = std::unique_ptr<std::uint8_t[]>;
  struct FullBuffer {
    Buffer memory;
    std::size_t size;
  };

  DeviceActivity();
  static void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records);
  static void CUPTIAPI keep_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid);
  static void CUPTIAPI see_call(void* self, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data);

  Buffer free_buffer();
  void see_mark(cudaEvent_t event, std::uint32_t call);
  void see_new_event(cudaEvent_t event, unsigned flags);

  std::mutex calls_mutex_;
  std::unordered_set<cudaEvent_t> timed_events_;
  std::vector<Mark> marks_;

  std::mutex buffers_mutex_;
  std::vector<FullBuffer> full_;
  std::vector<Buffer> free_;
};

}  // namespace bench
