#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "random.hpp"
#include "run_program.hpp"

namespace example {

constexpr std::size_t digit_side = 8;
constexpr std::size_t digit_pixels = digit_side * digit_side;
constexpr std::size_t digit_classes = 10;

/// Handwritten digits: 64 pixels from 0 to 1 and a label from 0 to 9 each.
struct Digits {
  std::vector<float> pixels;
  std::vector<std::uint8_t> labels;

  std::size_t size() const { return labels.size(); }
  const float* image(std::size_t index) const { return pixels.data() + index * digit_pixels; }

  void add(const float* image, std::uint8_t label) {
    pixels.insert(pixels.end(), image, image + digit_pixels);
    labels.push_back(label);
  }
};

/// Reads one line of the file: 64 pixels from 0 to 16, then the label.
///
/// Returns: what is wrong with the line, empty if nothing is.
inline std::string read_digit(std::string_view line, Digits& digits) {
  constexpr unsigned white_to_black = 16;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.empty()) return "is empty";

  float image[digit_pixels];
  const char* at = line.data();
  const char* const end = at + line.size();
  for (std::size_t field = 0;; ++field) {
    const bool is_label = field == digit_pixels;
    const std::string place = is_label ? "the label (value 65)" : "value " + std::to_string(field + 1);
    unsigned value = 0;
    const auto [stopped_at, error] = std::from_chars(at, end, value);
    if (error == std::errc::invalid_argument) return "has no whole number at " + place;
    const unsigned max = is_label ? unsigned{digit_classes} - 1 : white_to_black;
    if (error != std::errc{} || value > max) return "has " + place + " above " + std::to_string(max);
    if (is_label) {
      if (stopped_at != end) return "does not end after its 65 values";
      digits.add(image, static_cast<std::uint8_t>(value));
      return {};
    }
    image[field] = static_cast<float>(value) / static_cast<float>(white_to_black);
    if (stopped_at == end) return "has " + std::to_string(field + 1) + " values instead of 65";
    if (*stopped_at != ',') return "has no comma after " + place;
    at = stopped_at + 1;
  }
}

/// Reads a file of digits.
///
/// Errors: UserError naming the file, the line and what is wrong with it.
inline Digits read_digits(const std::string& file) {
  constexpr std::size_t fewest_digits = 100;
  constexpr std::size_t longest_line = 256;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    throw UserError("there is no data file '" + file + "'; say where the digits are with --data FILE");
  }
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file, ignored)) {
    throw UserError("data file '" + file + "' cannot be read; check that it is a file and its permissions");
  }

  Digits digits;
  char line[longest_line + 1];  // a bound, so that a file without line ends does not fill the memory
  for (std::size_t number = 1; in.peek() != std::ifstream::traits_type::eof(); ++number) {
    in.getline(line, sizeof line);
    const auto length = static_cast<std::size_t>(in.gcount()) - (in.eof() || in.fail() ? 0 : 1);
    const std::string wrong =
        in.fail() ? std::string("is too long") : read_digit(std::string_view(line, length), digits);
    if (!wrong.empty()) {
      throw UserError("data file '" + file + "' is damaged: line " + std::to_string(number) + " " + wrong +
                      "; restore it or give a good one with --data FILE");
    }
  }
  if (in.bad()) throw UserError("data file '" + file + "' could not be read to its end; check the disk");
  if (digits.size() < fewest_digits) {
    throw UserError("data file '" + file + "' is damaged: it ends after line " + std::to_string(digits.size()) +
                    ", and fewer than " + std::to_string(fewest_digits) +
                    " digits are too few to learn from; restore it or give a good one with --data FILE");
  }
  return digits;
}

/// The digits to learn from, and those held out to see what was learned.
struct DigitsSplit {
  Digits training, held_out;
};

/// Holds every fifth digit of a shuffled order out. The order is always the same, so that accuracies can be compared.
inline DigitsSplit split_digits(const Digits& digits) {
  std::vector<std::size_t> order(digits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), make_random(0, RandomUse::split, 0));
  DigitsSplit split;
  for (std::size_t i = 0; i < order.size(); ++i) {
    (i % 5 == 0 ? split.held_out : split.training).add(digits.image(order[i]), digits.labels[order[i]]);
  }
  return split;
}

/// Every ranks-th digit from the rank's own on. All ranks get equally many, so that they take equally many steps; the few
/// that are left over get lost.
inline Digits shard_of(const Digits& digits, std::uint32_t rank, std::uint32_t ranks) {
  Digits shard;
  for (std::size_t i = rank; shard.size() < digits.size() / ranks; i += ranks)
    shard.add(digits.image(i), digits.labels[i]);
  return shard;
}

/// Refuses a batch that holds more digits than there are to learn from.
inline void check_batch_fits(std::size_t batch, const Digits& training, const char* whose = "to learn from") {
  if (batch <= training.size()) return;
  throw UserError("--batch " + std::to_string(batch) + " is more than the " + std::to_string(training.size()) +
                  " digits " + whose + "; use a smaller one");
}

}  // namespace example
