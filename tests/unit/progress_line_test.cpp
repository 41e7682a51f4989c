#include <steptimer/progress_line.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <steptimer/manual_backend.hpp>
#include <steptimer/step_timer.hpp>

#include "support/catch.hpp"

#if __has_include(<pty.h>)
#define HAS_TERMINALS
#include <fcntl.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>
#endif

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::StepRecord;

namespace {

/// A clock that the test moves.
struct TestClock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = nanoseconds;
  using time_point = std::chrono::time_point<TestClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept { return time; }
  static void advance(nanoseconds duration) { time += duration; }
  static inline time_point time{};
};
using Line = steptimer::BasicProgressLine<TestClock>;

static_assert(!std::is_copy_constructible_v<steptimer::ProgressLine>, "as on_record a copy would be drawn");
static_assert(!std::is_move_constructible_v<steptimer::ProgressLine>);
using View = std::string_view;
static_assert(noexcept(std::declval<Line&>().add(std::declval<const StepRecord&>())));
static_assert(noexcept(std::declval<Line&>().print(View{})) && noexcept(std::declval<Line&>().text(View{})));
static_assert(noexcept(std::declval<Line&>().finish()));

/// Step n of a loop of 60 ms steps and 40 ms waits.
StepRecord record_of(std::uint64_t step, std::uint64_t items = 0) {
  StepRecord record;
  record.step = step;
  record.host_start = static_cast<std::int64_t>(step) * 100ms;
  record.batch_time = record.host_batch_time = 60ms;
  record.wall_gap = record.host_wall_gap = 100ms;
  record.data_time = 40ms;
  record.items = items;
  return record;
}

