#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <steptimer/diagnosis.hpp>
#include <steptimer/step_distribution.hpp>
#include <steptimer/steptimer.hpp>
#include <string>
#include <string_view>

#include "json_object.hpp"
#include "score.hpp"

namespace example {

/// Printf, into a string.
template <class... Values>
std::string format_text(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// A number and its unit, or "n/a" for one that is not known.
inline std::string known_or_na(const char* format, std::optional<double> number) {
  return number ? format_text(format, *number) : "n/a";
}

/// Whether the device runs behind the host, so that a host clock would claim something else than the timer.
enum class Device { host, behind_host };

/// Between two lines of progress where the output is no terminal.
constexpr std::chrono::seconds progress_interval{1};

/// What a training program adds to its line of progress. Before a loss was read there is none to be shown.
inline std::string progress_text(std::uint64_t epoch, std::uint64_t epochs, const Score& score) {
  std::string text =
      format_text("epoch %llu/%llu", static_cast<unsigned long long>(epoch), static_cast<unsigned long long>(epochs));
  if (score.digits > 0) text += format_text(" loss %.3f acc %.1f %%", score.loss(), 100 * score.accuracy());
  return text;
}

/// What a host clock alone would claim where the line says data_wait.
inline std::string host_clock_text(const steptimer::StepSummary& window) {
  return " | host clock " + known_or_na("%.1f %%", window.host_data_wait_percent());
}

/// What a training program has to say at its end.
struct TrainingReport {
  Score held_out;
  std::uint64_t steps = 0;  // all that were trained, whether measured or not
  steptimer::StepSummary timing;
  steptimer::StepDistribution distribution;
  steptimer::TimerStatus timer_status;
};

inline std::optional<double> in_seconds(std::optional<std::chrono::nanoseconds> time) {
  if (!time) return std::nullopt;
  return std::chrono::duration<double>(*time).count();
}

inline std::optional<double> in_milliseconds(std::optional<std::chrono::nanoseconds> time) {
  if (!time) return std::nullopt;
  return std::chrono::duration<double, std::milli>(*time).count();
}

/// Half of the steps took no longer than p50, 99 of 100 no longer than p99, and one took longest of all.
inline void print_quantiles(const steptimer::DurationDistribution& times, const char* where) {
  if (times.count() == 0) return;  // not every program keeps them
  std::printf("           p50 %s, p95 %s, p99 %s, worst %s ms",
              known_or_na("%.3f", in_milliseconds(times.p50())).c_str(),
              known_or_na("%.3f", in_milliseconds(times.p95())).c_str(),
              known_or_na("%.3f", in_milliseconds(times.p99())).c_str(),
              known_or_na("%.3f", in_milliseconds(times.longest())).c_str());
  if (const auto step = times.longest_step())
    std::printf(" %s step %llu", where, static_cast<unsigned long long>(*step));
  std::printf("\n");
}

inline void print_summary(const TrainingReport& report, Device device) {
  const steptimer::StepSummary& timing = report.timing;
  std::printf("accuracy   %.2f %% of %u held-out digits after %llu steps\n", 100 * report.held_out.accuracy(),
              report.held_out.digits, static_cast<unsigned long long>(report.steps));
  std::printf("batch      %s ms a step on average, %s steps/s, %s digits/s\n",
              known_or_na("%.3f", in_milliseconds(timing.batch_mean())).c_str(),
              known_or_na("%.0f", timing.steps_per_second()).c_str(),
              known_or_na("%.0f", timing.items_per_second()).c_str());
  print_quantiles(report.distribution.batch_time, "in");
  for (std::size_t i = 0; i < timing.phase_count; ++i) {
    const steptimer::PhaseTotal& phase = timing.phases[i];
    const auto mean = phase.total / static_cast<std::int64_t>(phase.steps);
    if (phase.name[0] != '\0')
      std::printf("           %s %s ms\n", phase.name, known_or_na("%.3f", in_milliseconds(mean)).c_str());
  }
  std::printf("data       %s ms between two steps on average\n",
              known_or_na("%.3f", in_milliseconds(timing.data_mean())).c_str());
  print_quantiles(report.distribution.data_time, "after");
  std::printf("data_wait  %s", known_or_na("%.1f %%", timing.data_wait_percent()).c_str());
  if (device == Device::behind_host) {
    std::printf(" (a host clock alone would have claimed %s)",
                known_or_na("%.1f %%", timing.host_data_wait_percent()).c_str());
  }
  std::printf("\nverdict    %s\n", steptimer::diagnose(timing).advice.c_str());
  if (report.timer_status.state == steptimer::TimerState::failed) {
    std::printf("timer      turned itself off: %s: %s\n", report.timer_status.call, report.timer_status.message);
  }
}

/// One line for programs to read; null for what is not known.
inline JsonObject to_json(const char* program, const TrainingReport& report) {
  const steptimer::StepSummary& timing = report.timing;
  return JsonObject()
      .add("program", std::string_view(program))
      .add("accuracy", report.held_out.accuracy())
      .add("loss", report.held_out.loss())
      .add("data_wait_percent", timing.data_wait_percent())
      .add("host_data_wait_percent", timing.host_data_wait_percent())
      .add("steps", report.steps)
      .add("measured_steps", timing.steps)
      .add("batch_mean_s", in_seconds(timing.batch_mean()))
      .add("data_mean_s", in_seconds(timing.data_mean()))
      .add("steps_per_second", timing.steps_per_second());
}

inline void print_json(const char* program, const TrainingReport& report) {
  std::printf("%s\n", to_json(program, report).str().c_str());
}

}  // namespace example
