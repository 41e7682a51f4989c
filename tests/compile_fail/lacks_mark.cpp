// A Backend without a type Mark.

#include <chrono>
#include <steptimer/steptimer.hpp>

using namespace steptimer;

struct Broken : BackendDefaults {
#ifdef STEPTIMER_TEST_CONTROL
  using Mark = int;
#else
  using Point = int;
#endif
  MarkStatus record(int&, HostTime) noexcept { return MarkStatus::ok; }
  MarkStatus query(const int&) noexcept { return MarkStatus::ok; }
  MarkStatus elapsed(const int&, const int&, std::chrono::nanoseconds&) noexcept { return MarkStatus::ok; }
};

int main() {
  StepTimer<Broken> timer;
  timer.on_batch_start();
  timer.on_batch_end();
}
