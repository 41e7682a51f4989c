#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace example {

/// One line of JSON: an object of numbers, texts, nulls, and arrays of such objects. Keys and texts must not need escaping.
class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string_view text) { return add_raw(key, '"' + std::string(text) + '"'); }

  JsonObject& add(std::string_view key, std::uint64_t number) { return add_raw(key, std::to_string(number)); }

  /// The shortest text that reads back as the same number, in every locale; null for what JSON has no number for.
  JsonObject& add(std::string_view key, double number) {
    if (!std::isfinite(number)) return add_raw(key, "null");
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number);
    return add_raw(key, std::string_view(text, static_cast<std::size_t>(end - text)));
  }

  JsonObject& add(std::string_view key, std::optional<double> number) {
    return number ? add(key, *number) : add_raw(key, "null");
  }

  JsonObject& add(std::string_view key, const std::vector<JsonObject>& objects) {
    std::string elements;
    for (const JsonObject& object : objects) elements += (elements.empty() ? "" : ", ") + object.str();
    return add_raw(key, '[' + elements + ']');
  }

  std::string str() const { return '{' + members_ + '}'; }

 private:
  JsonObject& add_raw(std::string_view key, std::string_view value) {
    if (!members_.empty()) members_ += ", ";
    ((members_ += '"') += key) += "\": ";
    members_ += value;
    return *this;
  }

  std::string members_;
};

}  // namespace example
