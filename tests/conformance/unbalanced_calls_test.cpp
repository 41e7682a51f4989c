// Calls in every order, up to six of them, against a small model of what they mean: on a timeline moved by hand, and on
// CUDA over the fake runtime.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <steptimer/steptimer.hpp>

#include "fake_cuda/fake_cuda.hpp"
#include "support/catch.hpp"
#include "support/counts.hpp"
#include "support/virtual_cuda.hpp"

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using steptimer::StepCounts;
using steptimer::StepRecord;
using steptimer::StepTimerOptions;

namespace {

constexpr nanoseconds between_calls = 20ms;

enum class Call { start, end, pause, poll, finish, release, reset };
constexpr std::array<Call, 7> all_calls{Call::start,  Call::end,     Call::pause, Call::poll,
                                        Call::finish, Call::release, Call::reset};
constexpr const char* names[] = {"start", "end", "pause", "poll", "finish", "release", "reset"};

/// What the calls mean where the device is never behind, written down a second time and in another way: a list of
/// steps, each with its times.
class Model {
 public:
  void apply(Call call, nanoseconds time) {
    switch (call) {
      case Call::start:
        told_of_start = told_of_start || open_.has_value();
        drop_open_step();
        end_gap(time);
        if (!first_start_) first_start_ = time;
        open_ = Step{};
        open_->record.step = counts_.started++;
        open_->record.host_start = time - *first_start_;
        open_->start = time;
        return;
      case Call::end:
        if (!open_) {
          ++counts_.ignored_ends;
          told_of_end = true;
          return;
        }
        open_->record.batch_time = open_->record.host_batch_time = time - open_->start;
        open_->record.items = 5;
        in_gap_ = std::exchange(open_, std::nullopt);
        if (!in_gap_->has_gap) give_up_gap();
        return measure();
      case Call::pause: return give_up_gap();
      case Call::poll: return measure();
      case Call::finish:
      case Call::release:
        drop_open_step();
        give_up_gap();
        return measure();
      case Call::reset: *this = Model(records, told_of_start, told_of_end); return;
    }
  }

  /// The counts, with what is still to come.
  StepCounts present_counts() const {
    StepCounts all = counts_;
    all.pending += (open_ ? 1u : 0u) + (in_gap_ ? 1u : 0u) + ready_.size();
    return all;
  }

  Model() = default;
  std::vector<StepRecord> records;
  bool told_of_start = false, told_of_end = false;

 private:
  struct Step {
    StepRecord record;
    nanoseconds start{0};
    bool has_gap = true;
  };

  Model(std::vector<StepRecord> made, bool of_start, bool of_end)
      : records(std::move(made)), told_of_start(of_start), told_of_end(of_end) {}

  void drop_open_step() {
    if (!open_) return;
    open_.reset();
    ++counts_.dropped;
  }
  void end_gap(nanoseconds now) {
    if (!in_gap_) return;
    StepRecord& record = in_gap_->record;
    record.wall_gap = record.host_wall_gap = now - in_gap_->start;
    record.data_time = *record.wall_gap - record.batch_time;
    ready_.push_back(record);
    in_gap_.reset();
  }
  void give_up_gap() {
    if (open_) open_->has_gap = false;
    if (in_gap_) ready_.push_back(in_gap_->record);
    in_gap_.reset();
  }
  void measure() {
    counts_.measured += ready_.size();
    records.insert(records.end(), ready_.begin(), ready_.end());
    ready_.clear();
  }

  StepCounts counts_;
  std::optional<nanoseconds> first_start_;
  std::optional<Step> open_, in_gap_;
  std::vector<StepRecord> ready_;  // to be measured at the next opportunity
};

struct Manual {
  using Timer = steptimer::StepTimer<steptimer::ManualBackend>;
  steptimer::ManualBackend timeline;
  Timer timer(StepTimerOptions options) { return Timer(timeline, std::move(options)); }
  void pass(nanoseconds time) { timeline.advance(time); }
  static std::string problem() { return {}; }
};

struct Cuda {
  using Timer = VirtualCudaTimer;
  cudaStream_t stream = nullptr;
  Cuda() {
    fake_cuda::reset(1);
    const fake_cuda::UserCode user;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  }
  Timer timer(StepTimerOptions options) { return Timer(stream, std::move(options)); }
  static void pass(nanoseconds time) { fake_cuda::advance(time); }
  static std::string problem() { return fake_cuda::violation_text(); }
};

bool same(const StepRecord& a, const StepRecord& b) {
  return a.step == b.step && a.host_start == b.host_start && a.batch_time == b.batch_time && a.wall_gap == b.wall_gap &&
         a.data_time == b.data_time && a.host_batch_time == b.host_batch_time && a.host_wall_gap == b.host_wall_gap &&
         a.items == b.items && a.warmup == b.warmup;
}

/// Makes the calls of one sequence, and says what came out otherwise than the model has it.
template <class Device>
std::string difference(const std::vector<Call>& sequence) {
  Device device;
  Model model;
  std::vector<StepRecord> records;
  std::size_t warnings = 0;
  StepTimerOptions options;
  options.window = 4;
  options.on_record = [&](const StepRecord& record) { records.push_back(record); };
  options.on_warning = [&](std::string_view) { ++warnings; };
  auto timer = device.timer(options);
  nanoseconds now{0};
  for (const Call call : sequence) {
    switch (call) {
      case Call::start: timer.on_batch_start(); break;
      case Call::end: timer.on_batch_end(5); break;
      case Call::pause: timer.pause(); break;
      case Call::poll: timer.poll(); break;
      case Call::finish: timer.finish(0ns); break;
      case Call::release: timer.release(); break;
      case Call::reset: timer.reset(); break;
    }
    model.apply(call, now);
    if (!(timer.counts() == model.present_counts())) return "other counts";
    if (!adds_up(timer.counts())) return "counts that do not add up";
    if (!std::equal(records.begin(), records.end(), model.records.begin(), model.records.end(), same))
      return "other records";
    if (warnings != (model.told_of_start ? 1u : 0u) + (model.told_of_end ? 1u : 0u)) return "other warnings";
    if (timer.status().state != steptimer::TimerState::ok) return "another state";
    device.pass(between_calls);
    now += between_calls;
  }
  return device.problem();
}

/// The sequences of that many calls that go otherwise than they should.
template <class Device>
std::string wrong_sequences(std::size_t length) {
  std::string text;
  std::vector<std::size_t> at(length, 0);
  for (bool more = true; more;) {
    std::vector<Call> sequence;
    for (const std::size_t i : at) sequence.push_back(all_calls[i]);
    const std::string problem = difference<Device>(sequence);
    if (!problem.empty()) {
      for (const std::size_t i : at) text += std::string(names[i]) + " ";
      text += "-> " + problem + "\n";
      if (text.size() > 2000) return text + "...";
    }
    more = false;
    for (std::size_t i = 0; i < length && !more; ++i) {
      at[i] = (at[i] + 1) % all_calls.size();
      more = at[i] != 0;
    }
  }
  return text;
}

}  // namespace

TEMPLATE_TEST_CASE("calls in any order, up to six of them, mean what they say", "[case-44]", Manual, Cuda) {
  for (std::size_t length = 1; length <= 6; ++length) CHECK(wrong_sequences<TestType>(length) == "");
}
