// Whether a step costs more where there is more of something: steps, window, steps in flight, writers; and whether the
// timer grows. Each question is asked of all its values in turns, round by round in one process; a cost is the median
// over the rounds, a ratio the median of the rounds' own ratios to the question's first value.
//
//     scaling [--quick] [--csv FILE]
//
// In the CSV, ns_per_step of `window_call` is ns a call, and `steps` is how many of them a figure was taken over.
// Exit code 0 whatever the figures are: they are for reading, not for passing.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <steptimer/csv_writer.hpp>
#include <steptimer/jsonl_writer.hpp>
#include <steptimer/steptimer.hpp>
#include <steptimer/tee.hpp>
#include <steptimer/trace_writer.hpp>

#include "../../examples/common/option_table.hpp"
#include "../../examples/common/run_program.hpp"
#include "support/csv_file.hpp"
#include "support/figures.hpp"
#if defined(STEPTIMER_BENCH_CUDA)
#include <steptimer/cuda_backend.hpp>

#include "../../examples/common/cuda_resources.hpp"
#include "support/stream_gate.hpp"
#endif

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using bench::Cell;

struct Size {
  int rounds = 21;
  int rounds_of_many_steps = 7;
  std::uint64_t most_steps = 10'000'000;  // also what small counts are repeated to, a tenth of it
  std::uint64_t steps = 100'000;          // a round, where their number is not the question

  static Size quick() { return {7, 5, 1'000'000, 20'000}; }
};

/// One value of a question. `cost` measures it once and returns ns a step.
struct Variant {
  std::uint64_t value;
  std::uint64_t steps;
  std::function<double()> cost;
};

/// Asks the questions, prints the answers and writes them down.
class Report {
 public:
  explicit Report(const std::string& csv) : csv_(csv, "question,value,ns_per_step,ratio,steps,rss_growth_kb") {
    std::printf("%-16s %12s %14s %8s\n", "question", "value", "ns a step", "ratio");
  }

  /// Returns the lowest and the highest ratio.
  std::pair<double, double> ask(const char* question, int rounds, const std::vector<Variant>& variants) {
    std::vector<std::vector<double>> costs(variants.size()), ratios(variants.size());
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < variants.size(); ++i) {
        costs[i].push_back(variants[i].cost());
        ratios[i].push_back(costs[i].back() / costs[0].back());
      }
    }
    std::pair<double, double> range{1, 1};
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const double ratio = bench::median(ratios[i]);
      range = {std::min(range.first, ratio), std::max(range.second, ratio)};
      row(question, variants[i], bench::median(costs[i]), ratio);
    }
    return range;
  }

  void memory(std::uint64_t steps, double growth_kb) {
    std::printf("%-16s %12llu %11.0f KB\n", "memory", static_cast<unsigned long long>(steps), growth_kb);
    csv_.row({"memory", steps, "", "", steps, Cell(growth_kb, 0)});
  }

 private:
  void row(const char* question, const Variant& variant, double cost, double ratio) {
    std::printf("%-16s %12llu %14.1f %8.3f\n", question, static_cast<unsigned long long>(variant.value), cost, ratio);
    std::fflush(stdout);
    csv_.row({question, variant.value, Cell(cost, 1), Cell(ratio, 3), variant.steps, ""});
  }

  bench::CsvFile csv_;
};

void say_range(const char* what, std::pair<double, double> range) {
  const bool flat = range.first >= 0.9 && range.second <= 1.1;
  std::printf("goal: flat (within 10 %%) in %s: %.2f to %.2f times the first, %s\n", what, range.first, range.second,
              flat ? "met" : "missed");
}

template <class Timer>
void run_steps(Timer& timer, std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) {
    timer.on_batch_start();
    timer.on_batch_end();
  }
}

/// What one of `count` things costs that `body` does.
template <class Body>
double nanoseconds_each(std::uint64_t count, Body&& body) {
  const auto begin = Clock::now();
  body();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / static_cast<double>(count);
}

