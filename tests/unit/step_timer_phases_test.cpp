// mark(): the parts of a step.
#include "catch.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <steptimer/steptimer.hpp>

#include "counts.hpp"
#include "scripted_backend.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::ManualBackend;
using steptimer::MarkStatus;
using steptimer::PhaseTotal;
using steptimer::StepRecord;
using steptimer::StepSummary;
using steptimer::StepTimer;
using steptimer::StepTimerOptions;

namespace {

nanoseconds sum_of_phases(const StepRecord& record) {
  nanoseconds sum{0};
  for (std::size_t i = 0; i < record.phase_count; ++i) sum += record.phases[i].time;
  return sum;
}

/// Forward 20 ms, backward 50 ms, optimizer 10 ms, and 1 ms before the first mark.
void queue_step(StepTimer<ManualBackend>& timer, ManualBackend& device) {
  timer.on_batch_start();
  device.launch(1ms);
  timer.mark("forward");
  device.launch(20ms);
  timer.mark("backward");
  device.launch(50ms);
  timer.mark("optimizer");
  device.launch(10ms);
  timer.on_batch_end();
}

std::vector<std::string> names(const StepSummary& sum) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < sum.phase_count; ++i) all.emplace_back(sum.phases[i].name);
  return all;
}

}  // namespace

TEST_CASE("phases are device times of their own and add up to the step's") {
  ManualBackend device;
  StepTimer timer{device};
  for (int i = 0; i < 3; ++i) queue_step(timer, device);  // all of it behind the host
  timer.finish();
  const StepRecord record = *timer.last();
  REQUIRE(record.phase_count == 4);
  CHECK(std::string(record.phases[0].name).empty());
  CHECK(record.phases[0].time == 1ms);
  CHECK(std::string(record.phases[1].name) == "forward");
  CHECK(record.phases[1].time == 20ms);
  CHECK(std::string(record.phases[2].name) == "backward");
  CHECK(record.phases[2].time == 50ms);
  CHECK(std::string(record.phases[3].name) == "optimizer");
  CHECK(record.phases[3].time == 10ms);
  CHECK(sum_of_phases(record) == record.batch_time);

  const StepSummary total = timer.total();
  CHECK(names(total) == std::vector<std::string>{"", "forward", "backward", "optimizer"});
  CHECK(total.phases[1].total == 60ms);
  CHECK(total.phases[1].steps == 3);
  CHECK(timer.counts().ignored_marks == 0);
}

TEST_CASE("a step without marks has no phases, also where its place held one that had some") {
  ManualBackend device;
  StepTimerOptions options;
  options.window = 1;
  StepTimer<ManualBackend> timer{device, options};
  queue_step(timer, device);
  for (int i = 0; i < 20; ++i) {  // once round
    timer.on_batch_start();
    device.launch(1ms);
    timer.on_batch_end();
    device.synchronize();
    timer.poll();
    CHECK((i == 0 || timer.last()->phase_count == 0));
  }
  timer.finish();
  CHECK(timer.last()->phase_count == 0);
  CHECK(timer.window().phase_count == 0);
  CHECK(timer.total().phases[2].steps == 1);
}

TEST_CASE("marks outside a step, without a name, or too many are counted and nothing else") {
  ManualBackend device;
  StepTimer timer{device};
  timer.mark("before any step");
  CHECK(timer.counts().ignored_marks == 1);
  timer.on_batch_start();
  timer.mark(nullptr);
  CHECK(timer.counts().ignored_marks == 2);
  for (std::size_t i = 0; i < 2 * steptimer::max_phases; ++i) {
    timer.mark("again");
    device.launch(1ms);
  }
  CHECK(timer.counts().ignored_marks == 2 + steptimer::max_phases + 1);
  timer.on_batch_end();
  timer.mark("between two steps");
  timer.finish();
  CHECK(timer.counts().ignored_marks == 4 + steptimer::max_phases);
  REQUIRE(timer.last()->phase_count == steptimer::max_phases);
  CHECK(sum_of_phases(*timer.last()) == 16ms);
  CHECK(timer.last()->batch_time == 16ms);
  CHECK(adds_up(timer.counts()));
}

