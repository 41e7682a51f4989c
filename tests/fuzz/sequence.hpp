// Runs a string of bytes as a program over StepTimers: options, then hooks, moves, time, work and whatever else the
// target can do, in any order. After every operation it checks what must hold whatever came before.
//
// A Target is a world with a timeline: manual_target.hpp, scripted_target.hpp, cuda_target.hpp. Two timers live in it
// side by side.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <steptimer/step_timer.hpp>

#include "bytes.hpp"
#include "report.hpp"
#include "witness.hpp"

namespace fuzz {

template <class Target>
class Sequence {
  using Timer = steptimer::StepTimer<typename Target::Backend>;
  using TimerState = steptimer::TimerState;

 public:
  Sequence(const std::uint8_t* data, std::size_t size) : bytes_(data, size), target_(bytes_) {}
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  void run() {
    make(slots_[0]);
    for (int i = 0; i < most_operations && !bytes_.used_up(); ++i) {
      operate();
      check(current());
    }
    end();
  }

 private:
  struct Slot {
    std::unique_ptr<Witness> witness;
    std::optional<Timer> timer;
  };
  struct Thrown {};

  static constexpr int most_operations = 200;

  // ---- operations ----

  enum class Op {
    start,
    end,
    step,
    advance,
    launch,
    poll,
    pause,
    finish,
    scope,
    reset,
    release,
    move_construct,
    move_assign,
    self_move_assign,
    make,
    other_timer,
    mark,
    fetch,
    target,
  };

  void operate() {
    static constexpr Op ops[] = {Op::start,       Op::end,     Op::step,   Op::step,        Op::advance,
                                 Op::launch,      Op::start,   Op::end,    Op::step,        Op::advance,
                                 Op::launch,      Op::poll,    Op::pause,  Op::finish,      Op::scope,
                                 Op::reset,       Op::release, Op::target, Op::other_timer, Op::move_construct,
                                 Op::move_assign, Op::target,  Op::make,   Op::target,      Op::self_move_assign,
                                 Op::target,      Op::step,    Op::poll,   Op::finish,      Op::advance,
                                 Op::launch,      Op::target,  Op::mark,   Op::mark,        Op::fetch};
    Slot& slot = current();
    switch (bytes_.one_of(ops)) {
      case Op::start: return start(slot);
      case Op::end: return end_step(slot);
      case Op::step:
        start(slot);
        launch();
        return end_step(slot);
      case Op::advance: return advance();
      case Op::launch: return launch();
      case Op::poll: return poll(slot);
      case Op::pause: return pause(slot);
      case Op::finish: return finish(slot, some_timeout());
      case Op::scope: return scope(slot);
      case Op::reset: return reset(slot);
      case Op::release: return release(slot);
      case Op::move_construct: return move_construct(slot);
      case Op::move_assign: return move_assign();
      case Op::self_move_assign: return self_move_assign(slot);
      case Op::make: return make(slot);
      case Op::other_timer: return use_other_timer();
      case Op::mark: return mark(slot);
      case Op::fetch: return fetch(slot);
      case Op::target: return target_.operate(bytes_);
    }
  }

  void advance() {
    using namespace std::chrono_literals;
    static constexpr nanoseconds amounts[] = {0ns, 1ns, 30ns, 1us, 50us, 150us, 300us, 1ms, 10ms, 1s, 1h, 10h};
    const nanoseconds amount = bytes_.one_of(amounts);
    note("advance", amount.count());
    ++times_moved_;
    target_.advance(amount);
  }

  void launch() {
    using namespace std::chrono_literals;
    static constexpr nanoseconds amounts[] = {1ms, 0ns, 1ns, 1us, 100us, 5ms, 1s, 3h};
    const nanoseconds amount = bytes_.one_of(amounts);
    note("launch", amount.count());
    target_.launch(current().witness->line, amount);
  }

  nanoseconds some_timeout() {
    using namespace std::chrono_literals;
    static constexpr nanoseconds timeouts[] = {(nanoseconds::max)(), 0ns, -1ns, (nanoseconds::min)(), 1ns, 20us, 2ms};
    return bytes_.one_of(timeouts);
  }

  std::uint64_t some_items() {
    static constexpr std::uint64_t items[] = {0, 1, 64, (std::numeric_limits<std::uint64_t>::max)()};
    return bytes_.one_of(items);
  }

  // ---- one call of a timer ----

  struct Call {
    typename Target::CallersState callers;
    nanoseconds host;
    std::uint64_t backend_calls;
    unsigned times_moved;
    TimerState state;
    bool outer_may_record;
  };

