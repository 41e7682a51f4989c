/// CpuBackend: the timeline is the host's own clock.
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>

#include "backend.hpp"

namespace steptimer {

/// Marks are readings of std::chrono::steady_clock, so they are reached the moment they are dropped and host time and
/// timeline are one reading.
///
/// Blocking: never. Threads: no state at all. Errors: none.
class CpuBackend : public BackendDefaults {
 public:
  /// A reading of the clock.
  using Mark = HostTime;
  /// Host and timeline are one.
  static constexpr bool behind_host = false;
  static_assert(HostTime::clock::is_steady, "a clock that is set back would make steps of negative length");

  /// Keeps the reading that the hook has taken; the clock is not read again.
  MarkStatus record(Mark& mark, HostTime now) noexcept {
    mark = now;
    return MarkStatus::ok;
  }
  /// Always ok: a host is where it is.
  MarkStatus query(const Mark&) noexcept { return MarkStatus::ok; }
  /// The difference of two readings.
  MarkStatus elapsed(const Mark& from, const Mark& to, std::chrono::nanoseconds& result) noexcept {
    result = to - from;
    return MarkStatus::ok;
  }
};

static_assert(is_backend_v<CpuBackend>);

}  // namespace steptimer

#include "detail/macros_restore.hpp"
