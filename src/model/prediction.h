#pragma once
// Multi-token prediction: a block behind a model's last one that guesses the token behind the next (Gloeckle et al.,
// "Better & faster large language models via multi-token prediction", 2024; DeepSeek-AI, "DeepSeek-V3 technical
// report", 2024). A row of such a head begins as a projection of two norms: of a token's embedding, and of what the
// model's output matrix read for the token before it. Behind its block stand a norm, its own or the model's, and the
// model's output matrix. Of several such blocks the first is used, which drafts on from what it gave itself.
//
// A head stands in the model's own file, or alone in one ("blk.N.*", with nothing in front of block N). Names are those
// of llama.cpp's converter. Pure functions; any thread.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "model/tensor_roles.h"

namespace candor::model {

inline constexpr std::array kPredictionTensors = {
    TensorName{TensorRole::kJoin, "blk.*.nextn.eh_proj.weight"},
    TensorName{TensorRole::kJoinTokenNorm, "blk.*.nextn.enorm.weight"},
    TensorName{TensorRole::kJoinVectorNorm, "blk.*.nextn.hnorm.weight"},
    TensorName{TensorRole::kFinalNorm, "blk.*.nextn.shared_head_norm.weight", Presence::kOptional},
    TensorName{TensorRole::kHead, "blk.*.nextn.shared_head_head.weight", Presence::kOptional},
};
// Behind "blk.N.": what a file may hold again. The model's own are used; but a head that stands alone in its file may
// have an output matrix of its own, of another type.
inline constexpr std::string_view kPredictionCopies[] = {"nextn.embed_tokens.weight", "nextn.shared_head_head.weight"};

// Vocabularies list frequent tokens first, and a head's output matrix may be as large as all else that it reads: of a
// larger vocabulary it guesses these alone (Zhao et al., "FR-Spec", 2025); ranks, which share the matrix, guess all.
inline constexpr int32_t kDraftedTokens = 32768;

// The number of the first block for multi-token prediction; nullopt where the file has none.
std::optional<int32_t> find_prediction(const formats::ModelFile& file);
// The file has a head and no model.
bool is_prediction_alone(const formats::ModelFile& file);

// The head in `file`, of that model: one block, which is as the model's last one that attends, with attention where the
// file has any, and with experts or as wide as the file says. Refused where the file has none, or one of another
// family.
Result<ArchSpec> prediction_arch(const formats::ModelFile& file, const ArchSpec& model);

}  // namespace candor::model
