/// NullBackend: the off switch as a type. A StepTimer over it measures nothing and compiles to nothing.
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>

#include "backend.hpp"

namespace steptimer {

/// Takes a timer out of a program without touching a call:
/// `using Timer = steptimer::StepTimer<steptimer::NullBackend>;`. Its status is disabled, its counts stay 0, nothing is
/// called.
class NullBackend : public BackendDefaults {
 public:
  /// The timer leaves its hooks empty and calls none of the functions here.
  static constexpr bool measures = false;
  /// Nothing.
  struct Mark {};

  /// Refuses.
  MarkStatus record(Mark&, HostTime) noexcept { return MarkStatus::refused; }
  /// Refuses.
  MarkStatus query(const Mark&) noexcept { return MarkStatus::refused; }
  /// Refuses.
  MarkStatus elapsed(const Mark&, const Mark&, std::chrono::nanoseconds&) noexcept { return MarkStatus::refused; }
};

static_assert(is_backend_v<NullBackend>);

}  // namespace steptimer

#include "detail/macros_restore.hpp"
