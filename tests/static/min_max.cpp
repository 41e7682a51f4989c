// A user's macros min and max do no harm to the headers and are there after them, although the standard library takes them.
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))

#include <steptimer/steptimer.hpp>

static_assert(min(1, 2) == 1 && max(1, 2) == 2, "the user's min() and max() still work");
