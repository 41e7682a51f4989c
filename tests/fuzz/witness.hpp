// What a sequence knows of one timer from the outside: every hook with its times, every record that came. From these it
// says what each record, summary and count must be.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <steptimer/step_timer.hpp>

#include "report.hpp"
#include "support/counts.hpp"

namespace fuzz {

using std::chrono::nanoseconds;
using steptimer::StepCounts;
using steptimer::StepRecord;
using steptimer::StepSummary;

enum class OnRecord { absent, counts, throws, calls_back };
enum class OnWarning { absent, counts, throws };

/// How sure a target is of the times that it gives.
struct Certainty {
  bool exact = true;       ///< marks are where the model says; else only the horizon is known
  bool all_marked = true;  ///< no call was refused so far
};

class Witness {
 public:
  struct Step {
    nanoseconds host_start{0}, host_end{0};
    nanoseconds start_mark{0}, end_mark{0};
    std::uint64_t items = 0;
    bool ended = false;
    bool gap_given_up = false;
  };

  std::uint64_t warmup = 0, sample_every = 1;
  std::size_t window = 0, max_in_flight = 0;
  OnRecord on_record = OnRecord::counts;
  OnWarning on_warning = OnWarning::counts;
  unsigned line = 0;  // which timeline of the target
  bool moved_from = false;

  std::vector<Step> steps;  // by ordinal
  std::vector<StepRecord> records;
  std::optional<nanoseconds> first_start;
  bool open = false;
  bool may_record = false;  // within a call that on_record may come from
  bool in_on_record = false;
  bool on_record_threw = false;
  bool started_from_on_record = false;
  std::uint64_t records_ever = 0;  // also those before a reset
  unsigned warnings = 0;
  bool on_warning_threw = false;
  std::uint64_t most_pending = 0;
  bool only_measured_steps = true;  // so far every step was pending or measured
  bool has_marked = false;          // mark() was called

  bool hears_all_records() const { return on_record != OnRecord::absent && !on_record_threw; }

  void begin_step(nanoseconds host, nanoseconds mark, bool measures) {
    Step step;
    step.host_start = host;
    step.start_mark = mark;
    steps.push_back(step);
    if (measures && !first_start) first_start = host;
  }
  void end_step(nanoseconds host, nanoseconds mark, std::uint64_t items) {
    Step& step = steps.back();
    step.host_end = host;
    step.end_mark = mark;
    step.items = items;
    step.ended = true;
  }
  void give_up_gap() {
    if (!steps.empty()) steps.back().gap_given_up = true;
  }
  void forget() {
    steps.clear();
    records.clear();
    first_start.reset();
    open = false;
    summed_ = nothing_summed;
  }

  /// `close` compares a time with the true one, as exactly as the target can.
  template <class Close>
  void take(const StepRecord& record, Certainty certainty, nanoseconds horizon, Close close) {
    must(may_record, "on_record is called from on_batch_end, poll, finish and release alone");
    must(on_record != OnRecord::absent && !on_record_threw, "an on_record that threw is not called again");
    must(records.empty() || record.step > records.back().step, "records come in step order, once each");
    must(record.step < steps.size(), "a record is of a step that was started");
    check(record, certainty, horizon, close);
    records.push_back(record);
    ++records_ever;
  }

  void check(const StepCounts& counts, bool measures) {
    must(adds_up(counts), "started == measured + pending + not_sampled + stale + dropped + failed");
    must(measures || counts == StepCounts{}, "a disabled timer counts nothing");
    if (!measures) return;
    must(counts.started == steps.size(), "every on_batch_start is counted once");
    must(counts.pending <= max_in_flight, "no more than max_in_flight steps are pending");
    must(counts.clamped <= counts.measured, "only measured steps are clamped");
    if (hears_all_records()) must(counts.measured == records.size(), "as many records as measured steps");
    most_pending = (std::max)(most_pending, counts.pending);
    only_measured_steps = only_measured_steps && counts.started == counts.pending + counts.measured;
  }

  /// The events or marks that a timer may hold at most.
  std::uint64_t most_marks() const {
    const std::uint64_t within = has_marked ? steptimer::max_phases - 1 : 0;
    return ((only_measured_steps ? 2 : 3) + within) * most_pending + 3;
  }

  template <class Timer>
  void check_results(const Timer& timer, bool measures) {
    const std::optional<StepRecord> last = timer.last();
    check_share(timer.data_wait_percent());
    if (!measures) {
      must(!last, "a timer that measures nothing has no last record");
      return check_equal(timer.total(), StepSummary{});
    }
    must(last.has_value() == (timer.counts().measured > 0), "there is a last record when a step was measured");
    if (!hears_all_records() || records.size() == summed_) return;
    summed_ = records.size();
    must(!last || last->step == records.back().step, "last() is the latest record");
    check_equal(timer.total(), sum_of_last((std::numeric_limits<std::size_t>::max)()));
    check_equal(timer.window(), sum_of_last(window));
  }

