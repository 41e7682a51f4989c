// A program of rows, each of which costs its process: one row a call, and `list` for their names. steptimer_discover_rows()
// makes a test of each.
#pragma once

#include <cstdio>
#include <string_view>

namespace isolated_rows {

constexpr int passed = 0;
constexpr int failed = 1;
constexpr int skipped = 77;

/// What has come of the row so far.
inline int outcome = passed;

inline void expect(const char* what, bool holds) {
  if (holds) return;
  outcome = failed;
  std::printf("not so: %s\n", what);
  std::fflush(stdout);
}

/// Does what the one argument of the program asks for: run(row) for the row of that name. Returns the exit code.
template <class Rows, class Run>
int main_of(const char* program, const Rows& rows, int argc, char** argv, Run&& run) {
  const std::string_view wanted = argc == 2 ? argv[1] : "";
  if (wanted == "list") {
    for (const auto& row : rows) std::printf("%s\n", row.name);
    return passed;
  }
  for (const auto& row : rows) {
    if (wanted == row.name) return run(row);
  }
  std::fprintf(stderr, "usage: %s <row> | list\n", program);
  return 2;
}

}  // namespace isolated_rows