/// A file that is no terminal, and what was written to it.
class TextFile {
 public:
  TextFile() : file_(std::tmpfile()) { REQUIRE(file_ != nullptr); }
  ~TextFile() { std::fclose(file_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  std::FILE* get() const { return file_; }
  std::string text() const {
    std::string text;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
    return text;
  }

 private:
  std::FILE* file_;
};

/// The one line that is shown for these records.
std::string shown(std::uint64_t total, const std::vector<StepRecord>& records, const std::string& text = {}) {
  const TextFile file;
  Line line(total, file.get());
  line.text(text);
  for (const StepRecord& record : records) line.add(record);
  line.finish();
  return file.text();
}

std::vector<StepRecord> first_steps(std::uint64_t steps, std::uint64_t items = 0) {
  std::vector<StepRecord> records;
  for (std::uint64_t step = 0; step < steps; ++step) records.push_back(record_of(step, items));
  return records;
}

}  // namespace

TEST_CASE("the line says where the run is, what it waits for, how fast it is and how long it takes") {
  CHECK(shown(1350, first_steps(123), "loss 0.31") ==
        "step 123/1350 9 % | data_wait 40.0 % | 10.0 steps/s | 0:12, ETA 2:02 | loss 0.31\n");
}

TEST_CASE("where items are counted, their rate is shown") {
  std::vector<StepRecord> not_yet = first_steps(2);
  not_yet[1].items = 32;
  not_yet[1].wall_gap = not_yet[1].data_time = not_yet[1].host_wall_gap = std::nullopt;
  CHECK(shown(0, not_yet).find("| 10.0 steps/s |") != std::string::npos);
  CHECK(shown(20, first_steps(10, 32)) == "step 10/20 50 % | data_wait 40.0 % | 320.0 items/s | 0:01, ETA 0:01\n");
}

TEST_CASE("a rate below one a second is shown the other way round") {
  StepRecord slow = record_of(0);
  slow.wall_gap = slow.host_wall_gap = 80s;
  slow.data_time = 80s - 60ms;
  CHECK(shown(2, {slow}) == "step 1/2 50 % | data_wait 99.9 % | 80.0 s/step | 1:20, ETA 1:20\n");
}

TEST_CASE("a rate has one decimal below 1000, and none above") {
  const auto rate = [](std::uint64_t items, nanoseconds gap) {
    StepRecord record = record_of(0, items);
    record.wall_gap = gap;
    const std::string line = shown(0, {record});
    return line.substr(0, line.find(" items/s")).substr(line.find("% | ") + 4);
  };
  CHECK(rate(1, 960ms) == "1.0");
  CHECK(rate(10, 6s) == "1.7");
  CHECK(rate(99994, 100s) == "999.9");
  CHECK(rate(99996, 100s) == "1000");
}

TEST_CASE("without a total there is neither bar nor percent nor ETA") {
  CHECK(shown(0, first_steps(3)) == "step 3 | data_wait 40.0 % | 10.0 steps/s | 0:00\n");
}

TEST_CASE("what is not known is n/a", "[case-13]") {
  StepRecord only = record_of(0);
  only.wall_gap = only.data_time = only.host_wall_gap = std::nullopt;
  CHECK(shown(1, {only}) == "step 1/1 100 % | data_wait n/a | n/a steps/s | 0:00, ETA 0:00\n");
  only.warmup = true;
  CHECK(shown(5, {only}) == "step 1/5 20 % | data_wait n/a | n/a steps/s | 0:00, ETA n/a\n");
}

TEST_CASE("100 percent is only shown at the end, and not passed") {
  StepRecord record = record_of(998);
  CHECK(shown(1000, {record}).find("999/1000 99 % ") != std::string::npos);
  CHECK(shown(999, {record}).find("999/999 100 % ") != std::string::npos);
  CHECK(shown(10, {record}).find("999/10 100 % ") != std::string::npos);
  CHECK(shown(100, {record_of(28)}).find("29/100 29 % ") != std::string::npos);
}

TEST_CASE("a run that goes on beyond its total has nothing left") {
  CHECK(shown(2, first_steps(11)) == "step 11/2 100 % | data_wait 40.0 % | 10.0 steps/s | 0:01, ETA 0:00\n");
}

TEST_CASE("the data wait and the rate are those of the last 100 records") {
  std::vector<StepRecord> records = first_steps(150);
  for (std::size_t i = 50; i < 150; ++i) {
    records[i].batch_time = 50ms;
    records[i].data_time = 0ms;
    records[i].wall_gap = 50ms;
  }
  CHECK(shown(0, records).find("data_wait 0.0 % | 20.0 steps/s") != std::string::npos);
}

TEST_CASE("the warm-up counts as steps done, and neither for the data wait nor for the pace") {
  std::vector<StepRecord> records = first_steps(3);
  records[0].warmup = true;
  records[0].host_wall_gap = records[0].wall_gap = 60s;
  records[0].data_time = 59s;
  records[1].host_start = 60s;
  records[2].host_start = 60s + 100ms;
  CHECK(shown(103, records) == "step 3/103 2 % | data_wait 40.0 % | 10.0 steps/s | 1:00, ETA 0:10\n");
}

TEST_CASE("time that was paused is part of the elapsed time and of the pace, not of the rate") {
  std::vector<StepRecord> records = first_steps(2);
  records[0].wall_gap = records[0].data_time = records[0].host_wall_gap = std::nullopt;
  records[1].host_start = 19900ms;
  CHECK(shown(4, records) == "step 2/4 50 % | data_wait 40.0 % | 10.0 steps/s | 0:20, ETA 0:20\n");
}

TEST_CASE("elapsed time reads as on a clock") {
  const auto elapsed = [](nanoseconds time) {
    StepRecord record = record_of(0);
    record.host_start = time - 100ms;
    const std::string line = shown(0, {record});
    return line.substr(line.rfind("| ") + 2);
  };
  CHECK(elapsed(59999ms) == "0:59\n");
  CHECK(elapsed(61s) == "1:01\n");
  CHECK(elapsed(3599s) == "59:59\n");
  CHECK(elapsed(3600s) == "1:00:00\n");
  CHECK(elapsed(100h + 2min + 3s) == "100:02:03\n");
}

TEST_CASE("elapsed time is the host's, and ends with the step") {
  StepRecord record = record_of(0);
  record.host_wall_gap = 7s;
  CHECK(shown(0, {record}).find("| 0:07\n") != std::string::npos);
  record.wall_gap = record.data_time = record.host_wall_gap = std::nullopt;
  record.host_batch_time = 3s;
  CHECK(shown(0, {record}).find("| 0:03\n") != std::string::npos);
}

TEST_CASE("the same step again changes nothing, and an earlier one begins a count that is added") {
  StepRecord no_wait = record_of(0);
  no_wait.data_time = 0ms;
  no_wait.batch_time = 100ms;
  CHECK(shown(0, {no_wait, record_of(1), record_of(1), record_of(1)}).find("data_wait 20.0 %") != std::string::npos);
  const std::string two_epochs = shown(20, {record_of(8), record_of(9), record_of(0), record_of(1)});
  CHECK(two_epochs == "step 12/20 60 % | data_wait 40.0 % | 10.0 steps/s | 0:01, ETA 0:00\n");
}

TEST_CASE("huge and impossible numbers neither overflow nor divide by zero") {
  StepRecord record;
  record.step = (std::numeric_limits<std::uint64_t>::max)() - 1;
  record.batch_time = record.host_batch_time = record.host_start = (nanoseconds::max)();
  record.wall_gap = record.data_time = record.host_wall_gap = (nanoseconds::max)();
  record.items = (std::numeric_limits<std::uint64_t>::max)();
  CHECK(shown((std::numeric_limits<std::uint64_t>::max)(), {record}).find("data_wait ") != std::string::npos);
  record = StepRecord{};
  record.wall_gap = record.data_time = record.host_wall_gap = 0ns;
  CHECK(shown(3, {record}) == "step 1/3 33 % | data_wait n/a | n/a steps/s | 0:00, ETA 0:00\n");
  record.host_wall_gap = (nanoseconds::max)();
  CHECK(shown((std::numeric_limits<std::uint64_t>::max)(), {record}).find("ETA n/a") != std::string::npos);
  record.items = (std::numeric_limits<std::uint64_t>::max)();
  record.wall_gap = record.data_time = 1ns;
  CHECK(shown(3, {record}).find("| 100000000000000000 items/s |") != std::string::npos);
}

TEST_CASE("a text keeps to its line, and to 200 bytes") {
  CHECK(shown(0, {record_of(0)}, "a\nb\rc\td\x7f\x1b[31m").find("| a b c d  [31m\n") != std::string::npos);
  const std::string cut = shown(0, {record_of(0)}, std::string(199, 'x') + "\xc3\xa4");  // an ae that does not fit
  CHECK(cut.find(std::string(199, 'x') + "\n") != std::string::npos);
}

TEST_CASE("control characters of two bytes are blanks too, and letters of two bytes stay") {
  CHECK(shown(0, {record_of(0)},
              "a\xc2\x9b"
              "31mb\xc2\x80\xc2\x9f")
            .find("| a 31mb  \n") != std::string::npos);
  const std::string letters = "\xc2\xa0\xc2\xb5s \xc3\x84\xc3\x9f \xe2\x82\x80";
  CHECK(shown(0, {record_of(0)}, letters).find("| " + letters + "\n") != std::string::npos);
}

TEST_CASE("due() is asked just before on_batch_end(), and the line then shows that step's text") {
  const TextFile file;
  Line line(0, file.get(), 300ms);
  steptimer::StepTimerOptions options;
  options.on_record = std::ref(line);
  steptimer::ManualBackend device;
  steptimer::StepTimer timer{device, options};
  int texts = 0;
  for (int step = 0; step < 8; ++step) {
    timer.on_batch_start();
    device.advance(60ms);
    if (line.due()) {
      line.text("loss of step " + std::to_string(step));
      ++texts;
    }
    timer.on_batch_end();
    device.advance(40ms);
    TestClock::advance(100ms);
  }
  CHECK(texts == 2);
  CHECK(file.text() ==
        "step 3 | data_wait 40.0 % | 10.0 steps/s | 0:00 | loss of step 3\n"
        "step 6 | data_wait 40.0 % | 10.0 steps/s | 0:00 | loss of step 6\n");
}

TEST_CASE("where there is no terminal, whole lines come at an interval and at the end") {
  const TextFile file;
  Line line(100, file.get());
  for (std::uint64_t step = 0; step < 100; ++step) {
    TestClock::advance(300ms);
    CHECK(line.due() == (step % 34 == 33));
    line.add(record_of(step));
  }
  line.finish();
  CHECK(file.text() ==
        "step 34/100 34 % | data_wait 40.0 % | 10.0 steps/s | 0:03, ETA 0:06\n"
        "step 68/100 68 % | data_wait 40.0 % | 10.0 steps/s | 0:06, ETA 0:03\n"
        "step 100/100 100 % | data_wait 40.0 % | 10.0 steps/s | 0:10, ETA 0:00\n");
}

TEST_CASE("the interval of plain lines can be set") {
  const TextFile file;
  Line line(0, file.get(), 1s);
  line.add(record_of(0));
  CHECK(file.text().empty());
  TestClock::advance(1s);
  line.add(record_of(1));
  CHECK(file.text() == "step 2 | data_wait 40.0 % | 10.0 steps/s | 0:00\n");
}

TEST_CASE("the last line is not printed twice, and nothing is shown after it") {
  const TextFile file;
  Line line(0, file.get(), 0s);
  line.add(record_of(0));
  line.finish();
  line.finish();
  line.add(record_of(1));
  CHECK_FALSE(line.due());
  CHECK(file.text() == "step 1 | data_wait 40.0 % | 10.0 steps/s | 0:00\n");
}

TEST_CASE("a text that comes after the last record is shown at the end") {
  const TextFile file;
  Line line(0, file.get(), 0s);
  line.add(record_of(0));
  line.text("accuracy 0.98");
  line.finish();
  CHECK(file.text() ==
        "step 1 | data_wait 40.0 % | 10.0 steps/s | 0:00\n"
        "step 1 | data_wait 40.0 % | 10.0 steps/s | 0:00 | accuracy 0.98\n");
}

TEST_CASE("without a record there is nothing to show") {
  const TextFile file;
  {
    Line line(10, file.get());
    line.text("loss 0.31");
  }
  CHECK(file.text().empty());
}

TEST_CASE("the destructor ends the line") {
  const TextFile file;
  {
    Line line(0, file.get());
    line.add(record_of(0));
  }
  CHECK(file.text() == "step 1 | data_wait 40.0 % | 10.0 steps/s | 0:00\n");
}

TEST_CASE("a printed line goes where the progress goes") {
  const TextFile file;
  Line line(0, file.get());
  line.add(record_of(0));
  line.print("epoch 1 done");
  CHECK(file.text() == "epoch 1 done\n");
}

TEST_CASE("without an output nothing happens") {
  Line line(10, nullptr);
  TestClock::advance(1h);
  CHECK_FALSE(line.due());
  line.add(record_of(0));
  line.print("epoch 1 done");
  line.finish();
}

TEST_CASE("a reference to a line serves as on_record of a timer") {
  const TextFile file;
  Line line(3, file.get());
  steptimer::StepTimerOptions options;
  options.on_record = std::ref(line);
  steptimer::ManualBackend device;
  steptimer::StepTimer<steptimer::ManualBackend> timer{device, options};
  for (int step = 0; step < 3; ++step) {
    timer.on_batch_start();
    device.advance(600ms);
    timer.on_batch_end(32);
    device.advance(400ms);
  }
  timer.finish();
  line.finish();
  CHECK(file.text() == "step 3/3 100 % | data_wait 40.0 % | 32.0 items/s | 0:02, ETA 0:00\n");
}

#ifdef HAS_TERMINALS

namespace {

/// Says so where no pseudo terminal can be had, as in a container without /dev/pts.
bool has_terminals() {
  int screen = 0;
  int line = 0;
  const bool has = openpty(&screen, &line, nullptr, nullptr, nullptr) == 0;
  if (!has) {
    WARN("skipped: no pseudo terminal can be had here");
    return false;
  }
  close(screen);
  close(line);
  return true;
}

/// A terminal of its own, and the screen that a person would see.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    termios raw{};
    cfmakeraw(&raw);
    REQUIRE(openpty(&screen_, &line_, nullptr, &raw, &size) == 0);
    REQUIRE(fcntl(screen_, F_SETFL, O_NONBLOCK) == 0);
    file_ = fdopen(line_, "w");
    REQUIRE(file_ != nullptr);
  }
  ~Terminal() {
    std::fclose(file_);
    hang_up();
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::FILE* get() const { return file_; }
  void resize(unsigned short columns) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    REQUIRE(ioctl(screen_, TIOCSWINSZ, &size) == 0);
  }
  void hang_up() {
    if (screen_ >= 0) close(screen_);
    screen_ = -1;
  }