  Call begin_call(Slot& slot, bool may_record) {
    Witness& w = *slot.witness;
    const Call call{target_.callers_state(),    target_.host_now(), target_.backend_calls(), times_moved_,
                    slot.timer->status().state, w.may_record};
    w.may_record = may_record;
    if (may_record && !w.in_on_record) outer_callers_ = call.callers;
    return call;
  }

  enum class Waits { never, may };
  enum class Calls { while_measuring, always };

  void end_call(Slot& slot, const Call& call, Waits waits = Waits::never, Calls calls = Calls::while_measuring) {
    Witness& w = *slot.witness;
    w.may_record = call.outer_may_record;
    w.open = w.open && slot.timer->status().state == TimerState::ok;
    target_.check_callers_state(call.callers);
    must(waits == Waits::may || times_moved_ != call.times_moved || target_.host_now() == call.host,
         "only finish() lets time pass");
    must(calls == Calls::always || call.state == TimerState::ok || target_.backend_calls() == call.backend_calls,
         "a timer that is off asks nothing of its backend");
  }

  struct StartCall {
    Call call;
    StepCounts counts;
    bool was_open;
  };

  StartCall begin_start(Slot& slot) {
    Witness& w = *slot.witness;
    const StartCall start{begin_call(slot, false), slot.timer->counts(), w.open};
    if (start.call.state != TimerState::disabled)
      w.begin_step(start.call.host, target_.next_mark(w.line), start.call.state == TimerState::ok);
    w.open = start.call.state == TimerState::ok;
    w.started_from_on_record = w.started_from_on_record || w.in_on_record;
    return start;
  }

  void end_start(Slot& slot, const StartCall& start) {
    end_call(slot, start.call);
    const Witness& w = *slot.witness;
    const StepCounts& before = start.counts;
    const StepCounts after = slot.timer->counts();
    if (start.call.state != TimerState::ok || slot.timer->status().state != TimerState::ok) return;
    const std::uint64_t dropped = after.dropped - before.dropped;
    must(dropped <= (start.was_open ? 1U : 0U), "a start drops no step but the open one");
    const bool sampled = w.sample_every <= 1 || before.started % w.sample_every == 0;
    const bool room = before.pending - dropped < w.max_in_flight;
    must(after.not_sampled - before.not_sampled == (sampled ? 0U : 1U), "every n-th step is sampled");
    must(after.stale - before.stale == (sampled && !room ? 1U : 0U), "a step beyond max_in_flight is stale");
    if (sampled && room && target_.certainty(w.line).all_marked)
      must(after.pending - (before.pending - dropped) == 1, "a sampled step with room is pending");
  }

  void start(Slot& slot) {
    note("on_batch_start");
    const StartCall call = begin_start(slot);
    slot.timer->on_batch_start();
    end_start(slot, call);
  }

  void expect_end(Slot& slot, std::uint64_t items) {
    Witness& w = *slot.witness;
    if (std::exchange(w.open, false)) w.end_step(target_.host_now(), target_.next_mark(w.line), items);
  }

  void end_step(Slot& slot) {
    const std::uint64_t items = some_items();
    note("on_batch_end", static_cast<long long>(items));
    const StepCounts before = slot.timer->counts();
    const Call call = begin_call(slot, true);
    const bool ignored = !slot.witness->open && call.state == TimerState::ok;
    const std::uint64_t records_before = slot.witness->records_ever;
    expect_end(slot, items);
    slot.timer->on_batch_end(items);
    end_call(slot, call);
    must(slot.witness->records_ever - records_before <= 8, "a hook measures at most eight steps");
    if (ignored) must(slot.timer->counts().ignored_ends == before.ignored_ends + 1, "an end without a step is counted");
  }

  void scope(Slot& slot) {
    const std::uint64_t items = some_items();
    const bool throws = bytes_.below(2) != 0;
    note(throws ? "step() left by an exception" : "step()", static_cast<long long>(items));
    Witness& w = *slot.witness;
    Call call{};
    StepCounts before;
    bool was_open = false;
    try {
      const StartCall start = begin_start(slot);
      const auto scope = slot.timer->step(items);
      end_start(slot, start);
      launch();
      advance();
      before = slot.timer->counts();
      was_open = w.open;
      call = begin_call(slot, !throws);
      if (throws) {
        w.open = false;
        throw Thrown{};
      }
      expect_end(slot, items);
    } catch (const Thrown&) {
      const StepCounts after = slot.timer->counts();
      must(after.dropped - before.dropped <= (was_open ? 1U : 0U), "a scope left by an exception drops its own step");
      must(after.measured == before.measured, "a scope left by an exception measures nothing");
    }
    end_call(slot, call);
  }

