// The recurrence of a gated delta rule, and the causal convolution before it. Orders: docs/numerics.md, "Recurrent
// layers". A lane is a channel of the convolution, or a column of the state: no sum crosses lanes, and rows follow one
// another, so that neither chunks nor threads show.

// Descending, so that a row's inputs are still there.
inline void causal_conv(const ConvArgs& a) {
  constexpr int kMostTaps = 8;
  const int n_past = a.n_taps - 1;
  for (int64_t c = a.begin; c < a.end; c += 16) {
    const int64_t left = a.end - c;
    const int n = static_cast<int>(left < 16 ? left : 16);
    F32 taps[kMostTaps];
    const F32 bias = a.bias == nullptr ? splat(0.0f) : load_part(a.bias + (c - a.first), left, 0.0f);
    for (int tap = 0; tap < a.n_taps; ++tap) {
      float lanes[16] = {};
      for (int i = 0; i < n; ++i) lanes[i] = a.taps[(c - a.first + i) * a.n_taps + tap];
      taps[tap] = load(lanes);
    }
    for (int64_t row = a.n_rows - 1; row >= 0; --row) {
      F32 sum = bias;
      for (int tap = 0; tap < a.n_taps; ++tap) {
        const int64_t at = row + tap - n_past;
        const float* inputs = at >= 0 ? a.x + at * a.n_channels : a.past + (at + n_past) * a.n_channels;
        const F32 x = at < 0 && a.past == nullptr ? splat(0.0f) : load_part(inputs + c, left, 0.0f);
        sum = fma(x, taps[tap], sum);
      }
      store_part(a.x + row * a.n_channels + c, left, a.has_silu ? silu16(sum) : sum);
    }
  }
}

inline float first_lane(F32 x) {
  float lanes[16];
  store(lanes, x);
  return lanes[0];
}

// dst = x / |x| * scale, of at most 512 elements.
inline void normalise(const float* x, int64_t n, float scale, float* dst) {
  constexpr float kEpsilon = 1e-6f;
  const F32 r = splat(1.0f / sqrt1(sum_of_squares(x, 0.0f, n) + kEpsilon));
  for (int64_t i = 0; i < n; i += 16) {
    store_part(dst + i, n - i, mul(mul(load_part(x + i, n - i, 0.0f), r), splat(scale)));
  }
}

struct DeltaRow {
  const float* q;
  const float* k;
  const float* decays;  // of each row of the state
  float share;  // of the correction that is made
};

// Columns from `first` on, 16 n of them or as many as are left.
template <int n>
inline void delta_columns(const DeltaArgs& a, const DeltaRow& row, int64_t first) {
  const int64_t left = a.v_dim - first;
  F32 sums[n];
  for (int j = 0; j < n; ++j) sums[j] = splat(0.0f);
  for (int64_t i = 0; i < a.k_dim; ++i) {
    const float* from = a.from + i * a.v_dim + first;
    float* to = a.to + i * a.v_dim + first;
    for (int j = 0; j < n; ++j) {
      const F32 old = a.from == nullptr ? splat(0.0f) : load_part(from + 16 * j, left - 16 * j, 0.0f);
      const F32 s = mul(old, splat(row.decays[i]));
      store_part(to + 16 * j, left - 16 * j, s);
      sums[j] = fma(s, splat(row.k[i]), sums[j]);
    }
  }
  F32 change[n];
  for (int j = 0; j < n; ++j) {
    const F32 v = load_part(a.v + first + 16 * j, left - 16 * j, 0.0f);
    change[j] = mul(sub(v, sums[j]), splat(row.share));
    sums[j] = splat(0.0f);
  }
  for (int64_t i = 0; i < a.k_dim; ++i) {
    float* to = a.to + i * a.v_dim + first;
    for (int j = 0; j < n; ++j) {
      const F32 s = fma(change[j], splat(row.k[i]), load_part(to + 16 * j, left - 16 * j, 0.0f));
      store_part(to + 16 * j, left - 16 * j, s);
      sums[j] = fma(s, splat(row.q[i]), sums[j]);
    }
  }
  for (int j = 0; j < n; ++j) store_part(a.dst + first + 16 * j, left - 16 * j, sums[j]);
}

inline F32 decay16(F32 alpha, float rate) {
  return exp16(mul(softplus16(alpha), splat(rate)));
}

// Of each row of the state, by its own gate or by one for all.
inline void delta_decays(const DeltaArgs& a, float* decays) {
  const float same = a.alphas == nullptr ? first_lane(decay16(splat(a.alpha), a.rate)) : 0.0f;
  for (int64_t i = 0; i < a.k_dim; i += 16) {
    const int64_t left = a.k_dim - i;
    const F32 own = a.alphas == nullptr ? splat(same)
                                        : decay16(add(load_part(a.alphas + i, left, 0.0f),
                                                      load_part(a.biases + i, left, 0.0f)), a.rate);
    store_part(decays + i, left, own);
  }
}

inline void delta_row(const DeltaArgs& a) {
  constexpr int kMostDims = 512;
  constexpr int kColumns = 4;
  float q[kMostDims];
  float k[kMostDims];
  normalise(a.q, a.k_dim, a.q_scale, q);
  normalise(a.k, a.k_dim, 1.0f, k);
  float decays[kMostDims];
  delta_decays(a, decays);
  const DeltaRow row{q, k, decays, first_lane(mul(sigmoid16(splat(a.beta)), splat(a.share_scale)))};
  int64_t first = 0;
  for (; first + 16 * kColumns <= a.v_dim; first += 16 * kColumns) delta_columns<kColumns>(a, row, first);
  for (; first < a.v_dim; first += 16) delta_columns<1>(a, row, first);
}
