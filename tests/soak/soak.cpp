// A very long run with misuse in it: counts and sums must come out exactly, and memory must stay where it is.
//
//     soak [--timeline cpu|manual|cuda] [--steps N] [--seed N]
//
// A model beside the timer follows every call. On the manual timeline it knows each duration as well; on the others the
// sums must be those of the records. Exit code 0: as the model says; 1: not, with what differs; 77: no such timeline here.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include <steptimer/steptimer.hpp>
#if defined(STEPTIMER_SOAK_CUDA)
#include <steptimer/cuda_backend.hpp>
#endif

#include "../../examples/common/option_table.hpp"
#include "../../examples/common/run_program.hpp"

namespace {

using std::chrono::nanoseconds;
using steptimer::StepCounts;
using steptimer::StepRecord;
using steptimer::StepSummary;

constexpr int as_the_model_says = 0;
constexpr int differs = 1;
constexpr int left_out = 77;

struct Sums {
  std::uint64_t steps = 0, gaps = 0, items = 0;
  nanoseconds batch{0}, data{0};
};

bool operator==(const Sums& a, const Sums& b) {
  return a.steps == b.steps && a.gaps == b.gaps && a.items == b.items && a.batch == b.batch && a.data == b.data;
}

Sums sums_of(const StepSummary& total) {
  return {total.steps, total.gaps, total.items, total.batch_total, total.data_total};
}

/// What the calls so far must have come to, by the rules of the documentation alone.
class Model {
 public:
  /// `mark`: where on its timeline the call put its mark; zero where nobody knows.
  void start(nanoseconds mark) {
    if (in_step_) ++dropped;
    if (gap_is_open_) {
      ++sums.gaps;
      sums.data += mark - last_end_;
    }
    ++started;
    in_step_ = true;
    gap_is_open_ = false;
    paused_ = false;
    start_ = mark;
  }
  void end(nanoseconds mark, std::uint64_t items) {
    if (!in_step_) {
      ++ignored_ends;
      return;
    }
    ++sums.steps;
    sums.items += items;
    sums.batch += mark - start_;
    in_step_ = false;
    gap_is_open_ = !paused_;
    last_end_ = mark;
  }
  void pause() {
    paused_ = true;
    gap_is_open_ = false;
  }
  void drop() {
    if (in_step_) ++dropped;
    in_step_ = false;
  }
  bool in_step() const { return in_step_; }

  Sums sums;
  std::uint64_t started = 0, dropped = 0, ignored_ends = 0;

 private:
  bool in_step_ = false;
  bool gap_is_open_ = false;
  bool paused_ = false;
  nanoseconds start_{0};
  nanoseconds last_end_{0};
};

/// What a loop does beside calling hooks, and what is known of the marks that its hooks drop.
struct CpuTimeline {
  steptimer::CpuBackend backend() { return {}; }
  void pass(std::mt19937_64&) {}
  nanoseconds mark() const { return nanoseconds{0}; }
  static constexpr bool known = false;
};

class ManualTimeline {
 public:
  steptimer::ManualBackend backend() { return device_; }
  void pass(std::mt19937_64& random) {
    const nanoseconds host{random() % 2000};
    const nanoseconds work{random() % 1900};  // a little less, so that the device catches up in the end
    device_.launch(work);
    device_.advance(host);
    done_ = (done_ > now_ ? done_ : now_) + work;
    now_ += host;
  }
  nanoseconds mark() const { return done_ > now_ ? done_ : now_; }
  static constexpr bool known = true;

 private:
  steptimer::ManualBackend device_;
  nanoseconds now_{0};
  nanoseconds done_{0};
};

#if defined(STEPTIMER_SOAK_CUDA)
class CudaTimeline {
 public:
  CudaTimeline() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(cudaMalloc(&memory_, 256));
  }
  ~CudaTimeline() {
    cudaFree(memory_);
    cudaStreamDestroy(stream_);
  }
  CudaTimeline(const CudaTimeline&) = delete;
  CudaTimeline& operator=(const CudaTimeline&) = delete;

  steptimer::CudaBackend backend() { return stream_; }
  void pass(std::mt19937_64& random) {
    check(cudaMemsetAsync(memory_, 0, 256, stream_));
    // Keeps the queue below the thousand commands at which CUDA blocks, and lets the device fall behind before that.
    if (random() % 128 == 0 || ++since_wait_ == 200) {
      check(cudaStreamSynchronize(stream_));
      since_wait_ = 0;
    }
  }
  nanoseconds mark() const { return nanoseconds{0}; }
  static constexpr bool known = false;

 private:
  static void check(cudaError_t code) {
    if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
  }
  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
  int since_wait_ = 0;
};
#endif

long resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    long kilobytes = 0;
    if (word == "VmRSS:" && status >> kilobytes) return kilobytes;
  }
  return 0;
}

struct Expected {
  const char* what;
  std::uint64_t value, expected;
};

