#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

#ifdef _WIN32
#include <io.h>
#else
#include <sys/ioctl.h>
#include <unistd.h>
#endif

namespace example {

/// One line of progress on stdout: redrawn in place on a terminal, printed now and then elsewhere.
class StatusLine {
 public:
  explicit StatusLine(bool shown) : shown_(shown) {}
  ~StatusLine() { end(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Whether it is time to show the line again; ask before putting its text together.
  bool due() const { return shown_ && Clock::now() - last_shown_ >= interval_; }

  void show(const std::string& text) {
    if (!shown_) return;
    last_shown_ = Clock::now();
    if (!terminal_) {
      std::printf("%s\n", text.c_str());
    } else {
      // Cut to the width, as a wrapped line cannot be drawn over; padded to cover the text that was there.
      const std::string visible = text.substr(0, terminal_width() - 1);
      const auto padding = static_cast<int>(drawn_ > visible.size() ? drawn_ - visible.size() : 0);
      std::printf("\r%s%*s", visible.c_str(), padding, "");
      drawn_ = visible.size();
    }
    std::fflush(stdout);
  }

  /// Leaves the line as it is; what is printed next starts on a new one.
  void end() {
    if (drawn_ > 0) std::printf("\n");
    std::fflush(stdout);
    drawn_ = 0;
  }

 private:
  using Clock = std::chrono::steady_clock;

#ifdef _WIN32
  static bool is_terminal() { return _isatty(_fileno(stdout)) != 0; }
  static std::size_t terminal_width() { return 80; }
#else
  static bool is_terminal() { return isatty(STDOUT_FILENO) == 1; }
  static std::size_t terminal_width() {
    winsize size{};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col : 80;
  }
#endif

  const bool shown_;
  const bool terminal_ = is_terminal();
  const std::chrono::milliseconds interval_{terminal_ ? 100 : 1000};
  Clock::time_point last_shown_ = Clock::now();
  std::size_t drawn_ = 0;
};

}  // namespace example