TEST_CASE("marks in a step that is not measured do nothing and are no misuse") {
  ManualBackend device;
  StepTimerOptions options;
  options.sample_every = 2;
  StepTimer<ManualBackend> timer{device, options};
  for (int i = 0; i < 4; ++i) queue_step(timer, device);
  timer.finish();
  CHECK(timer.counts().measured == 2);
  CHECK(timer.counts().ignored_marks == 0);
  CHECK(timer.total().phases[1].steps == 2);

  ScriptedBackend backend;
  const auto script = backend.script;
  StepTimer<ScriptedBackend> scripted{backend, options};
  for (int i = 0; i < 4; ++i) {
    scripted.on_batch_start();
    scripted.mark("forward");
    scripted.on_batch_end();
  }
  CHECK(script->records == 2 * 3 + 2);  // of the others the start, which ends a gap
}

TEST_CASE("marks that noise has put out of order give no negative phase, and the sum still holds") {
  ScriptedBackend backend;
  const auto script = backend.script;
  StepTimer<ScriptedBackend> timer{backend};
  script->elapsed = {100ms, 70ms, 60ms, 130ms};  // the step, then its three marks
  timer.on_batch_start();
  timer.mark("a");
  timer.mark("b");
  timer.mark("c");
  timer.on_batch_end();
  timer.finish();
  const StepRecord record = *timer.last();
  CHECK(record.batch_time == 100ms);
  REQUIRE(record.phase_count == 4);
  CHECK(record.phases[0].time == 70ms);
  CHECK(record.phases[1].time == 0ms);
  CHECK(record.phases[2].time == 30ms);
  CHECK(record.phases[3].time == 0ms);
}

TEST_CASE("whatever becomes of a step, the marks within it are given back once") {
  ScriptedBackend backend;
  const auto script = backend.script;
  {
    StepTimer<ScriptedBackend> timer{backend};
    const auto start_with_marks = [&] {
      timer.on_batch_start();
      timer.mark("a");
      timer.mark("b");
    };
    start_with_marks();
    start_with_marks();  // the first is dropped
    timer.on_batch_end();
    start_with_marks();
    script->record = {MarkStatus::refused};
    timer.on_batch_end();  // failed at its end
    start_with_marks();
    timer.on_batch_end();
    script->elapsed_status = {MarkStatus::refused};
    timer.poll();
    timer.finish();
    start_with_marks();
    timer.on_batch_end();
    timer.reset();
    start_with_marks();
    timer.on_batch_end();
    timer.release();
    script->device_runs = false;
    start_with_marks();
    timer.on_batch_end();
    start_with_marks();  // dropped, and its start stays for the gap before it
    start_with_marks();
  }
  CHECK(script->out.empty());
  CHECK(script->given_back_twice == 0);
}

TEST_CASE("phases of summaries are merged by name, in any order with the same result") {
  ManualBackend device;
  StepTimer one{device};
  queue_step(one, device);
  one.finish();
  StepTimer other{device};
  other.on_batch_start();
  device.launch(3ms);
  other.mark("optimizer");
  device.launch(4ms);
  other.mark("a name of more than 23 characters");
  device.launch(5ms);
  other.on_batch_end();
  other.finish();
  const StepSummary ab = merge(one.total(), other.total());
  const StepSummary ba = merge(other.total(), one.total());
  CHECK(names(ab) == names(ba));
  REQUIRE(names(ab) == std::vector<std::string>{"", "forward", "optimizer", "a name of more than 23 ", "backward"});
  for (std::size_t i = 0; i < ab.phase_count; ++i) {
    CHECK(ab.phases[i].total == ba.phases[i].total);
    CHECK(ab.phases[i].steps == ba.phases[i].steps);
  }
  CHECK(ab.phases[0].total == 4ms);
  CHECK(ab.phases[2].total == 14ms);
  CHECK(ab.phases[2].steps == 2);
}

