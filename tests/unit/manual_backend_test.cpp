#include <steptimer/manual_backend.hpp>

#include <chrono>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::ManualBackend;
using steptimer::MarkStatus;

namespace {
ManualBackend::Mark mark(ManualBackend& device) {
  ManualBackend::Mark result{};
  CHECK(device.record(result, device.host_now()) == MarkStatus::ok);
  return result;
}
}  // namespace

TEST_CASE("a mark behind queued work is reached when that work is done") {
  ManualBackend device;
  const auto start = mark(device);
  device.launch(10ms);
  const auto end = mark(device);
  CHECK(device.query(start) == MarkStatus::ok);
  device.advance(10ms - 1ns);
  CHECK(device.query(end) == MarkStatus::not_ready);
  device.advance(1ns);
  CHECK(device.query(end) == MarkStatus::ok);
  nanoseconds between{};
  CHECK(device.elapsed(start, end, between) == MarkStatus::ok);
  CHECK(between == nanoseconds(10ms));
}

TEST_CASE("an idle device starts work when the host queues it") {
  ManualBackend device;
  device.launch(1ms);
  device.advance(5ms);
  const auto start = mark(device);
  device.launch(2ms);
  const auto end = mark(device);
  CHECK(start.time_since_epoch() == nanoseconds(5ms));
  CHECK(end.time_since_epoch() == nanoseconds(7ms));
}

TEST_CASE("synchronize brings the host to the end of the queue, and never back") {
  ManualBackend device;
  device.launch(3ms);
  device.synchronize();
  CHECK(device.host_now().time_since_epoch() == nanoseconds(3ms));
  device.advance(1ms);
  device.synchronize();
  CHECK(device.host_now().time_since_epoch() == nanoseconds(4ms));
}

TEST_CASE("copies share one timeline") {
  ManualBackend device;
  const ManualBackend copy = device;
  device.advance(1ms);
  CHECK(copy.host_now().time_since_epoch() == nanoseconds(1ms));
}

TEST_CASE("time neither goes back nor overflows") {
  ManualBackend device;
  device.advance(-1ms);
  device.launch(-1ms);
  CHECK(device.host_now().time_since_epoch() == 0ns);
  device.advance((nanoseconds::max)());
  device.advance((nanoseconds::max)());
  device.launch((nanoseconds::max)());
  CHECK(device.host_now().time_since_epoch() == (nanoseconds::max)());
}
