// exp and friends on 16 lanes: the sequences of base/exact_math.h. Part-row access. No include guard: see
// isa/README.md.

inline F32 exp16(F32 x) {
  namespace k = exp_constants;
  const F32 capped = min(splat(k::kMax), x);
  const F32 shifted = fma(capped, splat(k::kLog2e), splat(k::kRound));
  const F32 n = sub(shifted, splat(k::kRound));
  F32 r = fma(n, splat(-k::kLn2Hi), capped);
  r = fma(n, splat(-k::kLn2Lo), r);
  F32 p = fma(splat(k::kP5), r, splat(k::kP4));
  p = fma(p, r, splat(k::kP3));
  p = fma(p, r, splat(k::kP2));
  p = fma(p, r, splat(k::kP1));
  p = fma(p, r, splat(k::kP0));
  const F32 y = add(fma(mul(r, r), p, r), splat(1.0f));
  const I32 exponent = shl_i<23>(add_i(f32_to_bits(shifted), splat_i(127)));
  return zero_if_less(mul(y, bits_to_f32(exponent)), x, splat(k::kMin));
}

inline F32 silu16(F32 x) {
  return div(x, add(splat(1.0f), exp16(mul(x, splat(-1.0f)))));
}

inline F32 gelu16(F32 x) {
  const F32 u = fma(mul(mul(x, x), x), splat(0.044715f), x);
  return div(x, add(splat(1.0f), exp16(mul(u, splat(-1.5957691f)))));
}

// The first n <= 16 elements, the others `fill`; n >= 16 reads 16.
inline F32 load_part(const float* p, int64_t n, float fill) {
  if (n >= 16) return load(p);
  float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = i < n ? p[i] : fill;
  return load(lanes);
}

inline void store_part(float* p, int64_t n, F32 a) {
  if (n >= 16) return store(p, a);
  float lanes[16];
  store(lanes, a);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
