// moe(): a step's rows are sorted by the experts that they go to; then the panels of all visited experts' gates and ups
// are one list of work, their downs another. A single row reads the experts that it uses and nothing else.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/op_terms.h"
#include "backend/routing.h"
#include "base/error.h"
#include "kernels/packed_weight.h"

namespace candor::backend::cpu {

using kernels::Encoding;

void CpuOps::compute(const op::Moe& call) {
  if (call.src.n_rows == 0) return;
  route(call.term, call.src.n_rows);
  const auto visited = [&](Activation x) { return Activation{x.slot, first_visits_.back(), x.n_cols}; };
  const Activation gates = visited(call.term.gate);
  const Activation ups = visited(call.term.up);
  const Activation outputs = visited(call.term.outputs);
  const bool is_gated = call.term.experts.front().gate != nullptr;
  for (const Encoding encoding : kEncodings) {
    begin_runs();
    if (is_gated) add_runs(encoding, call.term.experts, {&Expert::gate, &Expert::gate_bias}, gates);
    add_runs(encoding, call.term.experts, {&Expert::up, &Expert::up_bias}, is_gated ? ups : gates);
    if (runs_.empty()) continue;
    encode_visits(encoding, call.src, call.term);
    run_panels();
  }
  const Activation inputs{call.term.outputs.slot, first_visits_.back(), call.src.n_cols};  // where they are weighed
  const Activation src = call.term.spec.weighs_inputs ? inputs : call.src;
  const ExpertVisits visits{first_visits_, row_visits_, static_cast<size_t>(call.term.spec.n_used)};
  if (is_gated) adapter_ops_.adapt_experts(call.term, ExpertPart::kGate, visits, src, gates);
  adapter_ops_.adapt_experts(call.term, ExpertPart::kUp, visits, src, is_gated ? ups : gates);
  if (is_gated) {
    compute(op::Gate{gates, gates, ups, call.term.kind});
  } else {
    compute(op::Activate{gates, call.term.kind});
  }
  for (const Encoding encoding : kEncodings) {
    begin_runs();
    add_runs(encoding, call.term.experts, {&Expert::down, &Expert::down_bias}, outputs);
    if (runs_.empty()) continue;
    encode_rows(encoding, gates);
    run_panels();
  }
  adapter_ops_.adapt_experts(call.term, ExpertPart::kDown, visits, gates, outputs);
  add_outputs(call.dst, outputs, call.term);
}

void CpuOps::route(const MoeTerm& term, int32_t n_rows) {
  const auto n_used = static_cast<size_t>(term.spec.n_used);
  routing_.begin(term.spec);
  const float* bias = term.spec.has_choice_bias ? own(*term.choice_bias).values() : nullptr;
  const float* scales = term.spec.has_expert_scales ? own(*term.expert_scales).values() : nullptr;
  for (int32_t i = 0; i < n_rows; ++i) {
    routing_.add_row(i, {arena_.row(term.scores, i), static_cast<size_t>(term.scores.n_cols)}, {bias, scales});
  }
  first_visits_.assign(1, 0);
  row_visits_.resize(static_cast<size_t>(n_rows) * n_used);
  n_row_visits_.assign(static_cast<size_t>(n_rows), 0);
  int32_t place = 0;
  for (int32_t expert = 0; expert < routing_.n_experts(); ++expert) {
    for (const Routing::Visit& visit : routing_.visits(expert)) {
      const auto row = static_cast<size_t>(visit.row);
      row_visits_[row * n_used + n_row_visits_[row]++] = {place++, visit.weight};
    }
    first_visits_.push_back(place);
  }
}

std::span<const RowVisit> CpuOps::visits_of(int32_t row) const {
  const size_t n_used = row_visits_.size() / n_row_visits_.size();
  return {row_visits_.data() + static_cast<size_t>(row) * n_used, n_used};
}

// Each row once, then copied to its other places; each time where it is weighed first, in the room of its output.
void CpuOps::encode_visits(Encoding encoding, Activation src, const MoeTerm& term) {
  const size_t row_bytes = kernels::encoded_row_bytes(encoding, src.n_cols);
  const auto at = [&](const RowVisit& visit) { return encoded_.data() + static_cast<size_t>(visit.place) * row_bytes; };
  CANDOR_CHECK(static_cast<size_t>(first_visits_.back()) * row_bytes <= encoded_.size());
  for_rows(src.n_rows, src.n_cols / kEncodeSpeed, [&](int32_t i) {
    const std::span<const RowVisit> visits = visits_of(i);
    if (term.spec.weighs_inputs) {
      for (const RowVisit& visit : visits) {
        float* weighed = arena_.row({term.outputs.slot, first_visits_.back(), src.n_cols}, visit.place);
        table_.scale(arena_.row(src, i), visit.weight, src.n_cols, weighed);
        table_.encode(encoding, weighed, src.n_cols, at(visit));
      }
      return;
    }
    table_.encode(encoding, arena_.row(src, i), src.n_cols, at(visits.front()));
    for (const RowVisit& visit : visits.subspan(1)) std::memcpy(at(visit), at(visits.front()), row_bytes);
  });
}

void CpuOps::add_runs(Encoding encoding, std::span<const Expert> experts, ExpertMatrix matrix, Activation dst) {
  for (size_t i = 0; i < experts.size(); ++i) {
    const int32_t first = first_visits_[i];
    const int32_t n_rows = first_visits_[i + 1] - first;
    const CpuWeight& weight = own(*(experts[i].*matrix.weight));
    if (n_rows == 0 || kernels::encoding_of(weight.shape().dtype) != encoding) continue;
    CANDOR_DCHECK(weight.n_rows() == dst.n_cols);
    const Weight* bias = experts[i].*matrix.bias;
    const size_t row_bytes = kernels::encoded_row_bytes(encoding, weight.n_cols());
    add_run({.weight = &weight,
             .bias = bias == nullptr ? nullptr : own(*bias).values(),
             .activations = encoded_.data() + static_cast<size_t>(first) * row_bytes,
             .n_rows = n_rows,
             .dst = arena_.row(dst, first),
             .n_out = dst.n_cols});
  }
}

void CpuOps::add_outputs(Activation dst, Activation outputs, const MoeTerm& term) {
  const int32_t n_used = outputs.n_rows / dst.n_rows;
  const float* bias = term.bias == nullptr ? nullptr : own(*term.bias).values();
  for_rows(dst.n_rows, int64_t{n_used} * dst.n_cols / kCopySpeed, [&](int32_t i) {
    float* sum = arena_.row(dst, i);
    const size_t n_bytes = static_cast<size_t>(dst.n_cols) * sizeof(float);
    bias == nullptr ? std::memset(sum, 0, n_bytes) : std::memcpy(sum, bias, n_bytes);
    for (const RowVisit& visit : visits_of(i)) {
      const float weight = term.spec.weighs_inputs ? 1.0f : visit.weight;
      table_.add_scaled(arena_.row(outputs, visit.place), weight, dst.n_cols, sum);
    }
  });
}

}  // namespace candor::backend::cpu
