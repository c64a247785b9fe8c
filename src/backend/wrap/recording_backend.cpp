#include "backend/wrap/recording_backend.h"

#include <variant>

namespace candor::backend {

void RecordedStep::add(const Op& operation) {
  operations_.push_back(operation);
  if (auto* linear = std::get_if<op::Linear>(&operations_.back()))
    linear->terms = terms_.emplace_back(linear->terms.begin(), linear->terms.end());
}

void RecordedStep::clear() {
  operations_.clear();
  terms_.clear();
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
