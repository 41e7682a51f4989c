/// tee(a, b, ...): several writers as one on_record.
///
///     options.on_record = steptimer::tee(csv, trace, [&](const steptimer::StepRecord& record) { ... });
#pragma once

#include "detail/macros_keep.hpp"

#include <exception>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "step_record.hpp"

namespace steptimer {
namespace detail {

/// Where tee() has a sink: the caller's own, or one that it was given to keep.
template <class Sink>
auto hold(Sink& sink) noexcept {
  return std::addressof(sink);
}
template <class Sink, class = std::enable_if_t<!std::is_lvalue_reference_v<Sink>>>
auto hold(Sink&& sink) {
  return std::make_shared<std::decay_t<Sink>>(std::forward<Sink>(sink));
}

}  // namespace detail

/// What tee() returns. Copies of it share their sinks.
template <class... Held>
class Tee {
 public:
  /// By tee().
  explicit Tee(Held... sinks) : sinks_(std::move(sinks)...) {}

  /// Hands the record to each sink.
  void operator()(const StepRecord& record) const {
    std::apply([&](const Held&... sinks) { call_all(record, *sinks...); }, sinks_);
  }

 private:
  template <class... Sinks>
  static void call_all(const StepRecord& record, Sinks&... sinks) {
#if defined(__cpp_exceptions)
    std::exception_ptr first_thrown;
    const auto call = [&](auto& sink) {
      try {
        sink(record);
      } catch (...) {
        if (!first_thrown) first_thrown = std::current_exception();
      }
    };
    (call(sinks), ...);
    if (first_thrown) std::rethrow_exception(first_thrown);
#else
    (sinks(record), ...);
#endif
  }

  std::tuple<Held...> sinks_;
};

/// Calls each sink with each record, in the order given.
///
/// Owns:     a sink given as an lvalue stays the caller's and must outlive the tee; one given as an rvalue is kept.
///           Copies of a tee share what it keeps, so that a writer has one state however often on_record is copied.
/// Errors:   a sink that throws keeps no other from the record; the first exception is thrown on after the last sink.
///           A StepTimer then turns on_record off, which is the whole tee. The writers of this library do not throw.
/// Blocking: what the sinks do.
template <class... Sinks>
auto tee(Sinks&&... sinks) {
  static_assert((std::is_invocable_v<Sinks&, const StepRecord&> && ...),
                "steptimer: tee() takes what can be called with a const StepRecord&");
  return Tee<decltype(detail::hold(std::forward<Sinks>(sinks)))...>(detail::hold(std::forward<Sinks>(sinks))...);
}

}  // namespace steptimer

#include "detail/macros_restore.hpp"