  /// Whatever came since the last call.
  std::string received() const {
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = read(screen_, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(n));
    return text;
  }

 private:
  int screen_ = -1, line_ = -1;
  std::FILE* file_ = nullptr;
};

/// What stands on a screen after this text: a carriage return goes back to the first column, the rest overwrites.
std::vector<std::string> screen_of(const std::string& text, std::size_t columns) {
  std::vector<std::string> lines(1);
  std::size_t column = 0;
  bool wraps = false;
  for (const char c : text) {
    if (c == '\r') {
      column = 0;
    } else if (c == '\n') {
      lines.emplace_back();
      column = 0;
    } else {
      wraps = wraps || column + 1 >= columns;
      std::string& line = lines.back();
      if (line.size() <= column) line.resize(column + 1, ' ');
      line[column++] = c;
    }
  }
  INFO(columns << " columns, and this is drawn: " << text);
  CHECK_FALSE(wraps);
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

using Screen = std::vector<std::string>;

}  // namespace

TEST_CASE("on a terminal the line is redrawn in place, with a bar") {
  if (!has_terminals()) return;
  const Terminal terminal(100);
  Line line(20, terminal.get());
  TestClock::advance(100ms);
  line.add(record_of(4));
  line.text("loss 0.31");
  TestClock::advance(100ms);
  line.add(record_of(9));
  const std::string text = terminal.received();
  CHECK(text.find('\n') == std::string::npos);
  CHECK(screen_of(text, 100) ==
        Screen{"step 10/20 50 % [#########---------] | data_wait 40.0 % | 10.0 steps/s | 0:01, ETA 0:01 | loss 0.31"});
}

