// Layers that keep a state: causal convolutions, delta rules, state spaces. A thread is a channel of the convolution or
// a column of a head's state, and takes the rows of its sequence in order. Orders: docs/numerics.md, "Recurrent
// layers".

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/elementary.h"
#include "backend/cuda/kernels/language.h"
#include "backend/cuda/kernels/recurrent_args.h"

namespace candor::backend::cuda {

namespace recurrent {

// nullptr: zeros.
CANDOR_DEVICE const float* state_before(const StatePlaces& states, const StateSlice& slice) {
  return slice.slot < 0 ? nullptr : states.base + slice.slot * states.slot_floats;
}
CANDOR_DEVICE int32_t end_of(const StateSlice& slice) {
  return slice.first_row + slice.n_rows;
}

// Saves of a slice, one after another.
struct SaveCursor {
  const StatePlaces& states;
  int32_t at;
  int32_t end;

  CANDOR_DEVICE SaveCursor(const StatePlaces& places, const StateSlice& slice)
      : states(places), at(slice.first_save), end(slice.first_save + slice.n_saves) {}
  // The row that ends the next one, at most `last`.
  CANDOR_DEVICE int32_t next_row(int32_t last) const {
    return at < end && states.saves[at].row < last ? states.saves[at].row : last;
  }
  // fn(state) for each save behind the row.
  template <class Fn>
  CANDOR_DEVICE void save(int32_t row, Fn&& fn) {
    while (at < end && states.saves[at].row <= row) fn(states.base + states.saves[at++].slot * states.slot_floats);
  }
};

constexpr int32_t kMostTaps = 8;
constexpr int32_t kRowsAhead = 8;

// The last inputs of a channel, the newest at the end.
struct ConvWindow {
  float x[kMostTaps];
  float taps[kMostTaps];
  int32_t n_taps;

  CANDOR_DEVICE void begin(const ConvRowsArgs& a, const float* past, int32_t channel) {
    n_taps = a.n_taps;
    CANDOR_UNROLL
    for (int32_t i = 0; i < kMostTaps; ++i) {
      const int32_t tap = i - (kMostTaps - n_taps);
      taps[i] = tap < 0 ? 0.0f : a.taps[int64_t{channel - a.first} * n_taps + tap];
      x[i] = tap < 1 || past == nullptr ? 0.0f : past[int64_t{tap - 1} * a.n_channels + channel];
    }
  }
  CANDOR_DEVICE float push(float input, float bias) {
    float sum = bias;
    CANDOR_UNROLL
    for (int32_t i = 0; i + 1 < kMostTaps; ++i) x[i] = x[i + 1];
    x[kMostTaps - 1] = input;
    CANDOR_UNROLL
    for (int32_t i = 0; i < kMostTaps; ++i) {
      if (i >= kMostTaps - n_taps) sum = fma_rn(x[i], taps[i], sum);
    }
    return sum;
  }
  CANDOR_DEVICE void keep(const ConvRowsArgs& a, float* kept, int32_t channel) const {
    CANDOR_UNROLL
    for (int32_t i = 1; i < kMostTaps; ++i) {
      const int32_t tap = i - (kMostTaps - n_taps);
      if (tap >= 1) kept[int64_t{tap - 1} * a.n_channels + channel] = x[i];
    }
  }
};

// Inputs of a channel, of rows from `first` on.
CANDOR_DEVICE void load_rows(const ConvRowsArgs& a, const float* x, int32_t first, int32_t end,
                             float (&inputs)[kRowsAhead]) {
  CANDOR_UNROLL
  for (int32_t i = 0; i < kRowsAhead; ++i) {
    inputs[i] = first + i < end ? x[int64_t{first + i} * a.n_channels] : 0.0f;
  }
}

CANDOR_DEVICE void convolve(const ConvRowsArgs& a, const StateSlice& slice, int32_t channel) {
  ConvWindow window;
  window.begin(a, state_before(a.states, slice), channel);
  const float bias = a.bias == nullptr ? 0.0f : a.bias[channel - a.first];
  float* x = a.x + channel;
  SaveCursor saves(a.states, slice);
  float next[kRowsAhead];
  load_rows(a, x, slice.first_row, end_of(slice), next);
  for (int32_t first = slice.first_row; first < end_of(slice); first += kRowsAhead) {
    float inputs[kRowsAhead];
    CANDOR_UNROLL
    for (int32_t i = 0; i < kRowsAhead; ++i) inputs[i] = next[i];
    load_rows(a, x, first + kRowsAhead, end_of(slice), next);
    CANDOR_UNROLL
    for (int32_t i = 0; i < kRowsAhead; ++i) {
      const int32_t row = first + i;
      if (row >= end_of(slice)) continue;
      const float sum = window.push(inputs[i], bias);
      x[int64_t{row} * a.n_channels] = a.has_silu ? silu_of(sum) : sum;
      saves.save(row, [&](float* kept) { window.keep(a, kept, channel); });
    }
  }
}

// 4 numbers from a place that is a multiple of 4.
CANDOR_DEVICE void load4(Shared<float> s, uint32_t at, float (&x)[4]) {
  const Uint4 w = load16(s.pointer(at, 4));
  x[0] = float_of(w.x), x[1] = float_of(w.y), x[2] = float_of(w.z), x[3] = float_of(w.w);
}

// A thread's column of a head's state: of n rows in registers, or of any number in shared memory.
template <int32_t n>
struct RegisterColumn {
  float s[n];

