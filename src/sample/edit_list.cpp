#include "sample/edit_list.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace candor::sample {

// Begins in time linear in what the last row had.
void EditList::begin(RowEdits& row, int32_t n_vocab) {
  for (const TokenId token : edited_) last_edit_[static_cast<size_t>(token)] = -1;
  edited_.clear();
  if (last_edit_.size() < static_cast<size_t>(n_vocab)) last_edit_.resize(static_cast<size_t>(n_vocab), -1);
  row.mask.clear();
  row.edited.clear();
  row.edits.clear();
  row_ = &row;
  n_vocab_ = n_vocab;
}

void EditList::restrict(const constrain::TokenMask& mask) {
  const std::span<const uint32_t> words = mask.words();
  std::vector<uint32_t>& all = row_->mask;
  if (all.empty()) all.assign((static_cast<size_t>(n_vocab_) + 31) / 32, ~0u);
  for (size_t i = 0; i < all.size(); ++i) all[i] &= i < words.size() ? words[i] : 0u;
}

void EditList::append(TokenId token, const backend::LogitEdit& edit) {
  if (token < 0 || token >= n_vocab_) return;
  const auto index = static_cast<int32_t>(row_->edits.size());
  row_->edits.push_back(edit);
  const int32_t before = std::exchange(last_edit_[static_cast<size_t>(token)], index);
  if (before >= 0) {
    row_->edits[static_cast<size_t>(before)].next = index;
    return;
  }
  row_->edited.push_back({token, index});
  edited_.push_back(token);
}

}  // namespace candor::sample
