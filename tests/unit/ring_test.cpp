#include <steptimer/detail/ring.hpp>

#include <cstddef>
#include <deque>
#include <random>
#include <utility>

#include "support/catch.hpp"

using steptimer::detail::Ring;

TEST_CASE("a ring behaves as a deque through any sequence of pushes and pops") {
  std::mt19937 random(3);
  Ring<int> ring;
  std::deque<int> expected;
  for (int i = 0; i < 20000; ++i) {
    const auto choice = random() % 10;
    if (choice < 5 || expected.empty()) {
      int* const slot = ring.push_back();
      REQUIRE(slot != nullptr);
      *slot = i;
      expected.push_back(i);
    } else if (choice < 8) {
      ring.pop_front();
      expected.pop_front();
    } else if (choice < 9) {
      ring.pop_back();
      expected.pop_back();
    } else if (random() % 50 == 0) {
      ring.clear();
      expected.clear();
    }
    REQUIRE(ring.size() == expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) REQUIRE(ring[k] == expected[k]);
    if (!expected.empty()) {
      REQUIRE(ring.front() == expected.front());
      REQUIRE(ring.back() == expected.back());
    }
  }
}

TEST_CASE("a moved-from ring is empty and usable") {
  Ring<int> ring;
  *ring.push_back() = 1;
  Ring<int> other(std::move(ring));
  CHECK(other.size() == 1);
  CHECK(ring.empty());  // NOLINT(bugprone-use-after-move): that is the test
  *ring.push_back() = 2;
  ring = std::move(other);
  CHECK(ring.size() == 1);
  CHECK(ring.front() == 1);
}
