// libFuzzer's entry point, and that of main.cpp: see sequence.hpp and scripted_target.hpp.
#include "scripted_target.hpp"
#include "sequence.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::run_bytes<fuzz::ScriptedTarget>(data, size);
}
