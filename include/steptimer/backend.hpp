/// What a Backend is: a timeline on which marks are dropped. `is_backend_v<B>` decides, the text here explains.
///
/// The timer drops marks in order (start, end, start, end, ...), asks later whether the timeline has reached one, and
/// then how much time lies between two. CPU and CUDA differ in nothing else. A Backend is movable without throwing
/// and has these members, all noexcept:
///
///     using Mark = ...;     // default-constructible, movable without throwing: a plain value or a handle
///
///     MarkStatus record(Mark& mark, HostTime now);    // drops a mark at the timeline's present end; never waits
///     MarkStatus query(const Mark& mark);             // has the timeline reached it? never waits
///     MarkStatus elapsed(const Mark& from, const Mark& to, std::chrono::nanoseconds& result);
///                                                     // for marks that query() said are reached
///
/// and those of BackendDefaults, which a Backend derives from and replaces where it has something to say.
#pragma once

#include "detail/macros_keep.hpp"

#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>

namespace steptimer {

/// A reading of the host clock.
using HostTime = std::chrono::steady_clock::time_point;

/// A Backend's answer.
enum class MarkStatus {
  ok,         ///< yes: the mark is dropped, reached, measured
  not_ready,  ///< not yet: ask again later
  refused,    ///< no: this mark is lost, the step it belongs to yields no record, the next one may
  lost,       ///< never again: the timeline is gone and the timer turns itself off
};

/// Why a Backend refused or lost something. Static strings.
struct BackendError {
  int code = 0;              ///< the backend's own code; 0 where nothing failed and the mark was only impossible
  const char* call = "";     ///< the call that failed, "" for none
  const char* message = "";  ///< what went wrong, "" for nothing
};

/// The members of a Backend that most need not write.
struct BackendDefaults {
  /// false: the timer compiles to nothing, see NullBackend.
  static constexpr bool measures = true;
  /// false: marks are reached the moment they are dropped, as on the host's own clock.
  static constexpr bool behind_host = true;

  /// The host clock, read once a hook.
  HostTime host_now() const noexcept { return std::chrono::steady_clock::now(); }
  /// Lets host time pass, at most so much, before marks are asked for again; called by finish() alone.
  void host_wait(std::chrono::nanoseconds most) noexcept {
    constexpr std::chrono::nanoseconds between_polls = std::chrono::microseconds{50};
    std::this_thread::sleep_for(most < between_polls ? most : between_polls);
  }

  /// Before a run of query() and elapsed() calls; its argument is the host time of the hook or poll that they belong
  /// to. not_ready puts measuring off to a later call.
  MarkStatus begin_reading(HostTime) noexcept { return MarkStatus::ok; }
  /// After that run, exactly when begin_reading() said ok. No user code runs in between.
  void end_reading() noexcept {}

  /// The timer is done with a mark that the timeline has reached.
  template <class Mark>
  void recycle(Mark&) noexcept {}
  /// The timer is done with a mark that the timeline may not have reached.
  template <class Mark>
  void discard(Mark&) noexcept {}

