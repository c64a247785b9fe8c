#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "backend/op_terms.h"
#include "backend/reference/reference_math.h"
#include "backend/reference/reference_ops.h"
#include "backend/state_specs.h"
#include "backend/step_batch.h"
#include "base/ids.h"

namespace candor::backend::reference {
namespace {

const float* values_of(const Weight& weight) {
  return static_cast<const ReferenceWeight&>(weight).row(0);
}

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(exp(-std::fabs(x)));
}

// x / |x| * scale
std::vector<double> normalised(const float* x, int32_t n, double scale) {
  constexpr double kEpsilon = 1e-6;
  std::vector<double> y(x, x + n);
  const double length = std::sqrt(dot(y.data(), y.data(), y.size()) + kEpsilon);
  for (double& value : y) value *= scale / length;
  return y;
}

}  // namespace

void ReferenceOps::compute(const op::CausalConv& call) {
  for (const SeqSlice& seq : batch_.seqs) convolve(call.term, call.spec, seq);
}

void ReferenceOps::convolve(const ConvTerm& term, const ConvSpec& spec, const SeqSlice& seq) {
  const int32_t n_channels = spec.n_channels;
  const int32_t n_past = spec.n_taps - 1;
  // Every input of the slice, with what stood before it.
  std::vector<float> inputs(static_cast<size_t>((n_past + seq.n_rows) * n_channels), 0.0f);
  const auto input = [&](int32_t at) { return inputs.data() + (n_past + at) * n_channels; };
  if (seq.state != kNoState) std::copy_n(kv_->state(seq.state, term.layer), spec.state_floats(), inputs.data());
  for (int32_t i = 0; i < seq.n_rows; ++i) std::copy_n(row(term.x, seq.first_row + i), n_channels, input(i));
  const int32_t first = term.first_channel;
  const auto n_convolved = static_cast<int32_t>(term.taps->n_rows() * term.taps->n_cols() / spec.n_taps);
  for (const StateSave& save : batch_.saves_of(seq)) {
    const int32_t end = save.row - seq.first_row + 1;
    for (int32_t i = 0; i < n_past; ++i) {
      std::copy_n(input(end - n_past + i) + first, n_convolved,
                  kv_->state(save.slot, term.layer) + i * n_channels + first);
    }
  }
  const float* taps = values_of(*term.taps);
  for (int32_t i = 0; i < seq.n_rows; ++i) {
    for (int32_t c = first; c < first + n_convolved; ++c) {
      double sum = term.bias == nullptr ? 0.0 : static_cast<double>(values_of(*term.bias)[c - first]);
      for (int32_t tap = 0; tap < spec.n_taps; ++tap) {
        sum += static_cast<double>(input(i + tap - n_past)[c]) *
               static_cast<double>(taps[(c - first) * spec.n_taps + tap]);
      }
      row(term.x, seq.first_row + i)[c] = static_cast<float>(spec.has_silu ? sum * sigmoid(sum) : sum);
    }
  }
}

void ReferenceOps::walk_states(const StateMatrices& matrices, const RunRow& run) {
  std::vector<float> state(static_cast<size_t>(matrices.n_floats));
  for (const SeqSlice& seq : batch_.seqs) {
    for (int32_t head = 0; head < matrices.n_heads; ++head) {
      const int64_t offset = matrices.first + head * matrices.n_floats;
      state.assign(state.size(), 0.0f);
      if (seq.state != kNoState) {
        std::copy_n(kv_->state(seq.state, matrices.layer) + offset, matrices.n_floats, state.data());
      }
      int32_t at = seq.first_row;
      for (const StateSave& save : batch_.saves_of(seq)) {
        for (; at <= save.row; ++at) run(at, head, state.data());
        std::copy_n(state.data(), matrices.n_floats, kv_->state(save.slot, matrices.layer) + offset);
      }
    }
  }
}

