#include "sample/row_asks.h"

#include <algorithm>

namespace candor::sample {

RowPlan& RowAsks::add(int32_t row, int32_t choice) {
  if (n_asks_ == asks_.size()) asks_.emplace_back();
  const auto index = static_cast<size_t>(row);
  if (index >= first_of_row_.size()) first_of_row_.resize(index + 1, SIZE_MAX);
  first_of_row_[index] = std::min(first_of_row_[index], n_asks_);
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

void RowAsks::add_prompt_row(const backend::RowQuery& query) {
  RowPlan& plan = add(query.row, kPromptRow);
  plan.choice = query;
  plan.model.reset();
}

const RowAsks::Ask* RowAsks::find_ask(int32_t row, int32_t choice) const {
  const auto index = static_cast<size_t>(row);
  if (index >= first_of_row_.size()) return nullptr;
  for (size_t i = first_of_row_[index]; i < n_asks_ && asks_[i].row == row; ++i) {
    if (asks_[i].choice == choice) return &asks_[i];
  }
  return nullptr;
}

std::optional<RowFindings> RowAsks::find(int32_t row, int32_t choice) const {
  const Ask* ask = find_ask(row, choice);
  if (ask == nullptr) return std::nullopt;
  const backend::RowSummary& first = summaries_[ask->at];
  return RowFindings{&ask->plan, &first, ask->plan.model ? &first + 1 : &first, {device_, ask->at}};
}

const backend::RowSummary* RowAsks::find_prompt_row(int32_t row) const {
  const Ask* ask = find_ask(row, kPromptRow);
  return ask == nullptr ? nullptr : &summaries_[ask->at];
}

}  // namespace candor::sample