TEST_CASE("the bar is empty at first, full at the end, and takes at most 30 columns") {
  if (!has_terminals()) return;
  const Terminal terminal(150);
  Line line(1000, terminal.get());
  TestClock::advance(100ms);
  line.add(record_of(0));
  CHECK(terminal.received().find('[' + std::string(30, '-') + ']') != std::string::npos);
  line.add(record_of(999));
  line.finish();
  CHECK(terminal.received().find('[' + std::string(30, '#') + ']') != std::string::npos);
}

TEST_CASE("a bar has at least 10 columns, or is left out") {
  if (!has_terminals()) return;
  const std::size_t without_bar = shown(20, first_steps(10)).size() - 1;
  for (const std::size_t room : {12u, 13u}) {  // a blank and two brackets, and 10 columns only in the second
    const Terminal terminal(static_cast<unsigned short>(without_bar + room + 1));
    Line line(20, terminal.get());
    line.add(record_of(9));
    line.finish();
    const std::string text = terminal.received();
    CHECK((text.find('[') != std::string::npos) == (room == 13));
    CHECK((text.find("[#####-----]") != std::string::npos) == (room == 13));
  }
}

TEST_CASE("a terminal is drawn on at most ten times a second") {
  if (!has_terminals()) return;
  const Terminal terminal(100);
  Line line(0, terminal.get());
  int drawn = 0;
  for (std::uint64_t step = 0; step < 1000; ++step) {
    TestClock::advance(10ms);
    line.add(record_of(step));
    drawn += terminal.received().empty() ? 0 : 1;
  }
  CHECK(drawn == 100);
}

