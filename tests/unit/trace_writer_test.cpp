#include <steptimer/trace_writer.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "support/catch.hpp"
#include "support/sample_records.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

const std::string head =
    "[\n"
    R"({"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"steptimer"}})"
    "\n"
    R"(,{"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"host"}})"
    "\n"
    R"(,{"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"device"}})"
    "\n"
    R"(,{"name":"thread_name","ph":"M","pid":1,"tid":3,"args":{"name":"phases"}})"
    "\n";

steptimer::StepRecord step(std::uint64_t number, nanoseconds host_start, nanoseconds batch,
                           std::optional<nanoseconds> wait) {
  steptimer::StepRecord record;
  record.step = number;
  record.host_start = host_start;
  record.host_batch_time = 1ms;
  record.batch_time = batch;
  record.data_time = wait;
  if (wait) record.wall_gap = record.host_wall_gap = batch + *wait;
  return record;
}

/// When and how long events of a name are on a track, in us: "ts+dur ts+dur ...".
std::string on_track(const std::string& track, const std::string& trace, const std::string& name) {
  std::istringstream lines(trace);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(R"("ph":"X","pid":1,"tid":)" + track) == std::string::npos) continue;
    if (line.find("\"name\":\"" + name) == std::string::npos) continue;
    const auto number_after = [&line](const std::string& key) {
      const std::size_t begin = line.find(key) + key.size();
      return line.substr(begin, line.find_first_of(",}", begin) - begin);
    };
    found += (found.empty() ? "" : " ") + number_after("\"ts\":") + "+" + number_after("\"dur\":");
  }
  return found;
}

std::string on_device_track(const std::string& trace, const std::string& name) { return on_track("2", trace, name); }

template <class... Records>
std::string trace_of(const Records&... records) {
  std::ostringstream out;
  {
    steptimer::TraceWriter trace(out);
    (trace(records), ...);
  }
  return out.str();
}

}  // namespace

TEST_CASE("a trace without a record names its tracks and is closed") { CHECK(trace_of() == head + "]\n"); }

TEST_CASE("a record is a step on both tracks, its wait, and an arrow") {
  CHECK(trace_of(record_with_gap()) ==
        head + R"(,{"ph":"X","pid":1,"tid":1,"ts":1234567890.123,"name":"step 41","dur":5000.000,)"
               R"("args":{"items":32,"warmup":false}})"
               "\n"
               R"(,{"ph":"X","pid":1,"tid":2,"ts":1234567890.123,"name":"step 41","dur":90000.001,)"
               R"("args":{"items":32,"warmup":false}})"
               "\n"
               R"(,{"ph":"X","pid":1,"tid":2,"ts":1234657890.124,"name":"data wait","dur":9999.999})"
               "\n"
               R"(,{"ph":"s","pid":1,"tid":1,"ts":1234567890.124,"cat":"step","name":"queued to run","id":41})"
               "\n"
               R"(,{"ph":"f","bp":"e","pid":1,"tid":2,"ts":1234567890.124,"cat":"step","name":"queued to run","id":41})"
               "\n"
               "]\n");
}

TEST_CASE("without a wait there is none to be seen") {
  const std::string trace = trace_of(record_without_gap());
  CHECK(trace.find("data wait") == std::string::npos);
  CHECK(trace_of(step(0, 0ms, 10ms, 0ms)).find("data wait") == std::string::npos);
  CHECK(trace.find(R"("warmup":true)") != std::string::npos);
}

TEST_CASE("steps lie on the device track one after the other, however far the host runs ahead") {
  const std::string trace = trace_of(step(0, 0ms, 10ms, 0ms), step(1, 1ms, 10ms, 5ms), step(2, 2ms, 10ms, 0ms));
  CHECK(on_device_track(trace, "step") == "0.000+10000.000 10000.000+10000.000 25000.000+10000.000");
  CHECK(on_device_track(trace, "data wait") == "20000.000+5000.000");
}

TEST_CASE("no step lies on the device track before the host has begun it") {
  const std::string trace = trace_of(step(0, 3ms, 10ms, 2ms), step(1, 16ms, 10ms, 2ms), step(2, 20ms, 10ms, 2ms));
  CHECK(on_device_track(trace, "step") == "3000.000+10000.000 16000.000+10000.000 28000.000+10000.000");
}

TEST_CASE("after a pause the device track begins again at the host's start, or where it had got to") {
  CHECK(on_device_track(trace_of(step(0, 0ms, 10ms, std::nullopt), step(1, 50ms, 10ms, std::nullopt)), "step") ==
        "0.000+10000.000 50000.000+10000.000");
  CHECK(on_device_track(trace_of(step(0, 0ms, 10ms, std::nullopt), step(1, 2ms, 10ms, std::nullopt)), "step") ==
        "0.000+10000.000 10000.000+10000.000");
}

TEST_CASE("named phases follow each other on a track of their own, below their step") {
  steptimer::StepRecord record = step(0, 1ms, 10ms, 2ms);
  record.phase_count = 3;
  record.phases[0] = {"", 1ms};
  record.phases[1] = {"forward", 3ms};
  record.phases[2] = {"back\"ward", 6ms};
  const std::string trace = trace_of(record);
  CHECK(on_track("3", trace, "forward") == "2000.000+3000.000");
  CHECK(on_track("3", trace, "back\\\"ward") == "5000.000+6000.000");
  CHECK(on_track("3", trace, "") == "2000.000+3000.000 5000.000+6000.000");
}

TEST_CASE("an arrow begins and ends within steps too short for a nanosecond in from their start") {
  const std::string trace = trace_of(step(0, 1ms, 1ns, 2ms));
  CHECK(trace.find(R"("ph":"s","pid":1,"tid":1,"ts":1000.000)") != std::string::npos);
  CHECK(trace.find(R"("ph":"f","bp":"e","pid":1,"tid":2,"ts":1000.000)") != std::string::npos);
}

TEST_CASE("the longest events are whole, and times beyond 292 years stay there") {
  const std::string trace = trace_of(record_of_extremes(), record_of_extremes());
  CHECK(trace.substr(trace.size() - 7) == "615}\n]\n");
  CHECK(on_device_track(trace, "step 18446744073709551615") ==
        "9223372036854775.807+9223372036854775.807 9223372036854775.807+9223372036854775.807");
}

TEST_CASE("a trace that was moved is closed once, by the one it was moved to") {
  std::ostringstream out;
  {
    steptimer::TraceWriter first(out);
    steptimer::TraceWriter second(std::move(first));
    second(step(0, 0ms, 10ms, std::nullopt));
  }
  CHECK(out.str().find("]\n") == out.str().size() - 2);
}
