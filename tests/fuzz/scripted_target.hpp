// A StepTimer over a Backend that gives any answer at any time, and keeps account of its marks.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include <steptimer/backend.hpp>

#include "bytes.hpp"
#include "report.hpp"
#include "support/scripted_backend.hpp"
#include "witness.hpp"

namespace fuzz {

/// A ScriptedBackend that checks the order of the timer's questions. Its device goes on when a timer waits for it.
class CheckedScriptedBackend : public ScriptedBackend {
 public:
  void host_wait(nanoseconds most) noexcept {
    script->device_runs = true;
    ScriptedBackend::host_wait(most);
  }
  MarkStatus query(const Mark& mark) noexcept {
    const MarkStatus answer = ScriptedBackend::query(mark);
    if (answer == MarkStatus::ok && mark.id > *reached_) *reached_ = mark.id;
    return answer;
  }
  MarkStatus elapsed(const Mark& from, const Mark& to, nanoseconds& result) noexcept {
    must(from.id <= *reached_ && to.id <= *reached_, "only marks that were reached are measured");
    return ScriptedBackend::elapsed(from, to, result);
  }
  void recycle(Mark& mark) noexcept {
    must(mark.id <= *reached_, "only marks that were reached are used again");
    ScriptedBackend::recycle(mark);
  }

 private:
  std::shared_ptr<int> reached_ = std::make_shared<int>(0);  // the latest mark that query() said yes to
};

class ScriptedTarget {
 public:
  using Backend = CheckedScriptedBackend;
  static constexpr unsigned lines = 1;
  struct CallersState {};

  explicit ScriptedTarget(Bytes&) {}

  Backend backend(unsigned) const { return device_; }
  nanoseconds host_now() const { return script().now.time_since_epoch(); }
  nanoseconds next_mark(unsigned) const { return host_now(); }
  nanoseconds horizon() const { return certainty_.exact ? host_now() : (nanoseconds::max)(); }
  void advance(nanoseconds amount) { script().now += amount; }
  void launch(unsigned, nanoseconds amount) { script().now += amount; }

  void operate(Bytes& bytes) {
    using steptimer::MarkStatus;
    using namespace std::chrono_literals;
    static constexpr MarkStatus answers[] = {MarkStatus::ok,        MarkStatus::refused, MarkStatus::ok,
                                             MarkStatus::not_ready, MarkStatus::ok,      MarkStatus::lost};
    static constexpr std::optional<nanoseconds> times[] = {
        std::nullopt, nanoseconds{-1us}, nanoseconds{0}, nanoseconds{1ms}, (nanoseconds::max)(), (nanoseconds::min)()};
    const unsigned what = bytes.below(7);
    const MarkStatus answer = what < 4 ? bytes.one_of(answers) : MarkStatus::ok;
    certainty_.all_marked = certainty_.all_marked && answer == MarkStatus::ok;
    switch (what) {
      case 0: note("the next record answers", static_cast<int>(answer)); return script().record.push_back(answer);
      case 1: note("the next query answers", static_cast<int>(answer)); return script().query.push_back(answer);
      case 2:
        note("the next begin_reading answers", static_cast<int>(answer));
        return script().begin_reading.push_back(answer);
      case 3:
        note("the next elapsed answers", static_cast<int>(answer));
        return script().elapsed_status.push_back(answer);
      case 4: {
        const auto time = bytes.one_of(times);
        note("the next elapsed gives", time ? time->count() : 0);
        certainty_.exact = certainty_.exact && !time;
        return script().elapsed.push_back(time);
      }
      case 5:
        note("the backend has an error");
        script().error = {700, "a call", "a message"};
        return;
      default: script().device_runs = !script().device_runs; note("the device runs", script().device_runs ? 1 : 0);
    }
  }

  Certainty certainty(unsigned) const { return certainty_; }
  static bool close(nanoseconds a, nanoseconds b) { return a == b; }
  bool may_put_off() const { return false; }
  void begin_wait() {}
  std::uint64_t backend_calls() const {
    return static_cast<std::uint64_t>(script().records) + static_cast<std::uint64_t>(script().readings) +
           static_cast<std::uint64_t>(script().queries);
  }
  CallersState callers_state() const { return {}; }
  void check_callers_state(CallersState) const {
    must(!script().reading, "a reading is ended before anything else runs");
  }

  void check(std::uint64_t most_marks) const {
    must(script().out.size() <= most_marks, "no more marks are out than steps in flight need");
    must(script().given_back_twice == 0, "a mark is given back once");
    must(!script().asked_outside_a_reading, "marks are asked for in a reading");
  }
  void recover() {
    script().record.clear();
    script().query.clear();
    script().begin_reading.clear();
    script().elapsed_status.clear();
    script().elapsed.clear();
    script().device_runs = true;
  }
  bool is_healthy() const { return true; }
  void check_all_given_back() const {
    check(0);
    must(script().out.empty(), "every mark is given back");
  }

 private:
  ScriptedBackend::Script& script() const { return *device_.script; }

  Backend device_;
  Certainty certainty_;
};

}  // namespace fuzz