TEST_CASE("a mark that is refused costs its phase and nothing else") {
  ScriptedBackend backend;
  const auto script = backend.script;
  StepTimerOptions options;
  std::string warnings;
  options.on_warning = [&warnings](std::string_view line) { (warnings += line) += '\n'; };
  StepTimer<ScriptedBackend> timer{backend, options};
  timer.on_batch_start();
  script->record = {MarkStatus::refused};
  timer.mark("forward");
  timer.mark("backward");
  timer.on_batch_end();
  timer.finish();
  CHECK(warnings.find("mark() could not drop a mark; it is counted in ignored_marks") != std::string::npos);
  CHECK(warnings.find('\n') == warnings.size() - 1);
  CHECK(timer.counts().ignored_marks == 1);
  CHECK(timer.counts().measured == 1);
  REQUIRE(timer.last()->phase_count == 2);
  CHECK(std::string(timer.last()->phases[1].name) == "backward");
  CHECK(script->out.empty());
}

TEST_CASE("a mark that loses the timeline turns the timer off") {
  ScriptedBackend backend;
  const auto script = backend.script;
  StepTimerOptions options;
  options.on_warning = [](std::string_view) {};
  StepTimer<ScriptedBackend> timer{backend, options};
  timer.on_batch_start();
  script->record = {MarkStatus::lost};
  timer.mark("forward");
  CHECK(timer.status().state == steptimer::TimerState::failed);
  CHECK(timer.counts().failed == 1);
  CHECK(adds_up(timer.counts()));
  CHECK(script->out.empty());
}

TEST_CASE("marks within a step that was measured are used again") {
  ScriptedBackend backend;
  const auto script = backend.script;
  StepTimer<ScriptedBackend> timer{backend};
  timer.on_batch_start();
  timer.mark("forward");
  timer.mark("backward");
  timer.on_batch_end();
  timer.finish();
  CHECK(script->recycled == 4);
  CHECK(script->discarded == 0);
}

TEST_CASE("of more names than there is room for, those with the first places stay, in any order") {
  const auto record_of = [](std::uint64_t step, std::vector<const char*> phases) {
    StepRecord record;
    record.step = step;
    record.phase_count = phases.size();
    for (std::size_t i = 0; i < phases.size(); ++i) record.phases[i] = {phases[i], 1ms};
    return summary_of(record);
  };
  const StepSummary one = record_of(0, {"", "a", "b", "c", "d", "e", "f", "g"});
  const StepSummary other = record_of(1, {"", "k", "l"});
  const StepSummary both = merge(one, other);
  CHECK(names(both) == std::vector<std::string>{"", "a", "k", "b", "l", "c", "d", "e"});
  CHECK(names(merge(other, one)) == names(both));
  CHECK(both.phases[0].total == 2ms);
  CHECK(both.phases[2].total == 1ms);
  CHECK(both.phases[7].steps == 1);
}

TEST_CASE("a phase's name in summaries is at most 23 bytes of whole characters") {
  const std::string x(22, 'x');
  const auto name_in_summary = [](const std::string& name) {
    StepRecord record;
    record.phase_count = 1;
    record.phases[0].name = name.c_str();
    return names(summary_of(record)).front();
  };
  CHECK(name_in_summary(x + "y") == x + "y");
  CHECK(name_in_summary(x + "yz") == x + "y");
  CHECK(name_in_summary(x + "\xc3\xa4") == x);
  CHECK(name_in_summary(x.substr(1) + "\xc3\xa4") == x.substr(1) + "\xc3\xa4");
  CHECK(name_in_summary(x.substr(2) + "\xf0\x9f\x99\x82") == x.substr(2));
}
