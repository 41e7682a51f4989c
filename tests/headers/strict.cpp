// All headers and all calls; the compiler's options are the test.

#include <all_headers.hpp>
#include <every_call.hpp>

static_assert(STEPTIMER_TEST_CPLUSPLUS <= 202002L ? __cplusplus == STEPTIMER_TEST_CPLUSPLUS : __cplusplus > 202002L,
              "the compiler does not build the standard that it was asked for");
#if defined STEPTIMER_TEST_LIBCXX && !defined _LIBCPP_VERSION
#error "this is not the standard library that was asked for"
#endif
#ifdef STEPTIMER_TEST_FMT_VERSION
static_assert(FMT_VERSION == STEPTIMER_TEST_FMT_VERSION, "this is not the fmt that was asked for");
#endif

double use_every_call();
double use_every_call() { return every_call(); }
