// What a failed check leaves to read: the check, where the sequence came from, and its operations so far. Then the
// program aborts, which is what libFuzzer and CTest both take for a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace fuzz {

struct Operation {
  const char* name;
  long long argument;
  int depth;  // 1: called from on_record
};

struct Report {
  char origin[200] = "";  // how to run this sequence again
  const std::uint8_t* bytes = nullptr;
  std::size_t size = 0;
  std::vector<Operation> operations;
  int depth = 0;

  void begin(const std::uint8_t* data, std::size_t length) {
    bytes = data;
    size = length;
    operations.clear();
    depth = 0;
  }
};

inline Report& report() {
  static Report the_report;
  return the_report;
}

inline void note(const char* name, long long argument = 0) {
  report().operations.push_back({name, argument, report().depth});
}

[[noreturn]] inline void fail(const char* check) {
  const Report& r = report();
  std::fprintf(stderr, "\ncheck failed: %s\n%s\nbytes:", check, r.origin);
  for (std::size_t i = 0; i < r.size; ++i) std::fprintf(stderr, " %02x", static_cast<unsigned>(r.bytes[i]));
  std::fprintf(stderr, "\noperations, the last one is the one that failed:\n");
  for (const Operation& operation : r.operations)
    std::fprintf(stderr, "  %s%s %lld\n", operation.depth > 0 ? "  in on_record: " : "", operation.name,
                 operation.argument);
  std::abort();
}

inline void must(bool holds, const char* check) {
  if (!holds) fail(check);
}

}  // namespace fuzz
