/// ProgressLine: how far a run is, and how much of it is waiting for data, as one moving line.
///
///     steptimer::ProgressLine line(total_steps);   // on stderr
///     options.on_record = std::ref(line);
///     options.on_warning = [&](std::string_view warning) { line.print(warning); };   // above the line, not into it
///     ...
///     if (line.due()) line.text("loss 0.31");
///     timer.on_batch_end(items);                   // here the line is drawn
///     ...
///     timer.finish();   // the last steps
///     line.finish();
///
///     step 123/1350 9 % [#-------------------] | data_wait 40.0 % | 320.0 items/s | 0:12, ETA 2:02 | loss 0.31
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>

#include "detail/durations.hpp"
#include "detail/step_statistics.hpp"
#include "detail/terminal.hpp"
#include "detail/text_line.hpp"
#include "step_record.hpp"
#include "step_summary.hpp"

namespace steptimer {

/// Shows the records it is given, and times nothing itself.
///
/// On a terminal the line is redrawn in place, at most ten times a second and without colour. Elsewhere (a file, a
/// pipe) whole lines come at an interval and at the end.
///
/// Width:    the line never wraps. Where it does not fit, the bar gives way, then, where there is a text, the rate and
///           the time; of what still does not fit, whole fields. A byte is taken for a column, so other alphabets give
///           way a little early. One line a terminal: two would draw over each other. After a terminal was made
///           narrower, what had wrapped stays above.
/// Use:      `options.on_record = std::ref(line)`, or add() by hand. It can be neither copied nor moved.
/// Shows:    the step whose record came last; data_wait and rate of the last 100 records, items/s where items are
///           counted; the time on the host's clock, from the timer's first start to the end of that step; and how long
///           the rest takes at the pace kept so far, pauses included and warm-up left out. "n/a" for what is not known.
///           Where not every step is measured (StepTimerOptions::sample_every, stale steps), a run ends at the last
///           measured step, perhaps 91/100.
/// Blocking: as `out` does. Drawing takes some ten microseconds, and on_record is called between two steps: where the
///           steps run on the host, it is data wait.
/// Errors:   none thrown, no memory asked for but the room for 100 records; what `out` refuses is lost.
/// Threads:  one thread at a time. Owns: nothing; `out` must outlive it.
template <class Clock = std::chrono::steady_clock>
class BasicProgressLine {
  using nanoseconds = std::chrono::nanoseconds;

 public:
  /// `total` steps, or 0 for an unknown number: no bar and no ETA then. Without an `out` nothing is shown.
  /// `plain_interval` is the time between two lines where `out` is no terminal.
  explicit BasicProgressLine(std::uint64_t total, std::FILE* out = stderr,
                             nanoseconds plain_interval = std::chrono::seconds{10}) noexcept
      : total_(total),
        out_(out),
        terminal_(out != nullptr && detail::is_terminal(out)),
        interval_(terminal_ ? std::chrono::milliseconds{100} : plain_interval) {}
  /// As finish().
  ~BasicProgressLine() { finish(); }
  BasicProgressLine(const BasicProgressLine&) = delete;
  BasicProgressLine& operator=(const BasicProgressLine&) = delete;

  /// Takes a record in, and shows the line where it is time to. The record of the same step again is ignored, so that
  /// timer.last() may be given at any time; one of an earlier step begins a new count, as after a reset(), which is
  /// added to what was there.
  void add(const StepRecord& record) noexcept {
    if (out_ == nullptr || finished_ || !take(record)) return;
    news_ = true;
    if (due()) show();
  }
  /// The same, for on_record.
  void operator()(const StepRecord& record) noexcept { add(record); }

  /// Whether the next record will show the line: ask it before putting a text together, and just before the call that
  /// gives the record, which is on_batch_end() where the line is on_record. After it the line has just been drawn.
  bool due() const noexcept { return out_ != nullptr && !finished_ && Clock::now() - shown_at_ >= interval_; }

