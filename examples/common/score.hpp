#pragma once

#include <cstddef>

namespace example {

/// How well some digits were told apart, as sums, so that scores can be added.
struct Score {
  float loss_sum = 0;
  unsigned correct = 0;
  unsigned digits = 0;

  double loss() const { return digits == 0 ? 0.0 : static_cast<double>(loss_sum) / digits; }
  double accuracy() const { return digits == 0 ? 0.0 : static_cast<double>(correct) / digits; }

  Score& operator+=(const Score& other) {
    loss_sum += other.loss_sum;
    correct += other.correct;
    digits += other.digits;
    return *this;
  }
};

}  // namespace example
