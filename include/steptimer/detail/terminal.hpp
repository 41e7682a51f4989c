/// Whether an output is a terminal, and how wide. Where POSIX is not, nothing is one. Not API.
#pragma once

#include <cstddef>
#include <cstdio>

#if defined(__unix__) || defined(__APPLE__)
#define STEPTIMER_KNOWS_TERMINALS
#include <sys/ioctl.h>
#include <unistd.h>
#endif

namespace steptimer {
namespace detail {

#ifdef STEPTIMER_KNOWS_TERMINALS
inline bool is_terminal(std::FILE* out) noexcept { return isatty(fileno(out)) == 1; }
/// 80 where the terminal does not say.
inline std::size_t terminal_columns(std::FILE* out) noexcept {
  winsize size{};
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}
#else
inline bool is_terminal(std::FILE*) noexcept { return false; }
inline std::size_t terminal_columns(std::FILE*) noexcept { return 80; }
#endif

}  // namespace detail
}  // namespace steptimer

#undef STEPTIMER_KNOWS_TERMINALS
