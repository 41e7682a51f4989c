#pragma once

#include <cstdint>
#include <random>

namespace example {

/// What random numbers are drawn for: equal seeds give unrelated numbers to different purposes.
enum class RandomUse : std::uint32_t { split, weights, order, augmentation };

/// A generator that depends on its arguments alone, so that no result depends on who draws first.
inline std::mt19937 make_random(std::uint64_t seed, RandomUse use, std::uint64_t number) {
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                         static_cast<std::uint32_t>(use), static_cast<std::uint32_t>(number),
                         static_cast<std::uint32_t>(number >> 32)};
  return std::mt19937(sequence);
}

}  // namespace example
