// K/V pages (kernels/attend.h): where a number lies in each format, writing rows, and K pages as V pages.
// Pages of 4 bits: attend_codes.inl.h.

inline int32_t padded_dim(int32_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}

inline const int32_t* page_of(const KvPages& pages, int32_t page, size_t offset) {
  const int32_t block = pages.block_table[page - pages.first_page];
  return reinterpret_cast<const int32_t*>(pages.base + static_cast<size_t>(block) * pages.block_bytes + offset);
}

// Pages lie apart, so that no hardware prefetcher finds the next one.
template <class Element>
inline void prefetch_range(const Element* ahead, int32_t n) {
  constexpr auto kLine = static_cast<int32_t>(kLineBytes / sizeof(Element));
  for (int32_t i = 0; i < n; i += kLine) prefetch(ahead + i);
}

// Places of dim d of the page's token `slot`, in the order of single numbers.
inline int32_t key_place(int32_t dp, int32_t slot, int32_t d) {
  return (slot / 16 * dp + d) * 16 + slot % 16;
}
inline int32_t value_place(int32_t, int32_t slot, int32_t d) {
  return (d / 16 * kPageTokens + slot) * 16 + d % 16;
}
using PlaceOf = int32_t (*)(int32_t dp, int32_t slot, int32_t d);

// The same of codes, in the order of pairs.
inline int32_t key_code_place(int32_t dp, int32_t slot, int32_t d) {
  return (slot / 16 * dp + d / 2 * 2) * 16 + slot % 16 * 2 + d % 2;
}
inline int32_t value_code_place(int32_t, int32_t slot, int32_t d) {
  return (d / 16 * kPageTokens + slot / 2 * 2) * 16 + d % 16 * 2 + slot % 2;
}

inline uint32_t bf16_pair(float low, float high) {
  return static_cast<uint32_t>(f32_to_bf16(low)) | (static_cast<uint32_t>(f32_to_bf16(high)) << 16);
}

inline void store_key_bf16(const float* k, int32_t head_dim, int32_t slot, uint32_t* page) {
  uint32_t* column = page + slot / 16 * padded_dim(head_dim) * 8 + slot % 16;
  for (int32_t d = 0; d < head_dim; d += 2) column[d * 8] = bf16_pair(k[d], d + 1 < head_dim ? k[d + 1] : 0.0f);
}

inline void store_value_bf16(const float* v, int32_t head_dim, int32_t slot, uint16_t* page) {
  for (int32_t d = 0; d < head_dim; ++d) {
    page[((d / 16 * 16 + slot / 2) * 16 + d % 16) * 2 + slot % 2] = f32_to_bf16(v[d]);
  }
}

template <PlaceOf place>
inline void store_f32(const float* src, int32_t head_dim, int32_t slot, float* page) {
  for (int32_t d = 0; d < head_dim; ++d) page[place(padded_dim(head_dim), slot, d)] = src[d];
}

inline int32_t kv_scale_groups(int32_t head_dim) {
  return (head_dim + kKvScaleDims - 1) / kKvScaleDims;
}
inline size_t kv_codes_offset(int32_t head_dim) {
  return static_cast<size_t>(kv_scale_groups(head_dim)) * kPageTokens * sizeof(uint16_t);
}

