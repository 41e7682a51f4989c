// One program out of files that each include everything: objects pass between them, and a warning is given once.

#include <cstdio>
#include <fstream>
#include <string>

#include "shared.hpp"

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not true: %s\n", what);
  ++failures;
}

int warnings_in(const std::string& file) {
  std::ifstream lines(file);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("on_batch_end() came without an open step") != std::string::npos) ++count;
  }
  return count;
}

}  // namespace

int main(int, char** argv) {
  expect(a::use_everything() > 0 && b::use_everything() > 0, "both files run everything");
  expect(a::address_of_told() == b::address_of_told(), "a and b share what was told");
  expect(b::finish_timer(a::make_timer(steptimer::ManualBackend{})) == 7, "b finishes what a has begun");

  const std::string said = std::string(argv[0]) + ".stderr";
  if (std::freopen(said.c_str(), "w", stderr) == nullptr) return 2;
  a::end_without_start();
  b::end_without_start();
#ifdef STEPTIMER_TEST_CU
  expect(c::use_everything() > 0, "the .cu runs everything");
  expect(a::address_of_told() == c::address_of_told(), "a and c share what was told");
  expect(c::finish_timer(a::make_timer(steptimer::ManualBackend{})) == 7, "c finishes what a has begun");
  c::end_without_start();
#endif
  std::fflush(stderr);
  expect(warnings_in(said) == 1, "one warning for the whole program");
  return failures == 0 ? 0 : 1;
}
