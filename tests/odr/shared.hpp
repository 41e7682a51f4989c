#pragma once

#include <cstddef>
#include <every_call.hpp>

/// What each source file of the program has to offer; pass_on() hands an object made by one file to another.
using Timer = steptimer::StepTimer<steptimer::ManualBackend>;

namespace a {
double use_everything();
const void* address_of_told();
Timer make_timer(steptimer::ManualBackend device);
void end_without_start();
}  // namespace a

namespace b {
double use_everything();
const void* address_of_told();
std::size_t finish_timer(Timer timer);
void end_without_start();
}  // namespace b

#ifdef STEPTIMER_TEST_CU
namespace c {
double use_everything();
const void* address_of_told();
std::size_t finish_timer(Timer timer);
void end_without_start();
}  // namespace c
#endif
