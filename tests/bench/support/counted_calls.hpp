// What a program that is linked with counted_calls.cpp has called so far. One thread.
#pragma once

namespace bench {

extern long allocations;  // of C++'s operator new
extern long events_made;  // by cudaEventCreateWithFlags, which is the one the timer calls

}  // namespace bench
