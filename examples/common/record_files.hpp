#pragma once

#include <cstdio>
#include <fstream>
#include <optional>
#include <steptimer/csv_writer.hpp>
#include <steptimer/jsonl_writer.hpp>
#include <steptimer/step_record.hpp>
#include <steptimer/trace_writer.hpp>
#include <string>

#include "option_table.hpp"
#include "run_program.hpp"

namespace example {

/// A file of records, where one was asked for.
template <class Writer>
class RecordFile {
 public:
  explicit RecordFile(const char* option) : option_(option) {}

  void add_to(OptionTable& table, const char* help) { table.add_text(option_, "FILE", path_, help); }
  bool wanted() const { return !path_.empty(); }

  void open() {
    if (!wanted()) return;
    file_.open(path_, std::ios::binary | std::ios::trunc);
    if (!file_) {
      throw UserError(std::string(option_) + " '" + path_ + "' cannot be written; name a file in a folder that exists");
    }
    writer_.emplace(file_);
  }

  void operator()(const steptimer::StepRecord& record) {
    if (writer_) (*writer_)(record);
  }

  /// Closes the file and says where it is, and what is missing in it if anything is.
  void close_and_print() {
    if (!writer_) return;
    writer_->flush();
    const auto lost = static_cast<unsigned long long>(writer_->lost());
    writer_.reset();
    file_.close();
    std::printf("%-10s %s", option_ + 2, path_.c_str());
    if (lost > 0) std::printf(" (incomplete: %llu steps could not be written)", lost);
    std::printf("\n");
  }

 private:
  const char* option_;
  std::string path_;
  std::ofstream file_;
  std::optional<Writer> writer_;
};

/// What each step took, in files for spreadsheets, programs and trace viewers.
class RecordFiles {
 public:
  void add_to(OptionTable& table) {
    csv_.add_to(table, "write each step as a row, for spreadsheets");
    jsonl_.add_to(table, "write each step as a line of JSON, for programs");
    trace_.add_to(table, "write each step as trace events, for ui.perfetto.dev");
  }

  void open() {
    csv_.open();
    jsonl_.open();
    trace_.open();
  }

  void operator()(const steptimer::StepRecord& record) {
    csv_(record);
    jsonl_(record);
    trace_(record);
  }

  void close_and_print() {
    csv_.close_and_print();
    jsonl_.close_and_print();
    trace_.close_and_print();
  }

 private:
  RecordFile<steptimer::CsvWriter> csv_{"--csv"};
  RecordFile<steptimer::JsonlWriter> jsonl_{"--jsonl"};
  RecordFile<steptimer::TraceWriter> trace_{"--trace"};
};

}  // namespace example
