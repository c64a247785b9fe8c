// The recurrence of a state space (Mamba-2). Orders: docs/numerics.md, "Recurrent layers". A lane is a channel: no sum
// crosses lanes. Rows follow one another, but for some elements of the state at a time, which stay in registers
// meanwhile: what an output has of the elements before waits in dst, which changes no bit.

constexpr int kSsmElements = 8;  // of the state, held in registers

struct SsmFactors {
  float step[kSsmRows];
  float decay[kSsmRows];
};

// Elements [first, first + n) of channels from `channel` on, 16 of them or as many as are left, over all rows.
template <int n>
inline void ssm_elements(const SsmArgs& a, const SsmFactors& factors, int32_t first, int32_t channel) {
  const int64_t left = a.head_dim - channel;
  const int64_t place = int64_t{first} * a.head_dim + channel;
  F32 state[n];
  for (int i = 0; i < n; ++i) {
    state[i] = a.from == nullptr ? splat(0.0f) : load_part(a.from + place + i * a.head_dim, left, 0.0f);
  }
  for (int32_t row = 0; row < a.n_rows; ++row) {
    const float* b = a.b + row * a.stride + first;
    const float* c = a.c + row * a.stride + first;
    float* dst = a.dst + row * a.dst_stride + channel;
    const F32 decay = splat(factors.decay[row]);
    const F32 x = mul(load_part(a.x + row * a.stride + channel, left, 0.0f), splat(factors.step[row]));
    F32 sum = first == 0 ? splat(0.0f) : load_part(dst, left, 0.0f);
    for (int i = 0; i < n; ++i) {
      state[i] = fma(x, splat(b[i]), mul(state[i], decay));
      sum = fma(state[i], splat(c[i]), sum);
    }
    store_part(dst, left, sum);
  }
  for (int i = 0; i < n; ++i) store_part(a.to + place + i * a.head_dim, left, state[i]);
}

inline void ssm_rows(const SsmArgs& a) {
  SsmFactors factors;
  for (int32_t row = 0; row < a.n_rows; ++row) {
    const float step = first_lane(softplus16(splat(a.dt[row * a.dt_stride] + a.bias)));
    factors.step[row] = step < a.least_step ? a.least_step : step > a.most_step ? a.most_step : step;
    factors.decay[row] = first_lane(exp16(mul(splat(factors.step[row]), splat(a.rate))));
  }
  int32_t first = 0;
  for (; first + kSsmElements <= a.state_dim; first += kSsmElements) {
    for (int32_t channel = 0; channel < a.head_dim; channel += 16) {
      ssm_elements<kSsmElements>(a, factors, first, channel);
    }
  }
  for (; first < a.state_dim; ++first) {
    for (int32_t channel = 0; channel < a.head_dim; channel += 16) ssm_elements<1>(a, factors, first, channel);
  }
  for (int32_t row = 0; row < a.n_rows; ++row)
    add_scaled(a.x + row * a.stride, a.skip, a.head_dim, a.dst + row * a.dst_stride);
}
