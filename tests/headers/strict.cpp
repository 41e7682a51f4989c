// All headers and all calls; the compiler's options are the test.

#include <all_headers.hpp>
#include <every_call.hpp>

static_assert(__cplusplus >= STEPTIMER_TEST_CPLUSPLUS,
              "the compiler does not build the standard that it was asked for");

double use_every_call();
double use_every_call() { return every_call(); }
