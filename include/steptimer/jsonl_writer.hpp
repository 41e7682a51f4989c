/// JsonlWriter: one JSON object a line, for programs to read.
///
///     std::ofstream file("steps.jsonl");
///     steptimer::JsonlWriter jsonl(file);
///     options.on_record = std::ref(jsonl);
///
///     {"step":0,"host_start_s":0.000000000,"batch_time_s":0.090000000,"wall_gap_s":0.100000000,...}
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "detail/record_fields.hpp"
#include "detail/row_stream.hpp"
#include "detail/row_text.hpp"
#include "step_record.hpp"

namespace steptimer {

/// Writes each record it is called with as one line; a field that is absent is null, warmup is true or false. The
/// phases come last, as "phases":[{"name":"forward","time_s":0.030000000},...], an empty array where mark() was not
/// called.
///
/// Names, units, blocking, crash, threads, errors, moving and owning are those of CsvWriter.
class JsonlWriter {
 public:
  /// `on_warning` is told once where the stream fails; without one it is a line on stderr.
  explicit JsonlWriter(std::ostream& out, std::function<void(std::string_view)> on_warning = {})
      : rows_(out, "JsonlWriter", std::move(on_warning)) {}

  /// Writes a line.
  void operator()(const StepRecord& record) noexcept {
    detail::RowText line;
    detail::visit_fields(record, [&](const char* name, const auto& value) {
      line.text(line.view().empty() ? "{\"" : ",\"").text(name).text("\":");
      append(line, value);
    });
    append_phases(line, record);
    rows_.write_row(line.text("}\n").view(), record.host_start);
  }

  /// Hands what waits in the stream's buffer to the file.
  void flush() noexcept { rows_.flush(); }
  /// Records not known to have reached the file: those since the last flush before the stream failed, and all after it.
  std::uint64_t lost() const noexcept { return rows_.lost(); }

 private:
  static void append_phases(detail::RowText& line, const StepRecord& record) noexcept {
    line.text(",\"phases\":[");
    for (std::size_t i = 0; i < record.phase_count; ++i) {
      line.text(i == 0 ? "{\"name\":\"" : ",{\"name\":\"").escaped(record.phases[i].name);
      line.text("\",\"time_s\":").seconds(record.phases[i].time).text("}");
    }
    line.text("]");
  }

  static void append(detail::RowText& line, std::uint64_t number) noexcept { line.number(number); }
  static void append(detail::RowText& line, bool yes) noexcept { line.text(yes ? "true" : "false"); }
  static void append(detail::RowText& line, std::chrono::nanoseconds time) noexcept { line.seconds(time); }
  template <class Value>
  static void append(detail::RowText& line, std::optional<Value> value) noexcept {
    value ? append(line, *value) : (void)line.text("null");
  }
  static void append(detail::RowText& line, detail::Percent percent) noexcept {
    percent.value ? line.percent(*percent.value) : line.text("null");
  }

  detail::RowStream rows_;
};

}  // namespace steptimer

#include "detail/macros_restore.hpp"
