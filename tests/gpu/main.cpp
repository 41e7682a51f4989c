// The tests that need a device. Without one they are skipped, with the reason.

#include <cstdio>
#include <string>

#include "device_work.hpp"
#include "run_catch.hpp"

int main(int argc, char** argv) {
  const std::string reason = device_work::skip_reason();
  if (!reason.empty()) {
    std::printf("SKIPPED: %s\n", reason.c_str());
    return 77;
  }
  const int result = run_catch(argc, argv);
  device_work::end();
  return result;
}