std::pair<double, double> number_of_steps(Report& report, const Size& size) {
  // Small counts are repeated, each time with a new timer, so that every figure has its share of interruptions.
  const auto cost = [&size](std::uint64_t steps) {
    const std::uint64_t repeats = std::max<std::uint64_t>(1, size.most_steps / 10 / steps);
    double sum = 0;
    for (std::uint64_t i = 0; i < repeats; ++i) {
      steptimer::CpuTimer timer;
      sum += nanoseconds_each(steps, [&] { run_steps(timer, steps); });
    }
    return sum / static_cast<double>(repeats);
  };
  (void)cost(size.most_steps / 10);  // warms up
  std::vector<Variant> variants;
  for (std::uint64_t steps = 1000; steps <= size.most_steps; steps *= 10)
    variants.push_back({steps, steps, [cost, steps] { return cost(steps); }});
  return report.ask("steps", size.rounds_of_many_steps, variants);
}

constexpr std::array<std::uint64_t, 5> windows{10, 100, 1000, 10'000, 100'000};

std::pair<double, double> window(Report& report, const Size& size) {
  std::deque<steptimer::CpuTimer> timers;
  std::vector<Variant> hooks, calls;
  for (const std::uint64_t window : windows) {
    steptimer::StepTimerOptions options;
    options.window = static_cast<std::size_t>(window);
    steptimer::CpuTimer& timer = timers.emplace_back(steptimer::CpuBackend{}, options);
    run_steps(timer, 2 * window + 1000);  // the window is full, and all of its memory has been written to
    hooks.push_back({window, size.steps,
                     [&timer, &size] { return nanoseconds_each(size.steps, [&] { run_steps(timer, size.steps); }); }});
    const std::uint64_t count = std::max<std::uint64_t>(1, size.steps / window);
    calls.push_back({window, count, [&timer, count] {
                       return nanoseconds_each(count, [&] {
                         for (std::uint64_t i = 0; i < count; ++i) {
                           steptimer::StepSummary summary = timer.window();
                           bench::use(summary);
                         }
                       });
                     }});
  }
  const auto range = report.ask("window", size.rounds, hooks);
  report.ask("window_call", size.rounds, calls);
  return range;
}

/// A device that runs some steps behind its host, in made-up time: what is timed is what the hooks do.
class DeviceBehind {
 public:
  explicit DeviceBehind(std::uint64_t steps_in_flight) : steps_in_flight_(steps_in_flight) {
    device_.launch((steps_in_flight - 1) * 1ms);
    run(2 * steps_in_flight + 1000);
  }

  void run(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) {
      timer_.on_batch_start();
      device_.launch(1ms);
      timer_.on_batch_end();
      device_.advance(1ms);
    }
    if (timer_.counts().pending != steps_in_flight_)
      throw std::runtime_error("the device did not stay so many steps behind its host as it should");
  }

 private:
  std::uint64_t steps_in_flight_;
  steptimer::ManualBackend device_;
  steptimer::StepTimer<steptimer::ManualBackend> timer_{device_};
};

void steps_in_flight(Report& report, const Size& size) {
  std::deque<DeviceBehind> devices;
  std::vector<Variant> variants;
  for (const std::uint64_t in_flight : {1u, 8u, 64u, 512u}) {
    DeviceBehind& device = devices.emplace_back(in_flight);
    variants.push_back({in_flight, size.steps,
                        [&device, &size] { return nanoseconds_each(size.steps, [&] { device.run(size.steps); }); }});
  }
  report.ask("in_flight", size.rounds, variants);
}

/// The library's writers, each with a file of its own, the first `count` of them in use. The system throws away what they
/// write, but the writing is real.
class Writers {
 public:
  explicit Writers(std::uint64_t count) : timer_{{}, options(count)} {}

  void run(std::uint64_t steps) { run_steps(timer_, steps); }

  void check() const {
    if (csv_.lost() + jsonl_.lost() + trace_.lost() > 0) throw std::runtime_error("a writer could not write");
  }

 private:
  steptimer::StepTimerOptions options(std::uint64_t count) {
    steptimer::StepTimerOptions options;
    if (count == 1) options.on_record = std::ref(csv_);
    if (count == 2) options.on_record = steptimer::tee(csv_, jsonl_);
    if (count == 3) options.on_record = steptimer::tee(csv_, jsonl_, trace_);
    return options;
  }

  std::ofstream csv_file_{"/dev/null"}, jsonl_file_{"/dev/null"}, trace_file_{"/dev/null"};
  steptimer::CsvWriter csv_{csv_file_};
  steptimer::JsonlWriter jsonl_{jsonl_file_};
  steptimer::TraceWriter trace_{trace_file_};
  steptimer::CpuTimer timer_;
};

