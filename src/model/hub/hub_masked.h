#pragma once
// The head that guesses masked words, as checkpoints of encoders name its tensors. Read only where a model weighs words
// by it (SPLADE). Pure; any thread.

#include <optional>
#include <string_view>

namespace candor::model {

// "lm_head.dense.weight" -> "mlm.weight"; "" of a copy of another tensor. is_tied: the embedding is the output matrix.
std::optional<std::string_view> masked_head_tensor(std::string_view name, bool is_tied);

}  // namespace candor::model
