// A timer over an int, which is no class at all.

#include <steptimer/steptimer.hpp>

#ifdef STEPTIMER_TEST_CONTROL
using Broken = steptimer::CpuBackend;
#else
using Broken = int;
#endif

int main() {
  steptimer::StepTimer<Broken> timer;
  timer.on_batch_start();
  timer.on_batch_end();
}
