// The runtime calls that the hooks of a CudaTimer on a stream of its own make once warm: few, in this order, and none
// that can wait for the device.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hook_calls {

using Names = std::vector<std::string>;

inline Names operator+(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// One mark: is an error of the caller's pending, does the stream capture, record.
inline Names mark() { return {"cudaPeekAtLastError", "cudaStreamIsCapturing", "cudaEventRecord"}; }

/// One reading, which measures some steps and then, where another one waits, finds it not ready.
inline Names reading(std::size_t measured, bool then_not_ready) {
  Names names{"cudaPeekAtLastError", "cudaThreadExchangeStreamCaptureMode"};
  for (std::size_t i = 0; i < measured; ++i)
    names = names + Names{"cudaEventQuery", "cudaEventElapsedTime", "cudaEventElapsedTime"};
  if (then_not_ready) names.emplace_back("cudaEventQuery");
  names.emplace_back("cudaThreadExchangeStreamCaptureMode");
  return names;
}

inline Names on_batch_start() { return mark(); }
/// The device keeps up: the step before this one is measured.
inline Names on_batch_end() { return mark() + reading(1, false); }
/// The device is behind: nothing is ready.
inline Names on_batch_end_behind() { return mark() + reading(0, true); }

// Where the last call was a while ago (on a real device: more than 200 us), a timer first probes whether the device is
// still there: it asks a finished event for its time to itself.
inline constexpr const char* probe = "cudaEventElapsedTime";

/// These calls with that probe.
inline Names after_a_while(Names names) {
  if (!names.empty()) names.insert(names.begin() + 1, probe);
  return names;
}

/// These calls without any probe, for comparing where time is not under control.
inline Names without_probes(const Names& names) {
  Names rest;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (i == 0 || names[i] != probe || names[i - 1] != "cudaPeekAtLastError") rest.push_back(names[i]);
  return rest;
}

}  // namespace hook_calls
