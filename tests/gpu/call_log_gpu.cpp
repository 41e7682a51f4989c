// The runtime calls that the hooks make on a real device, as CUPTI sees them: those that the tests on the fake runtime
// expect, and none that waits for the device.
//
// Exit code 0: as expected, 1: not, 77: it cannot be seen here, with the reason.

#include <cuda_runtime_api.h>
#include <cupti.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include <steptimer/cuda_backend.hpp>

#include "../support/device_work.hpp"
#include "../support/hook_calls.hpp"

using namespace std::chrono_literals;
using hook_calls::Names;
using steptimer::CudaTimer;
using namespace hook_calls;

namespace {

constexpr int passed = 0;
constexpr int failed = 1;
constexpr int skipped = 77;

int outcome = passed;

bool recording = false;
Names runtime_calls;
Names driver_calls;

/// "cudaEventRecord" of "cudaEventRecord_ptsz_v7000" and the like.
std::string plain_name(std::string_view name) {
  const std::size_t version = name.rfind("_v");
  if (version != std::string_view::npos && name.find_first_not_of("0123456789", version + 2) == std::string_view::npos)
    name = name.substr(0, version);
  constexpr std::string_view per_thread = "_ptsz";
  if (name.size() > per_thread.size() && name.substr(name.size() - per_thread.size()) == per_thread)
    name.remove_suffix(per_thread.size());
  return std::string(name);
}

void CUPTIAPI on_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
  const auto* const info = static_cast<const CUpti_CallbackData*>(data);
  if (!recording || info->callbackSite != CUPTI_API_ENTER) return;
  (domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtime_calls : driver_calls).push_back(plain_name(info->functionName));
}

template <class F>
Names calls_of(F&& f) {
  runtime_calls.clear();
  driver_calls.clear();
  recording = true;
  f();
  recording = false;
  for (const Names* const calls : {&runtime_calls, &driver_calls}) {
    for (const std::string& name : *calls) {
      if (name.find("Synchronize") == std::string::npos && name.find("Wait") == std::string::npos) continue;
      outcome = failed;
      std::printf("%s can wait for the device\n", name.c_str());
    }
  }
  return without_probes(runtime_calls);
}

void print(const char* what, const Names& names) {
  std::printf("  %s:", what);
  for (const std::string& name : names) std::printf(" %s", name.c_str());
  std::printf("\n");
}

void expect(const char* what, const Names& seen, const Names& expected) {
  if (seen == expected) return;
  outcome = failed;
  std::printf("%s makes other calls\n", what);
  print("expected", expected);
  print("seen", seen);
}

void look_at_hooks() {
  const device_work::Stream stream;
  CudaTimer timer{stream.get()};
  for (int i = 0; i < 50; ++i) {  // calls_of() looks for waiting calls, while the hooks warm up too
    calls_of([&] { timer.on_batch_start(); });
    device_work::work(stream, 100us);
    calls_of([&] { timer.on_batch_end(); });
    if (i < 25) device_work::wait_for(stream);  // then the device is behind, at times
  }
  device_work::wait_for(stream);
  timer.poll();

  for (int i = 0; i < 20; ++i) {
    expect("on_batch_start()", calls_of([&] { timer.on_batch_start(); }), on_batch_start());
    device_work::work(stream, 100us);
    const Names end = calls_of([&] { timer.on_batch_end(); });
    // The first of these measures the step that poll() has left, since its gap was open.
    expect("on_batch_end() with a device that keeps up", end, on_batch_end());
    device_work::wait_for(stream);
  }
  {
    device_work::Gate gate(stream);
    timer.on_batch_start();
    device_work::work(stream, 1us);
    timer.on_batch_end();
    for (int i = 0; i < 8; ++i) {
      expect("on_batch_start()", calls_of([&] { timer.on_batch_start(); }), on_batch_start());
      device_work::work(stream, 1us);
      expect("on_batch_end() with a device that is behind", calls_of([&] { timer.on_batch_end(); }),
             on_batch_end_behind());
    }
    expect("poll() with a device that is behind", calls_of([&] { timer.poll(); }), reading(0, true));
    gate.open();
    device_work::wait_for(stream);
  }
  // The step before the gate waits for the first start behind it; the gap of the last step is open.
  expect("poll()", calls_of([&] { timer.poll(); }), reading(9, false));
  expect("an idle poll()", calls_of([&] { timer.poll(); }), {});
  expect("results", calls_of([&] {
           timer.last();
           timer.window();
           timer.total();
           timer.counts();
           timer.status();
           timer.pause();
         }),
         {});
  calls_of([&] {
    timer.finish();
    timer.reset();
    timer.release();
  });
}

bool must(CUptiResult result, const char* what) {
  if (result == CUPTI_SUCCESS) return true;
  const char* text = "";
  cuptiGetResultString(result, &text);
  std::printf("SKIPPED: %s: %s\n", what, text);
  return false;
}

}  // namespace

int main() {
  const std::string reason = device_work::skip_reason();
  if (!reason.empty() || !device_work::begin()) {
    std::printf("SKIPPED: %s\n", reason.c_str());
    return skipped;
  }
  CUpti_SubscriberHandle subscriber{};
  if (!must(cuptiSubscribe(&subscriber, on_call, nullptr), "cuptiSubscribe") ||
      !must(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API), "cuptiEnableDomain") ||
      !must(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API), "cuptiEnableDomain"))
    return skipped;
  if (calls_of([] { cudaPeekAtLastError(); }) != Names{"cudaPeekAtLastError"}) {
    std::printf("SKIPPED: CUPTI does not report calls here\n");
    return skipped;
  }
  look_at_hooks();
  cuptiUnsubscribe(subscriber);
  return outcome;
}
