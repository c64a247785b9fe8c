#include "backend/row_uses.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace candor::backend {

void RowUses::find(const StepBatch& batch, std::span<const int32_t> rows) {
  uses_.clear();
  rows_.clear();
  groups_.clear();
  if (batch.uses.empty()) return;
  const auto n_rows = rows.empty() ? batch.n_rows() : static_cast<int32_t>(rows.size());
  for (int32_t i = 0; i < n_rows; ++i) {
    const std::span uses = batch.uses_of(batch.slice_of(rows.empty() ? i : rows[static_cast<size_t>(i)]));
    for (size_t turn = 0; turn < uses.size(); ++turn) uses_.push_back({static_cast<int32_t>(turn), uses[turn], i});
  }
  const auto key = [](const Use& use) { return std::tuple(use.turn, use.use.adapter, use.use.scale); };
  std::ranges::sort(uses_, {}, [&](const Use& use) { return std::tuple_cat(key(use), std::tuple(use.row)); });
  rows_.reserve(uses_.size());
  for (size_t i = 0; i < uses_.size();) {
    const size_t first = rows_.size();
    const Use& head = uses_[i];
    for (; i < uses_.size() && key(uses_[i]) == key(head); ++i) rows_.push_back(uses_[i].row);
    groups_.push_back({head.turn, head.use, std::span(rows_).subspan(first)});
  }
}

}  // namespace candor::backend
