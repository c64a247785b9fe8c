// Operations on one row of activations: norms, residual, gates, rotary positions, sums of exponentials.
// Orders: docs/numerics.md, "Rows".

inline float sum_of_squares(const float* src, float center, int64_t n) {
  F32 sum = splat(0.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const F32 c = sub(load_part(src + i, n - i, center), splat(center));
    sum = fma(c, c, sum);
  }
  return sum_tree(sum);
}

inline void rms_norm(const float* src, const float* gain, float epsilon, int64_t n, float* dst) {
  const float mean = sum_of_squares(src, 0.0f, n) / static_cast<float>(n);
  const F32 r = splat(1.0f / sqrt1(mean + epsilon));
  for (int64_t i = 0; i < n; i += 16) {
    const F32 x = load_part(src + i, n - i, 0.0f);
    F32 y = mul(x, r);
    if (gain != nullptr) y = mul(y, load_part(gain + i, n - i, 0.0f));
    store_part(dst + i, n - i, y);
  }
}

inline void layer_norm(const float* src, const float* gain, const float* bias, float epsilon, int64_t n, float* dst) {
  F32 sum = splat(0.0f);
  for (int64_t i = 0; i < n; i += 16) sum = add(sum, load_part(src + i, n - i, 0.0f));
  const float mean = sum_tree(sum) / static_cast<float>(n);
  const float variance = sum_of_squares(src, mean, n) / static_cast<float>(n);
  const F32 r = splat(1.0f / sqrt1(variance + epsilon));
  for (int64_t i = 0; i < n; i += 16) {
    const F32 c = sub(load_part(src + i, n - i, 0.0f), splat(mean));
    F32 y = mul(c, r);
    if (gain != nullptr) y = mul(y, load_part(gain + i, n - i, 0.0f));
    if (bias != nullptr) y = add(y, load_part(bias + i, n - i, 0.0f));
    store_part(dst + i, n - i, y);
  }
}

inline void add_scaled(const float* src, float scale, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; i += 16) {
    const F32 y = fma(load_part(src + i, n - i, 0.0f), splat(scale), load_part(dst + i, n - i, 0.0f));
    store_part(dst + i, n - i, y);
  }
}

inline void scale_row(const float* src, float scale, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; i += 16) store_part(dst + i, n - i, mul(load_part(src + i, n - i, 0.0f), splat(scale)));
}

inline void add_row(const float* bias, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; i += 16) {
    store_part(dst + i, n - i, add(load_part(dst + i, n - i, 0.0f), load_part(bias + i, n - i, 0.0f)));
  }
}

template <F32 (*act)(F32)>
inline void gate_row(const float* gate, const float* up, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; i += 16) {
    F32 y = act(load_part(gate + i, n - i, 0.0f));
    if (up != nullptr) y = mul(y, load_part(up + i, n - i, 0.0f));
    store_part(dst + i, n - i, y);
  }
}

inline void silu_gate(const float* gate, const float* up, int64_t n, float* dst) {
  gate_row<silu16>(gate, up, n, dst);
}

inline void gelu_gate(const float* gate, const float* up, int64_t n, float* dst) {
  gate_row<gelu16>(gate, up, n, dst);
}

inline void gelu_erf_gate(const float* gate, const float* up, int64_t n, float* dst) {
  gate_row<gelu_erf16>(gate, up, n, dst);
}

inline void relu_gate(const float* gate, const float* up, int64_t n, float* dst) {
  gate_row<relu16>(gate, up, n, dst);
}

inline void relu_squared_gate(const float* gate, const float* up, int64_t n, float* dst) {
  gate_row<relu_squared16>(gate, up, n, dst);
}

inline void sigmoid_gate(const float* gate, const float* up, int64_t n, float* dst) {
  gate_row<sigmoid16>(gate, up, n, dst);
}

inline F32 same16(F32 x) {
  return x;
}

inline void product_gate(const float* gate, const float* up, int64_t n, float* dst) {
  gate_row<same16>(gate, up, n, dst);
}