void ReferenceOps::compute(const op::DeltaRule& call) {
  walk_states(
      {call.term.layer, call.spec.n_v_heads, call.spec.conv_floats(), call.spec.head_floats()},
      [&](int32_t at, int32_t head, float* state) { run_delta(call.dst, call.term, call.spec, at, head, state); });
}

void ReferenceOps::run_delta(Activation dst, const DeltaTerm& term, const DeltaSpec& spec, int32_t at, int32_t head,
                             float* state) {
  const float* qkv = row(term.qkv, at);
  const int32_t key_head = spec.key_head(head);
  const auto q = normalised(qkv + key_head * spec.k_dim, spec.k_dim, 1.0 / std::sqrt(static_cast<double>(spec.k_dim)));
  const auto k = normalised(qkv + spec.k_width() + key_head * spec.k_dim, spec.k_dim, 1.0);
  const float* v = qkv + 2 * spec.k_width() + head * spec.v_dim;
  // Of each row of the state.
  std::vector<double> decays;
  for (int32_t i = 0; i < spec.k_dim; ++i) {
    const int32_t gate = spec.has_channel_gates ? head * spec.k_dim + i : head;
    const double alpha =
        static_cast<double>(row(term.alpha, at)[gate]) + static_cast<double>(values_of(*term.bias)[gate]);
    decays.push_back(exp(static_cast<double>(values_of(*term.rate)[head]) * softplus(alpha)));
  }
  const double share =
      static_cast<double>(spec.share_scale) * sigmoid(static_cast<double>(row(term.beta, at)[head]));
  for (int32_t j = 0; j < spec.v_dim; ++j) {
    const auto place = [&](int32_t i) { return state + i * spec.v_dim + j; };
    double seen = 0.0;
    for (int32_t i = 0; i < spec.k_dim; ++i)
      seen += static_cast<double>(*place(i)) * decays[static_cast<size_t>(i)] * k[static_cast<size_t>(i)];
    const double change = (static_cast<double>(v[j]) - seen) * share;
    double read = 0.0;
    for (int32_t i = 0; i < spec.k_dim; ++i) {
      const double value =
          static_cast<double>(*place(i)) * decays[static_cast<size_t>(i)] + k[static_cast<size_t>(i)] * change;
      *place(i) = static_cast<float>(value);
      read += value * q[static_cast<size_t>(i)];
    }
    row(dst, at)[head * spec.v_dim + j] = static_cast<float>(read);
  }
}

void ReferenceOps::compute(const op::SsmScan& call) {
  walk_states(
      {call.term.layer, call.spec.n_heads, call.spec.conv_floats(), call.spec.head_floats()},
      [&](int32_t at, int32_t head, float* state) { run_ssm(call.dst, call.term, call.spec, at, head, state); });
}

void ReferenceOps::run_ssm(Activation dst, const SsmTerm& term, const SsmSpec& spec, int32_t at, int32_t head,
                           float* state) {
  const float* xbc = row(term.xbc, at);
  const float* x = xbc + head * spec.head_dim;
  const float* b = xbc + spec.width() + spec.group(head) * spec.state_dim;
  const float* c = b + spec.n_groups * spec.state_dim;
  const auto number = [&](const Weight* weight) { return static_cast<double>(values_of(*weight)[head]); };
  const double step = std::clamp(softplus(static_cast<double>(row(term.dt, at)[head]) + number(term.bias)),
                                 static_cast<double>(spec.least_step), static_cast<double>(spec.most_step));
  const double decay = exp(step * number(term.rate));
  for (int32_t j = 0; j < spec.head_dim; ++j) {
    const double input = static_cast<double>(x[j]);
    double sum = 0.0;
    for (int32_t i = 0; i < spec.state_dim; ++i) {
      float& place = state[i * spec.head_dim + j];
      const double value = static_cast<double>(place) * decay + static_cast<double>(b[i]) * step * input;
      place = static_cast<float>(value);
      sum += value * static_cast<double>(c[i]);
    }
    row(dst, at)[head * spec.head_dim + j] = static_cast<float>(sum + number(term.skip) * input);
  }
}

}  // namespace candor::backend::reference
