// write_records FOLDER: writes the same records by each writer, and what they hold as plain integers into expected.txt,
// one record a line, "-" for what is absent.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <steptimer/csv_writer.hpp>
#include <steptimer/jsonl_writer.hpp>
#include <steptimer/tee.hpp>
#include <steptimer/trace_writer.hpp>

#include "sample_records.hpp"

namespace {

using std::chrono::nanoseconds;

/// A run of 500 steps, of lengths from nothing to hours, some of them before a pause.
std::vector<steptimer::StepRecord> random_run() {
  std::mt19937_64 random(1);
  const auto time = [&random] {
    return nanoseconds{static_cast<std::int64_t>(random() % 10'000'000'000'000 >> random() % 44)};
  };
  std::vector<steptimer::StepRecord> records;
  nanoseconds now{0};
  for (std::uint64_t step = 0; step < 500; ++step) {
    steptimer::StepRecord record;
    record.step = step;
    record.host_start = now;
    record.batch_time = time();
    record.host_batch_time = time();
    record.items = random();
    record.warmup = step < 5;
    now += record.host_batch_time + time();
    if (step % 7 != 6) {
      record.data_time = time();
      record.wall_gap = record.batch_time + *record.data_time;
      record.host_wall_gap = now - record.host_start;
    }
    records.push_back(record);
  }
  return records;
}

std::string text_of(std::optional<nanoseconds> time) { return time ? std::to_string(time->count()) : "-"; }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  std::ofstream csv(folder + "steps.csv"), jsonl(folder + "steps.jsonl"), trace(folder + "trace.json");
  std::ofstream expected(folder + "expected.txt");
  {
    const auto write = steptimer::tee(steptimer::CsvWriter(csv), steptimer::JsonlWriter(jsonl));
    steptimer::TraceWriter write_trace(trace);
    std::vector<steptimer::StepRecord> records = random_run();
    for (const steptimer::StepRecord& record : records) write_trace(record);
    for (const steptimer::StepRecord& record : sample_records()) records.push_back(record);
    for (const steptimer::StepRecord& record : records) {
      write(record);
      expected << record.step << ' ' << record.host_start.count() << ' ' << record.batch_time.count() << ' '
               << text_of(record.wall_gap) << ' ' << text_of(record.data_time) << ' ' << record.host_batch_time.count()
               << ' ' << text_of(record.host_wall_gap) << ' ' << record.items << ' ' << record.warmup << '\n';
    }
  }
  for (std::ofstream* file : {&csv, &jsonl, &trace, &expected}) file->close();
  return csv && jsonl && trace && expected ? 0 : 1;
}
