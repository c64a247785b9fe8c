// K/V pages of 4 bits (kernels/attend.h): the rotation of a head's numbers, writing rows, and unpacking codes to int8.

// y: 16 numbers times the Hadamard matrix of 16, each a chain over them.
inline F32 rotate_16(const float* x) {
  F32 y = splat(0.0f);
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j) y = fma_scalar(load(kHadamard16.rows[j]), x + j, y);
  return y;
}

// In place: blocks of rotated_dims, of which n is a multiple. What is rotated twice is itself but for rounding.
inline void rotate(float* x, int32_t n, int32_t rotated_dims) {
  for (int32_t d = 0; d < n; d += 16) store(x + d, rotate_16(x + d));
  for (int32_t stride = 16; stride < rotated_dims; stride *= 2) {
    for (int32_t d = 0; d < n; d += (d + 16) % stride == 0 ? 16 + stride : 16) {
      const F32 a = load(x + d);
      const F32 b = load(x + d + stride);
      store(x + d, add(a, b));
      store(x + d + stride, sub(a, b));
    }
  }
  const F32 norm = splat(rotation_norm(rotated_dims));
  for (int32_t d = 0; d < n; d += 16) store(x + d, mul(load(x + d), norm));
}

// The code of the nearest level.
inline uint8_t q4_code_of(float x, float scale) {
  if (!(scale > 0.0f) || scale > 65504.0f) return 0;
  const int32_t level = q4_level_of((x < 0.0f ? -x : x) / scale);
  return static_cast<uint8_t>(x < 0.0f ? level + 8 : level);
}

struct Q4Page {
  uint16_t* scales;
  uint8_t* codes;
  int32_t n_dims;  // kv_q4_dims()
};

// Of n numbers from dim `first` on, in groups that share a scale.
template <PlaceOf place>
inline void store_q4_dims(const float* x, int32_t n, int32_t first, int32_t slot, Q4Page page) {
  for (int32_t i = 0; i < n; i += kKvScaleDims) {
    const int32_t end = i + kKvScaleDims < n ? i + kKvScaleDims : n;
    const uint16_t half = kv_scale_of(x + i, end - i);
    const float scale = f16_to_f32(half);
    page.scales[(first + i) / kKvScaleDims * kPageTokens + slot] = half;
    for (int32_t j = i; j < end; ++j) {
      const int32_t d = first + j;
      uint8_t& pair = page.codes[place(page.n_dims / 2, slot, d / 32 * 16 + d % 16)];
      const int shift = d / 16 % 2 * 4;
      pair = static_cast<uint8_t>((pair & (0xf0 >> shift)) | (q4_code_of(x[j], scale) << shift));
    }
  }
}

template <PlaceOf place>
inline void store_q4(const float* src, int32_t head_dim, int32_t rotated_dims, int32_t slot, std::byte* page) {
  const Q4Page to = {reinterpret_cast<uint16_t*>(page), reinterpret_cast<uint8_t*>(page + kv_codes_offset(head_dim)),
                     kv_q4_dims(head_dim)};
  alignas(64) float part[kMostRotatedDims];
  const int32_t step = rotated_dims < kKvScaleDims ? kKvScaleDims : rotated_dims;
  for (int32_t first = 0; first < head_dim; first += step) {
    const int32_t n = step < head_dim - first ? step : head_dim - first;
    std::memcpy(part, src + first, static_cast<size_t>(n) * sizeof(float));
    if (rotated_dims > 0) rotate(part, n, rotated_dims);
    store_q4_dims<place>(part, n, first, slot, to);
  }
}

// 64 pairs of codes: of the 16 dims that are in low nibbles, and of the next 16, where there are as many.
inline void unpack_pairs(const uint8_t* pairs, uint8_t* low, uint8_t* high, bool has_high) {
  const U8 both = load_u(pairs);
  store_u(low, lookup(reinterpret_cast<const uint8_t*>(kQ4Levels), mask_u<0x0f>(both)));
  if (has_high) store_u(high, lookup(reinterpret_cast<const uint8_t*>(kQ4Levels), mask_u<0x0f>(move_bits<4, 0>(both))));
}

// n_rows: of 16 bytes that stand one after another in an int8 page, for 16 dims: a half's K has 16 such, V 32 tokens.
inline void unpack_codes(const uint8_t* pairs, int32_t n_dims, int32_t n_rows, uint8_t* dst) {
  const int32_t n_bytes = n_rows * 16;
  for (int32_t d = 0; d < n_dims; d += 32, dst += 2 * n_bytes) {
    for (int32_t i = 0; i < n_bytes; i += 64, pairs += 64) {
      unpack_pairs(pairs, dst + i, dst + n_bytes + i, d + 16 < n_dims);
    }
  }
}
