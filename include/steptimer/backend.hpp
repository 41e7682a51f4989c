/// What a Backend is: a timeline on which marks are dropped. is_backend_v<B> decides, the text here explains.
///
/// The timer drops marks in order (start, end, start, end, ...), asks later whether the timeline has reached
/// one, and then how much time lies between two. CPU and CUDA differ in nothing else. A Backend is movable
/// without throwing and has these members, all noexcept:
///
///     using Mark = ...;              default-constructible, movable without throwing: a plain value or
///     handle MarkStatus record(Mark& mark, HostTime now);           drops a mark at the timeline's present
///     end; never waits MarkStatus query(const Mark& mark);                    has the timeline reached it?
///     never waits MarkStatus elapsed(const Mark& from, const Mark& to, std::chrono::nanoseconds& result);
///                                                            for marks that query() said are reached
///
/// and those of BackendDefaults, which a Backend derives from and replaces where it has something to say.
#pragma once

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
  int code = 0;  ///< the backend's own code; 0 where nothing failed and the mark was only impossible
  const char* call = "";
  const char* message = "";
};

/// The members of a Backend that most need not write.
struct BackendDefaults {
  /// false: the timer compiles to nothing, see NullBackend.
  static constexpr bool measures = true;

  /// The host clock, read once a hook.
  HostTime host_now() const noexcept { return std::chrono::steady_clock::now(); }
  /// Lets about that much host time pass; called by finish() alone.
  void host_wait(std::chrono::nanoseconds duration) noexcept { std::this_thread::sleep_for(duration); }

  /// Around a run of query() and elapsed() calls. not_ready from begin_reading() puts measuring off to a
  /// later call; end_reading() follows exactly when begin_reading() said ok. No user code runs in between.
  MarkStatus begin_reading() noexcept { return MarkStatus::ok; }
  void end_reading() noexcept {}

  /// The timer is done with a mark that the timeline has reached (recycle) or may not have reached (discard).
  template <class Mark>
  void recycle(Mark&) noexcept {}
  template <class Mark>
  void discard(Mark&) noexcept {}

  /// Gives back all device resources; the backend can be used again. The timer has discarded its marks
  /// before.
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

/// Whether Call<B> is a valid, noexcept expression with a given result: one test for every member below.
template <template <class> class Call, class Result, class B, class = void>
struct HasCall : std::false_type {};
template <template <class> class Call, class Result, class B>
struct HasCall<Call, Result, B, std::void_t<typename Call<B>::result>>
    : std::bool_constant<std::is_same_v<typename Call<B>::result, Result> && Call<B>::nothrow> {};

#define STEPTIMER_DETECT_CALL(Name, ...)                   \
  template <class B>                                       \
  struct Name {                                            \
    using result = decltype(__VA_ARGS__);                  \
    static constexpr bool nothrow = noexcept(__VA_ARGS__); \
  }
STEPTIMER_DETECT_CALL(RecordCall,
                      std::declval<B&>().record(std::declval<typename B::Mark&>(), std::declval<HostTime>()));
STEPTIMER_DETECT_CALL(QueryCall, std::declval<B&>().query(std::declval<const typename B::Mark&>()));
STEPTIMER_DETECT_CALL(ElapsedCall, std::declval<B&>().elapsed(std::declval<const typename B::Mark&>(),
                                                              std::declval<const typename B::Mark&>(),
                                                              std::declval<std::chrono::nanoseconds&>()));
STEPTIMER_DETECT_CALL(HostNowCall, std::declval<const B&>().host_now());
STEPTIMER_DETECT_CALL(HostWaitCall, std::declval<B&>().host_wait(std::declval<std::chrono::nanoseconds>()));
STEPTIMER_DETECT_CALL(BeginReadingCall, std::declval<B&>().begin_reading());
STEPTIMER_DETECT_CALL(EndReadingCall, std::declval<B&>().end_reading());
STEPTIMER_DETECT_CALL(RecycleCall, std::declval<B&>().recycle(std::declval<typename B::Mark&>()));
STEPTIMER_DETECT_CALL(DiscardCall, std::declval<B&>().discard(std::declval<typename B::Mark&>()));
STEPTIMER_DETECT_CALL(ReleaseCall, std::declval<B&>().release());
STEPTIMER_DETECT_CALL(ErrorCall, std::declval<const B&>().error());
#undef STEPTIMER_DETECT_CALL

template <class B>
inline constexpr bool is_movable_v =
    std::is_nothrow_move_constructible_v<B>&& std::is_nothrow_move_assignable_v<B>;
template <class B>
inline constexpr bool has_mark_v = HasMark<B>::value;
template <class B>
inline constexpr bool has_record_v = HasCall<RecordCall, MarkStatus, B>::value;
template <class B>
inline constexpr bool has_query_v = HasCall<QueryCall, MarkStatus, B>::value;
template <class B>
inline constexpr bool has_elapsed_v = HasCall<ElapsedCall, MarkStatus, B>::value;
template <class B>
inline constexpr bool has_defaults_v =
    HasCall<HostNowCall, HostTime, B>::value&& HasCall<HostWaitCall, void, B>::value&&
        HasCall<BeginReadingCall, MarkStatus, B>::value&& HasCall<EndReadingCall, void, B>::value&&
            HasCall<RecycleCall, void, B>::value&& HasCall<DiscardCall, void, B>::value&&
                HasCall<ReleaseCall, void, B>::value&& HasCall<ErrorCall, BackendError, B>::value;

}  // namespace detail

/// True for a type that StepTimer can measure with.
template <class B>
inline constexpr bool is_backend_v = detail::is_movable_v<B>&& detail::has_mark_v<B>&&
    detail::has_record_v<B>&& detail::has_query_v<B>&& detail::has_elapsed_v<B>&& detail::has_defaults_v<B>;

namespace detail {

/// Says in one sentence what a type lacks to be a Backend; only the first thing missing is named.
template <class B>
struct CheckBackend {
  static_assert(is_movable_v<B>,
                "steptimer: this is no Backend: it must be movable without throwing (noexcept moves)");
  static constexpr bool movable = is_movable_v<B>;
  static_assert(!movable || has_mark_v<B>,
                "steptimer: this is no Backend: it lacks a default-constructible type Mark that moves "
                "without throwing");
  static constexpr bool marked = movable && has_mark_v<B>;
  static_assert(!marked || has_record_v<B>,
                "steptimer: this is no Backend: it lacks `MarkStatus record(Mark&, HostTime) noexcept`");
  static constexpr bool records = marked && has_record_v<B>;
  static_assert(!records || has_query_v<B>,
                "steptimer: this is no Backend: it lacks `MarkStatus query(const Mark&) noexcept`");
  static constexpr bool queries = records && has_query_v<B>;
  static_assert(!queries || has_elapsed_v<B>,
                "steptimer: this is no Backend: it lacks `MarkStatus elapsed(const Mark&, const Mark&, "
                "std::chrono::nanoseconds&) noexcept`");
  static_assert(!(queries && has_elapsed_v<B>) || has_defaults_v<B>,
                "steptimer: this is no Backend: it must derive from steptimer::BackendDefaults, and what it "
                "replaces of "
                "that must keep its signature and noexcept");
  static constexpr bool passed = is_backend_v<B>;
};

}  // namespace detail

}  // namespace steptimer
