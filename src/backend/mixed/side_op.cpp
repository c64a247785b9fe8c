#include "backend/mixed/side_op.h"

#include <variant>

namespace candor::backend::mixed {
namespace {

std::optional<Side> side_of(const Weight* weight) {
  return weight == nullptr ? std::nullopt : std::optional(mixed_weight(*weight).side());
}

std::optional<Side> home(const WithoutWeights auto&, const MixedKv&) {
  return std::nullopt;
}
// Vectors are on both sides.
std::optional<Side> home(const op::Norm&, const MixedKv&) {
  return std::nullopt;
}
std::optional<Side> home(const op::Scale&, const MixedKv&) {
  return std::nullopt;
}
// The caller asks for each term.
std::optional<Side> home(const op::Linear&, const MixedKv&) {
  return std::nullopt;
}
std::optional<Side> home(const op::Adapt&, const MixedKv&) {
  return std::nullopt;
}
std::optional<Side> home(const op::Embed& call, const MixedKv&) {
  return side_of(call.table);
}
std::optional<Side> home(const op::AddPositions& call, const MixedKv&) {
  return side_of(call.table);
}
std::optional<Side> home(const op::AddTypes& call, const MixedKv&) {
  return side_of(call.table);
}
std::optional<Side> home(const op::AdaptEmbedding& call, const MixedKv&) {
  return side_of(call.tables.front().down);
}
std::optional<Side> home(const op::LinearHeads& call, const MixedKv&) {
  return side_of(call.weight);
}
std::optional<Side> home(const op::Attend& call, const MixedKv& kv) {
  return kv.kv_layer(call.term.layer).side;
}
std::optional<Side> home(const op::Moe& call, const MixedKv&) {
  return side_of(call.term.experts.front().up);
}
std::optional<Side> home(const op::CausalConv& call, const MixedKv& kv) {
  return kv.state_layer(call.term.layer).side;
}
std::optional<Side> home(const op::DeltaRule& call, const MixedKv& kv) {
  return kv.state_layer(call.term.layer).side;
}
std::optional<Side> home(const op::SsmScan& call, const MixedKv& kv) {
  return kv.state_layer(call.term.layer).side;
}

}  // namespace

std::optional<Side> home_of(const Op& operation, const MixedKv& kv) {
  return std::visit([&](const auto& call) { return home(call, kv); }, operation);
}

const Op& SideOp::translate(const Op& operation, Side side, const MixedKv& kv) {
  side_ = side;
  kv_ = &kv;
  operation_ = operation;
  std::visit([this](auto& call) { localise(call); }, operation_);
  return operation_;
}

AdapterTerm SideOp::own(AdapterTerm term) const {
  for (const Weight** weight : {&term.down, &term.up, &term.gains, &term.gains_less_one, &term.bias}) {
    *weight = own(*weight);
  }
  return term;
}

std::span<const Expert> SideOp::own(std::span<const Expert> experts) {
  std::vector<Expert>& mine = experts_[experts.data()];
  if (mine.size() == experts.size()) return mine;
  mine.clear();
  for (const Expert& each : experts) {
    mine.push_back(
        {own(each.gate), own(each.up), own(each.down), own(each.gate_bias), own(each.up_bias), own(each.down_bias)});
  }
  return mine;
}

void SideOp::localise(op::Linear& call) {
  terms_.clear();
  for (const LinearTerm& term : call.terms) terms_.push_back({own(term.weight), own(term.bias), term.dst});
  call.terms = terms_;
}

void SideOp::localise(op::Adapt& call) {
  adapter_terms_.clear();
  for (const AdapterTerm& term : call.terms) adapter_terms_.push_back(own(term));
  call.terms = adapter_terms_;
}

void SideOp::localise(op::AdaptEmbedding& call) {
  tables_.clear();
  for (const AdapterTable& table : call.tables) {
    tables_.push_back({table.adapter, own(table.down), own(table.up), table.scale});
  }
  call.tables = tables_;
}

void SideOp::localise(op::Attend& call) {
  call.term.layer = kv_->kv_layer(call.term.layer).layer;
  call.term.sinks = own(call.term.sinks);
  call.term.biases = own(call.term.biases);
}

void SideOp::localise(op::Moe& call) {
  MoeTerm& term = call.term;
  term.experts = own(term.experts);
  for (const Weight** weight : {&term.choice_bias, &term.expert_scales, &term.bias}) *weight = own(*weight);
  expert_adapters_.clear();
  for (const ExpertAdapter& each : term.adapters) {
    expert_adapters_.push_back({each.expert, each.part, own(each.term)});
  }
  term.adapters = expert_adapters_;
}

void SideOp::localise(op::CausalConv& call) {
  call.term.layer = kv_->state_layer(call.term.layer).layer;
  call.term.taps = own(call.term.taps);
  call.term.bias = own(call.term.bias);
}

void SideOp::localise(op::DeltaRule& call) {
  call.term.layer = kv_->state_layer(call.term.layer).layer;
  call.term.rate = own(call.term.rate);
  call.term.bias = own(call.term.bias);
}

void SideOp::localise(op::SsmScan& call) {
  call.term.layer = kv_->state_layer(call.term.layer).layer;
  for (const Weight** weight : {&call.term.rate, &call.term.bias, &call.term.skip}) *weight = own(*weight);
}

}  // namespace candor::backend::mixed
