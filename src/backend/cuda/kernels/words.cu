// The words that compute, tried on numbers: arithmetic_check.h compares them with the host's.

#include "backend/cuda/kernels/language.h"
#include "backend/cuda/kernels/word_args.h"

namespace candor::backend::cuda {

CANDOR_KERNEL(try_words, TryWordsArgs) {
  const int64_t i = static_cast<int64_t>(block_x()) * n_threads() + thread();
  if (i >= args.n) return;
  const float a = args.a[i];
  const float b = args.b[i];
  const float c = args.c[i];
  const uint32_t bits = bits_of(a);
  const auto low = static_cast<uint16_t>(bits & 0xffffu);
  const uint32_t words[kTriedWords] = {bits_of(fma_rn(a, b, c)),
                                       bits_of(mul_rn(a, b)),
                                       bits_of(add_rn(a, b)),
                                       bits_of(sub_rn(a, b)),
                                       bits_of(div_rn(a, b)),
                                       bits_of(sqrt_rn(a)),
                                       static_cast<uint32_t>(to_int_rn(a)),
                                       bits_of(to_float_rn(static_cast<int32_t>(bits))),
                                       float_to_half(a),
                                       bits_of(half_to_float(low)),
                                       float_to_bf16(a),
                                       bits_of(bf16_to_float(low)),
                                       static_cast<uint32_t>(dot4(bits, bits_of(b), static_cast<int32_t>(bits_of(c))))};
  for (int32_t word = 0; word < kTriedWords; ++word) args.out[word * args.n + i] = words[word];
}

}  // namespace candor::backend::cuda
