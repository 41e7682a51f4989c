#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "run_program.hpp"

namespace example {

/// Command-line options: each is added with the variable it sets, then parse() reads argv.
class OptionTable {
 public:
  OptionTable(std::string program, std::string purpose) : program_(std::move(program)), purpose_(std::move(purpose)) {}

  /// An option that takes no value.
  void add_switch(std::string name, bool& target, std::string help) {
    options_.push_back({std::move(name), "", std::move(help), [&target](std::string_view) { target = true; }});
  }

  /// An option that takes any non-empty text.
  void add_text(std::string name, std::string value, std::string& target, std::string help) {
    auto set = [name, value, &target](std::string_view text) {
      if (text.empty()) throw UserError(name + " needs a value (" + value + "), not an empty text");
      target = text;
    };
    options_.push_back({std::move(name), std::move(value), std::move(help), set});
  }

  /// An option that takes a whole number from min to max.
  template <class Integer>
  void add_count(std::string name, Integer& target, Integer min, Integer max, const std::string& help) {
    const std::string wanted = "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
    add_number(std::move(name), "N", wanted, target, min, max, help);
  }

  /// The same for one that may be left away.
  template <class Integer>
  void add_count(std::string name, std::optional<Integer>& target, Integer min, Integer max, const std::string& help) {
    const std::string wanted = "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
    add_number(std::move(name), "N", wanted, target, min, max, help);
  }

  /// An option that takes a decimal number from 0 to max.
  void add_amount(std::string name, double& target, unsigned max, const std::string& help) {
    const std::string wanted = "a number from 0 to " + std::to_string(max);
    add_number(std::move(name), "X", wanted, target, 0.0, static_cast<double>(max), help);
  }

  /// Reads argv. An option may be written `--name value` or `--name=value`; the last one counts.
  ///
  /// Returns: false when --help was asked for (and printed to `out`, if there is one), so that there is nothing left to
  ///          do.
  /// Errors:  UserError for whatever is not in the table or has a wrong value.
  [[nodiscard]] bool parse(int argc, char** argv, std::FILE* out = stdout) const {
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument = argv[i];
      if (argument == "--help") {
        if (out != nullptr) print_help(out);
        return false;
      }
      const auto equals = argument.find('=');
      const std::string name{argument.substr(0, equals)};
      const Option& option = find(name);
      if (option.value.empty()) {
        if (equals != argument.npos) throw UserError(name + " takes no value; write just " + name);
        option.set({});
      } else if (equals != argument.npos) {
        option.set(argument.substr(equals + 1));
      } else {
        const bool has_value = i + 1 < argc && std::string_view(argv[i + 1]).substr(0, 2) != "--";
        if (!has_value) throw UserError(name + " needs a value; write " + name + " " + option.value);
        option.set(argv[++i]);
      }
    }
    return true;
  }

 private:
  struct Option {
    std::string name, value, help;  // value: what to call it in the help, empty for a switch
    std::function<void(std::string_view)> set;
  };

  template <class Number, class Target>
  void add_number(std::string name, std::string value, const std::string& wanted, Target& target, Number min,
                  Number max, const std::string& help) {
    auto set = [name, wanted, &target, min, max](std::string_view text) {
      Number number{};
      const char* const end = text.data() + text.size();
      const auto [stopped_at, error] = std::from_chars(text.data(), end, number);
      const bool in_range = number >= min && number <= max;  // false for a NaN, too
      if (text.substr(0, 1) == "-" || error != std::errc{} || stopped_at != end || !in_range) {
        throw UserError(name + " needs " + wanted + ", not '" + std::string(text) + "'");
      }
      target = number;
    };
    std::string text = help + ": " + wanted + " (default " + short_text(target) + ")";
    options_.push_back({std::move(name), std::move(value), std::move(text), set});
  }

  template <class Number>
  static std::string short_text(Number number) {
    std::string text = std::to_string(number);
    if (text.find('.') == text.npos) return text;
    text.erase(text.find_last_not_of('0') + 1);  // 0.500000 -> 0.5
    if (text.back() == '.') text.pop_back();
    return text;
  }

  template <class Number>
  static std::string short_text(const std::optional<Number>& number) {
    return number ? short_text(*number) : "none";
  }

  const Option& find(const std::string& name) const {
    for (const Option& option : options_) {
      if (option.name == name) return option;
    }
    throw UserError("unknown option '" + name + "'; run " + program_ + " --help to see the options there are");
  }

  void print_help(std::FILE* out) const {
    std::fprintf(out, "%s: %s\n\nOptions:\n", program_.c_str(), purpose_.c_str());
    for (const Option& option : options_) {
      const std::string left = option.name + (option.value.empty() ? "" : " ") + option.value;
      std::fprintf(out, "  %-22s %s\n", left.c_str(), option.help.c_str());
    }
    std::fprintf(out, "  %-22s print this and stop\n", "--help");
  }

  std::string program_, purpose_;
  std::vector<Option> options_;
};

}  // namespace example