inline void clamped_silu_gate(const float* gate, const float* up, int64_t n, float* dst) {
  constexpr float kLimit = 7.0f;
  constexpr float kSteepness = 1.702f;
  for (int64_t i = 0; i < n; i += 16) {
    const F32 g = min(splat(kLimit), load_part(gate + i, n - i, 0.0f));
    const F32 u = max(splat(-kLimit), min(splat(kLimit), load_part(up + i, n - i, 0.0f)));
    const F32 y = div(g, add(splat(1.0f), exp16(mul(g, splat(-kSteepness)))));
    store_part(dst + i, n - i, mul(y, add(u, splat(1.0f))));
  }
}

inline void soft_cap(const float* src, float cap, int64_t n, float* dst) {
  for (int64_t i = 0; i < n; i += 16) store_part(dst + i, n - i, soft_cap16(load_part(src + i, n - i, 0.0f), cap));
}

inline void rope_halves(const RopeArgs& args) {
  const int32_t half = args.n_dims / 2;
  for (int32_t h = 0; h < args.n_heads; ++h) {
    float* low = args.x + static_cast<int64_t>(h) * args.head_dim;
    float* high = low + half;
    for (int32_t i = 0; i < half; i += 16) {
      const F32 a = load_part(low + i, half - i, 0.0f);
      const F32 b = load_part(high + i, half - i, 0.0f);
      const F32 c = load_part(args.cos + i, half - i, 0.0f);
      const F32 s = load_part(args.sin + i, half - i, 0.0f);
      store_part(low + i, half - i, fma(a, c, mul(mul(b, s), splat(-1.0f))));
      store_part(high + i, half - i, fma(a, s, mul(b, c)));
    }
  }
}

inline void rope_interleaved(const RopeArgs& args) {
  const int32_t half = args.n_dims / 2;
  for (int32_t h = 0; h < args.n_heads; ++h) {
    float* x = args.x + static_cast<int64_t>(h) * args.head_dim;
    for (int32_t i = 0; i < half; ++i) {
      const float a = x[2 * i];
      const float b = x[2 * i + 1];
      x[2 * i] = fma1(a, args.cos[i], -(b * args.sin[i]));
      x[2 * i + 1] = fma1(a, args.sin[i], b * args.cos[i]);
    }
  }
}

inline float max_row(const float* src, int64_t n) {
  const float lowest = -std::numeric_limits<float>::infinity();
  F32 largest = splat(lowest);
  for (int64_t i = 0; i < n; i += 16) largest = max(load_part(src + i, n - i, lowest), largest);
  return max_tree(largest);
}

inline float exp_sum(const float* src, float shift, int64_t n, float* dst) {
  F32 sum = splat(0.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const F32 e = keep_lanes(exp16(sub(load_part(src + i, n - i, 0.0f), splat(shift))), 0,
                             static_cast<int>(n - i < 16 ? n - i : 16), splat(0.0f));
    sum = add(sum, e);
    if (dst != nullptr) store_part(dst + i, n - i, e);
  }
  return sum_tree(sum);
}

// Adds e * 2^40, rounded: its part in whole 2^20, and the rest, whose rounding is that of the whole.
inline void add_weights(F32 e, I32& high, I32& low) {
  const I32 whole = round_i(mul(e, splat(0x1p20f)));
  high = add_i(high, whole);
  low = add_i(low, round_i(fma(to_f32(whole), splat(-0x1p20f), mul(e, splat(0x1p40f)))));
}

inline int64_t sum_wide(I32 a) {
  int32_t lanes[16];
  store_i(lanes, a);
  int64_t sum = 0;
  for (const int32_t lane : lanes) sum += lane;
  return sum;
}

inline uint64_t exp_weights(const float* src, float shift, int64_t n, float* dst) {
  constexpr int64_t kBlock = 16 * 1024;  // 2^20 * 1024 fits a lane
  int64_t total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = n - begin < kBlock ? n : begin + kBlock;
    I32 high = splat_i(0);
    I32 low = splat_i(0);
    int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
      const F32 e = exp16(sub(load(src + i), splat(shift)));
      store(dst + i, e);
      add_weights(e, high, low);
    }
    if (i < end) {
      const F32 e = exp16(sub(load_part(src + i, end - i, 0.0f), splat(shift)));
      store_part(dst + i, end - i, e);
      add_weights(keep_lanes(e, 0, static_cast<int>(end - i), splat(0.0f)), high, low);
    }
    total += sum_wide(high) * (int64_t{1} << 20) + sum_wide(low);
  }
  return static_cast<uint64_t>(total);
}
