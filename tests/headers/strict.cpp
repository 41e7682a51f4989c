// All headers and all calls; the compiler's options are the test.

#include <all_headers.hpp>
#include <every_call.hpp>

static_assert(STEPTIMER_TEST_CPLUSPLUS <= 202002L ? __cplusplus == STEPTIMER_TEST_CPLUSPLUS : __cplusplus > 202002L,
              "the compiler does not build the standard that it was asked for");
#if defined STEPTIMER_TEST_LIBCXX && !defined _LIBCPP_VERSION
#error "this is not the standard library that was asked for"
#endif
#ifdef STEPTIMER_TEST_FMT_VERSION
static_assert(FMT_VERSION == STEPTIMER_TEST_FMT_VERSION, "this is not the fmt that was asked for");
#endif

double use_every_call();
double use_every_call() { return every_call(); }

// Plain data is given as far as a user likes, and what follows is as it is by default.
std::uint64_t use_plain_data();
std::uint64_t use_plain_data() {
  constexpr std::chrono::nanoseconds ns{1};
  const steptimer::StepRecord record{1, ns, ns, ns, ns, ns, ns, 32, true};
  const steptimer::StepSummary summary{1, 1};
  const steptimer::StepCounts counts{1};
  const steptimer::TimerStatus status{steptimer::TimerState::ok};
  const steptimer::Diagnosis diagnosis{steptimer::Bottleneck::host};
  const steptimer::DiagnosisThresholds thresholds{20};
  const steptimer::StepTimes times{1};
  const steptimer::StepTimerOptions options{};
  std::uint64_t sum = record.step + summary.steps + counts.started + times.step + options.warmup_steps;
  sum += status.error_code == 0 && diagnosis.advice.empty() && thresholds.data_high_percent > 0 ? 1u : 0u;
#if defined __cpp_designated_initializers && __cplusplus > 201703L
  const steptimer::StepRecord named{.step = 1};
  const steptimer::StepTimerOptions named_options{.warmup_steps = 1};
  const steptimer::Diagnosis named_diagnosis{.bottleneck = steptimer::Bottleneck::host};
  sum += named.step + named_options.warmup_steps + named_diagnosis.advice.size();
#endif
  return sum;
}