TEST_CASE("a shorter line leaves nothing of a longer one") {
  if (!has_terminals()) return;
  const Terminal terminal(100);
  Line line(0, terminal.get());
  std::string text;
  for (const char* words : {"a long text that will be gone", "short"}) {
    line.text(words);
    TestClock::advance(100ms);
    line.add(record_of(words[0] == 'a' ? 0 : 1));
    text += terminal.received();
  }
  CHECK(screen_of(text, 100) == Screen{"step 2 | data_wait 40.0 % | 10.0 steps/s | 0:00 | short"});
}

TEST_CASE("a printed line stands above, and the moving line below it") {
  if (!has_terminals()) return;
  const Terminal terminal(100);
  Line line(0, terminal.get());
  line.print("before");
  TestClock::advance(100ms);
  line.add(record_of(0));
  line.print("epoch 1 done");
  line.print("and that was it");
  std::string text = terminal.received();
  CHECK(screen_of(text, 100).back() == "step 1 | data_wait 40.0 % | 10.0 steps/s | 0:00");
  line.finish();
  line.print("after");
  text += terminal.received();
  CHECK(screen_of(text, 100) == Screen{"before", "epoch 1 done", "and that was it",
                                       "step 1 | data_wait 40.0 % | 10.0 steps/s | 0:00", "after", ""});
}

