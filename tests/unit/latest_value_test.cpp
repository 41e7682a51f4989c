// What examples/prometheus_exporter.cpp hands records over by.

#include "../../examples/common/latest_value.hpp"

#include <cstdint>
#include <thread>

#include "support/catch.hpp"

namespace {

/// Halves that belong together.
struct Pair {
  std::uint64_t one = 0;
  std::uint64_t same = 0;
};

}  // namespace

TEST_CASE("the latest value is read, as often as it is asked for") {
  example::LatestValue<int> latest;
  CHECK(latest.read() == 0);
  latest.publish(1);
  latest.publish(2);
  CHECK(latest.read() == 2);
  CHECK(latest.read() == 2);
  latest.publish(3);
  CHECK(latest.read() == 3);
}

TEST_CASE("a value is never seen half written, and never an older one after a newer") {
  constexpr std::uint64_t last = 200000;
  example::LatestValue<Pair> latest;
  std::thread writer([&latest] {
    for (std::uint64_t i = 1; i <= last; ++i) latest.publish({i, i});
  });
  std::uint64_t before = 0;
  bool whole = true;
  bool in_order = true;
  while (before < last) {
    const Pair& pair = latest.read();
    whole = whole && pair.one == pair.same;
    in_order = in_order && pair.one >= before;
    before = pair.one;
  }
  writer.join();
  CHECK(whole);
  CHECK(in_order);
}
