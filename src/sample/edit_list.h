#pragma once
// What bans and penalties do to the logits of a row that is not here: the same calls as of Candidates, kept as a list
// for the device that has the row (backend/device_logits.h).

#include <cstdint>
#include <span>
#include <vector>

#include "backend/logit_edit.h"
#include "base/ids.h"
#include "constrain/token_mask.h"

namespace candor::sample {

// Edits of one row. Its memory is kept from row to row.
struct RowEdits {
  std::vector<uint32_t> mask{};  // bit i % 32 of word i / 32; empty: every token is allowed
  std::vector<backend::EditedToken> edited{};
  std::vector<backend::LogitEdit> edits{};

  bool is_empty() const { return mask.empty() && edited.empty(); }
};

// Writes the edits of one row after another. One thread.
class EditList {
 public:
  // Overwrites the row's edits; borrowed until the next begin(). Tokens outside of [0, n_vocab) are ignored.
  void begin(RowEdits& row, int32_t n_vocab);

  void restrict(const constrain::TokenMask& mask);
  void add(TokenId token, float x) { append(token, {backend::EditKind::kAdd, x}); }
  void repeat_less(TokenId token, float factor) { append(token, {backend::EditKind::kRepeat, factor}); }
  void ban(TokenId token) { append(token, {backend::EditKind::kBan, 0.0f}); }

 private:
  void append(TokenId token, const backend::LogitEdit& edit);

  RowEdits* row_ = nullptr;
  int32_t n_vocab_ = 0;
  std::vector<int32_t> last_edit_;  // [V]: of the token; -1: it has none
  std::vector<TokenId> edited_;     // those that have one
};

}  // namespace candor::sample