TEST_CASE("finish() shows the last step and leaves the cursor below the line") {
  if (!has_terminals()) return;
  const Terminal terminal(100);
  {
    Line line(2, terminal.get());
    TestClock::advance(100ms);
    line.add(record_of(0));
    line.add(record_of(1));
  }
  CHECK(
      screen_of(terminal.received(), 100) ==
      Screen{"step 2/2 100 % [##############################] | data_wait 40.0 % | 10.0 steps/s | 0:00, ETA 0:00", ""});
}

TEST_CASE("the line wraps at no width, whatever its text") {
  if (!has_terminals()) return;
  const std::string texts[] = {"",
                               "loss 0.31",
                               std::string(300, 'x'),
                               "\xe6\xad\xa3\xe7\xa2\xba\xe3\x81\xaa\xe6\x90\x8d\xe5\xa4\xb1",
                               "\xc3\xa4\xc3\xb6\xc3\xbc\xf0\x9f\x99\x82",
                               "\x80\x80\x80\xff\xfe"};
  for (unsigned short columns = 1; columns <= 450; columns = static_cast<unsigned short>(columns + 1 + columns / 40)) {
    const Terminal terminal(columns);
    for (const std::string& text : texts) {
      Line line(1350, terminal.get());
      line.text(text);
      TestClock::advance(100ms);
      line.add(record_of(122));
      line.add(record_of(123));
      line.finish();
      const std::string received = terminal.received();
      const Screen screen = screen_of(received.substr(0, received.size() - 1), columns);
      REQUIRE(screen.size() == 1);
      if (columns > 1) REQUIRE(screen[0][0] == 's');
    }
  }
}

namespace {

/// What a terminal of so many columns shows of step 123 of 1350.
std::string shown_at(std::size_t columns, const std::string& text) {
  const Terminal terminal(static_cast<unsigned short>(columns));
  Line line(1350, terminal.get());
  line.text(text);
  TestClock::advance(100ms);
  for (const StepRecord& record : first_steps(123, 32)) line.add(record);
  line.finish();
  return screen_of(terminal.received(), columns).front();
}

}  // namespace

TEST_CASE("where the line does not fit, first the bar, then the rate, then the time give way to the text") {
  if (!has_terminals()) return;
  const std::string whole =
      "step 123/1350 9 % [#-------------------] | data_wait 40.0 % | 320.0 items/s | 0:12, ETA 2:02 | loss 0.31";
  const std::string without_bar = "step 123/1350 9 % | data_wait 40.0 % | 320.0 items/s | 0:12, ETA 2:02 | loss 0.31";
  const std::string without_rate = "step 123/1350 9 % | data_wait 40.0 % | 0:12, ETA 2:02 | loss 0.31";
  const std::string without_time = "step 123/1350 9 % | data_wait 40.0 % | loss 0.31";
  CHECK(shown_at(whole.size() + 1, "loss 0.31") == whole);
  CHECK(shown_at(without_bar.size() + 1, "loss 0.31") == without_bar);
  CHECK(shown_at(without_bar.size(), "loss 0.31") == without_rate);
  CHECK(shown_at(80, "loss 0.31") == without_rate);
  CHECK(shown_at(without_rate.size() + 1, "loss 0.31") == without_rate);
  CHECK(shown_at(without_rate.size(), "loss 0.31") == without_time);
  CHECK(shown_at(without_time.size() + 1, "loss 0.31") == without_time);
}

TEST_CASE("what does not fit is left out by whole fields, those of the text too, and no number is cut") {
  if (!has_terminals()) return;
  const std::string begin = "step 123/1350 9 % | data_wait 40.0 %";
  const std::string two_fields = "epoch 1/30 loss 0.31 | host clock 95.0 %";
  CHECK(shown_at(80, two_fields) == begin + " | " + two_fields);
  CHECK(shown_at(79, two_fields) == begin + " | epoch 1/30 loss 0.31");
  const std::string too_long(100, '7');  // the others come back for a text that cannot be shown anyway
  CHECK(shown_at(80, too_long) == begin + " | 320.0 items/s | 0:12, ETA 2:02");
  CHECK(shown_at(69, too_long) == begin + " | 320.0 items/s");
  CHECK(shown_at(begin.size() + 1, "") == begin);
  CHECK(shown_at(begin.size(), "") == "step 123/1350 9 %");
  CHECK(shown_at(17, "") == "step 123/1350 9");
  CHECK(shown_at(14, "") == "step 123/1350");
  CHECK(shown_at(13, "") == "step");
}

