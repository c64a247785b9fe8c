// To be included before <immintrin.h>: gcc 12's own avx512fintrin.h initialises its "undefined" operands with
// themselves, and warns about it once it is inlined. No include guard: it holds for the file that includes it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
