#include "engine/step/row_asks.h"

#include <algorithm>

namespace candor::engine {

sample::RowPlan& RowAsks::add(int32_t row, int32_t choice) {
  if (n_asks_ == asks_.size()) asks_.emplace_back();
  Ask& ask = asks_[n_asks_++];
  ask.row = row;
  ask.choice = choice;
  return ask.plan;
}

void RowAsks::send(backend::DeviceLogits& logits) {
  queries_.clear();
  for (Ask& ask : std::span(asks_).first(n_asks_)) {
    ask.at = queries_.size();
    queries_.push_back(ask.plan.choice);
    if (ask.plan.model) queries_.push_back(*ask.plan.model);
  }
  device_ = &logits;
  summaries_ = logits.summarize(queries_);
}

std::optional<sample::RowFindings> RowAsks::find(int32_t row, int32_t choice) const {
  const auto asks = std::span(asks_).first(n_asks_);
  const auto ask =
      std::ranges::find_if(asks, [&](const Ask& each) { return each.row == row && each.choice == choice; });
  if (ask == asks.end()) return std::nullopt;
  const backend::RowSummary& first = summaries_[ask->at];
  return sample::RowFindings{&ask->plan, &first, ask->plan.model ? &first + 1 : &first, {device_, ask->at}};
}

}  // namespace candor::engine
