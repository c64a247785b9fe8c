// exp, tanh, erf and what is made of them, on 16 lanes: the sequences of base/exact_math.h. Loads and stores of fewer
// than 16 floats. No include guard: each instruction set compiles it again (isa/README.md).

// Of x up to kMax.
CANDOR_ELEMENTARY F32 exp16_capped(F32 x) {
  namespace k = exp_constants;
  const F32 shifted = fma(x, splat(k::kLog2e), splat(k::kRound));
  const F32 n = sub(shifted, splat(k::kRound));
  F32 r = fma(n, splat(-k::kLn2Hi), x);
  r = fma(n, splat(-k::kLn2Lo), r);
  F32 p = fma(splat(k::kP5), r, splat(k::kP4));
  p = fma(p, r, splat(k::kP3));
  p = fma(p, r, splat(k::kP2));
  p = fma(p, r, splat(k::kP1));
  p = fma(p, r, splat(k::kP0));
  const F32 y = add(fma(mul(r, r), p, r), splat(1.0f));
  const I32 exponent = shl_i<23>(f32_to_bits(shifted));
  return zero_if_less(mul(y, bits_to_f32(exponent)), x, splat(k::kMin));
}

CANDOR_ELEMENTARY F32 exp16(F32 x) {
  return exp16_capped(min(splat(exp_constants::kMax), x));
}

CANDOR_ELEMENTARY F32 silu16(F32 x) {
  return div(x, add(splat(1.0f), exp16(mul(x, splat(-1.0f)))));
}

CANDOR_ELEMENTARY F32 sigmoid16(F32 x) {
  return div(splat(1.0f), add(splat(1.0f), exp16(mul(x, splat(-1.0f)))));
}

CANDOR_ELEMENTARY F32 gelu16(F32 x) {
  const F32 u = fma(mul(mul(x, x), x), splat(0.044715f), x);
  return div(x, add(splat(1.0f), exp16(mul(u, splat(-1.5957691f)))));
}

// max takes its second operand where one is NaN: a NaN stays.
CANDOR_ELEMENTARY F32 relu16(F32 x) {
  return max(splat(0.0f), x);
}

CANDOR_ELEMENTARY F32 relu_squared16(F32 x) {
  const F32 y = relu16(x);
  return mul(y, y);
}

CANDOR_ELEMENTARY F32 negate(F32 x) {
  return mul(x, splat(-1.0f));
}

// x in lanes where key < limit, 0 elsewhere.
CANDOR_ELEMENTARY F32 where_less(F32 x, F32 key, float limit) {
  return sub(x, zero_if_less(x, key, splat(limit)));
}

// x with the sign of `sign` (x >= 0).
CANDOR_ELEMENTARY F32 with_sign(F32 x, F32 sign) {
  const I32 bit = and_i(f32_to_bits(sign), splat_i(static_cast<int32_t>(0x80000000u)));
  return bits_to_f32(or_i(f32_to_bits(x), bit));
}

// tanh, at most 3 ulp: x + x^3 P(x^2) below 0.625, 1 - 2 / (1 + e^2x) from there. P is a Chebyshev fit; what it takes
// is capped, so that it stays finite where nobody takes it.
CANDOR_ELEMENTARY F32 tanh16(F32 x) {
  constexpr float kBorder = 0.625f;
  const F32 a = max(x, negate(x));
  const F32 low = min(a, splat(kBorder));
  const F32 s = mul(low, low);
  F32 p = fma(splat(0.00206485f), s, splat(-0.00811871f));
  p = fma(p, s, splat(0.02169165f));
  p = fma(p, s, splat(-0.05394857f));
  p = fma(p, s, splat(0.13333253f));
  p = fma(p, s, splat(-0.33333333f));
  const F32 near = fma(mul(p, s), low, low);
  const F32 far = sub(splat(1.0f), div(splat(2.0f), add(splat(1.0f), exp16(add(a, a)))));
  return with_sign(add(where_less(near, a, kBorder), zero_if_less(far, a, splat(kBorder))), x);
}

// log(1 + e^x) = max(x, 0) + log(1 + z), z = e^-|x|; log(1 + z) = 2 artanh(s), s = z / (2 + z) <= 1 / 3, by its series.
CANDOR_ELEMENTARY F32 softplus16(F32 x) {
  const F32 z = exp16(min(x, negate(x)));
  const F32 s = div(z, add(splat(2.0f), z));
  const F32 t = mul(s, s);
  F32 p = splat(1.0f / 15.0f);
  for (int i = 13; i >= 1; i -= 2) p = fma(p, t, splat(1.0f / static_cast<float>(i)));
  return fma(add(s, s), p, max(x, splat(0.0f)));
}

CANDOR_ELEMENTARY F32 soft_cap16(F32 x, float cap) {
  return mul(tanh16(div(x, splat(cap))), splat(cap));
}

// Q of gelu_erf16, lowest power first.
constexpr int kErfcTerms = 10;
CANDOR_CONSTANT kErfcTail[kErfcTerms] = {1.131657255e-04f, -1.129495141e+00f, -6.328649295e-01f, -1.093659296e-01f,
                                         2.620512371e-02f, -4.772127455e-03f, 6.272787839e-04f,  -5.559845493e-05f,
                                         2.954834033e-06f, -7.080975572e-08f};

// x Phi(x), relative error at most 2e-5. With z = |x| / sqrt(2): erf(z) = z P(z^2) below 0.9, and erfc(z) = e^Q(z) from
// there; P and Q are Chebyshev fits. z is capped at 6.5, where erfc is 4e-20, and at 0.9 for P.
CANDOR_ELEMENTARY F32 gelu_erf16(F32 x) {
  constexpr float kBorder = 0.9f;
  const F32 a = max(x, negate(x));
  const F32 z = mul(a, splat(0.70710678f));
  const F32 low = min(z, splat(kBorder));
  const F32 s = mul(low, low);
  F32 p = fma(splat(8.20980e-05f), s, splat(-8.10444194e-04f));
  p = fma(p, s, splat(5.19764256e-03f));
  p = fma(p, s, splat(-2.68580320e-02f));
  p = fma(p, s, splat(1.12836710e-01f));
  p = fma(p, s, splat(-3.76126322e-01f));
  p = fma(p, s, splat(1.12837917f));
  const F32 half_erf = mul(mul(p, low), splat(0.5f));
  const F32 capped = min(z, splat(6.5f));
  F32 q = splat(kErfcTail[kErfcTerms - 1]);
  for (int i = kErfcTerms - 2; i >= 0; --i) q = fma(q, capped, splat(kErfcTail[i]));
  const F32 tail = mul(exp16(q), splat(0.5f));
  const F32 near = add(splat(0.5f), with_sign(half_erf, x));
  const F32 positive = zero_if_less(sub(splat(1.0f), tail), x, splat(0.0f));
  const F32 far = add(positive, where_less(tail, x, 0.0f));
  return mul(x, add(where_less(near, z, kBorder), zero_if_less(far, z, splat(kBorder))));
}

// The first n <= 16 elements, the others `fill`; n >= 16 reads 16.
CANDOR_ELEMENTARY F32 load_part(const float* p, int64_t n, float fill) {
  if (n >= 16) return load(p);
  float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = i < n ? p[i] : fill;
  return load(lanes);
}

CANDOR_ELEMENTARY void store_part(float* p, int64_t n, F32 a) {
  if (n >= 16) return store(p, a);
  float lanes[16];
  store(lanes, a);
  for (int64_t i = 0; i < n; ++i) p[i] = lanes[i];
}
