// write_records FOLDER: writes the same records by each writer, and what they hold as plain integers into expected.txt,
// one record a line, "-" for what is absent. The phases come last, each as its name in hexadecimal, "=" and its time.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <steptimer/csv_writer.hpp>
#include <steptimer/jsonl_writer.hpp>
#include <steptimer/tee.hpp>
#include <steptimer/trace_writer.hpp>

#include "sample_records.hpp"

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// Cuts batch_time into parts, the first of them before any mark.
void add_phases(steptimer::StepRecord& record, std::mt19937_64& random) {
  static constexpr const char* names[] = {"", "forward", "back\"ward", "r\u00e9duction", "tab\tand \\"};
  nanoseconds left = record.batch_time;
  for (const char* name : names)
    record.phases[record.phase_count++] = {name, std::exchange(left, left / (1 + random() % 5))};
  for (std::size_t i = 0; i + 1 < record.phase_count; ++i) record.phases[i].time -= record.phases[i + 1].time;
}

/// A run of 500 steps, of lengths from 1 us to hours, some of them before a pause.
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
    record.batch_time = 1us + time();
    record.host_batch_time = 1us + time();
    record.items = random();
    record.warmup = step < 5;
    now += record.host_batch_time + time();
    if (step % 3 == 0) add_phases(record, random);
    if (step % 7 != 6) {
      record.data_time = time();
      record.wall_gap = record.batch_time + *record.data_time;
      record.host_wall_gap = now - record.host_start;
      if (step % 2 == 0) {
        record.fetch_time = time();
        record.exposed_fetch = (std::min)(*record.fetch_time, *record.data_time);
      }
    }
    if (step % 5 != 4) record.device_drained = step % 5 == 0;
    record.steps_ahead = static_cast<std::uint32_t>(random());
    records.push_back(record);
  }
  return records;
}

std::string hexadecimal(const char* text) {
  std::string digits;
  for (; *text != '\0'; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    digits += "0123456789abcdef"[byte / 16];
    digits += "0123456789abcdef"[byte % 16];
  }
  return digits;
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
               << ' ' << text_of(record.host_wall_gap) << ' ' << record.items << ' ' << record.warmup << ' '
               << text_of(record.fetch_time) << ' ' << text_of(record.exposed_fetch) << ' '
               << (record.device_drained ? std::to_string(*record.device_drained) : "-") << ' ' << record.steps_ahead;
      for (std::size_t i = 0; i < record.phase_count; ++i)
        expected << ' ' << hexadecimal(record.phases[i].name) << '=' << record.phases[i].time.count();
      expected << '\n';
    }
  }
  for (std::ofstream* file : {&csv, &jsonl, &trace, &expected}) file->close();
  return csv && jsonl && trace && expected ? 0 : 1;
}
