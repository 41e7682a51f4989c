// A Backend that answers what the test told it to, over a host clock that the test moves, and that keeps
// account of every mark. Marks are reached at once unless the script says otherwise.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>

#include <steptimer/backend.hpp>

class ScriptedBackend : public steptimer::BackendDefaults {
 public:
  using MarkStatus = steptimer::MarkStatus;
  using nanoseconds = std::chrono::nanoseconds;

  struct Mark {
    int id = 0;
    steptimer::HostTime time{};
  };

  struct Script {
    steptimer::HostTime now{};
    std::deque<MarkStatus> record, query, begin_reading;  // answers to the next calls; ok when used up
    std::deque<std::optional<nanoseconds>> elapsed;       // values in place of the true ones
    std::deque<MarkStatus> elapsed_status;
    bool device_runs = true;  // false: no mark is reached
    steptimer::BackendError error;

    int last_id = 0;
    std::set<int> out;         // marks that the timer holds
    int given_back_twice = 0;  // marks returned that were not out
    int recycled = 0, discarded = 0, recycled_before_reached = 0, released = 0;
    int records = 0, queries = 0, readings = 0;
    bool reading = false;
    bool asked_outside_a_reading = false;
  };

  ScriptedBackend() : script(std::make_shared<Script>()) {}
  ScriptedBackend(const ScriptedBackend&) noexcept = default;
  ScriptedBackend& operator=(const ScriptedBackend&) noexcept = default;

  steptimer::HostTime host_now() const noexcept { return script->now; }
  void host_wait(nanoseconds most) noexcept { script->now += most < nanoseconds{50000} ? most : nanoseconds{50000}; }

  MarkStatus record(Mark& mark, steptimer::HostTime) noexcept {
    ++script->records;
    const MarkStatus answer = next(script->record);
    if (answer != MarkStatus::ok) return answer;
    mark = {++script->last_id, script->now};
    script->out.insert(mark.id);
    return answer;
  }
  MarkStatus begin_reading(steptimer::HostTime) noexcept {
    ++script->readings;
    const MarkStatus answer = next(script->begin_reading);
    script->reading = answer == MarkStatus::ok;
    return answer;
  }
  void end_reading() noexcept { script->reading = false; }
  MarkStatus query(const Mark& mark) noexcept {
    ++script->queries;
    if (!script->reading || script->out.count(mark.id) == 0) script->asked_outside_a_reading = true;
    if (!script->device_runs) return MarkStatus::not_ready;
    return next(script->query);
  }
  MarkStatus elapsed(const Mark& from, const Mark& to, nanoseconds& result) noexcept {
    result = to.time - from.time;
    if (!script->elapsed.empty()) {
      if (script->elapsed.front()) result = *script->elapsed.front();
      script->elapsed.pop_front();
    }
    return next(script->elapsed_status);
  }
  void recycle(Mark& mark) noexcept {
    ++script->recycled;
    if (!script->device_runs) ++script->recycled_before_reached;
    take_back(mark);
  }
  void discard(Mark& mark) noexcept {
    ++script->discarded;
    take_back(mark);
  }
  void release() noexcept { ++script->released; }
  steptimer::BackendError error() const noexcept { return script->error; }

  std::shared_ptr<Script> script;

 private:
  static MarkStatus next(std::deque<MarkStatus>& answers) noexcept {
    if (answers.empty()) return MarkStatus::ok;
    const MarkStatus answer = answers.front();
    answers.pop_front();
    return answer;
  }
  void take_back(Mark& mark) noexcept {
    if (script->out.erase(mark.id) != 1) ++script->given_back_twice;
    mark.id = 0;
  }
};
