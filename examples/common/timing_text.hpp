#pragma once

#include <stdexcept>
#include <steptimer/steptimer.hpp>
#include <string>

#include "training_report.hpp"

namespace example {

/// What a timer has measured, as one line; with fmt at hand, <steptimer/format.hpp> does the same.
inline std::string timing_text(const steptimer::StepSummary& timing) {
  return "data_wait " + known_or_na("%.1f %%", timing.data_wait_percent()) + " | data " +
         known_or_na("%.3f ms", in_milliseconds(timing.data_mean())) + " | batch " +
         known_or_na("%.3f ms", in_milliseconds(timing.batch_mean())) + " | " +
         known_or_na("%.0f", timing.items_per_second()) + " items/s";
}

/// Fails the program with a sentence where what it has printed is not what it is there to show.
inline void expect(bool holds, const std::string& sentence) {
  if (!holds) throw std::runtime_error(sentence);
}

}  // namespace example
