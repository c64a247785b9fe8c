// Activations as products want them: a row as int8 with scales, or rounded to bf16. docs/numerics.md, "Activations".

struct GroupScale {
  float scale;
  float inverse;
};

// largest_bits: the largest of the magnitudes' bits, which order as integers, NaN above infinity.
inline GroupScale group_scale_of(int32_t largest_bits) {
  const float amax = std::bit_cast<float>(largest_bits);
  if (largest_bits >= 0x7f800000) return {std::bit_cast<float>(0x7fc00000), 0.0f};
  if (amax < 0x1p-100f) return {0.0f, 0.0f};
  return {amax / 127.0f, 127.0f / amax};
}

inline int32_t largest_magnitude_bits(const float* src, int n) {
  I32 largest = splat_i(0);
  for (int i = 0; i < n; i += 16) {
    largest = max_i(largest, and_i(f32_to_bits(load(src + i)), splat_i(0x7fffffff)));
  }
  return max_lanes(largest);
}

// One group of n elements, sums over every sum_group.
inline float encode_group(const float* src, int n, int sum_group, int8_t* codes, int16_t* sums) {
  const GroupScale group = group_scale_of(largest_magnitude_bits(src, n));
  const bool is_zero = group.inverse == 0.0f;
  for (int j = 0; j < n / sum_group; ++j) {
    I32 sum = splat_i(0);
    for (int i = j * sum_group; i < (j + 1) * sum_group; i += 16) {
      const I32 q = is_zero ? splat_i(0) : round_i(mul(load(src + i), splat(group.inverse)));
      store_i8(codes + i, q);
      sum = add_i(sum, q);
    }
    sums[j] = static_cast<int16_t>(sum_lanes(sum));
  }
  return group.scale;
}

inline void encode_int8(Encoding encoding, const float* src, int64_t n, std::byte* dst) {
  const int group = encoding == Encoding::kQ8x256 ? 256 : 32;
  const int sum_group = encoding == Encoding::kQ8x256 ? 16 : 32;
  auto* codes = reinterpret_cast<int8_t*>(dst);
  auto* sums = reinterpret_cast<int16_t*>(dst + encoded_sums_offset(encoding, n));
  auto* scales = reinterpret_cast<float*>(dst + encoded_scales_offset(encoding, n));
  for (int64_t k = 0; k < n; k += group) {
    scales[k / group] = encode_group(src + k, group, sum_group, codes + k, sums + k / sum_group);
  }
}

// The whole row as one group, zeros up to a whole step behind it.
inline void encode_int8_row(const float* src, int64_t n, std::byte* dst) {
  const GroupScale group = group_scale_of(largest_magnitude_bits(src, static_cast<int>(n)));
  auto* codes = reinterpret_cast<int8_t*>(dst);
  I32 sum = splat_i(0);
  for (int64_t i = 0; i < n; i += 16) {
    const I32 q = group.inverse == 0.0f ? splat_i(0) : round_i(mul(load(src + i), splat(group.inverse)));
    store_i8(codes + i, q);
    sum = add_i(sum, q);
  }
  const size_t end = encoded_sums_offset(Encoding::kQ8Row, n);
  std::memset(codes + n, 0, end - static_cast<size_t>(n));
  const int32_t total = sum_lanes(sum);
  std::memcpy(dst + end, &total, sizeof total);
  std::memcpy(dst + encoded_scales_offset(Encoding::kQ8Row, n), &group.scale, sizeof group.scale);
}

inline void encode_bf16(const float* src, int64_t n, std::byte* dst) {
  auto* out = reinterpret_cast<float*>(dst);
  auto* halves = reinterpret_cast<uint16_t*>(dst + encoded_halves_offset(n));
  for (int64_t i = 0; i < n; i += 16) {
    const F32 rounded = round_bf16(load_part(src + i, n - i, 0.0f));
    store_part(out + i, n - i, rounded);
    store_halves(halves + i, rounded);
  }
}

inline void encode(Encoding encoding, const float* src, int64_t n, std::byte* dst) {
  switch (encoding) {
    case Encoding::kF32:
      std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
      return;
    case Encoding::kBf16:
      encode_bf16(src, n, dst);
      return;
    case Encoding::kQ8x256:
    case Encoding::kQ8x32:
      encode_int8(encoding, src, n, dst);
      return;
    case Encoding::kQ8Row:
      encode_int8_row(src, n, dst);
      return;
  }
}
