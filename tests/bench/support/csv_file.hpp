// Results of a benchmark as CSV, for the tables and for who wants to look closer.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "../../../examples/common/run_program.hpp"

namespace bench {

/// One value of a row, as text: numbers with a point in any locale, nothing where there is no value (NaN).
class Cell {
 public:
  Cell(std::string_view text) : text_(text) {}  // results hold neither commas nor quotes
  Cell(const char* text) : text_(text) {}
  Cell(std::uint64_t number) : text_(std::to_string(number)) {}
  Cell(int number) : text_(std::to_string(number)) {}
  Cell(double number, int decimals) {
    if (!std::isfinite(number)) return;
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, number);
    text_ = text;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A CSV file, or none where the path is empty: then rows go nowhere.
class CsvFile {
 public:
  CsvFile(const std::string& path, std::string_view header) {
    if (path.empty()) return;
    file_ = std::fopen(path.c_str(), "w");
    if (file_ == nullptr) throw example::UserError(path + " cannot be written; name a file in a folder that exists");
    write(std::string(header));
  }
  ~CsvFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  CsvFile(const CsvFile&) = delete;
  CsvFile& operator=(const CsvFile&) = delete;

  void row(const std::vector<Cell>& cells) {
    std::string line;
    for (const Cell& cell : cells) line += (line.empty() && &cell == cells.data() ? "" : ",") + cell.text();
    write(line);
  }

 private:
  void write(const std::string& line) {
    if (file_ == nullptr) return;
    if (std::fprintf(file_, "%s\n", line.c_str()) < 0 || std::fflush(file_) != 0)
      throw std::runtime_error("the CSV file could not be written; check the disk behind it");
  }

  std::FILE* file_ = nullptr;
};

}  // namespace bench