  /// What stands at the end of the line from now on: the first 200 bytes, with blanks for control characters.
  void text(std::string_view text) noexcept {
    text_.clear();
    text_.append_printable(text);
    news_ = true;
  }

  /// Prints a line of the caller's, of whatever length, where the moving line would be in its way.
  void print(std::string_view line) noexcept {
    if (out_ == nullptr) return;
    if (drawn_) write(cleared().view());
    std::fwrite(line.data(), 1, line.size(), out_);
    write("\n");
    if (drawn_) show();
  }

  /// Shows how it stands, and ends the line. Records are ignored from then on. Where none came, nothing is shown.
  void finish() noexcept {
    if (out_ == nullptr || finished_) return;
    if (last_step_ && (terminal_ || news_)) show();
    if (drawn_) write("\n");
    drawn_ = false;
    finished_ = true;
  }

 private:
  static constexpr std::size_t records_kept = 100;
  static constexpr std::size_t most_columns = 400, least_bar = 10, most_bar = 30;
  using Line = detail::TextLine<most_columns>;
  using Drawing = detail::TextLine<2 * most_columns + 2>;

  bool take(const StepRecord& record) noexcept {
    if (record.step == last_step_) return false;
    if (last_step_ && record.step < *last_step_) {
      steps_before_ = steps_;
      elapsed_before_ = elapsed_;
    }
    last_step_ = record.step;
    steps_ = steps_before_ + record.step + 1;
    const nanoseconds end =
        detail::saturating_sum(record.host_start, record.host_wall_gap.value_or(record.host_batch_time));
    elapsed_ = detail::saturating_sum(elapsed_before_, end);
    if (record.warmup) {
      warmup_steps_ = steps_;
      warmup_elapsed_ = elapsed_;
    }
    recent_.next_record(records_kept) = record;
    return true;
  }

  void show() noexcept {
    shown_at_ = Clock::now();
    news_ = false;
    if (terminal_) {
      const std::size_t width = columns();
      Drawing drawing = cleared();
      drawing.append(detail::cut_at_field(fitted(width).view(), width));
      write(drawing.view());
      drawn_ = true;
    } else {
      Drawing whole;
      whole.append(composed(0, all_parts).view());
      whole.append("\n");
      write(whole.view());
    }
  }

  /// The last column stays free: terminals differ in what they do after it.
  std::size_t columns() const noexcept {
    const std::size_t width = detail::terminal_columns(out_) - 1;
    return width < most_columns ? width : most_columns;
  }

  /// What overwrites the line with blanks; no terminal needs to understand more than a carriage return.
  Drawing cleared() const noexcept {
    Drawing blanks;
    blanks.append("\r");
    blanks.append(' ', columns());
    blanks.append("\r");
    return blanks;
  }

  /// What stands behind the data wait.
  struct Parts {
    bool rate, time, text;
  };
  static constexpr Parts all_parts{true, true, true};

  /// The line for this width, still to be cut at a field: where it is too long, with the text rather than rate and
  /// time, and with these again where the text is too long anyway.
  Line fitted(std::size_t width) const noexcept {
    const Line whole = composed(width, all_parts);
    if (whole.size() <= width || text_.size() == 0) return whole;
    const Line without_rate = composed(width, {false, true, true});
    if (without_rate.size() <= width) return without_rate;
    const Line without_time = composed(width, {false, false, true});
    const std::size_t before_text = without_time.size() - text_.size();
    if (detail::cut_at_field(without_time.view(), width).size() > before_text) return without_time;
    return composed(width, {true, true, false});
  }

  /// The line, with a bar where `width` leaves room for one.
  Line composed(std::size_t width, Parts parts) const noexcept {
    const Line details = composed_details(parts);
    Line line;
    line.append("step ");
    line.append_number(steps_);
    if (total_ > 0) {
      line.append("/");
      line.append_number(total_);
      line.append(" ");
      line.append_number(part_done(100));
      line.append(" %");
      if (parts.rate) append_bar(line, width, details.size());
    }
    line.append(details.view());
    return line;
  }

