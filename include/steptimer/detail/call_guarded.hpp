/// User code called from noexcept functions. Not API.
#pragma once

namespace steptimer {
namespace detail {

/// Calls f and says whether it returned; an exception ends here. Without exception support there is nothing to catch.
template <class F>
bool call_guarded(F&& f) noexcept {
#if defined(__cpp_exceptions)
  try {
    f();
    return true;
  } catch (...) {
    return false;
  }
#else
  f();
  return true;
#endif
}

}  // namespace detail
}  // namespace steptimer