// The f16 scale of n numbers; infinite or NaN where one of them is, or where f16 can't hold it.
inline uint16_t kv_scale_of(const float* src, int32_t n) {
  int32_t largest = 0;
  for (int32_t i = 0; i < n; ++i) {
    const int32_t magnitude = std::bit_cast<int32_t>(src[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  return f32_to_f16(std::bit_cast<float>(largest) / 127.0f);
}

// src / scale to the nearest integer, halves to even; 0 where the scale is no number to divide by.
inline int8_t kv_code_of(float src, float scale) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves no fraction
  if (!(scale > 0.0f) || scale > 65504.0f) return 0;
  const float ratio = src / scale;
  const float capped = ratio < -127.0f ? -127.0f : ratio > 127.0f ? 127.0f : ratio;
  return static_cast<int8_t>((capped + kRound) - kRound);
}

template <PlaceOf place>
inline void store_q8(const float* src, int32_t head_dim, int32_t slot, std::byte* page) {
  auto* scales = reinterpret_cast<uint16_t*>(page);
  auto* codes = reinterpret_cast<int8_t*>(page + kv_codes_offset(head_dim));
  for (int32_t first = 0; first < head_dim; first += kKvScaleDims) {
    const int32_t end = first + kKvScaleDims < head_dim ? first + kKvScaleDims : head_dim;
    const uint16_t half = kv_scale_of(src + first, end - first);
    const float scale = f16_to_f32(half);
    scales[first / kKvScaleDims * kPageTokens + slot] = half;
    for (int32_t d = first; d < end; ++d) codes[place(padded_dim(head_dim), slot, d)] = kv_code_of(src[d], scale);
  }
}

#include "kernels/generic/attend_codes.inl.h"

// To bf16, of 0, normal numbers, infinity, and a NaN that arithmetic made (its payload ends in zeros).
inline F32 round_normal_bf16(F32 a) {
  const I32 bits = f32_to_bits(a);
  const I32 odd = and_i(shr_i<16>(bits), splat_i(1));
  const I32 rounded = add_i(bits, add_i(odd, splat_i(0x7fff)));
  return bits_to_f32(and_i(rounded, splat_i(static_cast<int32_t>(0xffff0000u))));
}

// 16 dims of 16 tokens, from pairs of dims, [8][16 tokens], to pairs of tokens, [8][16 dims].
inline void turn_pairs(const I32* pairs, int32_t* dst) {
  I32 dims[16];
  for (int i = 0; i < 8; ++i) {
    dims[2 * i] = and_i(pairs[i], splat_i(0xffff));
    dims[2 * i + 1] = shr_i<16>(pairs[i]);
  }
  transpose_16(dims);
  for (int i = 0; i < 8; ++i) store_i(dst + i * 16, or_i(dims[2 * i], shl_i<16>(dims[2 * i + 1])));
}
// The same of codes, which become 16 bits.
inline void turn_key_codes(const uint8_t* codes, int32_t* dst) {
  I32 pairs[8];
  for (int i = 0; i < 8; ++i) pairs[i] = widen_i8_pairs(codes + i * 32);
  turn_pairs(pairs, dst);
}

// K pages, all dims of them -> the V pages that values of the same numbers would have.
inline void values_from_keys(const int32_t* page, int32_t dp, int32_t* dst) {
  for (int32_t half = 0; half < 2; ++half) {
    for (int32_t d = 0; d < dp; d += 16, page += 128) {
      I32 pairs[8];
      for (int i = 0; i < 8; ++i) pairs[i] = load_i(page + i * 16);
      turn_pairs(pairs, dst + (d + half * 8) * 16);
    }
  }
}
inline void values_from_wide_keys(const int32_t* page, int32_t dp, int32_t* dst) {
  for (int32_t half = 0; half < 2; ++half) {
    for (int32_t d = 0; d < dp; d += 16, page += 256) {
      I32 dims[16];
      for (int i = 0; i < 16; ++i) dims[i] = load_i(page + i * 16);
      transpose_16(dims);
      for (int i = 0; i < 16; ++i) store_i(dst + (2 * d + half * 16 + i) * 16, dims[i]);
    }
  }
}

inline void store_row(const StoreKvArgs& a, int32_t i, int32_t slot, std::byte* k, std::byte* v) {
  const float* key = a.k + i * a.stride;
  const float* value = a.v == nullptr ? nullptr : a.v + i * a.stride;
  switch (a.pages.format) {
    case KvFormat::kBf16:
      store_key_bf16(key, a.head_dim, slot, reinterpret_cast<uint32_t*>(k));
      if (value != nullptr) store_value_bf16(value, a.head_dim, slot, reinterpret_cast<uint16_t*>(v));
      return;
    case KvFormat::kF32:
      store_f32<key_place>(key, a.head_dim, slot, reinterpret_cast<float*>(k));
      if (value != nullptr) store_f32<value_place>(value, a.head_dim, slot, reinterpret_cast<float*>(v));
      return;
    case KvFormat::kQ8:
      store_q8<key_code_place>(key, a.head_dim, slot, k);
      if (value != nullptr) store_q8<value_code_place>(value, a.head_dim, slot, v);
      return;
    case KvFormat::kQ4:
      store_q4<key_code_place>(key, a.head_dim, a.pages.rotated_dims, slot, k);
      if (value != nullptr) store_q4<value_code_place>(value, a.head_dim, a.pages.rotated_dims, slot, v);
      return;
  }
}

inline void store_kv(const StoreKvArgs& a) {
  const size_t bytes = kv_page_bytes(a.head_dim, a.pages.format);
  for (int32_t i = 0; i < a.n_rows; ++i) {
    const int32_t position = a.first_position + i;
    const int32_t slot = position % kPageTokens;
    const auto block = static_cast<size_t>(a.pages.block_table[position / kPageTokens]);
    std::byte* k = a.pages.base + block * a.pages.block_bytes + a.pages.k_offset;
    std::byte* v = a.pages.base + block * a.pages.block_bytes + a.pages.v_offset;
    if (slot == 0) {
      std::memset(k, 0, bytes);
      if (a.v != nullptr) std::memset(v, 0, bytes);
    }
    store_row(a, i, slot, k, v);
  }
}
