#pragma once
// How a request changes single logits of a row before its token is chosen: biases, bans, penalties (docs/numerics.md,
// "Choosing the token"). Plain data, also for kernels.

#include <cstdint>

#include "base/ids.h"

namespace candor::backend {

// kAdd: logit + value. kRepeat: a positive logit is divided by the value, another multiplied. kBan: -inf.
enum class EditKind : int32_t { kAdd, kRepeat, kBan };

struct LogitEdit {
  EditKind kind = EditKind::kAdd;
  float value = 0.0f;
  int32_t next = -1;  // the token's next edit; -1: none
};

// A token and the first of its edits.
struct EditedToken {
  TokenId token = kNoToken;
  int32_t first = -1;
};

}  // namespace candor::backend