  void poll(Slot& slot) {
    note("poll");
    Witness& w = *slot.witness;
    const std::uint64_t before = w.records_ever;
    const Call call = begin_call(slot, true);
    const std::size_t made = slot.timer->poll();
    end_call(slot, call);
    if (w.hears_all_records()) must(w.records_ever - before == made, "poll() returns the number of records made");
  }

  void pause(Slot& slot) {
    note("pause");
    slot.witness->give_up_gap();
    const std::uint64_t calls = target_.backend_calls();
    const Call call = begin_call(slot, false);
    slot.timer->pause();
    end_call(slot, call);
    must(target_.backend_calls() == calls, "pause() asks nothing of the backend");
  }

  void mark(Slot& slot) {
    static constexpr const char* names[] = {"forward", "backward", nullptr};
    const char* const name = bytes_.one_of(names);
    note("mark");
    const StepCounts before = slot.timer->counts();
    const bool ignored = slot.timer->status().state == TimerState::ok && (!slot.witness->open || name == nullptr);
    const Call call = begin_call(slot, false);
    slot.witness->has_marked = true;
    slot.timer->mark(name);
    end_call(slot, call);
    const std::uint64_t counted = slot.timer->counts().ignored_marks - before.ignored_marks;
    must(counted <= 1, "a mark that is ignored is counted once");
    if (ignored && !slot.witness->open) must(counted == 1, "a mark without a step is counted");
  }

  void fetch(Slot& slot) {
    const bool starts = bytes_.below(2) != 0;
    note(starts ? "on_fetch_start" : "on_fetch_end");
    const std::uint64_t calls = target_.backend_calls();
    const Call call = begin_call(slot, false);
    starts ? slot.timer->on_fetch_start() : slot.timer->on_fetch_end();
    end_call(slot, call);
    must(target_.backend_calls() == calls, "a fetch asks nothing of the backend");
  }

  void finish(Slot& slot, nanoseconds timeout) {
    note("finish", timeout.count());
    Witness& w = *slot.witness;
    const bool nested = w.in_on_record;
    const Call call = begin_call(slot, true);
    if (!nested && call.state == TimerState::ok) {
      w.open = false;
      w.give_up_gap();
    }
    if (!nested) w.started_from_on_record = false;
    target_.begin_wait();
    const bool all_measured = slot.timer->finish(timeout);
    end_call(slot, call, Waits::may);
    must(all_measured == (slot.timer->counts().pending == 0), "finish() says whether anything is pending");
    if (times_moved_ == call.times_moved)
      must(target_.host_now() - call.host <= (std::max)(timeout, nanoseconds{0}), "finish() keeps to its timeout");
    if (nested || all_measured) return;
    must(timeout != (nanoseconds::max)() || w.started_from_on_record || target_.may_put_off() ||
             !target_.certainty(w.line).all_marked,
         "finish() without a timeout gives up only for a reason");
  }

  void reset(Slot& slot) {
    note("reset");
    const Call call = begin_call(slot, false);
    slot.timer->reset();
    slot.witness->forget();
    end_call(slot, call, Waits::never, Calls::always);
    must(slot.timer->counts() == StepCounts{}, "reset() forgets all counts");
  }

  void release(Slot& slot) {
    note("release");
    Witness& w = *slot.witness;
    const Call call = begin_call(slot, true);
    w.open = false;
    w.give_up_gap();
    slot.timer->release();
    w.open = false;
    w.give_up_gap();
    end_call(slot, call, Waits::never, Calls::always);
    w.most_pending = 0;
    must(slot.timer->counts().pending == 0, "after release() nothing is pending");
    must(call.state == TimerState::disabled || slot.timer->status().state == TimerState::ok,
         "after release() a timer measures again");
  }

  // ---- making, moving and destroying timers ----

  Slot& current() { return slots_[current_]; }
  Slot& slot_of(const Witness& w) { return slots_[slots_[0].witness.get() == &w ? 0 : 1]; }

  void make(Slot& slot) {
    destroy(slot);
    slot.witness = std::make_unique<Witness>();
    steptimer::StepTimerOptions options = some_options(*slot.witness);
    note("make a timer on line", slot.witness->line);
    const auto callers = target_.callers_state();
    const std::uint64_t calls = target_.backend_calls();
    slot.timer.emplace(target_.backend(slot.witness->line), std::move(options));
    target_.check_callers_state(callers);
    must(target_.backend_calls() == calls, "making a timer asks nothing of its backend");
  }

