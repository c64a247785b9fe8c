#include "backend/wrap/timed_backend.h"

#include <cstdint>

namespace candor::backend {
namespace {

constexpr std::array<std::string_view, kOpKinds> kNames{"embed", "norm",  "linear", "rope", "attend", "gate",   "moe",
                                                        "conv",  "delta", "ssm",    "add",  "gather", "collect"};

uint64_t bytes_of(const Weight* weight) {
  return weight == nullptr ? 0 : weight->n_bytes();
}

}  // namespace

std::string_view op_name(OpKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

OpTime OpTimes::total() const {
  OpTime sum;
  for (const OpTime& time : times_) {
    sum.n_calls += time.n_calls;
    sum.ns += time.ns;
    sum.weight_bytes += time.weight_bytes;
  }
  return sum;
}

template <class Call>
void TimedOps::measure(OpKind kind, uint64_t weight_bytes, Call&& call) {
  const int64_t start = clock_.now_ns();
  call();
  OpTime& time = times_.of(kind);
  time.ns += clock_.now_ns() - start;
  time.weight_bytes += weight_bytes;
  ++time.n_calls;
}

void TimedOps::embed(Activation dst, const Weight& table, float scale) {
  const uint64_t row_bytes = table.n_rows() == 0 ? 0 : table.n_bytes() / static_cast<uint64_t>(table.n_rows());
  measure(OpKind::kEmbed, row_bytes * static_cast<uint64_t>(dst.n_rows), [&] { inner_.embed(dst, table, scale); });
}

void TimedOps::add_positions(Activation dst, const Weight& table) {
  const uint64_t row_bytes = table.n_rows() == 0 ? 0 : table.n_bytes() / static_cast<uint64_t>(table.n_rows());
  measure(OpKind::kEmbed, row_bytes * static_cast<uint64_t>(dst.n_rows), [&] { inner_.add_positions(dst, table); });
}

void TimedOps::norm(Activation dst, Activation src, NormWeights weights, const NormSpec& spec) {
  measure(OpKind::kNorm, bytes_of(weights.gain) + bytes_of(weights.bias),
          [&] { inner_.norm(dst, src, weights, spec); });
}

void TimedOps::linear(std::span<const LinearTerm> terms, Activation src) {
  uint64_t n_bytes = 0;
  for (const LinearTerm& term : terms) n_bytes += bytes_of(term.weight) + bytes_of(term.bias);
  measure(OpKind::kLinear, n_bytes, [&] { inner_.linear(terms, src); });
}

void TimedOps::rope(Activation x, int32_t n_heads, int32_t head_dim, const RopeSpec& spec) {
  measure(OpKind::kRope, 0, [&] { inner_.rope(x, n_heads, head_dim, spec); });
}

void TimedOps::temper(Activation x, const TemperSpec& spec) {
  measure(OpKind::kRope, 0, [&] { inner_.temper(x, spec); });
}

void TimedOps::attend(Activation dst, const AttnTerm& term, const AttnSpec& spec) {
  measure(OpKind::kAttend, bytes_of(term.sinks), [&] { inner_.attend(dst, term, spec); });
}

void TimedOps::gate(Activation dst, Activation gate_src, Activation up, GateKind kind) {
  measure(OpKind::kGate, 0, [&] { inner_.gate(dst, gate_src, up, kind); });
}

void TimedOps::activate(Activation x, GateKind kind) {
  measure(OpKind::kGate, 0, [&] { inner_.activate(x, kind); });
}

// Counts the experts that a single row reads; more rows may read more.
void TimedOps::moe(Activation dst, Activation src, const MoeTerm& term) {
  const Expert& first = term.experts.front();
  const uint64_t expert_bytes = bytes_of(first.gate) + bytes_of(first.up) + bytes_of(first.down) +
                                bytes_of(first.gate_bias) + bytes_of(first.up_bias) + bytes_of(first.down_bias);
  measure(OpKind::kMoe, expert_bytes * static_cast<uint64_t>(term.spec.n_used), [&] { inner_.moe(dst, src, term); });
}

void TimedOps::causal_conv(const ConvTerm& term, const ConvSpec& spec) {
  measure(OpKind::kConv, bytes_of(term.taps) + bytes_of(term.bias), [&] { inner_.causal_conv(term, spec); });
}

void TimedOps::delta_rule(Activation dst, const DeltaTerm& term, const DeltaSpec& spec) {
  measure(OpKind::kDelta, bytes_of(term.rate) + bytes_of(term.bias), [&] { inner_.delta_rule(dst, term, spec); });
}

void TimedOps::ssm_scan(Activation dst, const SsmTerm& term, const SsmSpec& spec) {
  measure(OpKind::kSsm, bytes_of(term.rate) + bytes_of(term.bias) + bytes_of(term.skip),
          [&] { inner_.ssm_scan(dst, term, spec); });
}

void TimedOps::unzip(Activation first, Activation second, Activation src, int32_t width) {
  measure(OpKind::kGather, 0, [&] { inner_.unzip(first, second, src, width); });
}

void TimedOps::zip(Activation dst, Activation first, Activation second, int32_t width) {
  measure(OpKind::kGather, 0, [&] { inner_.zip(dst, first, second, width); });
}

void TimedOps::linear_heads(Activation dst, Activation src, const Weight& weight, int32_t n_heads) {
  measure(OpKind::kLinear, weight.n_bytes(), [&] { inner_.linear_heads(dst, src, weight, n_heads); });
}

void TimedOps::add_gated(Activation dst, Activation src, Activation gate) {
  measure(OpKind::kAdd, 0, [&] { inner_.add_gated(dst, src, gate); });
}

void TimedOps::scale(Activation x, float factor, const Weight* weight) {
  measure(OpKind::kAdd, 0, [&] { inner_.scale(x, factor, weight); });
}

void TimedOps::columns(Activation dst, Activation src, int32_t first) {
  measure(OpKind::kGather, 0, [&] { inner_.columns(dst, src, first); });
}

void TimedOps::add(Activation dst, Activation src, float scale) {
  measure(OpKind::kAdd, 0, [&] { inner_.add(dst, src, scale); });
}

void TimedOps::gather(Activation dst, Activation src) {
  measure(OpKind::kGather, 0, [&] { inner_.gather(dst, src); });
}

void TimedOps::collect(Activation logits, const LogitSpec& spec) {
  measure(OpKind::kCollect, 0, [&] { inner_.collect(logits, spec); });
}

}  // namespace candor::backend
