#pragma once
// What the kernel takes that tries the words of language.h. Pointers are addresses of the device. Plain data.

#include <cstdint>

namespace candor::backend::cuda {

// Row w of out is word w of a_i, b_i, c_i, as bits; integers and 16 bits are taken from a's bits.
struct TryWordsArgs {
  const float* a;
  const float* b;
  const float* c;
  uint32_t* out;  // [kTriedWords, n]
  int64_t n;
};
// fma, mul, add, sub, div, sqrt, to_int, to_float, f32 to f16, f16 to f32, f32 to bf16, bf16 to f32, dot4.
inline constexpr int32_t kTriedWords = 13;

}  // namespace candor::backend::cuda