  void append_bar(Line& line, std::size_t width, std::size_t behind) const noexcept {
    const std::size_t taken = line.size() + behind + 3;  // a blank and two brackets
    if (width < taken + least_bar) return;
    const std::size_t length = width - taken < most_bar ? width - taken : most_bar;
    const auto full = static_cast<std::size_t>(part_done(length));
    line.append(" [");
    line.append('#', full);
    line.append('-', length - full);
    line.append("]");
  }

  Line composed_details(Parts parts) const noexcept {
    Line line;
    const StepSummary recent = recent_.window(records_kept);
    line.append(" | data_wait ");
    if (const auto percent = recent.data_wait_percent()) {
      line.append_short(*percent);
      line.append(" %");
    } else {
      line.append("n/a");
    }
    if (parts.rate) {
      line.append(" | ");
      if (recent.items_in_gaps > 0)
        append_rate(line, recent.items_per_second(), "item");
      else
        append_rate(line, recent.steps_per_second(), "step");
    }
    if (parts.time) append_time(line);
    if (parts.text && text_.size() > 0) {
      line.append(" | ");
      line.append(text_.view());
    }
    return line;
  }

  void append_time(Line& line) const noexcept {
    line.append(" | ");
    line.append_clock(elapsed_);
    if (total_ == 0) return;
    line.append(", ETA ");
    if (const auto rest = time_left())
      line.append_clock(*rest);
    else
      line.append("n/a");
  }

  /// "98.8 steps/s", or where that would be less than one, "12.3 s/step".
  static void append_rate(Line& line, std::optional<double> rate, std::string_view unit) noexcept {
    if (rate && *rate < 1) {
      line.append_short(1 / *rate);
      line.append(" s/");
      line.append(unit);
      return;
    }
    if (rate)
      line.append_short(*rate);
    else
      line.append("n/a");
    line.append(" ");
    line.append(unit);
    line.append("s/s");
  }

  /// So many of `whole` as steps are done of the total, rounded down: all of them only at the end.
  std::uint64_t part_done(std::uint64_t whole) const noexcept {
    if (steps_ >= total_) return whole;
    return static_cast<std::uint64_t>(static_cast<double>(whole) * static_cast<double>(steps_) /
                                      static_cast<double>(total_));
  }

  /// Source:   ours: the time so far divided by the steps so far, times the steps that are left.
  std::optional<nanoseconds> time_left() const noexcept {
    if (steps_ == warmup_steps_) return std::nullopt;
    const double steps_left = steps_ < total_ ? static_cast<double>(total_ - steps_) : 0.0;
    const double a_step =
        static_cast<double>((elapsed_ - warmup_elapsed_).count()) / static_cast<double>(steps_ - warmup_steps_);
    const double left = steps_left * a_step;
    if (!(left >= 0 && left < 9e18)) return std::nullopt;
    return nanoseconds{static_cast<std::int64_t>(left)};
  }

  void write(std::string_view text) const noexcept {
    std::fwrite(text.data(), 1, text.size(), out_);
    std::fflush(out_);
  }

  const std::uint64_t total_;
  std::FILE* const out_;
  const bool terminal_;
  const nanoseconds interval_;
  typename Clock::time_point shown_at_ = Clock::now();  // only limits how often the line is shown
  std::optional<std::uint64_t> last_step_;
  std::uint64_t steps_ = 0, steps_before_ = 0, warmup_steps_ = 0;
  nanoseconds elapsed_{0}, elapsed_before_{0}, warmup_elapsed_{0};
  detail::StepStatistics recent_;
  detail::TextLine<200> text_;
  bool drawn_ = false;  // the line stands on the terminal, and the cursor is on it
  bool news_ = false;
  bool finished_ = false;
};

/// A ProgressLine reads a clock only to say whether it is time to draw again; a test may give it one of its own.
using ProgressLine = BasicProgressLine<>;

}  // namespace steptimer

#include "detail/macros_restore.hpp"
