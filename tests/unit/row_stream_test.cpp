// What all writers do when their stream fails, and when they flush it.

#include <steptimer/csv_writer.hpp>
#include <steptimer/jsonl_writer.hpp>
#include <steptimer/trace_writer.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/failing_stream.hpp"
#include "support/sample_records.hpp"

using namespace std::chrono_literals;
using steptimer::CsvWriter;
using steptimer::JsonlWriter;
using steptimer::TraceWriter;

namespace {

struct Warnings {
  std::vector<std::string> lines;
  auto sink() {
    return [this](std::string_view line) { lines.emplace_back(line); };
  }
};

class TemporaryFile {
 public:
  TemporaryFile() {
    const int file = mkstemp(path_);
    REQUIRE(file >= 0);
    close(file);
  }
  ~TemporaryFile() { std::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const char* path() const { return path_; }
  std::string text() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  char path_[32] = "/tmp/steptimer_test_XXXXXX";
};

template <class Writer>
std::string all_of(int records) {
  std::ostringstream out;
  {
    Writer write(out);
    for (int i = 0; i < records; ++i) write(record_with_gap());
  }
  return out.str();
}

}  // namespace

TEMPLATE_TEST_CASE("a stream that fails anywhere costs one warning and the records after it", "", CsvWriter,
                   JsonlWriter, TraceWriter) {
  const std::string whole = all_of<TestType>(8);
  const std::size_t room = GENERATE_COPY(take(40, random(std::size_t{0}, whole.size() - 1)));
  const bool throws = GENERATE(false, true);
  FailingStream out(room);
  if (throws) out.exceptions(std::ios::badbit | std::ios::failbit);
  Warnings warnings;
  {
    TestType write(out, warnings.sink());
    for (int i = 0; i < 8; ++i) write(record_with_gap());
    const bool only_the_closing_bracket_is_missing =
        room >= whole.size() - 2 && whole.substr(whole.size() - 2) == "]\n";
    CHECK((write.lost() > 0) != only_the_closing_bracket_is_missing);
    CHECK(write.lost() <= 8);
  }
  CHECK(out.written() == whole.substr(0, room));
  CHECK(warnings.lines.size() == 1);
}

TEMPLATE_TEST_CASE("once a stream has failed nothing more is written, even if it could be", "", CsvWriter, JsonlWriter,
                   TraceWriter) {
  FailingStream out(1000);
  Warnings warnings;
  {
    TestType write(out, warnings.sink());
    out.setstate(std::ios::badbit);
    write(record_with_gap());
    out.clear();
    const std::string before = out.written();
    for (int i = 0; i < 3; ++i) write(record_with_gap());
    write.flush();
    CHECK(out.written() == before);
    CHECK(write.lost() == 4);
  }
  REQUIRE(warnings.lines.size() == 1);
}

TEST_CASE("rows that were waiting when a flush failed are counted as lost") {
  std::ofstream full("/dev/full");
  if (!full) return;  // only Linux has it
  Warnings warnings;
  CsvWriter csv(full, warnings.sink());
  csv({});
  csv({});
  CHECK(csv.lost() == 0);
  csv.flush();
  CHECK(csv.lost() == 2);
  csv({});
  CHECK(csv.lost() == 3);
  REQUIRE(warnings.lines.size() == 1);
  CHECK(warnings.lines[0] ==
        "steptimer: CsvWriter could not write to its stream; it drops further records and counts them in lost(): check "
        "the disk, pipe or file behind the stream");
}

TEST_CASE("rows that a flush has handed on are not lost by a later failure") {
  FailingStream out(100000);
  Warnings warnings;
  CsvWriter csv(out, warnings.sink());
  csv({});
  csv.flush();
  out.setstate(std::ios::badbit);
  csv({});
  CHECK(csv.lost() == 1);
}

TEST_CASE("a file that is closed early costs one warning") {
  TemporaryFile file;
  Warnings warnings;
  {
    std::ofstream out(file.path());
    CsvWriter csv(out, warnings.sink());
    csv({});
    out.close();
    csv({});
    csv.flush();
    csv({});
    CHECK(csv.lost() == 3);  // the first is in the file, but the writer did not see it get there
  }
  CHECK(warnings.lines.size() == 1);
  const std::string text = file.text();
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
}

TEST_CASE("a file that was never opened costs one warning") {
  Warnings warnings;
  std::ofstream never("no_such_folder/steps.csv");
  CsvWriter csv(never, warnings.sink());
  csv(record_with_gap());
  CHECK(csv.lost() == 1);
  CHECK(warnings.lines.size() == 1);
}

TEST_CASE("a warning that throws ends in the writer") {
  FailingStream out(0);
  CsvWriter csv(out, [](std::string_view) { throw std::runtime_error("no"); });
  csv(record_with_gap());
  CHECK(csv.lost() == 1);
}

TEST_CASE("each row is one write") {
  FailingStream out(100000);
  CsvWriter csv(out);
  for (int i = 0; i < 7; ++i) csv(record_with_gap());
  CHECK(out.writes() == 1 + 7);
}

TEST_CASE("a row is flushed before the buffer of a file could run over, so that it is never cut") {
  FailingStream out(1000000);
  CsvWriter csv(out);
  std::size_t flushed = 0;
  int flushes = 0;
  for (int i = 0; i < 200; ++i) {
    const std::size_t before = out.written().size();
    csv({});
    if (out.flushes() != flushes) {
      flushes = out.flushes();
      flushed = before;
    }
    REQUIRE(out.written().size() - flushed <= 3000);
  }
  CHECK(flushes > 0);
  CHECK(flushes <= 10);
}

TEMPLATE_TEST_CASE("whatever the moment a program dies, its file ends with a whole row", "", CsvWriter, JsonlWriter,
                   TraceWriter) {
  TemporaryFile file;
  std::ofstream out(file.path());
  TestType write(out);
  for (int i = 0; i < 100; ++i) {
    write({});
    const std::string text = file.text();
    REQUIRE((text.empty() || text.back() == '\n'));
  }
  CHECK(file.text().size() > 2000);
}

TEST_CASE("a row that begins a second after the last flush is flushed at once") {
  FailingStream out(100000);
  CsvWriter csv(out);
  const auto flushes_at = [&](std::chrono::nanoseconds host_start) {
    steptimer::StepRecord record;
    record.host_start = host_start;
    const int before = out.flushes();
    csv(record);
    return out.flushes() - before;
  };
  CHECK(flushes_at(0s) == 0);
  CHECK(flushes_at(1s - 1ns) == 0);
  CHECK(flushes_at(1s) == 1);
  CHECK(flushes_at(2s - 1ns) == 0);
  CHECK(flushes_at(10s) == 1);
  CHECK(flushes_at(0s) == 1);  // the timer was reset
  CHECK(flushes_at(999ms) == 0);
}

TEST_CASE("a writer that ends has flushed its stream") {
  FailingStream out(100000);
  { CsvWriter csv(out); }
  CHECK(out.flushes() == 1);
}

TEST_CASE("a moved writer goes on where the other was") {
  FailingStream out(100000);
  Warnings warnings;
  CsvWriter first(out, warnings.sink());
  while (out.written().size() < 2900) first({});
  CsvWriter second(std::move(first));
  for (int i = 0; i < 3; ++i) second({});
  CHECK(out.flushes() == 1);  // before the buffer could run over

  FailingStream other(100000);
  CsvWriter third(other, warnings.sink());
  third({});
  CsvWriter fourth(std::move(third));
  other.setstate(std::ios::badbit);
  fourth({});
  CHECK(fourth.lost() == 2);  // the first was waiting
  CHECK(warnings.lines.size() == 1);
  const CsvWriter fifth(std::move(fourth));
  CHECK(fifth.lost() == 2);
}
