// Not API: the other half of macros_keep.hpp.
#pragma pop_macro("max")
#pragma pop_macro("min")
