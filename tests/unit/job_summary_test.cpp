#include <steptimer/job_summary.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::JobSteps;
using steptimer::JobSummary;

namespace {

steptimer::StepRecord step(std::uint64_t number, nanoseconds batch, std::optional<nanoseconds> data) {
  steptimer::StepRecord record;
  record.step = number;
  record.batch_time = batch;
  record.data_time = data;
  if (data) record.wall_gap = batch + *data;
  return record;
}

/// A job of so many ranks, of which one waits `delay` longer for each batch; all wait for it in the all-reduce. Loaders
/// take `loading` on average, give or take all of it.
JobSteps job_with_slow_rank(std::uint32_t ranks, std::uint64_t steps, std::optional<std::uint32_t> slow_rank,
                            nanoseconds computing, nanoseconds delay, nanoseconds loading, unsigned seed) {
  std::mt19937_64 random(seed);
  JobSteps job(ranks, static_cast<std::size_t>(steps));
  std::vector<nanoseconds> waits(ranks);
  for (std::uint64_t number = 0; number < steps; ++number) {
    nanoseconds longest{0};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const auto spread = static_cast<std::uint64_t>(2 * loading.count() + 1);
      waits[rank] = nanoseconds{static_cast<std::int64_t>(random() % spread)} + (rank == slow_rank ? delay : 0ns);
      longest = std::max(longest, waits[rank]);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      job.add(rank, step(number, computing + longest - waits[rank], waits[rank]));
  }
  return job;
}

double share_of(const std::vector<steptimer::RankBlame>& blame, std::uint32_t rank, std::uint64_t steps) {
  for (const steptimer::RankBlame& one : blame)
    if (one.rank == rank) return static_cast<double>(one.steps) / static_cast<double>(steps);
  return 0;
}

void check_same(const JobSteps& a, const JobSteps& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const steptimer::JobStep &left = a.data()[i], &right = b.data()[i];
    CHECK(left.step == right.step);
    CHECK(left.ranks == right.ranks);
    CHECK(left.turn == right.turn);
    CHECK(left.stall == right.stall);
    CHECK(left.next_wait == right.next_wait);
    CHECK(left.cycle == right.cycle);
    CHECK(left.batch_min == right.batch_min);
    CHECK(left.batch_max == right.batch_max);
  }
}

}  // namespace

