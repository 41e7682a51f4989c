#include <steptimer/detail/warnings.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"

using steptimer::BackendError;
using steptimer::detail::Trouble;
using steptimer::detail::Warnings;

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
