// A Backend without elapsed().

#include <chrono>
#include <steptimer/steptimer.hpp>

using namespace steptimer;

struct Broken : BackendDefaults {
  using Mark = int;
  MarkStatus record(Mark&, HostTime) noexcept { return MarkStatus::ok; }
  MarkStatus query(const Mark&) noexcept { return MarkStatus::ok; }
#ifdef STEPTIMER_TEST_CONTROL
  MarkStatus elapsed(const Mark&, const Mark&, std::chrono::nanoseconds&) noexcept { return MarkStatus::ok; }
#endif
};

int main() {
  StepTimer<Broken> timer;
  timer.on_batch_start();
  timer.on_batch_end();
}
