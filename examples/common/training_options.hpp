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
  std::uint64_t sync_every = 10;
  bool phases = false;
  bool quiet = false;
  bool json = false;

  std::chrono::nanoseconds loader_delay() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double, std::milli>(loader_delay_ms));
  }

  /// Whether a program that runs ahead of its device reads the loss in this step, counted from 1 in each epoch.
  bool reads_loss(std::uint64_t step, std::uint64_t steps_per_epoch) const {
    return step == steps_per_epoch || (sync_every != 0 && step % sync_every == 0);
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

  void add_phases_to(OptionTable& table) { table.add_switch("--phases", phases, "measure forward and backward apart"); }

  void add_sync_every_to(OptionTable& table) {
    table.add_count("--sync-every", sync_every, std::uint64_t{0}, std::uint64_t{1000000},
                    "read the loss every N steps, 0 for epoch ends only");
  }
};

}  // namespace example