  /// Gives back all device resources; the backend can be used again. The timer has discarded its marks before.
  void release() noexcept {}
  /// The error behind `lost`, else the first one behind `refused`.
  BackendError error() const noexcept { return {}; }
};

namespace detail {

template <class B, class = void>
struct HasMark : std::false_type {};
template <class B>
struct HasMark<B, std::void_t<typename B::Mark>>
    : std::bool_constant<std::is_default_constructible_v<typename B::Mark> &&
                         std::is_nothrow_move_constructible_v<typename B::Mark> &&
                         std::is_nothrow_move_assignable_v<typename B::Mark>> {};

/// Name<B>::value: whether the expression is valid for a B, gives a Result, and cannot throw.
#define STEPTIMER_DETECT_CALL(Name, Result, ...)     \
  template <class B, class = void>                   \
  struct Name : std::false_type {};                  \
  template <class B>                                 \
  struct Name<B, std::void_t<decltype(__VA_ARGS__)>> \
      : std::bool_constant<noexcept(__VA_ARGS__) && std::is_same_v<decltype(__VA_ARGS__), Result>> {}

STEPTIMER_DETECT_CALL(HasRecord, MarkStatus,
                      std::declval<B&>().record(std::declval<typename B::Mark&>(), std::declval<HostTime>()));
STEPTIMER_DETECT_CALL(HasQuery, MarkStatus, std::declval<B&>().query(std::declval<const typename B::Mark&>()));
STEPTIMER_DETECT_CALL(HasElapsed, MarkStatus,
                      std::declval<B&>().elapsed(std::declval<const typename B::Mark&>(),
                                                 std::declval<const typename B::Mark&>(),
                                                 std::declval<std::chrono::nanoseconds&>()));
STEPTIMER_DETECT_CALL(HasHostNow, HostTime, std::declval<const B&>().host_now());
STEPTIMER_DETECT_CALL(HasHostWait, void, std::declval<B&>().host_wait(std::declval<std::chrono::nanoseconds>()));
STEPTIMER_DETECT_CALL(HasBeginReading, MarkStatus, std::declval<B&>().begin_reading(std::declval<HostTime>()));
STEPTIMER_DETECT_CALL(HasEndReading, void, std::declval<B&>().end_reading());
STEPTIMER_DETECT_CALL(HasRecycle, void, std::declval<B&>().recycle(std::declval<typename B::Mark&>()));
STEPTIMER_DETECT_CALL(HasDiscard, void, std::declval<B&>().discard(std::declval<typename B::Mark&>()));
STEPTIMER_DETECT_CALL(HasRelease, void, std::declval<B&>().release());
STEPTIMER_DETECT_CALL(HasError, BackendError, std::declval<const B&>().error());
#undef STEPTIMER_DETECT_CALL

template <class B>
using IsMovable = std::conjunction<std::is_nothrow_move_constructible<B>, std::is_nothrow_move_assignable<B>>;
template <class B>
using HasDefaults = std::conjunction<HasHostNow<B>, HasHostWait<B>, HasBeginReading<B>, HasEndReading<B>, HasRecycle<B>,
                                     HasDiscard<B>, HasRelease<B>, HasError<B>>;
template <class B>
using IsBackend = std::conjunction<IsMovable<B>, HasMark<B>, HasRecord<B>, HasQuery<B>, HasElapsed<B>, HasDefaults<B>>;

}  // namespace detail

/// True for a type that StepTimer can measure with.
template <class B>
inline constexpr bool is_backend_v = detail::IsBackend<B>::value;

namespace detail {

/// Says in one sentence what a type lacks to be a Backend; only the first thing missing is named.
template <class B>
struct CheckBackend {
  static constexpr bool movable = IsMovable<B>::value;
  static_assert(movable, "steptimer: this is no Backend: it must be movable without throwing (noexcept moves)");
  static constexpr bool marks = movable && HasMark<B>::value;
  static_assert(
      marks || !movable,
      "steptimer: this is no Backend: it lacks a default-constructible type Mark that moves without throwing");
  static constexpr bool records = marks && HasRecord<B>::value;
  static_assert(records || !marks,
                "steptimer: this is no Backend: it lacks `MarkStatus record(Mark&, HostTime) noexcept`");
  static constexpr bool queries = records && HasQuery<B>::value;
  static_assert(queries || !records,
                "steptimer: this is no Backend: it lacks `MarkStatus query(const Mark&) noexcept`");
  static constexpr bool measures = queries && HasElapsed<B>::value;
  static_assert(measures || !queries,
                "steptimer: this is no Backend: it lacks `MarkStatus elapsed(const Mark&, const Mark&, "
                "std::chrono::nanoseconds&) noexcept`");
  static_assert(
      HasDefaults<B>::value || !measures,
      "steptimer: this is no Backend: it must derive from steptimer::BackendDefaults, and what it replaces of "
      "that must keep its signature and noexcept");
  static constexpr bool done = true;
};

}  // namespace detail

}  // namespace steptimer

#include "detail/macros_restore.hpp"