  steptimer::StepTimerOptions some_options(Witness& w) {
    constexpr auto huge = (std::numeric_limits<std::size_t>::max)();
    static constexpr std::size_t windows[] = {7, 2, 1, 0, 7, 100, 2, huge};
    static constexpr std::size_t in_flight[] = {huge, 7, 2, huge, 1, huge, 0, 1024};
    static constexpr std::uint64_t every[] = {1, 1, 2, 1, 7, 0, 1, huge};
    static constexpr std::uint64_t warmups[] = {0, 1, 0, 2, 0, 7, 0, huge};
    const unsigned sizes = bytes_.next();
    const unsigned numbers = bytes_.next();
    const unsigned functions = bytes_.next();
    steptimer::StepTimerOptions options;
    options.window = w.window = windows[sizes % 8];
    options.max_in_flight = w.max_in_flight = in_flight[sizes / 8 % 8];
    options.sample_every = w.sample_every = every[numbers % 8];
    options.warmup_steps = w.warmup = warmups[numbers / 8 % 8];
    options.enabled = numbers / 64 != 3;
    note("window", static_cast<long long>(w.window));
    note("max_in_flight", static_cast<long long>(w.max_in_flight));
    note("sample_every", static_cast<long long>(w.sample_every));
    note("warmup_steps", static_cast<long long>(w.warmup));
    note("enabled", options.enabled ? 1 : 0);

    static constexpr OnRecord on_record[] = {OnRecord::counts, OnRecord::calls_back, OnRecord::throws,
                                             OnRecord::absent};
    static constexpr OnWarning on_warning[] = {OnWarning::counts, OnWarning::counts, OnWarning::throws,
                                               OnWarning::absent};
    w.on_record = on_record[functions % 4];
    w.on_warning = on_warning[functions / 4 % 4];
    w.line = functions / 16 % Target::lines;
    note("on_record (absent, counts, throws, calls back)", static_cast<long long>(w.on_record));
    if (w.on_record != OnRecord::absent) options.on_record = [this, &w](const StepRecord& r) { take(w, r); };
    if (w.on_warning != OnWarning::absent) options.on_warning = [&w](std::string_view line) { warn(w, line); };
    return options;
  }

  void destroy(Slot& slot) {
    if (!slot.timer) return;
    note("destroy");
    const auto callers = target_.callers_state();
    const nanoseconds host = target_.host_now();
    slot.witness->may_record = false;
    slot.timer.reset();
    target_.check_callers_state(callers);
    must(target_.host_now() == host, "the destructor does not wait");
  }

  void use_other_timer() {
    note("use the other timer");
    current_ = 1 - current_;
    if (!current().timer) make(current());
  }

  void move_construct(Slot& slot) {
    note("move-construct");
    const StepCounts before = slot.timer->counts();
    const TimerState state = slot.timer->status().state;
    const auto callers = target_.callers_state();
    Timer moved(std::move(*slot.timer));
    must(slot.timer->status().state == TimerState::disabled, "a moved-from timer is disabled");
    use_moved_from(*slot.timer);
    slot.timer.emplace(std::move(moved));
    use_moved_from(moved);
    target_.check_callers_state(callers);
    must(slot.timer->counts() == before && slot.timer->status().state == state, "a move takes everything along");
  }

  void move_assign() {
    Slot& from = current();
    use_other_timer();
    Slot& to = current();
    note("move-assign the other one to this");
    const StepCounts before = from.timer->counts();
    const auto callers = target_.callers_state();
    to.witness->may_record = from.witness->may_record = false;
    *to.timer = std::move(*from.timer);
    target_.check_callers_state(callers);
    must(to.timer->counts() == before, "a move takes everything along");
    to.witness = std::move(from.witness);
    from.witness = std::make_unique<Witness>();
    from.witness->moved_from = true;
    from.witness->line = to.witness->line;
    check(from);
  }

  void self_move_assign(Slot& slot) {
    note("move-assign to itself");
    const StepCounts before = slot.timer->counts();
    Timer& same = *slot.timer;
    *slot.timer = std::move(same);
    must(slot.timer->counts() == before, "assigned to itself, a timer stays as it is");
  }

  void use_moved_from(Timer& timer) {
    const std::uint64_t calls = target_.backend_calls();
    timer.on_batch_start();
    timer.on_batch_end(1);
    timer.pause();
    must(timer.poll() == 0 && timer.finish(), "a moved-from timer has nothing to measure");
    timer.release();
    must(timer.counts() == StepCounts{} && !timer.last(), "a moved-from timer is empty");
    must(target_.backend_calls() == calls, "a moved-from timer asks nothing of its backend");
  }

