#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/op_terms.h"
#include "backend/state_specs.h"
#include "backend/step_batch.h"
#include "base/ids.h"
#include "kernels/kernels.h"
#include "platform/thread_pool.h"

namespace candor::backend::cpu {
namespace {

using platform::UnitRange;

constexpr int64_t kUnitChannels = 64;
constexpr int64_t kConvSpeed = 1;   // elements a nanosecond
constexpr int64_t kStateSpeed = 8;  // elements of the state a nanosecond

}  // namespace

// Threads share the channels.
void CpuOps::compute(const op::CausalConv& call) {
  const int64_t first = call.term.first_channel;
  const int64_t n_channels = call.term.taps->n_rows() * call.term.taps->n_cols() / call.spec.n_taps;
  const int64_t cost = std::max<int64_t>(1, kUnitChannels * call.term.x.n_rows / kConvSpeed);
  const int64_t n_units = (n_channels + kUnitChannels - 1) / kUnitChannels;
  pool_.parallel_for({.n_units = n_units, .grain = std::max<int64_t>(1, kGrainNs / cost), .unit_cost = cost},
                     [&](UnitRange range) {
                       const int64_t end = std::min(n_channels, range.end * kUnitChannels);
                       convolve(call.term, call.spec, first + range.begin * kUnitChannels, first + end);
                     });
}

// The inputs that later rows need are kept before they are overwritten.
void CpuOps::convolve(const ConvTerm& term, const ConvSpec& spec, int64_t begin, int64_t end) {
  const int64_t n_channels = spec.n_channels;
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
                        .bias = term.bias == nullptr ? nullptr : own(*term.bias).values(),
                        .first = term.first_channel,
                        .has_silu = spec.has_silu,
                        .begin = begin,
                        .end = end});
  }
}

// Threads share the heads of the slices.
template <class Fn>
void CpuOps::for_heads(int64_t n_heads, int32_t n_rows, int64_t row_ns, Fn&& fn) {
  const int64_t n_units = n_heads * static_cast<int64_t>(batch_.seqs.size());
  const int64_t cost =
      std::max<int64_t>(1, row_ns) * std::max<int64_t>(1, n_rows * n_heads / std::max<int64_t>(1, n_units));
  pool_.parallel_for({.n_units = n_units, .grain = std::max<int64_t>(1, kGrainNs / cost), .unit_cost = cost},
                     [&](UnitRange range) {
                       for (int64_t unit = range.begin; unit < range.end; ++unit) {
                         fn(batch_.seqs[static_cast<size_t>(unit / n_heads)], static_cast<int32_t>(unit % n_heads));
                       }
                     });
}

void CpuOps::compute(const op::DeltaRule& call) {
  for_heads(call.spec.n_v_heads, call.dst.n_rows, call.spec.head_floats() / kStateSpeed,
            [&](const SeqSlice& seq, int32_t head) { run_head(call.dst, call.term, call.spec, seq, head); });
}

void CpuOps::compute(const op::SsmScan& call) {
  for_heads(call.spec.n_heads, call.dst.n_rows, call.spec.head_floats() / kStateSpeed,
            [&](const SeqSlice& seq, int32_t head) { scan_head(call.dst, call.term, call.spec, seq, head); });
}

// Row by row. The state grows in the slot that the next save goes to.
void CpuOps::run_head(Activation dst, const DeltaTerm& term, const DeltaSpec& spec, const SeqSlice& seq, int32_t head) {
  const int64_t offset = spec.conv_floats() + head * spec.head_floats();
  const auto state_in = [&](StateId slot) { return kv_->state(slot, term.layer) + offset; };
  const float* from = seq.state == kNoState ? nullptr : state_in(seq.state);
  const int32_t key_head = spec.key_head(head);
  const int32_t first_gate = head * (spec.has_channel_gates ? spec.k_dim : 1);
  const float* biases = own(*term.bias).values() + first_gate;
  int32_t row = seq.first_row;
  for (const StateSave& save : batch_.saves_of(seq)) {
    float* to = state_in(save.slot);
    for (; row <= save.row; ++row) {
      const float* qkv = arena_.row(term.qkv, row);
      const float* alphas = arena_.row(term.alpha, row) + first_gate;
      table_.delta_row({.q = qkv + key_head * spec.k_dim,
                        .k = qkv + spec.k_width() + key_head * spec.k_dim,
                        .v = qkv + 2 * spec.k_width() + head * spec.v_dim,
                        .k_dim = spec.k_dim,
                        .v_dim = spec.v_dim,
                        .q_scale = 1.0f / std::sqrt(static_cast<float>(spec.k_dim)),
                        .rate = own(*term.rate).values()[head],
                        .alpha = *alphas + *biases,
                        .alphas = spec.has_channel_gates ? alphas : nullptr,
                        .biases = biases,
                        .beta = arena_.row(term.beta, row)[head],
                        .share_scale = spec.share_scale,
                        .from = from,
                        .to = to,
                        .dst = arena_.row(dst, row) + head * spec.v_dim});
      from = to;
    }
  }
}

// The same of a state space, some rows at a time.
void CpuOps::scan_head(Activation dst, const SsmTerm& term, const SsmSpec& spec, const SeqSlice& seq, int32_t head) {
  const int64_t offset = spec.conv_floats() + head * spec.head_floats();
  const auto state_in = [&](StateId slot) { return kv_->state(slot, term.layer) + offset; };
  const float* from = seq.state == kNoState ? nullptr : state_in(seq.state);
  const int64_t b_begin = spec.width() + int64_t{spec.group(head)} * spec.state_dim;
  const int64_t c_begin = b_begin + int64_t{spec.n_groups} * spec.state_dim;
  int32_t row = seq.first_row;
  for (const StateSave& save : batch_.saves_of(seq)) {
    float* to = state_in(save.slot);
    while (row <= save.row) {
      const int32_t n_rows = std::min(save.row - row + 1, kernels::kSsmRows);
      const float* xbc = arena_.row(term.xbc, row);
      table_.ssm_rows({.x = xbc + int64_t{head} * spec.head_dim,
                       .b = xbc + b_begin,
                       .c = xbc + c_begin,
                       .stride = term.xbc.n_cols,
                       .dt = arena_.row(term.dt, row) + head,
                       .dt_stride = term.dt.n_cols,
                       .n_rows = n_rows,
                       .state_dim = spec.state_dim,
                       .head_dim = spec.head_dim,
                       .bias = own(*term.bias).values()[head],
                       .rate = own(*term.rate).values()[head],
                       .skip = own(*term.skip).values()[head],
                       .least_step = spec.least_step,
                       .most_step = spec.most_step,
                       .from = from,
                       .to = to,
                       .dst = arena_.row(dst, row) + int64_t{head} * spec.head_dim,
                       .dst_stride = dst.n_cols});
      from = to;
      row += n_rows;
    }
  }
}

}  // namespace candor::backend::cpu
