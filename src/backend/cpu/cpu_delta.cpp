#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/cpu_ops.h"

namespace candor::backend::cpu {
namespace {

using platform::UnitRange;

constexpr int64_t kUnitChannels = 64;
constexpr int64_t kConvSpeed = 1;   // elements a nanosecond
constexpr int64_t kStateSpeed = 8;  // elements of the state a nanosecond

}  // namespace

// Threads share the channels.
void CpuOps::causal_conv(const ConvTerm& term, const DeltaSpec& spec) {
  const int64_t n_channels = spec.n_channels();
  const int64_t cost = std::max<int64_t>(1, kUnitChannels * term.x.n_rows / kConvSpeed);
  const int64_t n_units = (n_channels + kUnitChannels - 1) / kUnitChannels;
  pool_.parallel_for({.n_units = n_units, .grain = std::max<int64_t>(1, kGrainNs / cost), .unit_cost = cost},
                     [&](UnitRange range) {
                       const int64_t end = std::min(n_channels, range.end * kUnitChannels);
                       convolve(term, spec, range.begin * kUnitChannels, end);
                     });
}

// The inputs that later rows need are kept before they are overwritten.
void CpuOps::convolve(const ConvTerm& term, const DeltaSpec& spec, int64_t begin, int64_t end) {
  const int64_t n_channels = spec.n_channels();
  const int32_t n_kept = spec.n_taps - 1;
  for (const SeqSlice& seq : batch_.seqs) {
    if (seq.n_rows == 0) continue;
    float* x = arena_.row(term.x, seq.first_row);
    const float* past = seq.state == kNoState ? nullptr : kv_->state(seq.state, term.layer);
    for (const StateSave& save : batch_.saves_of(seq)) {
      float* kept = kv_->state(save.slot, term.layer);
      for (int32_t i = 0; i < n_kept; ++i) {
        const int64_t at = save.row - seq.first_row + 1 + i - n_kept;
        float* dst = kept + i * n_channels;
        if (at < 0 && past == nullptr) {
          std::fill(dst + begin, dst + end, 0.0f);
        } else {
          const float* src = at >= 0 ? x + at * n_channels : past + (at + n_kept) * n_channels;
          std::copy(src + begin, src + end, dst + begin);
        }
      }
    }
    table_.causal_conv({.x = x,
                        .n_rows = seq.n_rows,
                        .n_channels = n_channels,
                        .past = past,
                        .taps = own(*term.taps).values(),
                        .n_taps = spec.n_taps,
                        .begin = begin,
                        .end = end});
  }
}

// Threads share the heads of the slices.
void CpuOps::delta_rule(Activation dst, const DeltaTerm& term, const DeltaSpec& spec) {
  const int64_t n_heads = spec.n_v_heads;
  const int64_t n_units = n_heads * static_cast<int64_t>(batch_.seqs.size());
  const int64_t row_cost = std::max<int64_t>(1, spec.head_floats() / kStateSpeed);
  const int64_t cost = row_cost * std::max<int64_t>(1, dst.n_rows * n_heads / std::max<int64_t>(1, n_units));
  pool_.parallel_for({.n_units = n_units, .grain = std::max<int64_t>(1, kGrainNs / cost), .unit_cost = cost},
                     [&](UnitRange range) {
                       for (int64_t unit = range.begin; unit < range.end; ++unit) {
                         run_head(dst, term, spec, batch_.seqs[static_cast<size_t>(unit / n_heads)],
                                  static_cast<int32_t>(unit % n_heads));
                       }
                     });
}

// Row by row. The state grows in the slot that the next save goes to.
void CpuOps::run_head(Activation dst, const DeltaTerm& term, const DeltaSpec& spec, const SeqSlice& seq, int32_t head) {
  const int64_t offset = spec.conv_floats() + head * spec.head_floats();
  const auto state_in = [&](StateId slot) { return kv_->state(slot, term.layer) + offset; };
  const float* from = seq.state == kNoState ? nullptr : state_in(seq.state);
  const int32_t key_head = spec.key_head(head);
  int32_t row = seq.first_row;
  for (const StateSave& save : batch_.saves_of(seq)) {
    float* to = state_in(save.slot);
    for (; row <= save.row; ++row) {
      const float* qkv = arena_.row(term.qkv, row);
      table_.delta_row({.q = qkv + key_head * spec.k_dim,
                        .k = qkv + spec.k_width() + key_head * spec.k_dim,
                        .v = qkv + 2 * spec.k_width() + head * spec.v_dim,
                        .k_dim = spec.k_dim,
                        .v_dim = spec.v_dim,
                        .q_scale = 1.0f / std::sqrt(static_cast<float>(spec.k_dim)),
                        .rate = own(*term.rate).values()[head],
                        .alpha = arena_.row(term.alpha, row)[head] + own(*term.bias).values()[head],
                        .beta = arena_.row(term.beta, row)[head],
                        .from = from,
                        .to = to,
                        .dst = arena_.row(dst, row) + head * spec.v_dim});
      from = to;
    }
  }
}

}  // namespace candor::backend::cpu
