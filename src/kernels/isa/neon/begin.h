// Opens a region whose functions are compiled with Armv8.2's dot products, whatever the file's flags. No include guard.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