TEST_CASE("a job waits for the largest data time of each step, in the largest cycle") {
  JobSteps job(3, 10);
  job.add(0, step(0, 100ms, 1ms));
  job.add(1, step(0, 60ms, 40ms));
  job.add(2, step(0, 95ms, 10ms));
  job.add(0, step(1, 50ms, 20ms));
  job.add(1, step(1, 70ms, 0ms));
  job.add(2, step(1, 45ms, 5ms));
  const JobSummary summary = job.summary();
  CHECK(summary.ranks == 3);
  CHECK(summary.most_ranks == 3);
  CHECK(summary.steps == 2);
  CHECK(summary.left_out == 0);
  CHECK(summary.stall_total == 60ms);
  CHECK(summary.cycle_total == 105ms + 70ms);
  CHECK(*summary.data_wait_percent() == Approx(100.0 * 60 / 175));
  CHECK(summary.stall_mean() == 30ms);
  CHECK(summary.cycle_mean() == 87'500us);
  CHECK(summary.batch_min_mean() == 52'500us);
  CHECK(summary.batch_max_mean() == 85ms);
  CHECK(summary.longest_stall == 40ms);
  CHECK(summary.longest_stall_step == 0);
  CHECK(summary.longest_stall_rank == 1);
  CHECK(summary.blamed_steps == 2);
  CHECK(summary.most_blamed.rank == 1);  // of two with a step each, the one with the larger excess
  CHECK(summary.most_blamed.steps == 1);
  CHECK(summary.most_blamed.excess == 30ms);
  CHECK(summary.blamed_share() == 0.5);
}

TEST_CASE("one rank slowed by d a step: the job's data wait is d / (d + step), and its name is known") {
  const std::uint32_t ranks = GENERATE(2u, 3u, 4u, 7u, 16u, 64u, 1000u);
  const std::uint32_t slow = ranks / 2;
  for (const nanoseconds delay : std::vector<nanoseconds>{500us, 2ms, 10ms, 100ms}) {
    const JobSteps job = job_with_slow_rank(ranks, 200, slow, 10ms, delay, 20us, ranks);
    const JobSummary summary = job.summary();
    const double d = std::chrono::duration<double>(delay).count();
    INFO(ranks << " ranks, " << d << " s");
    CHECK(std::abs(*summary.data_wait_percent() - 100 * d / (d + 0.010)) < 1);
    CHECK(summary.guilty_rank() == slow);
    CHECK(*summary.blamed_share() >= 0.99);
    CHECK(share_of(job.blame(), slow, summary.steps) >= 0.99);
  }
}

TEST_CASE("with nobody slowed no rank is blamed for more than its share by chance") {
  const std::uint32_t ranks = GENERATE(2u, 4u, 8u, 16u, 100u);
  for (unsigned seed = 0; seed < 20; ++seed) {
    const JobSteps job = job_with_slow_rank(ranks, 400, std::nullopt, 10ms, 0ms, 1ms, 100 * ranks + seed);
    const JobSummary summary = job.summary(0);  // also for stalls that hardly stand out
    INFO(ranks << " ranks, seed " << seed);
    CHECK_FALSE(job.summary().guilty_rank());
    CHECK(*job.summary().blamed_share() <= *summary.blamed_share());
    CHECK_FALSE(summary.guilty_rank());
    const double fair = 1.0 / ranks;
    CHECK(*summary.blamed_share() < fair + 5 * std::sqrt(fair * (1 - fair) / 400));
    CHECK(summary.blamed_steps > 300);
  }
}

TEST_CASE("all ranks that are blamed are listed, the most blamed first") {
  JobSteps job(3, 40);
  for (std::uint64_t number = 0; number < 40; ++number) {
    job.add(0, step(number, 9ms, number < 12 ? 3ms : 0ms));
    job.add(1, step(number, 9ms, 0ms));
    job.add(2, step(number, 9ms, number < 12 ? 0ms : 1ms));
  }
  const std::vector<steptimer::RankBlame> blame = job.blame();
  REQUIRE(blame.size() == 2);
  CHECK(blame[0].rank == 2);
  CHECK(blame[0].steps == 28);
  CHECK(blame[0].excess == 28ms);
  CHECK(blame[1].rank == 0);
  CHECK(blame[1].steps == 12);
  CHECK(blame[1].excess == 36ms);
  CHECK(job.summary().most_blamed.rank == 2);
  CHECK(job.summary().guilty_rank() == 2u);
}

TEST_CASE("ranks that always wait alike are not blamed") {
  JobSteps job(4, 100);
  for (std::uint64_t number = 0; number < 100; ++number)
    for (std::uint32_t rank = 0; rank < 4; ++rank) job.add(rank, step(number, 9ms, 1ms + rank * 10us));
  CHECK(job.blame().empty());
  CHECK(job.summary().blamed_steps == 0);
  CHECK_FALSE(job.summary().guilty_rank());
  CHECK(*job.summary().data_wait_percent() == Approx(100 * 1.03 / 10.03));
}

TEST_CASE("where two ranks wait alike, to mend one of them wins nothing, and neither is blamed") {
  JobSteps job(4, 100);
  for (std::uint64_t number = 0; number < 100; ++number)
    for (std::uint32_t rank = 0; rank < 4; ++rank)
      job.add(rank, step(number, 9ms, rank == 1 ? 10ms : rank == 3 ? 10ms + 20us : 1ms));
  CHECK(job.blame().empty());
  CHECK_FALSE(job.summary().guilty_rank());
  CHECK(job.data()[0].stall == 10ms + 20us);
  CHECK(job.data()[0].excess() == 20us);
  CHECK(job.summary(0.01).most_blamed.rank == 3);
  CHECK(job.summary(0.01).most_blamed.excess == 2ms);
}

TEST_CASE("the turn that settles who of equals is named goes round the ranks") {
  for (std::uint64_t number = 0; number < 7; ++number) {
    JobSteps job(3, 1);
    for (std::uint32_t rank = 0; rank < 3; ++rank) job.add(rank, step(number, 9ms, 1ms));
    CHECK(job.data()[0].rank_in(3) == number % 3);
  }
  JobSteps first(3, 1), last(3, 1);
  first.add(0, step(4, 9ms, 1ms));
  last.add(2, step(4, 9ms, 1ms));
  CHECK(first.data()[0].rank_in(3) == 0);
  CHECK(last.data()[0].rank_in(3) == 2);
}

TEST_CASE("a stall too small to matter is nobody's") {
  JobSteps job(2, 100);
  for (std::uint64_t number = 0; number < 100; ++number) {
    job.add(0, step(number, 100ms - 5us, 5us));
    job.add(1, step(number, 100ms, 0us));
  }
  CHECK(job.summary().blamed_steps == 0);
  CHECK(job.blame().empty());
  CHECK_FALSE(job.summary().guilty_rank());
  CHECK(job.summary().blamed_share() == 0);
  CHECK_FALSE(job.summary(0.001).guilty_rank());              // it costs 0.005 % of the job's time
  CHECK(job.summary(0.001).guilty_rank(0.001, 0.004) == 0u);  // the thresholds are the caller's
  CHECK_FALSE(job.summary(0.001).guilty_rank(0.001, 0.006));
  CHECK(job.summary(0.001).most_blamed.excess == 500us);

  JobSteps idle(2, 10);
  idle.add(0, step(0, 1ms, 0ms));
  idle.add(1, step(0, 1ms, 0ms));
  CHECK(idle.summary(0).blamed_steps == 0);  // no stall, no blame
}

TEST_CASE("a few steps are not enough to call a rank guilty") {
  const auto after = [](std::uint64_t steps, std::uint32_t ranks) {
    return job_with_slow_rank(ranks, steps, 1u, 10ms, 10ms, 0us, 1).summary().guilty_rank();
  };
  CHECK_FALSE(after(10, 2));  // 2 * 2^-10
  CHECK(after(11, 2) == 1u);  // 2 * 2^-11 < 0.001
  CHECK_FALSE(after(2, 16));
  CHECK(after(4, 16) == 1u);
}

TEST_CASE("in a job of one rank that rank is the one, as soon as it is blamed") {
  JobSteps job(1, 10);
  CHECK_FALSE(job.summary().guilty_rank(1, 0));
  job.add(0, step(0, 6ms, 4ms));
  CHECK(job.summary().guilty_rank() == 0u);
  CHECK(*job.summary().data_wait_percent() == Approx(40));
  CHECK(*job.summary().blamed_share() == 1);
}

TEST_CASE("a step that some ranks lack is counted and left out of every other number") {
  JobSteps job(2, 10);
  for (const std::uint64_t number : {0u, 1u, 2u, 4u}) job.add(0, step(number, 9ms, 1ms));
  for (const std::uint64_t number : {0u, 2u, 3u}) job.add(1, step(number, 5ms, 5ms));
  JobSummary summary = job.summary();
  CHECK(summary.steps == 2);
  CHECK(summary.left_out == 3);
  CHECK(summary.stall_total == 10ms);
  CHECK(summary.cycle_total == 20ms);
  CHECK(summary.blamed_steps == 2);

  job.add(1, step(4, 8ms, std::nullopt));  // the last before a pause
  steptimer::StepRecord warmup = step(1, 5ms, 5ms);
  warmup.warmup = true;
  job.add(1, warmup);
  summary = job.summary();
  CHECK(summary.steps == 2);
  CHECK(summary.left_out == 3);
}

TEST_CASE("a rank without a step leaves the job without a number") {
  JobSteps job(3, 10);
  for (std::uint64_t number = 0; number < 10; ++number) {
    job.add(0, step(number, 9ms, 1ms));
    job.add(2, step(number, 5ms, 5ms));
  }
  const JobSummary summary = job.summary();
  CHECK(summary.steps == 0);
  CHECK(summary.left_out == 10);
  CHECK(summary.most_ranks == 2);
  CHECK_FALSE(summary.data_wait_percent());
  CHECK_FALSE(summary.stall_mean());
  CHECK_FALSE(summary.blamed_share());
  CHECK_FALSE(summary.guilty_rank());
  CHECK(summary.blamed_steps == 0);
  CHECK(summary.most_blamed.steps == 0);
  CHECK(job.blame().empty());
}

TEST_CASE("only the last steps are kept, however far ranks are apart") {
  JobSteps job(2, 4);
  for (std::uint64_t number = 0; number < 10; ++number) job.add(0, step(number, 9ms, 1ms));
  for (std::uint64_t number = 0; number < 8; ++number) job.add(1, step(number, 9ms, 1ms));
  JobSummary summary = job.summary();  // 6 to 9, of which rank 1 has 6 and 7
  CHECK(summary.steps == 2);
  CHECK(summary.left_out == 2);

  JobSteps sampled(1, 4);  // 0, 3, 6, 9: places 0, 3, 2, 1, and only the last lies in the last four
  for (std::uint64_t number = 0; number < 10; number += 3) sampled.add(0, step(number, 9ms, 1ms));
  summary = sampled.summary();
  CHECK(summary.steps == 2);  // 6 and 9
}

TEST_CASE("windows of ranks are added, and only what comes after a reset") {
  steptimer::StepWindow window(10);
  for (const std::uint64_t number : {0u, 1u, 2u, 0u, 1u}) window.add(step(number, 9ms, number == 2 ? 500ms : 1ms));
  JobSteps job(1, 10);
  CHECK(job.add(0, window));
  CHECK(job.summary().steps == 2);
  CHECK(job.summary().stall_total == 2ms);
  CHECK_FALSE(job.add(1, window));
  CHECK_FALSE(job.add(1, step(0, 9ms, 1ms)));
  CHECK(job.summary().steps == 2);
  CHECK(job.add(0, steptimer::StepWindow(5)));
  CHECK(job.summary().steps == 2);
}

TEST_CASE("steps of ranks are merged in any order and grouping with the same result") {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const auto ranks = static_cast<std::uint32_t>(1 + random() % 6);
    std::vector<JobSteps> parts(ranks, JobSteps(ranks, 8));
    JobSteps all(ranks, 8);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      for (std::uint64_t number = random() % 5; number < 14; number += 1 + random() % 3) {
        const steptimer::StepRecord record = step(number, nanoseconds{random() % 4}, nanoseconds{random() % 3});
        parts[rank].add(rank, record);
        all.add(rank, record);
      }
    }
    JobSteps forwards(ranks, 8), backwards(ranks, 8), paired(ranks, 8);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) forwards.add(parts[rank]);
    for (std::uint32_t rank = ranks; rank-- > 0;) backwards.add(parts[rank]);
    for (std::uint32_t rank = 0; rank < ranks; rank += 2) {
      JobSteps pair = parts[rank];
      if (rank + 1 < ranks) pair.add(parts[rank + 1]);
      paired.add(pair);
    }
    check_same(forwards, all);
    check_same(backwards, all);
    check_same(paired, all);
  }
}

TEST_CASE("steps of a job of another size are not added") {
  JobSteps job(2, 4);
  JobSteps other(3, 4);
  other.add(0, step(0, 9ms, 1ms));
  CHECK_FALSE(job.add(other));
  CHECK(job.summary().left_out == 0);
}

TEST_CASE("a job without ranks, without a window or with endless steps has no surprises") {
  JobSteps nobody(0, 10);
  CHECK_FALSE(nobody.add(0, step(0, 9ms, 1ms)));
  CHECK_FALSE(nobody.summary().guilty_rank());
  JobSteps no_window(2, 0);
  CHECK(no_window.add(0, step(0, 9ms, 1ms)));
  CHECK(no_window.summary().left_out == 0);

  JobSteps endless(1, 3);
  constexpr std::uint64_t last = (std::numeric_limits<std::uint64_t>::max)();
  for (std::uint64_t back = 3; back-- > 0;) endless.add(0, step(last - back, 1ns, (nanoseconds::max)() - 1ns));
  const JobSummary summary = endless.summary();
  CHECK(summary.steps == 3);
  CHECK(summary.stall_total == (nanoseconds::max)());
  CHECK(*summary.data_wait_percent() <= 100);
  CHECK(summary.longest_stall_step == last - 2);
}
