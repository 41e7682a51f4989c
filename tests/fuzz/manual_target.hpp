// A StepTimer over ManualBackend: nothing ever fails, so every time and every gap is known exactly.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <steptimer/manual_backend.hpp>

#include "bytes.hpp"
#include "report.hpp"
#include "witness.hpp"

namespace fuzz {

class ManualTarget {
 public:
  using Backend = steptimer::ManualBackend;
  static constexpr unsigned lines = 1;
  struct CallersState {};

  explicit ManualTarget(Bytes&) {}

  Backend backend(unsigned) const { return device_; }
  nanoseconds host_now() const { return device_.host_now().time_since_epoch(); }
  nanoseconds next_mark(unsigned) const { return (std::max)(host_now(), work_done_); }
  nanoseconds horizon() const { return next_mark(0); }
  void advance(nanoseconds amount) { device_.advance(amount); }
  void launch(unsigned, nanoseconds amount) {
    work_done_ = next_mark(0) + amount;
    device_.launch(amount);
  }
  void operate(Bytes&) {
    note("synchronize");
    device_.synchronize();
  }

  Certainty certainty(unsigned) const { return {}; }
  static bool close(nanoseconds a, nanoseconds b) { return a == b; }
  bool may_put_off() const { return false; }
  void begin_wait() {}
  std::uint64_t backend_calls() const { return 0; }
  CallersState callers_state() const { return {}; }
  void check_callers_state(CallersState) const {}
  void check(std::uint64_t) const {}
  void recover() {}
  bool is_healthy() const { return true; }
  void check_all_given_back() const {}

 private:
  Backend device_;
  nanoseconds work_done_{0};
};

}  // namespace fuzz
