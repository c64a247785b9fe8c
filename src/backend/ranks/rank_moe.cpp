// moe(): every rank routes the same rows and computes its columns of every expert; the gated rows of all visits are put
// together at once, and outputs are added in the order of the experts, each rank's columns by themselves.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "backend/op_terms.h"
#include "backend/ranks/rank_ops.h"
#include "backend/ranks/rank_weight.h"
#include "backend/routing.h"

namespace candor::backend {
namespace {

constexpr uint64_t kGatedTag = 0xff00;

size_t n_floats(int32_t rows, int32_t cols) {
  return static_cast<size_t>(rows) * static_cast<size_t>(cols);
}

}  // namespace

void RankOps::route(const MoeTerm& term) {
  routing_.begin(term.spec);
  const float* bias = term.spec.has_choice_bias ? rank_weight(*term.choice_bias).values().data() : nullptr;
  const float* scales = term.spec.has_expert_scales ? rank_weight(*term.expert_scales).values().data() : nullptr;
  HostRows held(inner_, term.scores);
  const float* scores = held.read(term.scores).data();
  const auto n_experts = static_cast<size_t>(term.scores.n_cols);
  for (int32_t i = 0; i < term.scores.n_rows; ++i) {
    routing_.add_row(i, {scores + static_cast<size_t>(i) * n_experts, n_experts}, {bias, scales});
  }
}

// The rows of an expert's visits, weighed where the spec says so, in the room of its outputs.
Activation RankOps::gather_visits(Activation src, const MoeTerm& term, std::span<const Routing::Visit> visits) {
  const Activation rows{term.outputs.slot, static_cast<int32_t>(visits.size()), src.n_cols};
  HostRows sources(inner_, src), gathered(inner_, rows);
  const float* from = sources.read(src).data();
  float* row = gathered.data();
  const auto n_dim = static_cast<size_t>(src.n_cols);
  for (const Routing::Visit& visit : visits) {
    const float* own = from + static_cast<size_t>(visit.row) * n_dim;
    if (term.spec.weighs_inputs) {
      table_.scale(own, visit.weight, src.n_cols, row);
    } else {
      std::memcpy(row, own, n_dim * sizeof(float));
    }
    row += n_dim;
  }
  gathered.write(rows);
  return rows;
}

void RankOps::adapt_expert(const MoeTerm& term, int32_t expert, ExpertPart part, Activation src, Activation dst) {
  adapter_terms_.clear();
  for (const ExpertAdapter& each : term.adapters) {
    if (each.expert != expert || each.part != part) continue;
    adapter_terms_.push_back(part_of_term(each.term));
    adapter_terms_.back().dst = dst;
  }
  if (adapter_terms_.empty()) return;
  visit_rows_.clear();
  for (const Routing::Visit& visit : routing_.visits(expert)) visit_rows_.push_back(visit.row);
  inner_.ops().run(op::Adapt{adapter_terms_, src, visit_rows_});
}

// Into gated_: [visits, width], in the order of experts and their rows.
void RankOps::run_gates(Activation src, const MoeTerm& term, int32_t width) {
  if (width == 0) return;
  float* gated = gated_.data();
  for (int32_t expert = 0; expert < routing_.n_experts(); ++expert) {
    const auto visits = routing_.visits(expert);
    const auto n = static_cast<int32_t>(visits.size());
    if (n == 0) continue;
    const Activation rows = gather_visits(src, term, visits);
    const Activation gates{term.gate.slot, n, width};
    const Activation ups{term.up.slot, n, width};
    const Expert& weights = term.experts[static_cast<size_t>(expert)];
    const LinearTerm up{part_of(weights.up), part_of(weights.up_bias), weights.gate == nullptr ? gates : ups};
    if (weights.gate == nullptr) {
      inner_.ops().run(op::Linear{std::array{up}, rows});
      adapt_expert(term, expert, ExpertPart::kUp, rows, gates);
      inner_.ops().run(op::Activate{gates, term.kind});
    } else {
      inner_.ops().run(
          op::Linear{std::array{LinearTerm{part_of(weights.gate), part_of(weights.gate_bias), gates}, up}, rows});
      adapt_expert(term, expert, ExpertPart::kGate, rows, gates);
      adapt_expert(term, expert, ExpertPart::kUp, rows, ups);
      inner_.ops().run(op::Gate{gates, gates, ups, term.kind});
    }
    HostRows held(inner_, gates);
    std::memcpy(gated, held.read(gates).data(), n_floats(n, width) * sizeof(float));
    gated += n_floats(n, width);
  }
}

void RankOps::run_outputs(Activation dst, const MoeTerm& term, const OutputShare& share) {
  const auto width = static_cast<size_t>(share.width());
  HostRows held_sums(inner_, dst);
  float* sums = held_sums.data();
  std::fill_n(sums, static_cast<size_t>(dst.n_rows) * width, 0.0f);
  if (width == 0) return;
  for (size_t row = 0; term.bias != nullptr && row < static_cast<size_t>(dst.n_rows); ++row) {
    std::copy_n(rank_weight(*term.bias).values().data() + share.bounds[static_cast<size_t>(rank_)], width,
                sums + row * width);
  }
  const float* gated = gated_.data();
  for (int32_t expert = 0; expert < routing_.n_experts(); ++expert) {
    const auto visits = routing_.visits(expert);
    const auto n = static_cast<int32_t>(visits.size());
    if (n == 0) continue;
    const Activation gates{term.gate.slot, n, term.gate.n_cols};
    const Activation outputs{term.outputs.slot, n, share.width()};
    HostRows held_gates(inner_, gates);
    std::memcpy(held_gates.data(), gated, n_floats(n, gates.n_cols) * sizeof(float));
    held_gates.write(gates);
    gated += n_floats(n, gates.n_cols);
    const Expert& weights = term.experts[static_cast<size_t>(expert)];
    inner_.ops().run(
        op::Linear{std::array{LinearTerm{part_of(weights.down), part_of(weights.down_bias), outputs}}, gates});
    adapt_expert(term, expert, ExpertPart::kDown, gates, outputs);
    HostRows held_outputs(inner_, outputs);
    const float* output = held_outputs.read(outputs).data();
    for (size_t i = 0; i < visits.size(); ++i) {
      const float weight = term.spec.weighs_inputs ? 1.0f : visits[i].weight;
      table_.add_scaled(output + i * width, weight, share.width(), sums + static_cast<size_t>(visits[i].row) * width);
    }
  }
  held_sums.write(dst);
}

void RankOps::compute(const op::Moe& call) {
  const Expert& first = call.term.experts.front();
  const OutputShare& inner_share = *rank_weight(*first.up).share();
  const OutputShare& outer_share = *rank_weight(*first.down).share();
  make_whole(call.src);
  make_whole(call.term.scores);
  for (const Activation x : {call.term.gate, call.term.up, call.term.outputs}) set_whole(x);
  if (call.src.n_rows == 0 || is_lost_) return set_product(call.dst, rank_weight(*first.down));
  route(call.term);
  int32_t n_visits = 0;
  for (int32_t expert = 0; expert < routing_.n_experts(); ++expert)
    n_visits += static_cast<int32_t>(routing_.visits(expert).size());
  gated_.resize(std::max(gated_.size(), n_floats(n_visits, call.term.gate.n_cols)));
  run_gates(call.src, call.term, inner_share.width());
  exchange_together({gated_.data(), n_visits, inner_share.bounds}, kGatedTag);
  set_product(call.dst, rank_weight(*first.down));
  if (!is_lost_) run_outputs(local(call.dst), call.term, outer_share);
}

}  // namespace candor::backend
