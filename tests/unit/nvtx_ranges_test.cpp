// The calls that reach a tool, which is the library that nvtx_notes.cpp makes.

#include <steptimer/nvtx_ranges.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <steptimer/steptimer.hpp>

#include "support/catch.hpp"
#include "support/nvtx_notes.hpp"

using namespace std::chrono_literals;
using Notes = std::vector<std::string>;

namespace {

/// What NVTX told its tool when it was first called; where the tool is, it asks only then.
const Notes& attach() {
  static const Notes at_first = [] {
    setenv("NVTX_INJECTION64_PATH", STEPTIMER_NVTX_NOTES, 1);
    steptimer::CpuTimer timer;
    const steptimer::NvtxRanges ranges(timer);
    return std::exchange(nvtx_notes(), {});
  }();
  return at_first;
}

/// What `f` made NVTX tell its tool; ranges are numbered from 1.
template <class F>
Notes notes_of(F&& f) {
  REQUIRE(attach().size() == 1);
  f();
  Notes notes = std::exchange(nvtx_notes(), {});
  std::uint64_t first = 0;
  for (std::string& note : notes) {
    const std::size_t at = note.find('#');
    if (at == note.npos) continue;
    const std::uint64_t number = std::stoull(note.substr(at + 1));
    if (first == 0) first = number;
    note = note.substr(0, at + 1) + std::to_string(number - first + 1);
  }
  return notes;
}

/// Notes down its marks, too.
struct NotingBackend : steptimer::CpuBackend {
  steptimer::MarkStatus record(Mark& mark, steptimer::HostTime now) noexcept {
    nvtx_notes().push_back("mark");
    return CpuBackend::record(mark, now);
  }
};

}  // namespace

TEST_CASE("steps and data waits are ranges, one after the other") {
  const Notes notes = notes_of([] {
    steptimer::CpuTimer timer;
    steptimer::NvtxRanges ranges(timer);
    for (int i = 0; i < 2; ++i) {
      ranges.on_batch_start();
      ranges.on_batch_end(32);
    }
    CHECK(ranges.finish());
    CHECK(nvtx_notes().back().substr(0, 3) == "end");
    CHECK(timer.total().items == 64);
  });
  CHECK(notes == Notes{"start step 0 #1", "end #1", "start data wait #2", "end #2", "start step 1 #3", "end #3",
                       "start data wait #4", "end #4"});
}

TEST_CASE("the domain is made once in a program and is called steptimer") {
  CHECK(attach() == Notes{"domain steptimer"});
  const Notes notes = notes_of([] {
    steptimer::CpuTimer timer;
    const steptimer::NvtxRanges ranges(timer);
  });
  CHECK(notes.empty());
}

TEST_CASE("a pause ends the data wait, also one that comes within a step") {
  const Notes notes = notes_of([] {
    steptimer::CpuTimer timer;
    steptimer::NvtxRanges ranges(timer);
    ranges.on_batch_start();
    ranges.on_batch_end();
    ranges.pause();
    nvtx_notes().push_back("validation");
    ranges.on_batch_start();
    ranges.pause();
    ranges.on_batch_end();
    ranges.on_batch_start();
    ranges.on_batch_end();
    CHECK(ranges.finish());
    CHECK(timer.total().gaps == 0);
  });
  CHECK(notes == Notes{"start step 0 #1", "end #1", "start data wait #2", "end #2", "validation", "start step 1 #3",
                       "end #3", "start step 2 #4", "end #4", "start data wait #5", "end #5"});
}

TEST_CASE("unbalanced hooks leave balanced ranges, and the timer counts as ever") {
  const Notes notes = notes_of([] {
    steptimer::StepTimerOptions options;
    options.on_warning = [](std::string_view) {};
    steptimer::CpuTimer timer{{}, options};
    steptimer::NvtxRanges ranges(timer);
    ranges.on_batch_end();
    ranges.on_batch_start();
    ranges.on_batch_start();
    ranges.on_batch_end();
    ranges.on_batch_end();
    ranges.on_batch_start();
    CHECK(timer.counts().ignored_ends == 2);
    CHECK(timer.counts().dropped == 1);
  });  // and the last step is never ended
  CHECK(notes == Notes{"start step 0 #1", "end #1", "start step 1 #2", "end #2", "start data wait #3", "end #3",
                       "start step 2 #4", "end #4"});
}

TEST_CASE("a scope is a step; one left by an exception is no step and waits for nothing") {
  const Notes notes = notes_of([] {
    steptimer::CpuTimer timer;
    steptimer::NvtxRanges ranges(timer);
    { const auto step = ranges.step(7); }
    try {
      const auto step = ranges.step(7);
      throw std::runtime_error("out of memory");
    } catch (const std::runtime_error&) {
    }
    ranges.finish();
    CHECK(timer.counts().dropped == 1);
    CHECK(timer.total().items == 7);
  });
  CHECK(notes == Notes{"start step 0 #1", "end #1", "start data wait #2", "end #2", "start step 1 #3", "end #3"});
}

TEST_CASE("ranges are numbered as records are, also after a reset") {
  const Notes notes = notes_of([] {
    steptimer::CpuTimer timer;
    steptimer::NvtxRanges ranges(timer);
    timer.on_batch_start();
    timer.on_batch_end();
    ranges.on_batch_start();
    timer.reset();
    ranges.on_batch_start();
  });
  CHECK(notes == Notes{"start step 1 #1", "end #1", "start step 0 #2", "end #2"});
}

TEST_CASE("a disabled timer shows no ranges") {
  const Notes notes = notes_of([] {
    steptimer::StepTimerOptions options;
    options.enabled = false;
    steptimer::CpuTimer timer{{}, options};
    steptimer::NvtxRanges ranges(timer);
    ranges.on_batch_start();
    ranges.on_batch_end();
    ranges.finish();
  });
  CHECK(notes.empty());
}

TEST_CASE("no range is touched before the start mark, and none after the end mark") {
  const Notes notes = notes_of([] {
    steptimer::StepTimer<NotingBackend> timer;
    steptimer::NvtxRanges ranges(timer);
    for (int i = 0; i < 2; ++i) {
      ranges.on_batch_start();
      ranges.on_batch_end();
    }
  });
  CHECK(notes == Notes{"mark", "start step 0 #1", "end #1", "start data wait #2", "mark", "mark", "end #2",
                       "start step 1 #3", "end #3", "start data wait #4", "mark", "end #4"});
}
