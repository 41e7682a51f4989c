/// TraceWriter: steps on a host track and a device track, for Perfetto (ui.perfetto.dev) and chrome://tracing.
///
///     std::ofstream file("steps.trace.json");
///     steptimer::TraceWriter trace(file);
///     options.on_record = std::ref(trace);
///
///     host    |step 0|step 1|      |step 2|                   queued, by the host clock
///     device     |=== step 0 ===|=== step 1 ===| data wait |=== step 2 ===|
///     phases     |forw|backward |forw|backward |           |forw|backward |     where mark() was called
#pragma once

#include "detail/macros_keep.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string_view>
#include <utility>

#include "detail/durations.hpp"
#include "detail/row_stream.hpp"
#include "detail/row_text.hpp"
#include "step_record.hpp"

namespace steptimer {

/// Writes each record it is called with as events of the Chrome trace format: a step on either track, its phases, the
/// wait after it, and an arrow from the one step to the other. What comes before a step's first mark() has no name, so
/// the track of phases is empty there.
///
/// Place:    device times have no origin in common with the host clock. So the first step begins on the device track at
///           its host_start, each further one where the batch_time and data_time before it have ended, and none before
///           its own host_start. After a step without a gap that is: where it ended, or at the next one's host_start,
///           whichever is later. Lengths are measured; where the device track lies beside the host track is this
///           estimate.
/// Units:    microseconds with three decimals, so that no nanosecond is lost. The stream's locale changes nothing.
/// Crash:    the file can be opened also when it just ends: each event is a line, and any whole lines of it are an
///           array but for the closing bracket, which the destructor writes. A last line that a kill has cut, as at
///           CsvWriter, is to be taken off.
/// Reset:    a trace is of one run: after StepTimer::reset() its host times would begin again on top of the old ones.
///
/// Blocking, threads, errors, moving and owning are those of CsvWriter.
class TraceWriter {
 public:
  /// Opens the array. `on_warning` is told once where the stream fails; without one it is a line on stderr.
  explicit TraceWriter(std::ostream& out, std::function<void(std::string_view)> on_warning = {})
      : rows_(out, "TraceWriter", std::move(on_warning)) {
    rows_.write_frame(
        "[\n"
        "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"steptimer\"}}\n"
        ",{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"host\"}}\n"
        ",{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"device\"}}\n"
        ",{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":3,\"args\":{\"name\":\"phases\"}}\n");
  }
  /// The array is closed by the one moved to.
  TraceWriter(TraceWriter&&) noexcept = default;
  ~TraceWriter() { rows_.write_frame("]\n"); }

  /// Writes the events of a step.
  void operator()(const StepRecord& record) noexcept {
    using std::chrono::nanoseconds;
    const nanoseconds device_start = (std::max)(device_reached_, record.host_start);
    const nanoseconds device_end = detail::saturating_sum(device_start, record.batch_time);

    detail::RowText events;
    add_step(events, host, record, record.host_start, record.host_batch_time);
    add_step(events, device, record, device_start, record.batch_time);
    add_phases(events, record, device_start);
    if (record.data_time > nanoseconds{0}) {
      begin_event(events, "X", device, device_end).text(",\"name\":\"data wait\",\"dur\":");
      events.microseconds(*record.data_time).text("}\n");
    }
    // Inside the steps: at their very start, chrome://tracing would take the wait that ends there for the arrow's end.
    const nanoseconds inside = (std::min)({nanoseconds{1}, record.host_batch_time / 2, record.batch_time / 2});
    add_arrow(events, "s", host, record, detail::saturating_sum(record.host_start, inside));
    add_arrow(events, "f\",\"bp\":\"e", device, record, detail::saturating_sum(device_start, inside));
    rows_.write_row(events.view(), record.host_start);

    device_reached_ = detail::saturating_sum(device_end, record.data_time.value_or(nanoseconds{0}));
  }

  /// Hands what waits in the stream's buffer to the file.
  void flush() noexcept { rows_.flush(); }
  /// Records not known to have reached the file: those since the last flush before the stream failed, and all after it.
  std::uint64_t lost() const noexcept { return rows_.lost(); }

 private:
  static constexpr std::string_view host = "1";
  static constexpr std::string_view device = "2";
  static constexpr std::string_view phases = "3";

  /// The comma comes before an event, not after: the last line may be the last.
  static detail::RowText& begin_event(detail::RowText& events, std::string_view phase, std::string_view track,
                                      std::chrono::nanoseconds at) noexcept {
    return events.text(",{\"ph\":\"")
        .text(phase)
        .text("\",\"pid\":1,\"tid\":")
        .text(track)
        .text(",\"ts\":")
        .microseconds(at);
  }

  static void add_step(detail::RowText& events, std::string_view track, const StepRecord& record,
                       std::chrono::nanoseconds at, std::chrono::nanoseconds length) noexcept {
    begin_event(events, "X", track, at).text(",\"name\":\"step ").number(record.step);
    events.text("\",\"dur\":").microseconds(length).text(",\"args\":{\"items\":").number(record.items);
    events.text(record.warmup ? ",\"warmup\":true}}\n" : ",\"warmup\":false}}\n");
  }

  static void add_phases(detail::RowText& events, const StepRecord& record, std::chrono::nanoseconds at) noexcept {
    for (std::size_t i = 0; i < record.phase_count; ++i) {
      const PhaseTime& phase = record.phases[i];
      if (*phase.name != '\0') {
        begin_event(events, "X", phases, at).text(",\"name\":\"").escaped(phase.name).text("\",\"dur\":");
        events.microseconds(phase.time).text("}\n");
      }
      at = detail::saturating_sum(at, phase.time);
    }
  }

  static void add_arrow(detail::RowText& events, std::string_view phase, std::string_view track,
                        const StepRecord& record, std::chrono::nanoseconds at) noexcept {
    begin_event(events, phase, track, at).text(",\"cat\":\"step\",\"name\":\"queued to run\",\"id\":");
    events.number(record.step).text("}\n");
  }

  detail::RowStream rows_;
  std::chrono::nanoseconds device_reached_{0};
};

}  // namespace steptimer

#include "detail/macros_restore.hpp"
