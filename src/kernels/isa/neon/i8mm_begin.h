// Opens a region whose functions are compiled with Armv8.6's products of int8 matrices, whatever the file's flags. No
// include guard; end.h closes it.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod,i8mm"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod+i8mm")
#endif
