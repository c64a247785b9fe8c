#pragma once
// The inputs to the choice of one token: its row of logits, its position in the text, and the constraint on it.
// Borrowed for the call.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/device_logits.h"
#include "base/ids.h"
#include "constrain/masked_constraint.h"
#include "engine/request/output_text.h"
#include "sample/sampler.h"

namespace candor::engine {

struct PickInput {
  backend::LogitRow logits{};                  // [V]
  std::optional<sample::RowFindings> found{};  // of them by the device that has them
  int32_t choice = 0;
  uint64_t position = 0;            // of the token to choose, in the whole text
  bool has_room = true;             // for another one behind it
  int64_t now_ns = 0;               // when the logits were there
  TokenId draft = kNoToken;         // the draft for this place, for those who want to see it
  std::span<const TokenId> text{};  // prompt and output before it, as far as they were not cropped
  size_t n_output = 0;              // of them, how many are output
  std::vector<double> attention{};  // shares of the positions before it, where somebody wants to see them
};

// What constrains the next token of one output.
struct OutputView {
  const constrain::MaskedConstraint* constraint = nullptr;  // nullptr: none
  const OutputText& text;

  // While the model reasons before a constrained answer, only the end of the whole is kept from it.
  bool needs_mask() const { return constraint != nullptr && !text.is_reasoning(); }
};

}  // namespace candor::engine
