#include <steptimer/detail/warnings.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

using steptimer::BackendError;
using steptimer::detail::Trouble;
using steptimer::detail::Warnings;

namespace {

/// What `f` writes to stderr.
template <class F>
std::string stderr_of(F&& f) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stderr);
  const int terminal = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  f();
  std::fflush(stderr);
  dup2(terminal, STDERR_FILENO);
  close(terminal);
  std::rewind(file);
  char text[1000];
  const std::size_t length = std::fread(text, 1, sizeof text, file);
  std::fclose(file);
  return std::string(text, length);
}

}  // namespace

TEST_CASE("a warning is one line that names the call, what it means, and the code") {
  std::vector<std::string> lines;
  Warnings warnings([&](std::string_view line) { lines.emplace_back(line); });
  warnings.tell(Trouble::timeline_lost,
                BackendError{700, "cudaEventQuery", "an illegal memory access was encountered"});
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] ==
        "steptimer: the device cannot be asked for times; the timer has turned itself off, your "
        "program goes on "
        "(cudaEventQuery: an illegal memory access was encountered, code 700)");
}

TEST_CASE("a very long reason is cut, not overrun") {
  const std::string reason(5000, 'x');
  std::vector<std::string> lines;
  Warnings warnings([&](std::string_view line) { lines.emplace_back(line); });
  warnings.tell(Trouble::mark_refused, BackendError{1, "call", reason.c_str()});
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].size() < 400);
}

TEST_CASE("without a sink of its own, kinds already told on stderr are not told again by another timer", "[case-53]") {
  const unsigned all = ~0u;
  const unsigned before = steptimer::detail::told_on_stderr.exchange(all);
  Warnings warnings(nullptr);
  warnings.tell(Trouble::end_without_start);  // would print otherwise
  CHECK(steptimer::detail::told_on_stderr.load() == all);
  steptimer::detail::told_on_stderr.store(before);
}

TEST_CASE("of many timers without a sink one tells stderr, in one line") {
  const unsigned before = steptimer::detail::told_on_stderr.exchange(0);
  const std::string text = stderr_of([] {
    for (int i = 0; i < 3; ++i) Warnings(nullptr).tell(Trouble::end_without_start);
  });
  CHECK(text == "steptimer: on_batch_end() came without an open step and is ignored\n");
  steptimer::detail::told_on_stderr.store(before);
}