  // ---- what a timer calls ----

  void take(Witness& w, const StepRecord& record) {
    Slot& slot = slot_of(w);
    must(!w.in_on_record, "on_record is not called from within itself");
    target_.check_callers_state(outer_callers_);
    w.take(record, target_.certainty(w.line), target_.horizon(), [](auto a, auto b) { return Target::close(a, b); });
    must(slot.timer->last() && slot.timer->last()->step == record.step, "in on_record, last() is its record");
    if (quiet_ || w.on_record == OnRecord::counts) return;
    if (w.on_record == OnRecord::throws) {
      if (bytes_.below(3) != 0) return;
      note("on_record throws");
      w.on_record_threw = true;
      throw Thrown{};
    }
    w.in_on_record = true;
    ++report().depth;
    call_back(slot);
    check(slot);
    --report().depth;
    w.in_on_record = false;
  }

  void call_back(Slot& slot) {
    static constexpr Op ops[] = {Op::start, Op::end,   Op::step,    Op::poll,    Op::finish, Op::pause,
                                 Op::reset, Op::scope, Op::release, Op::advance, Op::mark,   Op::fetch};
    switch (bytes_.one_of(ops)) {
      case Op::start: return start(slot);
      case Op::end: return end_step(slot);
      case Op::step: start(slot); return end_step(slot);
      case Op::poll: return poll(slot);
      case Op::finish: return finish(slot, some_timeout());
      case Op::pause: return pause(slot);
      case Op::reset: return reset(slot);
      case Op::scope: return scope(slot);
      case Op::release: return release(slot);
      case Op::mark: return mark(slot);
      case Op::fetch: return fetch(slot);
      default: return advance();
    }
  }

  static void warn(Witness& w, std::string_view line) {
    constexpr unsigned kinds = 6;
    must(!w.on_warning_threw, "an on_warning that threw is not called again");
    must(++w.warnings <= kinds && line.substr(0, 11) == "steptimer: ", "one sentence a kind of trouble");
    if (w.on_warning != OnWarning::throws) return;
    w.on_warning_threw = true;
    throw Thrown{};
  }

  // ---- what must hold ----

  void check(Slot& slot) {
    Witness& w = *slot.witness;
    const std::uint64_t calls = target_.backend_calls();
    const steptimer::TimerStatus status = slot.timer->status();
    const StepCounts counts = slot.timer->counts();
    const bool measures = status.state != TimerState::disabled;
    must(!w.moved_from || !measures, "a moved-from timer is disabled");
    must(status.call != nullptr && status.message != nullptr, "a status has its texts");
    w.check(counts, measures);
    w.check_results(*slot.timer, measures);
    if (measures && target_.certainty(w.line).exact) must(counts.clamped == 0, "true times need no clamping");
    if (target_.certainty(w.line).all_marked) must(counts.failed == 0, "no step fails where nothing was refused");
    must(target_.backend_calls() == calls, "reading results asks nothing of the backend");

    std::uint64_t most_marks = 0;
    for (const Slot& each : slots_)
      if (each.timer) most_marks += each.witness->most_marks();
    target_.check(most_marks);
  }

  void end() {
    quiet_ = true;
    for (Slot& slot : slots_) {
      if (!slot.timer) continue;
      note("the end: no more faults");
      target_.recover();
      finish(slot, (nanoseconds::max)());
      check(slot);
      must(slot.timer->counts().pending == 0, "finish() leaves nothing pending");
      measure_once_more(slot);
    }
    for (Slot& slot : slots_) destroy(slot);
    target_.check_all_given_back();
  }

  /// However bad it was, after release() and reset() a timer measures, where its device still does.
  void measure_once_more(Slot& slot) {
    release(slot);
    reset(slot);
    start(slot);
    launch();
    end_step(slot);
    finish(slot, (nanoseconds::max)());
    check(slot);
    const bool measures = slot.timer->status().state != TimerState::disabled && slot.witness->max_in_flight > 0;
    if (measures && target_.is_healthy())
      must(slot.timer->counts().measured == 1, "after the faults a released timer measures again");
  }

  Bytes bytes_;
  Target target_;
  Slot slots_[2];
  unsigned current_ = 0;
  unsigned times_moved_ = 0;
  typename Target::CallersState outer_callers_{};  // at the call that on_record comes from
  bool quiet_ = false;
};

template <class Target>
int run_bytes(const std::uint8_t* data, std::size_t size) {
  report().begin(data, size);
  Sequence<Target>(data, size).run();
  return 0;
}

}  // namespace fuzz
