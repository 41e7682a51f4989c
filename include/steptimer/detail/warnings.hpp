/// One sentence a kind of trouble, to the caller's function or to stderr. Not API.
#pragma once

#include <atomic>
#include <cstdio>
#include <functional>
#include <string_view>
#include <utility>

#include "../backend.hpp"
#include "call_guarded.hpp"

namespace steptimer {
namespace detail {

/// The kinds of trouble a timer warns of. Each is told once.
enum class Trouble : unsigned {
  start_without_end,
  end_without_start,
  too_many_in_flight,
  mark_refused,
  phase_refused,
  timeline_lost,
  on_record_threw,
};

/// Kinds already told on stderr, for the whole process: many timers, one line.
inline std::atomic<unsigned> told_on_stderr{0};

class Warnings {
 public:
  explicit Warnings(std::function<void(std::string_view)> sink) : sink_(std::move(sink)), has_sink_(sink_ != nullptr) {}

  void tell(Trouble kind) noexcept { tell(kind, BackendError{}); }

  /// `why` is added to the sentence where it says something.
  void tell(Trouble kind, BackendError why) noexcept {
    const unsigned bit = 1u << static_cast<unsigned>(kind);
    if ((told_ & bit) != 0) return;
    told_ |= bit;
    if (!has_sink_ && (told_on_stderr.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
    char line[400];
    const int length = *why.message == '\0' ? std::snprintf(line, sizeof line, "steptimer: %s", sentence(kind))
                                            : std::snprintf(line, sizeof line, "steptimer: %s (%s: %s, code %d)",
                                                            sentence(kind), why.call, why.message, why.code);
    if (length <= 0) return;
    if (!has_sink_) {
      std::fprintf(stderr, "%s\n", line);
    } else if (!sink_threw_) {
      sink_threw_ = !call_guarded([&] { sink_(std::string_view(line)); });  // kept: a call of it may be going on
    }
  }

 private:
  static const char* sentence(Trouble kind) noexcept {
    switch (kind) {
      case Trouble::start_without_end:
        return "on_batch_start() came before the last step's on_batch_end(); the unfinished step is dropped";
      case Trouble::end_without_start: return "on_batch_end() came without an open step and is ignored";
      case Trouble::too_many_in_flight:
        return "max_in_flight steps are waiting for the device; until it catches up further steps are skipped as stale";
      case Trouble::mark_refused:
        return "a step could not be marked or measured and is counted as failed; the timer goes on";
      case Trouble::phase_refused:
        return "mark() could not drop a mark; it is counted in ignored_marks, and the step is measured without the "
               "phase";
      case Trouble::timeline_lost:
        return "the device cannot be asked for times; the timer has turned itself off, your program goes on";
      case Trouble::on_record_threw: return "on_record threw an exception and is not called again; measuring goes on";
    }
    return "";
  }

  std::function<void(std::string_view)> sink_;
  bool has_sink_ = false;
  bool sink_threw_ = false;
  unsigned told_ = 0;
};

}  // namespace detail
}  // namespace steptimer
