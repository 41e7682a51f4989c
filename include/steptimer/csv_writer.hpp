/// CsvWriter: a row a record, for spreadsheets and data frames.
///
///     std::ofstream file("steps.csv");
///     steptimer::CsvWriter csv(file);
///     options.on_record = std::ref(csv);
///
///     step,host_start_s,batch_time_s,wall_gap_s,data_time_s,data_wait_percent,...
///     0,0.000000000,0.090000000,0.100000000,0.010000000,10.000000,...
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
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

/// Writes a header, then each record it is called with as one row; a field that is absent is empty, yes is 1 and no 0.
/// Phases are not in it, as their number is the step's own: JsonlWriter and TraceWriter have them.
///
/// Units:    seconds with nine decimals, so that no nanosecond is lost; percentages 0 to 100 with six. The stream's
///           locale changes nothing.
/// Blocking: a row goes into the stream's buffer. The stream is flushed about every 3,000 bytes, and after a row that
///           begins a second or more after the last flush; a call waits where writing to that file waits.
/// Crash:    at most the last 3,000 bytes or second of rows are missing, and what is in the file are whole rows, with
///           one exception: where a signal kills the process while the system takes a write over (SIGKILL can), the
///           last row may end in the middle, at a page of the file. Read a last row without a line's end as missing.
/// Threads:  one thread at a time.
/// Errors:   none thrown. Where the stream fails or throws, on_warning (default: a line on stderr) is told once,
///           nothing more is written, and lost() counts what is missing. A disk that is full may have cut the last row.
/// Moving:   can be moved, not copied: give it to on_record by std::ref() or by tee().
/// Owns:     nothing; the stream must outlive the writer, whose destructor flushes it.
class CsvWriter {
 public:
  /// Writes the header row. `on_warning` is told once where the stream fails; without one it is a line on stderr.
  explicit CsvWriter(std::ostream& out, std::function<void(std::string_view)> on_warning = {})
      : rows_(out, "CsvWriter", std::move(on_warning)) {
    detail::RowText header;
    detail::visit_fields(StepRecord{}, [&](const char* name, const auto&) { begin_field(header).text(name); });
    rows_.write_frame(header.text("\n").view());
  }

  /// Writes a row.
  void operator()(const StepRecord& record) noexcept {
    detail::RowText row;
    detail::visit_fields(record, [&](const char*, const auto& value) { append(begin_field(row), value); });
    rows_.write_row(row.text("\n").view(), record.host_start);
  }

  /// Hands what waits in the stream's buffer to the file.
  void flush() noexcept { rows_.flush(); }
  /// Records not known to have reached the file: those since the last flush before the stream failed, and all after it.
  std::uint64_t lost() const noexcept { return rows_.lost(); }

 private:
  static detail::RowText& begin_field(detail::RowText& row) noexcept {
    return row.view().empty() ? row : row.text(",");
  }

  static void append(detail::RowText& row, std::uint64_t number) noexcept { row.number(number); }
  static void append(detail::RowText& row, bool yes) noexcept { row.text(yes ? "1" : "0"); }
  static void append(detail::RowText& row, std::chrono::nanoseconds time) noexcept { row.seconds(time); }
  template <class Value>
  static void append(detail::RowText& row, std::optional<Value> value) noexcept {
    if (value) append(row, *value);
  }
  static void append(detail::RowText& row, detail::Percent percent) noexcept {
    if (percent.value) row.percent(*percent.value);
  }

  detail::RowStream rows_;
};

}  // namespace steptimer

#include "detail/macros_restore.hpp"
