#include "device_activity.hpp"

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <utility>

namespace bench {
namespace {

constexpr std::size_t buffer_size = std::size_t{4} << 20;
constexpr std::size_t buffers_at_first = 4;
constexpr std::size_t marks_at_first = 100000;

/// Needed by the callbacks that CUPTI gives no pointer of ours.
DeviceActivity* the_one = nullptr;

void check(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return;
  const char* reason = "unknown";
  cuptiGetResultString(result, &reason);
  throw std::runtime_error(std::string(call) + " failed: " + reason +
                           "; run it without another profiler, and where the driver lets users profile");
}

nanoseconds time_of(std::uint64_t timestamp) { return nanoseconds{static_cast<std::int64_t>(timestamp)}; }

template <class Record>
Activity activity_of(const CUpti_Activity* record, bool is_kernel) {
  const auto& of_kind = *reinterpret_cast<const Record*>(record);
  return {time_of(of_kind.start), time_of(of_kind.end), of_kind.correlationId, of_kind.streamId, is_kernel};
}

void read(std::uint8_t* buffer, std::size_t size, std::vector<Activity>& activities) {
  CUpti_Activity* record = nullptr;
  CUptiResult result = CUPTI_SUCCESS;
  while ((result = cuptiActivityGetNextRecord(buffer, size, &record)) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL)
      activities.push_back(activity_of<CUpti_ActivityKernel10>(record, true));
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
      activities.push_back(activity_of<CUpti_ActivityMemcpy6>(record, false));
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
      activities.push_back(activity_of<CUpti_ActivityMemset4>(record, false));
  }
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) check(result, "cuptiActivityGetNextRecord");
}

}  // namespace

DeviceActivity& DeviceActivity::start() {
  static DeviceActivity* const one = new DeviceActivity;  // never deleted, see above
  return *one;
}

DeviceActivity::DeviceActivity() {
  for (std::size_t i = 0; i < buffers_at_first; ++i) free_.push_back(std::make_unique<std::uint8_t[]>(buffer_size));
  marks_.reserve(marks_at_first);
  the_one = this;  // from the first activity on
  CUpti_SubscriberHandle subscriber{};
  check(cuptiSubscribe(&subscriber, see_call, this), "cuptiSubscribe");
  for (const CUpti_CallbackId id :
       {CUPTI_RUNTIME_TRACE_CBID_cudaEventCreateWithFlags_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020,
        CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_ptsz_v7000})
    check(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, id), "cuptiEnableCallback");
  check(cuptiActivityRegisterCallbacks(give_buffer, keep_buffer), "cuptiActivityRegisterCallbacks");
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET})
    check(cuptiActivityEnable(kind), "cuptiActivityEnable");
}

DeviceTrace DeviceActivity::take() {
  check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "cuptiActivityFlushAll");
  DeviceTrace trace;
  check(cuptiActivityGetNumDroppedRecords(nullptr, 0, &trace.dropped), "cuptiActivityGetNumDroppedRecords");
  {
    const std::lock_guard<std::mutex> lock(calls_mutex_);
    trace.marks.swap(marks_);
    marks_.reserve(trace.marks.capacity());
  }
  std::vector<FullBuffer> full;
  {
    const std::lock_guard<std::mutex> lock(buffers_mutex_);
    full.swap(full_);
  }
  for (const FullBuffer& buffer : full) {
    if (buffer.size > 0) read(buffer.memory.get(), buffer.size, trace.activities);
  }
  const std::lock_guard<std::mutex> lock(buffers_mutex_);
  for (FullBuffer& buffer : full) free_.push_back(std::move(buffer.memory));
  return trace;
}

void CUPTIAPI DeviceActivity::give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = the_one->free_buffer().release();
  *size = buffer_size;
  *most_records = 0;  // as many as fit
}

DeviceActivity::Buffer DeviceActivity::free_buffer() {
  {
    const std::lock_guard<std::mutex> lock(buffers_mutex_);
    if (!free_.empty()) {
      Buffer buffer = std::move(free_.back());
      free_.pop_back();
      return buffer;
    }
  }
  return Buffer(new std::uint8_t[buffer_size]);
}

void CUPTIAPI DeviceActivity::keep_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                          std::size_t valid) {
  const std::lock_guard<std::mutex> lock(the_one->buffers_mutex_);
  the_one->full_.push_back({Buffer(buffer), valid});
}

void CUPTIAPI DeviceActivity::see_call(void* self, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
  auto& activity = *static_cast<DeviceActivity*>(self);
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  const bool makes_event = id == CUPTI_RUNTIME_TRACE_CBID_cudaEventCreateWithFlags_v3020;
  if (makes_event && call.callbackSite == CUPTI_API_EXIT) {
    const auto& made = *static_cast<const cudaEventCreateWithFlags_v3020_params*>(call.functionParams);
    const bool failed = *static_cast<const cudaError_t*>(call.functionReturnValue) != cudaSuccess;
    if (!failed) activity.see_new_event(*made.event, made.flags);
  } else if (!makes_event && call.callbackSite == CUPTI_API_ENTER) {
    // The parameters of cudaEventRecord are the same with a default stream a thread.
    const auto& recorded = *static_cast<const cudaEventRecord_v3020_params*>(call.functionParams);
    activity.see_mark(recorded.event, call.correlationId);
  }
}

void DeviceActivity::see_new_event(cudaEvent_t event, unsigned flags) {
  const std::lock_guard<std::mutex> lock(calls_mutex_);
  if (flags == cudaEventDefault)
    timed_events_.insert(event);
  else
    timed_events_.erase(event);  // a handle of an event that is gone may come again
}

void DeviceActivity::see_mark(cudaEvent_t event, std::uint32_t call) {
  std::uint64_t now = 0;
  cuptiGetTimestamp(&now);
  const std::lock_guard<std::mutex> lock(calls_mutex_);
  if (timed_events_.count(event) != 0) marks_.push_back({call, time_of(now)});
}

}  // namespace bench
