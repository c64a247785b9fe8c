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
  float share;          // of the correction that is made
};

// At most kMostColumns columns from `first` on. The state is read twice and written once, each time from its begin to
// its end: the second pass decays it again, by the same product, so that the first has nothing to store.
constexpr int kMostColumns = 512;
inline void delta_columns(const DeltaArgs& a, const DeltaRow& row, int64_t first) {
  const int64_t left = a.v_dim - first;
  const int64_t n = left < kMostColumns ? left : kMostColumns;
  float sums[kMostColumns] = {};
  if (a.from != nullptr) {
    for (int64_t i = 0; i < a.k_dim; ++i) {
      const float* from = a.from + i * a.v_dim + first;
      for (int64_t j = 0; j < n; j += 16) {
        const F32 s = mul(load_part(from + j, n - j, 0.0f), splat(row.decays[i]));
        store(sums + j, fma(s, splat(row.k[i]), load(sums + j)));
      }
    }
  }
  float change[kMostColumns];
  for (int64_t j = 0; j < n; j += 16) {
    const F32 v = load_part(a.v + first + j, n - j, 0.0f);
    store(change + j, mul(sub(v, load(sums + j)), splat(row.share)));
    store(sums + j, splat(0.0f));
  }
  for (int64_t i = 0; i < a.k_dim; ++i) {
    const float* from = a.from + i * a.v_dim + first;
    float* to = a.to + i * a.v_dim + first;
    for (int64_t j = 0; j < n; j += 16) {
      const F32 old = a.from == nullptr ? splat(0.0f) : load_part(from + j, n - j, 0.0f);
      const F32 s = fma(load(change + j), splat(row.k[i]), mul(old, splat(row.decays[i])));
      store_part(to + j, n - j, s);
      store(sums + j, fma(s, splat(row.q[i]), load(sums + j)));
    }
  }
  for (int64_t j = 0; j < n; j += 16) store_part(a.dst + first + j, n - j, load(sums + j));
}

inline F32 decay16(F32 alpha, float rate) {
  return exp16(mul(softplus16(alpha), splat(rate)));
}

// Of each row of the state, by its own gate or by one for all.
inline void delta_decays(const DeltaArgs& a, float* decays) {
  const float same = a.alphas == nullptr ? first_lane(decay16(splat(a.alpha), a.rate)) : 0.0f;
  for (int64_t i = 0; i < a.k_dim; i += 16) {
    const int64_t left = a.k_dim - i;
    const F32 own =
        a.alphas == nullptr
            ? splat(same)
            : decay16(add(load_part(a.alphas + i, left, 0.0f), load_part(a.biases + i, left, 0.0f)), a.rate);
    store_part(decays + i, left, own);
  }
}

inline void delta_row(const DeltaArgs& a) {
  constexpr int kMostDims = 512;
  float q[kMostDims];
  float k[kMostDims];
  normalise(a.q, a.k_dim, a.q_scale, q);
  normalise(a.k, a.k_dim, 1.0f, k);
  float decays[kMostDims];
  delta_decays(a, decays);
  const DeltaRow row{q, k, decays, first_lane(mul(sigmoid16(splat(a.beta)), splat(a.share_scale)))};
  for (int64_t first = 0; first < a.v_dim; first += kMostColumns) delta_columns(a, row, first);
}
