// What the types of the API are, whatever they do: copying, moving, noexcept, results.

#include <chrono>
#include <cstdint>
#include <optional>
#include <steptimer/steptimer.hpp>
#include <type_traits>
#include <utility>

using namespace steptimer;
using std::chrono::nanoseconds;

// Plain data: can be copied, and those that are sent between processes are bytes.
static_assert(std::is_copy_constructible_v<StepRecord>);
static_assert(std::is_copy_assignable_v<StepRecord>);
static_assert(std::is_nothrow_move_constructible_v<StepRecord>);
static_assert(std::is_nothrow_move_assignable_v<StepRecord>);
static_assert(std::is_trivially_copyable_v<StepSummary>);
static_assert(std::is_standard_layout_v<StepSummary>);
static_assert(std::is_trivially_copyable_v<StepCounts>);
static_assert(std::is_copy_constructible_v<StepTimerOptions>);

// The type carries the unit.
static_assert(std::is_same_v<decltype(StepRecord::batch_time), nanoseconds>);
static_assert(std::is_same_v<decltype(StepRecord::host_start), nanoseconds>);
static_assert(std::is_same_v<decltype(StepRecord::host_batch_time), nanoseconds>);
static_assert(std::is_same_v<decltype(StepRecord::wall_gap), std::optional<nanoseconds>>);
static_assert(std::is_same_v<decltype(StepRecord::data_time), std::optional<nanoseconds>>);
static_assert(std::is_same_v<decltype(StepRecord::host_wall_gap), std::optional<nanoseconds>>);
static_assert(std::is_same_v<decltype(StepRecord::step), std::uint64_t>);
static_assert(std::is_same_v<decltype(StepSummary::batch_total), nanoseconds>);
static_assert(std::is_same_v<decltype(StepSummary::data_total), nanoseconds>);

// What may be missing is optional, not 0.
using Percent = std::optional<double>;
using Duration = std::optional<nanoseconds>;
static_assert(std::is_same_v<decltype(std::declval<const StepRecord&>().data_wait_percent()), Percent>);
static_assert(std::is_same_v<decltype(std::declval<const StepRecord&>().host_data_wait_percent()), Percent>);
static_assert(std::is_same_v<decltype(std::declval<const StepSummary&>().data_wait_percent()), Percent>);
static_assert(std::is_same_v<decltype(std::declval<const StepSummary&>().host_data_wait_percent()), Percent>);
static_assert(std::is_same_v<decltype(std::declval<const StepSummary&>().batch_mean()), Duration>);
static_assert(std::is_same_v<decltype(std::declval<const StepSummary&>().data_mean()), Duration>);
static_assert(std::is_same_v<decltype(std::declval<const StepSummary&>().steps_per_second()), Percent>);
static_assert(std::is_same_v<decltype(std::declval<const StepSummary&>().items_per_second()), Percent>);
static_assert(std::is_same_v<decltype(merge(StepSummary{}, StepSummary{})), StepSummary>);

// The timer, over every backend of the core.
template <class Timer>
constexpr bool timer_holds() {
  static_assert(!std::is_copy_constructible_v<Timer>);
  static_assert(!std::is_copy_assignable_v<Timer>);
  static_assert(std::is_nothrow_move_constructible_v<Timer>);
  static_assert(std::is_nothrow_move_assignable_v<Timer>);
  static_assert(std::is_nothrow_destructible_v<Timer>);

  static_assert(noexcept(std::declval<Timer&>().on_batch_start()));
  static_assert(noexcept(std::declval<Timer&>().on_batch_end()));
  static_assert(noexcept(std::declval<Timer&>().on_batch_end(64)));
  static_assert(noexcept(std::declval<Timer&>().step()));
  static_assert(noexcept(std::declval<Timer&>().step(64)));
  static_assert(noexcept(std::declval<Timer&>().pause()));
  static_assert(noexcept(std::declval<Timer&>().poll()));
  static_assert(noexcept(std::declval<Timer&>().finish()));
  static_assert(noexcept(std::declval<Timer&>().finish(std::declval<nanoseconds>())));
  static_assert(noexcept(std::declval<Timer&>().release()));
  static_assert(noexcept(std::declval<Timer&>().reset()));

  static_assert(std::is_same_v<decltype(std::declval<Timer&>().poll()), std::size_t>);
  static_assert(std::is_same_v<decltype(std::declval<Timer&>().finish()), bool>);
  static_assert(std::is_same_v<decltype(std::declval<const Timer&>().last()), std::optional<StepRecord>>);
  static_assert(std::is_same_v<decltype(std::declval<const Timer&>().data_wait_percent()), Percent>);
  static_assert(std::is_same_v<decltype(std::declval<const Timer&>().window()), StepSummary>);
  static_assert(std::is_same_v<decltype(std::declval<const Timer&>().total()), StepSummary>);
  static_assert(std::is_same_v<decltype(std::declval<const Timer&>().counts()), StepCounts>);
  static_assert(std::is_same_v<decltype(std::declval<const Timer&>().status()), TimerStatus>);

  using Scope = decltype(std::declval<Timer&>().step());
  static_assert(!std::is_copy_constructible_v<Scope>);
  static_assert(!std::is_copy_assignable_v<Scope>);
  static_assert(std::is_nothrow_destructible_v<Scope>);
  return true;
}
static_assert(timer_holds<CpuTimer>());
static_assert(timer_holds<StepTimer<ManualBackend>>());
static_assert(timer_holds<StepTimer<NullBackend>>());
static_assert(std::is_same_v<CpuTimer, StepTimer<CpuBackend>>);
static_assert(std::is_same_v<CpuTimer, StepTimer<>>);
static_assert(std::is_default_constructible_v<CpuTimer>);
static_assert(!std::is_convertible_v<CpuBackend, CpuTimer>, "a timer is made on purpose");
