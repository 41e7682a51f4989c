// A Backend that cannot be moved.

#include <chrono>
#include <steptimer/steptimer.hpp>

using namespace steptimer;

struct Broken : BackendDefaults {
  using Mark = int;
  MarkStatus record(Mark&, HostTime) noexcept { return MarkStatus::ok; }
  MarkStatus query(const Mark&) noexcept { return MarkStatus::ok; }
  MarkStatus elapsed(const Mark&, const Mark&, std::chrono::nanoseconds&) noexcept { return MarkStatus::ok; }

  Broken() = default;
#ifdef STEPTIMER_TEST_CONTROL
  Broken(Broken&&) noexcept = default;
  Broken& operator=(Broken&&) noexcept = default;
#else
  Broken(const Broken&) = delete;
  Broken& operator=(const Broken&) = delete;
#endif
};

int main() {
  StepTimer<Broken> timer;
  timer.on_batch_start();
  timer.on_batch_end();
}
