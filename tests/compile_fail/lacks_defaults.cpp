// A Backend that does not derive from BackendDefaults.

#include <chrono>
#include <steptimer/steptimer.hpp>

using namespace steptimer;

#ifdef STEPTIMER_TEST_CONTROL
struct Broken : BackendDefaults {
#else
struct Broken {
#endif
  using Mark = int;
  MarkStatus record(Mark&, HostTime) noexcept { return MarkStatus::ok; }
  MarkStatus query(const Mark&) noexcept { return MarkStatus::ok; }
  MarkStatus elapsed(const Mark&, const Mark&, std::chrono::nanoseconds&) noexcept { return MarkStatus::ok; }
};

int main() {
  StepTimer<Broken> timer;
  timer.on_batch_start();
  timer.on_batch_end();
}
