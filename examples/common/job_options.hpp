#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "batch_loader.hpp"
#include "option_table.hpp"
#include "run_program.hpp"
#include "training_options.hpp"

namespace example {

/// What the training programs of several ranks can be told.
struct JobOptions : TrainingOptions {
  std::optional<std::uint32_t> slow_rank;

  void add_to(OptionTable& table, std::size_t max_hidden) {
    TrainingOptions::add_to(table, max_hidden);
    table.add_count("--slow-rank", slow_rank, std::uint32_t{0}, std::uint32_t{65535},
                    "the only rank that --loader-delay-ms slows");
  }

  void check(std::uint32_t ranks) const {
    if (!slow_rank) return;
    if (*slow_rank >= ranks) {
      throw UserError("--slow-rank " + std::to_string(*slow_rank) + " is no rank of this job, whose " +
                      std::to_string(ranks) + " ranks count from 0; name one of them");
    }
    if (loader_delay_ms <= 0) throw UserError("--slow-rank slows nothing by itself; give --loader-delay-ms X with it");
  }

  BatchLoaderOptions loading(std::uint32_t rank) const {
    const bool is_slow = !slow_rank || *slow_rank == rank;
    const auto delay = is_slow ? loader_delay() : std::chrono::nanoseconds{0};
    return {batch, epochs, prefetch, delay, seed + rank};
  }
};

}  // namespace example
