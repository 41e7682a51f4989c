#include <steptimer/tee.hpp>

#include <algorithm>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>

#include <steptimer/csv_writer.hpp>
#include <steptimer/jsonl_writer.hpp>
#include <steptimer/step_timer.hpp>

#include "support/catch.hpp"

using steptimer::StepRecord;
using steptimer::tee;

namespace {

struct Count {
  int calls = 0;
  void operator()(const StepRecord&) { ++calls; }
};

int calls_of_function = 0;
void count_call(const StepRecord&) { ++calls_of_function; }

}  // namespace

TEST_CASE("every sink gets every record, in the order given") {
  std::string order;
  const auto add = [&order](char name) { return [&order, name](const StepRecord&) { order += name; }; };
  const auto all = tee(add('a'), add('b'), add('c'));
  all({});
  all({});
  CHECK(order == "abcabc");
}

TEST_CASE("a sink given as an lvalue stays the caller's") {
  Count mine;
  std::function<void(const StepRecord&)> on_record = tee(mine, count_call);
  on_record({});
  std::function<void(const StepRecord&)> copy = on_record;
  copy({});
  CHECK(mine.calls == 2);
  CHECK(calls_of_function == 2);
}

TEST_CASE("a sink given as an rvalue is kept, and copies share it") {
  std::ostringstream out;
  {
    std::function<void(const StepRecord&)> on_record;
    {
      auto kept = tee(steptimer::JsonlWriter(out));  // can be moved, not copied
      on_record = kept;
    }
    on_record({});
    std::function<void(const StepRecord&)> copy = on_record;
    copy({});
  }
  const std::string text = out.str();
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
}

TEST_CASE("a sink that throws keeps no other from the record, and the first exception comes out") {
  Count before, between, after;
  const auto all = tee(
      before, [](const StepRecord&) { throw std::runtime_error("first"); }, between,
      [](const StepRecord&) { throw std::runtime_error("second"); }, after);
  std::string thrown;
  try {
    all({});
  } catch (const std::runtime_error& error) {
    thrown = error.what();
  }
  CHECK(thrown == "first");
  CHECK(before.calls == 1);
  CHECK(between.calls == 1);
  CHECK(after.calls == 1);
}

TEST_CASE("a timer writes through a tee") {
  std::ostringstream rows, lines;
  steptimer::CsvWriter csv(rows);
  steptimer::StepTimerOptions options;
  options.on_record = tee(csv, steptimer::JsonlWriter(lines));
  steptimer::CpuTimer timer{{}, options};
  for (int i = 0; i < 3; ++i) {
    timer.on_batch_start();
    timer.on_batch_end();
  }
  timer.finish();
  const std::string csv_text = rows.str();
  const std::string jsonl_text = lines.str();
  CHECK(std::count(csv_text.begin(), csv_text.end(), '\n') == 4);
  CHECK(std::count(jsonl_text.begin(), jsonl_text.end(), '\n') == 3);
}
