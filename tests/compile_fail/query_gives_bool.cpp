// A Backend whose query() answers with a bool.

#include <chrono>
#include <steptimer/steptimer.hpp>

using namespace steptimer;

struct Broken : BackendDefaults {
  using Mark = int;
  MarkStatus record(Mark&, HostTime) noexcept { return MarkStatus::ok; }
#ifdef STEPTIMER_TEST_CONTROL
  MarkStatus query(const Mark&) noexcept { return MarkStatus::ok; }
#else
  bool query(const Mark&) noexcept { return true; }
#endif
  MarkStatus elapsed(const Mark&, const Mark&, std::chrono::nanoseconds&) noexcept { return MarkStatus::ok; }
};

int main() {
  StepTimer<Broken> timer;
  timer.on_batch_start();
  timer.on_batch_end();
}
