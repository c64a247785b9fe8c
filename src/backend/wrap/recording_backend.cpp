#include "backend/wrap/recording_backend.h"

#include <variant>

namespace candor::backend {

void RecordedStep::add(const Op& operation) {
  operations_.push_back(operation);
  const auto keep = [](auto& kept, auto& list) { list = kept.emplace_back(list.begin(), list.end()); };
  Op& last = operations_.back();
  if (auto* linear = std::get_if<op::Linear>(&last)) keep(terms_, linear->terms);
  if (auto* adapt = std::get_if<op::Adapt>(&last)) {
    keep(adapter_terms_, adapt->terms);
    keep(rows_, adapt->rows);
  }
  if (auto* adapt = std::get_if<op::AdaptEmbedding>(&last)) keep(adapter_tables_, adapt->tables);
  if (auto* moe = std::get_if<op::Moe>(&last)) keep(expert_adapters_, moe->term.adapters);
}

void RecordedStep::clear() {
  operations_.clear();
  terms_.clear();
  adapter_terms_.clear();
  rows_.clear();
  adapter_tables_.clear();
  expert_adapters_.clear();
}

void RecordedStep::replay(Ops& ops) const {
  for (const Op& operation : operations_) ops.run(operation);
}

std::vector<std::string> RecordedStep::lines() const {
  std::vector<std::string> lines;
  for (const Op& operation : operations_) lines.push_back(to_text(operation));
  return lines;
}

}  // namespace candor::backend
