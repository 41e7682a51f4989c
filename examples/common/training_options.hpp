#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "option_table.hpp"

namespace example {

/// What every training program of this folder can be told.
struct TrainingOptions {
  std::uint64_t epochs = 30;
  std::size_t batch = 32;
  std::size_t hidden = 512;
  std::string data;  // empty: the file that comes with the examples
  double loader_delay_ms = 0;
  std::size_t prefetch = 0;
  std::uint64_t seed = 1;
  bool quiet = false;
  bool json = false;

  std::chrono::nanoseconds loader_delay() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double, std::milli>(loader_delay_ms));
  }

  void add_to(OptionTable& table, std::size_t max_hidden) {
    table.add_count("--epochs", epochs, std::uint64_t{1}, std::uint64_t{100000}, "passes over the digits");
    table.add_count("--batch", batch, std::size_t{1}, std::size_t{65536}, "digits a step");
    table.add_count("--hidden", hidden, std::size_t{2}, max_hidden, "width of the first hidden layer");
    table.add_text("--data", "FILE", data, "the digits to learn (default: the examples' data/digits.csv)");
    table.add_amount("--loader-delay-ms", loader_delay_ms, 60000, "slow storage, sleep a batch");
    table.add_count("--prefetch", prefetch, std::size_t{0}, std::size_t{64}, "loader threads, 0 for none");
    table.add_count("--seed", seed, std::uint64_t{0}, UINT64_MAX, "start of all random numbers");
    table.add_switch("--quiet", quiet, "show no progress, only the summary");
    table.add_switch("--json", json, "end with the summary as one line of JSON");
  }
};

}  // namespace example