 private:
  template <class Close>
  void check(const StepRecord& r, Certainty certainty, nanoseconds horizon, Close close) const {
    const Step& step = steps[r.step];
    must(step.ended, "a record is of a step that was ended");
    must(r.items == step.items, "items are as given");
    must(r.warmup == (r.step < warmup), "the first steps are the warm-up");
    must(r.batch_time.count() >= 0, "no negative batch_time");
    must(r.host_start == step.host_start - *first_start, "host_start counts from the first start");
    must(r.host_batch_time == step.host_end - step.host_start, "host_batch_time is the time between the hooks");
    must(r.wall_gap.has_value() == r.data_time.has_value(), "data_time is present exactly when wall_gap is");
    must(r.wall_gap.has_value() == r.host_wall_gap.has_value(), "host_wall_gap is present exactly when wall_gap is");
    check_share(r.data_wait_percent());
    check_share(r.host_data_wait_percent());
    check_parts(r);
    if (certainty.exact) {
      must(close(r.batch_time, step.end_mark - step.start_mark), "batch_time is that of the timeline");
    } else {
      must(r.batch_time <= horizon, "batch_time is not longer than what passed");
    }

    const bool gap_known = !step.gap_given_up && r.step + 1 < steps.size();
    if (!r.wall_gap) {
      must(!gap_known || !certainty.all_marked, "a gap whose ends were marked is not absent");
      return;
    }
    must(gap_known, "a gap that was given up is absent");
    const Step& next = steps[r.step + 1];
    must(r.wall_gap->count() >= 0, "no negative wall_gap");
    must(*r.data_time == (std::max)(nanoseconds{0}, *r.wall_gap - r.batch_time),
         "data_time is wall_gap less batch_time");
    must(*r.host_wall_gap == next.host_start - step.host_start, "host_wall_gap is from start to start");
    if (certainty.exact) {
      must(close(*r.wall_gap, next.start_mark - step.start_mark), "wall_gap is that of the timeline");
    } else {
      must(*r.wall_gap <= horizon, "wall_gap is not longer than what passed");
    }
  }

  static void check_parts(const StepRecord& r) {
    must(r.phase_count <= steptimer::max_phases, "phases are bounded");
    nanoseconds sum{0};
    for (std::size_t i = 0; i < r.phase_count; ++i) {
      must(r.phases[i].time.count() >= 0, "no negative phase");
      sum += r.phases[i].time;
    }
    must(r.phase_count == 0 || sum == r.batch_time, "phases add up to batch_time");
    must(!r.fetch_time || r.fetch_time->count() >= 0, "no negative fetch_time");
    must(r.exposed_fetch.has_value() == (r.fetch_time && r.data_time), "exposed_fetch is there where it can be known");
    if (r.exposed_fetch)
      must(r.exposed_fetch->count() >= 0 && *r.exposed_fetch <= *r.fetch_time && *r.exposed_fetch <= *r.data_time,
           "exposed is what is both fetch and wait");
  }

  static void check_share(std::optional<double> percent) {
    must(!percent || (*percent >= 0.0 && *percent <= 100.0), "a share is within 0 and 100 percent");
  }

  static void add(nanoseconds& sum, nanoseconds value) {
    sum = sum > (nanoseconds::max)() - value ? (nanoseconds::max)() : sum + value;
  }

  /// The summary of the last n records without the warm-up, from the definitions.
  StepSummary sum_of_last(std::size_t n) const {
    StepSummary sum;
    for (std::size_t i = records.size() - (std::min)(n, records.size()); i < records.size(); ++i) {
      const StepRecord& r = records[i];
      if (r.warmup) continue;
      if (sum.steps == 0 || r.batch_time < sum.batch_min) sum.batch_min = r.batch_time;
      if (sum.steps == 0 || r.batch_time > sum.batch_max) {
        sum.batch_max = r.batch_time;
        sum.slowest_step = r.step;
      }
      ++sum.steps;
      sum.items += r.items;
      add(sum.batch_total, r.batch_time);
      if (!r.wall_gap) continue;
      if (sum.gaps == 0 || *r.data_time < sum.data_min) sum.data_min = *r.data_time;
      if (sum.gaps == 0 || *r.data_time > sum.data_max) {
        sum.data_max = *r.data_time;
        sum.longest_wait_step = r.step;
      }
      ++sum.gaps;
      sum.items_in_gaps += r.items;
      add(sum.data_total, *r.data_time);
      add(sum.wall_total, *r.wall_gap);
      add(sum.batch_in_gaps, r.batch_time);
      add(sum.host_batch_in_gaps, r.host_batch_time);
      add(sum.host_wall_total, *r.host_wall_gap);
    }
    return sum;
  }

  static void check_equal(const StepSummary& a, const StepSummary& b) {
    must(a.steps == b.steps && a.gaps == b.gaps && a.items == b.items && a.items_in_gaps == b.items_in_gaps,
         "a summary has the steps, gaps and items of its records");
    must(a.batch_total == b.batch_total && a.data_total == b.data_total && a.wall_total == b.wall_total &&
             a.batch_in_gaps == b.batch_in_gaps && a.host_batch_in_gaps == b.host_batch_in_gaps &&
             a.host_wall_total == b.host_wall_total,
         "a summary's sums are those of its records");
    must(a.batch_min == b.batch_min && a.batch_max == b.batch_max && a.data_min == b.data_min &&
             a.data_max == b.data_max && a.slowest_step == b.slowest_step && a.longest_wait_step == b.longest_wait_step,
         "a summary's extremes are those of its records");
    check_share(a.data_wait_percent());
    check_share(a.host_data_wait_percent());
  }

  static constexpr std::size_t nothing_summed = static_cast<std::size_t>(-1);
  std::size_t summed_ = nothing_summed;
};

}  // namespace fuzz
