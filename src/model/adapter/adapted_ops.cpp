#include "model/adapter/adapted_ops.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <variant>

namespace candor::model {

namespace op = backend::op;

void AdaptedOps::begin(backend::Ops& inner, const backend::StepBatch& batch, const Adapters& adapters) {
  inner_ = &inner;
  batch_ = batch;
  gathered_slot_ = -1;
  used_.clear();
  for (const backend::AdapterUse& use : batch.uses) {
    if (std::ranges::find(used_, use.adapter, &Used::id) != used_.end()) continue;
    used_.push_back({use.adapter, adapters[static_cast<size_t>(use.adapter)].get()});
  }
}

void AdaptedOps::run(const backend::Op& operation) {
  if (const auto* moe = std::get_if<op::Moe>(&operation)) return inner_->run(with_adapters(*moe));
  inner_->run(operation);
  if (const auto* linear = std::get_if<op::Linear>(&operation)) adapt(*linear);
  if (const auto* embed = std::get_if<op::Embed>(&operation)) adapt(*embed);
  if (const auto* gather = std::get_if<op::Gather>(&operation)) gathered_slot_ = gather->dst.slot;
}

void AdaptedOps::adapt(const op::Linear& call) {
  terms_.clear();
  for (const Used& used : used_) {
    for (const backend::LinearTerm& term : call.terms) {
      const backend::AdapterTerm* found = used.adapter->term_of(term.weight);
      if (found == nullptr) continue;
      backend::AdapterTerm& added = terms_.emplace_back(*found);
      added.adapter = used.id;
      added.dst = term.dst;
    }
  }
  if (terms_.empty()) return;
  const bool is_gathered = call.src.slot == gathered_slot_;
  inner_->run(op::Adapt{terms_, call.src, is_gathered ? batch_.out_rows : std::span<const int32_t>()});
}

void AdaptedOps::adapt(const op::Embed& call) {
  tables_.clear();
  for (const Used& used : used_) {
    const backend::AdapterTable* found = used.adapter->table_of(call.table);
    if (found == nullptr) continue;
    tables_.emplace_back(*found).adapter = used.id;
  }
  if (!tables_.empty()) inner_->run(op::AdaptEmbedding{call.dst, tables_, call.scale});
}

op::Moe AdaptedOps::with_adapters(const op::Moe& call) {
  experts_.clear();
  for (const Used& used : used_) {
    for (const backend::ExpertAdapter& each : used.adapter->experts_of(call.term.experts.front().up)) {
      experts_.emplace_back(each).term.adapter = used.id;
    }
  }
  if (used_.size() > 1) {
    std::ranges::stable_sort(experts_, {}, [](const auto& each) { return std::tuple(each.expert, each.part); });
  }
  op::Moe adapted = call;
  adapted.term.adapters = experts_;
  return adapted;
}

}  // namespace candor::model