template <class Timeline>
int soak(const char* name, Timeline& timeline, std::uint64_t steps, std::uint64_t seed) {
  using Timer = steptimer::StepTimer<decltype(timeline.backend())>;
  std::mt19937_64 random(seed);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  Model model;
  Sums reported;
  std::uint64_t next_step = 0;
  std::uint64_t out_of_order = 0;
  steptimer::StepTimerOptions options;
  options.on_record = [&](const StepRecord& record) {
    out_of_order += record.step < next_step ? 1u : 0u;
    next_step = record.step + 1;
    ++reported.steps;
    reported.items += record.items;
    reported.batch += record.batch_time;
    if (record.data_time) ++reported.gaps, reported.data += *record.data_time;
  };
  options.on_warning = [](std::string_view) {};
  Timer timer(timeline.backend(), options);
  const auto start = [&] {
    timer.on_batch_start();
    model.start(timeline.mark());
  };
  const auto end = [&](std::uint64_t items) {
    timer.on_batch_end(items);
    model.end(timeline.mark(), items);
  };

  const auto begin = std::chrono::steady_clock::now();
  long resident_after_a_tenth = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    timeline.pass(random);
    start();
    timeline.pass(random);
    const bool misuse = one_in(16);
    switch (misuse ? random() % 9 : 99) {
      case 0: start(); break;
      case 1: end(random() % 100); break;  // and once more below
      case 2:
        timer.pause();
        model.pause();
        break;
      case 3: (void)timer.poll(); break;
      case 4:
        (void)timer.finish(nanoseconds{0});
        model.drop();
        model.pause();
        break;
      case 5: {
        Timer moved = std::move(timer);
        timer = std::move(moved);
        break;
      }
      case 6:
        try {
          const auto scope = timer.step();
          model.start(timeline.mark());
          timeline.pass(random);
          throw std::runtime_error("a step that fails");
        } catch (const std::runtime_error&) {
          model.drop();
        }
        break;
      case 7: (void)(timer.window().steps + timer.counts().started + timer.last()->step); break;
      case 8: break;
      default: break;
    }
    if (!misuse || model.in_step() || one_in(2)) end(step % 7);
    if (one_in(256)) {
      timer.pause();
      model.pause();
    }
    if (step == steps / 10) resident_after_a_tenth = resident_kilobytes();
  }
  const bool finished = timer.finish(std::chrono::seconds{60});
  model.drop();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const long growth = resident_kilobytes() - resident_after_a_tenth;

  const StepCounts counts = timer.counts();
  const Sums total = sums_of(timer.total());
  const auto number = [](nanoseconds time) { return static_cast<std::uint64_t>(time.count()); };
  const Expected all[] = {
      {"finish()", finished ? 1u : 0u, 1},
      {"started", counts.started, model.started},
      {"measured", counts.measured, model.sums.steps},
      {"dropped", counts.dropped, model.dropped},
      {"ignored_ends", counts.ignored_ends, model.ignored_ends},
      {"pending", counts.pending, 0},
      {"not_sampled", counts.not_sampled, 0},
      {"stale", counts.stale, 0},
      {"failed", counts.failed, 0},
      {"records out of order", out_of_order, 0},
      {"steps reported", reported.steps, model.sums.steps},
      {"gaps", total.gaps, model.sums.gaps},
      {"items", total.items, model.sums.items},
      {"the sums in total() are those of the records", total == reported ? 1u : 0u, 1},
      {"batch_total", number(total.batch), number(Timeline::known ? model.sums.batch : total.batch)},
      {"data_total", number(total.data), number(Timeline::known ? model.sums.data : total.data)},
      {"resident memory grew by more than 1 MB", growth > 1024 ? 1u : 0u, 0},
  };
  int result = as_the_model_says;
  for (const Expected& one : all) {
    if (one.value == one.expected) continue;
    std::printf("%s: %s: %llu, expected %llu\n", name, one.what, static_cast<unsigned long long>(one.value),
                static_cast<unsigned long long>(one.expected));
    result = differs;
  }
  std::printf(
      "%s: %llu steps started, %llu measured, %llu dropped, %llu ends ignored, resident memory %+ld KB, %.1f s: %s\n",
      name, static_cast<unsigned long long>(counts.started), static_cast<unsigned long long>(counts.measured),
      static_cast<unsigned long long>(counts.dropped), static_cast<unsigned long long>(counts.ignored_ends), growth,
      seconds, result == as_the_model_says ? "all exact" : "NOT as the model says");
  return result;
}

int run(int argc, char** argv) {
  std::string timeline = "cpu";
  std::uint64_t steps = 1000000;
  std::uint64_t seed = 1;
  example::OptionTable table("soak", "runs a timer for very long, with misuse, and checks every count and sum");
  table.add_text("--timeline", "cpu, manual or cuda", timeline, "what the timer measures on");
  table.add_count("--steps", steps, std::uint64_t{10}, std::uint64_t{100000000000}, "loop rounds");
  table.add_count("--seed", seed, std::uint64_t{0}, std::uint64_t{1000000}, "of the misuse");
  if (!table.parse(argc, argv)) return as_the_model_says;
  if (timeline == "cpu") {
    CpuTimeline cpu;
    return soak("cpu", cpu, steps, seed);
  }
  if (timeline == "manual") {
    ManualTimeline manual;
    return soak("manual", manual, steps, seed);
  }
  if (timeline != "cuda") throw example::UserError("--timeline is cpu, manual or cuda, not '" + timeline + "'");
#if defined(STEPTIMER_SOAK_CUDA)
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) {
    CudaTimeline cuda;
    return soak("cuda", cuda, steps, seed);
  }
  std::printf("SKIPPED: no CUDA device\n");
#else
  std::printf("SKIPPED: built without CUDA\n");
#endif
  return left_out;
}

}  // namespace

int main(int argc, char** argv) {
  int result = differs;
  const int failed = example::run_program("soak", [&] { result = run(argc, argv); });
  return failed != 0 ? failed : result;
}