TEST_CASE("no character is cut in two") {
  if (!has_terminals()) return;
  const std::string text = "\xe6\xad\xa3\xe6\xad\xa3\xe6\xad\xa3\xe6\xad\xa3\xe6\xad\xa3\xe6\xad\xa3";
  int whole = 0;
  for (std::size_t columns = 40; columns <= 80; ++columns) {
    const std::string line = shown_at(columns, text);
    if (line.find('\xe6') == std::string::npos) continue;
    CHECK(line.substr(line.rfind(' ') + 1) == text);
    ++whole;
  }
  CHECK(whole == 80 - 57);  // as soon as there is room behind the data wait
}

TEST_CASE("warnings given to print() stand above the line") {
  if (!has_terminals()) return;
  const Terminal terminal(100);
  Line line(0, terminal.get());
  steptimer::StepTimerOptions options;
  options.on_record = std::ref(line);
  options.on_warning = [&](std::string_view warning) { line.print(warning); };
  steptimer::ManualBackend device;
  steptimer::StepTimer timer{device, options};
  for (int step = 0; step < 2; ++step) {
    timer.on_batch_start();
    device.advance(60ms);
    TestClock::advance(100ms);
    timer.on_batch_end();
    device.advance(40ms);
  }
  timer.on_batch_end();
  const Screen screen = screen_of(terminal.received(), 100);
  REQUIRE(screen.size() == 2);
  CHECK(screen[0] == "steptimer: on_batch_end() came without an open step and is ignored");
  CHECK(screen[1] == "step 1 | data_wait 40.0 % | 10.0 steps/s | 0:00");
}

TEST_CASE("a terminal that becomes narrower is drawn on as far as it goes") {
  if (!has_terminals()) return;
  Terminal terminal(100);
  Line line(0, terminal.get());
  line.text("loss 0.31");
  TestClock::advance(100ms);
  line.add(record_of(0));
  (void)terminal.received();
  terminal.resize(20);
  TestClock::advance(100ms);
  line.add(record_of(1));
  CHECK(screen_of(terminal.received(), 20) == Screen{"step 2"});
}

TEST_CASE("a terminal that does not know its width is taken to have 80 columns") {
  if (!has_terminals()) return;
  const std::string begin = "step 1 | data_wait 40.0 %", rest = " | 10.0 steps/s | 0:00";
  for (const std::size_t length : {29, 30}) {  // the rest of a line of 79 columns, and one more
    const Terminal terminal(0);
    Line line(0, terminal.get());
    const std::string text(length, 'x');
    line.text(text);
    line.add(record_of(0));
    line.finish();
    const std::string received = terminal.received();
    CHECK((received.find(begin + rest + " | " + text) != std::string::npos) == (length == 29));
  }
}

TEST_CASE("a terminal that hangs up stops nothing") {
  if (!has_terminals()) return;
  Terminal terminal(100);
  Line line(0, terminal.get());
  terminal.hang_up();
  TestClock::advance(100ms);
  line.add(record_of(0));
  line.print("epoch 1 done");
  line.finish();
}

TEST_CASE("an output that takes nothing stops nothing") {
  std::FILE* full = std::fopen("/dev/full", "w");
  if (full == nullptr) return;
  {
    Line line(0, full, 0s);
    line.add(record_of(0));
    line.print("epoch 1 done");
    close(fileno(full));  // and now it is closed below its feet
    line.add(record_of(1));
  }
  std::fclose(full);
}

TEST_CASE("the real clock limits drawing, too") {
  if (!has_terminals()) return;
  const Terminal terminal(100);
  steptimer::ProgressLine line(0, terminal.get());
  const auto begin = std::chrono::steady_clock::now();
  std::size_t drawn = 0;
  std::uint64_t step = 0;
  while (drawn == 0 && std::chrono::steady_clock::now() - begin < 20s) {
    line.add(record_of(step++));
    drawn += terminal.received().empty() ? 0u : 1u;
  }
  CHECK(drawn == 1);
  CHECK(std::chrono::steady_clock::now() - begin >= 100ms);
}

#endif
