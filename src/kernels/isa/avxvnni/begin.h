// Opens a region whose functions are compiled for AVX2 with AVX-VNNI, FMA and F16C, whatever the file's flags. No
// include guard.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avxvnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c,avxvnni")
#endif
