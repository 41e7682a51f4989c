// Not API, and without an include guard: first in every public header, with macros_restore.hpp last. A user's macros min and
// max (windows.h has them) would break the standard headers, and are to be there again after an include of ours.
#pragma push_macro("min")
#pragma push_macro("max")
#undef min
#undef max
