// A Backend whose record() is not noexcept.

#include <chrono>
#include <steptimer/steptimer.hpp>

using namespace steptimer;

struct Broken : BackendDefaults {
  using Mark = int;
#ifdef STEPTIMER_TEST_CONTROL
  MarkStatus record(Mark&, HostTime) noexcept { return MarkStatus::ok; }
#else
  MarkStatus record(Mark&, HostTime) { return MarkStatus::ok; }
#endif
  MarkStatus query(const Mark&) noexcept { return MarkStatus::ok; }
  MarkStatus elapsed(const Mark&, const Mark&, std::chrono::nanoseconds&) noexcept { return MarkStatus::ok; }
};

int main() {
  StepTimer<Broken> timer;
  timer.on_batch_start();
  timer.on_batch_end();
}