  CANDOR_DEVICE RegisterColumn(Shared<float>, int32_t) {}
  template <class Fn>
  CANDOR_DEVICE void update(Fn&& fn) {
    CANDOR_UNROLL
    for (int32_t i = 0; i < n; i += 4) {
      const auto numbers = fn.of(i);
      CANDOR_UNROLL
      for (int32_t j = 0; j < 4; ++j) s[i + j] = fn.next(numbers, j, s[i + j]);
    }
  }
  CANDOR_DEVICE void load(const float* from, int32_t stride) {
    CANDOR_UNROLL
    for (int32_t i = 0; i < n; ++i) s[i] = from == nullptr ? 0.0f : from[int64_t{i} * stride];
  }
  CANDOR_DEVICE void store(float* to, int32_t stride) const {
    CANDOR_UNROLL
    for (int32_t i = 0; i < n; ++i) to[int64_t{i} * stride] = s[i];
  }
};
struct SharedColumn {
  Shared<float> s;
  int32_t n;

  CANDOR_DEVICE SharedColumn(Shared<float> memory, int32_t n_rows) : s(memory), n(n_rows) {}
  CANDOR_DEVICE uint32_t place(int32_t i) const { return static_cast<uint32_t>(i) * n_threads() + thread(); }
  template <class Fn>
  CANDOR_DEVICE void update(Fn&& fn) {
    for (int32_t i = 0; i < n; i += 4) {
      const auto numbers = fn.of(i);
      CANDOR_UNROLL
      for (int32_t j = 0; j < 4; ++j) {
        if (i + j < n) s[place(i + j)] = fn.next(numbers, j, s[place(i + j)]);
      }
    }
  }
  CANDOR_DEVICE void load(const float* from, int32_t stride) {
    for (int32_t i = 0; i < n; ++i) s[place(i)] = from == nullptr ? 0.0f : from[int64_t{i} * stride];
  }
  CANDOR_DEVICE void store(float* to, int32_t stride) const {
    for (int32_t i = 0; i < n; ++i) to[int64_t{i} * stride] = s[place(i)];
  }
};

// Of some rows and one head, in shared memory.
struct DeltaBatch {
  Shared<float> k;       // [batch_rows, padded], of length 1
  Shared<float> q;       // the same, scaled
  Shared<float> decays;  // the same, for each row of the state
  Shared<float> shares;  // [batch_rows]
  int32_t padded;        // k_dim, to a multiple of 4
  size_t n_bytes;        // before the states
};
CANDOR_DEVICE DeltaBatch delta_batch(const DeltaRowsArgs& a) {
  const int32_t padded = (a.k_dim + 3) / 4 * 4;
  const size_t bytes = size_t{4} * static_cast<size_t>(a.batch_rows) * static_cast<size_t>(padded);
  return {shared<float>(0),
          shared<float>(bytes),
          shared<float>(2 * bytes),
          shared<float>(3 * bytes),
          padded,
          3 * bytes + size_t{4} * static_cast<size_t>(a.batch_rows)};
}

// By 16 lanes: dst = x / |x| * scale, of n numbers.
CANDOR_DEVICE void normalise(const float* x, int32_t n, float scale, Shared<float> dst, int32_t at) {
  float sum = 0.0f;
  for (int32_t i = lane() % 16; i < n; i += 16) sum = fma_rn(x[i], x[i], sum);
  CANDOR_UNROLL
  for (uint32_t mask = 8; mask > 0; mask /= 2) sum = add_rn(sum, shuffle_xor(sum, mask));
  const float r = div_rn(1.0f, sqrt_rn(add_rn(sum, 1e-6f)));
  for (int32_t i = lane() % 16; i < n; i += 16) dst[at + i] = mul_rn(mul_rn(x[i], r), scale);
}

CANDOR_DEVICE float decay_of(float alpha, float rate) {
  return exp_of(mul_rn(softplus_of(alpha), rate));
}

// By all threads: rows [first, first + n).
CANDOR_DEVICE void load_batch(const DeltaRowsArgs& a, int32_t head, int32_t first, int32_t n, const DeltaBatch& batch) {
  const int32_t key_head = a.has_tiled_heads ? head % a.n_k_heads : head / (a.n_v_heads / a.n_k_heads);
  const int64_t width = int64_t{2} * a.n_k_heads * a.k_dim + int64_t{a.n_v_heads} * a.v_dim;
  for (int32_t i = warp(); i < n; i += n_warps()) {
    const bool is_key = lane() >= 16;
    const float* x = a.qkv + (first + i) * width + (is_key ? a.n_k_heads * a.k_dim : 0) + key_head * a.k_dim;
    const int32_t at = (i + (is_key ? 0 : a.batch_rows)) * batch.padded;  // q stands behind k
    normalise(x, a.k_dim, is_key ? 1.0f : a.q_scale, batch.k, at);
  }
  for (int32_t i = thread(); i < n * a.k_dim; i += n_threads()) {
    const int64_t row = first + i / a.k_dim;
    const int32_t of_state = i % a.k_dim;
    const int64_t gate = a.has_channel_gates ? int64_t{head} * a.k_dim + of_state : head;
    const int64_t n_gates = int64_t{a.n_v_heads} * (a.has_channel_gates ? a.k_dim : 1);
    const float alpha = add_rn(a.alpha[row * n_gates + gate], a.bias[gate]);
    batch.decays[i / a.k_dim * batch.padded + of_state] = decay_of(alpha, a.rate[head]);
  }
  if (static_cast<int32_t>(thread()) < n) {
    const float beta = a.beta[int64_t{first + static_cast<int32_t>(thread())} * a.n_v_heads + head];
    batch.shares[thread()] = mul_rn(sigmoid_of(beta), a.share_scale);
  }
}

// What four rows of the state are multiplied by.
struct DeltaNumbers {
  float first[4];
  float second[4];
};
struct Decay {
  const DeltaBatch& batch;
  uint32_t at;
  float sum = 0.0f;
  CANDOR_DEVICE DeltaNumbers of(int32_t i) const {
    DeltaNumbers numbers;
    load4(batch.decays, at + i, numbers.first);
    load4(batch.k, at + i, numbers.second);
    return numbers;
  }
  CANDOR_DEVICE float next(const DeltaNumbers& numbers, int32_t j, float s) {
    s = mul_rn(s, numbers.first[j]);
    sum = fma_rn(s, numbers.second[j], sum);
    return s;
  }
};
struct Correct {
  const DeltaBatch& batch;
  uint32_t at;
  float change;
  float sum = 0.0f;
  CANDOR_DEVICE DeltaNumbers of(int32_t i) const {
    DeltaNumbers numbers;
    load4(batch.k, at + i, numbers.first);
    load4(batch.q, at + i, numbers.second);
    return numbers;
  }
  CANDOR_DEVICE float next(const DeltaNumbers& numbers, int32_t j, float s) {
    s = fma_rn(change, numbers.first[j], s);
    sum = fma_rn(s, numbers.second[j], sum);
    return s;
  }
};

// Block (column group, value head, slice).
template <class Column>
CANDOR_DEVICE void run_delta(const DeltaRowsArgs& a) {
  const auto head = static_cast<int32_t>(block_y());
  const int32_t column = block_x() * n_threads() + thread();
  const bool has_column = column < a.v_dim;
  const StateSlice slice = a.states.slices[block_z()];
  const DeltaBatch batch = delta_batch(a);
  const int64_t place = a.heads_at + int64_t{head} * a.k_dim * a.v_dim + column;
  const int64_t width = int64_t{2} * a.n_k_heads * a.k_dim + int64_t{a.n_v_heads} * a.v_dim;
  const int64_t own = int64_t{2} * a.n_k_heads * a.k_dim + int64_t{head} * a.v_dim + column;
  Column state(shared<float>(batch.n_bytes), a.k_dim);
  const float* before = state_before(a.states, slice);
  if (has_column) state.load(before == nullptr ? nullptr : before + place, a.v_dim);
  SaveCursor saves(a.states, slice);
  for (int32_t first = slice.first_row; first < end_of(slice); first += a.batch_rows) {
    const int32_t n = end_of(slice) - first < a.batch_rows ? end_of(slice) - first : a.batch_rows;
    sync_block();
    load_batch(a, head, first, n, batch);
    sync_block();
    for (int32_t i = 0; i < n && has_column; ++i) {
      const int32_t row = first + i;
      const float v = a.qkv[row * width + own];
      Decay decay{batch, static_cast<uint32_t>(i * batch.padded)};
      state.update(decay);
      Correct correct{batch, decay.at, mul_rn(sub_rn(v, decay.sum), batch.shares[i])};
      state.update(correct);
      a.dst[(int64_t{row} * a.n_v_heads + head) * a.v_dim + column] = correct.sum;
      saves.save(row, [&](float* behind) { state.store(behind + place, a.v_dim); });
    }
  }
}

// Of some rows and one head, in shared memory.
struct SsmInputs {
  Shared<float> b;       // [state_dim][kSsmBatch]
  Shared<float> c;       // the same
  Shared<float> steps;   // [kSsmBatch]
  Shared<float> decays;  // [kSsmBatch]
  Shared<float> state;   // [state_dim][thread]
};
CANDOR_DEVICE SsmInputs ssm_inputs(const SsmRowsArgs& a) {
  const size_t bytes = size_t{4} * kSsmBatch * static_cast<size_t>(a.state_dim);
  return {shared<float>(0), shared<float>(bytes), shared<float>(2 * bytes), shared<float>(2 * bytes + 4 * kSsmBatch),
          shared<float>(2 * bytes + 8 * kSsmBatch)};
}

// By all threads: rows [first, first + n).
CANDOR_DEVICE void load_inputs(const SsmRowsArgs& a, int32_t head, int32_t first, int32_t n, const SsmInputs& to) {
  const int64_t x_width = int64_t{a.n_heads} * a.head_dim;
  const int64_t bc_width = int64_t{a.n_groups} * a.state_dim;
  const int64_t group = int64_t{head} / (a.n_heads / a.n_groups);
  for (int32_t i = thread(); i < n * a.state_dim; i += n_threads()) {
    const int32_t row = i / a.state_dim;
    const int32_t of_state = i % a.state_dim;
    const float* b = a.xbc + (first + row) * (x_width + 2 * bc_width) + x_width + group * a.state_dim + of_state;
    to.b[of_state * kSsmBatch + row] = b[0];
    to.c[of_state * kSsmBatch + row] = b[bc_width];
  }
  if (static_cast<int32_t>(thread()) < n) {
    const int64_t row = first + static_cast<int32_t>(thread());
    const float step = softplus_of(add_rn(a.dt[row * a.n_heads + head], a.bias[head]));
    const float kept = step < a.least_step ? a.least_step : step > a.most_step ? a.most_step : step;
    to.steps[thread()] = kept;
    to.decays[thread()] = exp_of(mul_rn(kept, a.rate[head]));
  }
}

// A thread's channel of n rows; x becomes y.
CANDOR_DEVICE void scan_rows(const SsmRowsArgs& a, int32_t n, float skip, const SsmInputs& in, float (&x)[kSsmBatch]) {
  float u[kSsmBatch];
  float y[kSsmBatch];
  float decays[kSsmBatch];
  CANDOR_UNROLL
  for (int32_t row = 0; row < kSsmBatch; ++row) {
    u[row] = row < n ? mul_rn(x[row], in.steps[row]) : 0.0f;
    decays[row] = row < n ? static_cast<float>(in.decays[row]) : 0.0f;
    y[row] = 0.0f;
  }
  for (int32_t i = 0; i < a.state_dim; ++i) {
    float b[kSsmBatch];
    float c[kSsmBatch];
    load4(in.b, i * kSsmBatch, b);
    load4(in.c, i * kSsmBatch, c);
    const uint32_t at = static_cast<uint32_t>(i) * n_threads() + thread();
    float s = in.state[at];
    CANDOR_UNROLL
    for (int32_t row = 0; row < kSsmBatch; ++row) {
      if (row >= n) continue;
      s = fma_rn(u[row], b[row], mul_rn(s, decays[row]));
      y[row] = fma_rn(s, c[row], y[row]);
    }
    in.state[at] = s;
  }
  CANDOR_UNROLL
  for (int32_t row = 0; row < kSsmBatch; ++row) x[row] = fma_rn(x[row], skip, y[row]);
}

// Block (channel group, head, slice).
CANDOR_DEVICE void run_ssm(const SsmRowsArgs& a) {
  static_assert(kSsmBatch == 4);
  const auto head = static_cast<int32_t>(block_y());
  const int32_t channel = block_x() * n_threads() + thread();
  const bool has_channel = channel < a.head_dim;
  const StateSlice slice = a.states.slices[block_z()];
  const SsmInputs in = ssm_inputs(a);
  const int64_t place = a.heads_at + int64_t{head} * a.state_dim * a.head_dim + channel;
  const int64_t width = int64_t{a.n_heads} * a.head_dim + int64_t{2} * a.n_groups * a.state_dim;
  SharedColumn state(in.state, a.state_dim);
  const float* before = state_before(a.states, slice);
  if (has_channel) state.load(before == nullptr ? nullptr : before + place, a.head_dim);
  SaveCursor saves(a.states, slice);
  for (int32_t first = slice.first_row; first < end_of(slice);) {
    const int32_t most = end_of(slice) - first < kSsmBatch ? end_of(slice) - first : kSsmBatch;
    const int32_t last = saves.next_row(first + most - 1);
    const int32_t n = last + 1 - first;
    sync_block();
    load_inputs(a, head, first, n, in);
    sync_block();
    if (has_channel) {
      float x[kSsmBatch];
      for (int32_t i = 0; i < kSsmBatch; ++i) {
        x[i] = i < n ? a.xbc[(first + i) * width + int64_t{head} * a.head_dim + channel] : 0.0f;
      }
      scan_rows(a, n, a.skip[head], in, x);
      for (int32_t i = 0; i < n; ++i) a.dst[(int64_t{first + i} * a.n_heads + head) * a.head_dim + channel] = x[i];
    }
    saves.save(last, [&](float* behind) {
      if (has_channel) state.store(behind + place, a.head_dim);
    });
    first += n;
  }
}

}  // namespace recurrent

// Block (channel group, slice).
CANDOR_KERNEL(conv_rows, ConvRowsArgs) {
  const int32_t i = block_x() * n_threads() + thread();
  if (i < args.n) recurrent::convolve(args, args.states.slices[block_y()], args.first + i);
}

CANDOR_KERNEL(delta_rows, DeltaRowsArgs) {
  recurrent::run_delta<recurrent::SharedColumn>(args);
}
CANDOR_KERNEL(delta_rows_64, DeltaRowsArgs) {
  recurrent::run_delta<recurrent::RegisterColumn<64>>(args);
}
CANDOR_KERNEL(delta_rows_128, DeltaRowsArgs) {
  recurrent::run_delta<recurrent::RegisterColumn<128>>(args);
}

CANDOR_KERNEL(ssm_rows, SsmRowsArgs) {
  recurrent::run_ssm(args);
}

}  // namespace candor::backend::cuda
