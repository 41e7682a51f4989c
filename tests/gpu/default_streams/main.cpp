// One program with a unit that has the legacy default stream and one that has a default stream for each thread: each
// timer measures the stream that its own unit means.
//
// Exit code 0: they do, 1: they do not, 77: no device.

#include <cstdio>
#include <string>

#include "../../support/device_work.hpp"
#include "measured.hpp"

namespace {

bool as_expected(const char* what, const Measured& seen) {
  const bool good = seen.steps == 5 && seen.failed == 0 && seen.shortest >= std::chrono::milliseconds{2};
  if (!good)
    std::printf("%s: %llu steps measured, %llu failed, the shortest took %lld ns\n", what,
                static_cast<unsigned long long>(seen.steps), static_cast<unsigned long long>(seen.failed),
                static_cast<long long>(seen.shortest.count()));
  return good;
}

}  // namespace

int main() {
  const std::string reason = device_work::skip_reason();
  if (!reason.empty() || !device_work::begin()) {
    std::printf("SKIPPED: %s\n", reason.c_str());
    return 77;
  }
  int result = 0;
  for (int round = 0; round < 2; ++round) {  // in turns: neither unit's functions stand in for the other's
    if (!as_expected("legacy", measure_on_legacy_stream())) result = 1;
    if (!as_expected("per thread", measure_on_per_thread_stream())) result = 1;
  }
  return result;
}