void writers(Report& report, const Size& size) {
  std::deque<Writers> all;
  std::vector<Variant> variants;
  for (const std::uint64_t count : {0u, 1u, 2u, 3u}) {
    Writers& some = all.emplace_back(count);
    some.run(1000);
    variants.push_back(
        {count, size.steps, [&some, &size] { return nanoseconds_each(size.steps, [&] { some.run(size.steps); }); }});
  }
  report.ask("writers", size.rounds, variants);
  for (const Writers& some : all) some.check();
}

/// Resident memory of this process. NaN where /proc does not tell.
double resident_kb() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> status(std::fopen("/proc/self/status", "r"), std::fclose);
  char line[256];
  double kilobytes = std::nan("");
  while (status && std::fgets(line, sizeof line, status.get()) != nullptr)
    if (std::sscanf(line, "VmRSS: %lf kB", &kilobytes) == 1) break;
  return kilobytes;
}

double memory(Report& report, const Size& size) {
  const double before = resident_kb();
  steptimer::CpuTimer timer;
  run_steps(timer, size.most_steps);
  const double growth = resident_kb() - before;
  report.memory(size.most_steps, growth);
  return growth;
}

#if defined(STEPTIMER_BENCH_CUDA)

/// The same on a stream that is held back: hooks that find so many steps in flight, none of them ready.
class HeldStream {
 public:
  static constexpr std::uint64_t timed_steps = 8;

  /// What a step costs while `in_flight` others are, up to `in_flight + timed_steps` of them.
  double cost(std::uint64_t in_flight) {
    double result = 0;
    {
      const bench::StreamGate gate(stream_);
      run_steps(timer_, in_flight);
      result = nanoseconds_each(timed_steps, [&] { run_steps(timer_, timed_steps); });
      if (timer_.counts().pending != in_flight + timed_steps)
        throw std::runtime_error("the stream was not held back, or the timer could not mark it");
    }
    stream_.wait();
    if (!timer_.finish(10s)) throw std::runtime_error("the timer could not measure what the device has finished");
    return result;
  }

 private:
  example::Stream stream_;
  steptimer::CudaTimer timer_{stream_};
};

void steps_in_flight_on_gpu(Report& report, const Size& size) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("in_flight_gpu    left out: there is no GPU to use\n");
    return;
  }
  constexpr std::uint64_t most_in_flight = 400;  // two commands each: below the thousand that block the host
  constexpr std::uint64_t repeats = 20;
  HeldStream held;
  (void)held.cost(most_in_flight);  // makes all the events
  std::vector<Variant> variants;
  for (const std::uint64_t in_flight : {std::uint64_t{1}, std::uint64_t{8}, std::uint64_t{64}, most_in_flight}) {
    variants.push_back({in_flight, repeats * HeldStream::timed_steps, [&held, in_flight] {
                          std::vector<double> costs;
                          for (std::uint64_t i = 0; i < repeats; ++i) costs.push_back(held.cost(in_flight));
                          return bench::median(costs);
                        }});
  }
  report.ask("in_flight_gpu", size.rounds, variants);
}

#else

void steps_in_flight_on_gpu(Report&, const Size&) { std::printf("in_flight_gpu    left out: built without CUDA\n"); }

#endif

void run(int argc, char** argv) {
  bool quick = false;
  std::string csv;
  example::OptionTable table("scaling", "tells whether a step costs more where there is more of something");
  table.add_switch("--quick", quick, "fewer rounds, and a tenth of the steps");
  table.add_text("--csv", "FILE", csv, "write the results there, too");
  if (!table.parse(argc, argv)) return;

  const Size size = quick ? Size::quick() : Size{};
  Report report(csv);
  const double growth_kb = memory(report, size);  // first, while nothing else has left memory behind
  const auto steps_range = number_of_steps(report, size);
  const auto window_range = window(report, size);
  steps_in_flight(report, size);
  steps_in_flight_on_gpu(report, size);
  writers(report, size);

  std::printf("goal: resident memory grows by less than 1 MB: %.0f KB, %s\n", growth_kb,
              growth_kb < 1024        ? "met"
              : std::isnan(growth_kb) ? "not known"
                                      : "missed");
  say_range("the window", window_range);
  say_range("the number of steps", steps_range);
}

}  // namespace

int main(int argc, char** argv) {
  return example::run_program("scaling", [&] { run(argc, argv); });
}
