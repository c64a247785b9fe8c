#pragma once
// EAGLE-3 heads (Li et al., "EAGLE-3: scaling up inference acceleration of large language models via training-time
// test", 2025): one block that guesses the token behind the next. A row of it has the embedding of a token, and a
// projection of what the model's stream was, for the token before it, in front of three of the model's blocks; from the
// second draft on it has what the head's own stream was instead. Attention reads both, normed, side by side. The head
// has an output matrix of its own, often of the more frequent tokens alone, whose ids stand in a table.
//
// A head is published as a folder of safetensors (hub/hub_eagle.h), or is a GGUF file of llama.cpp's converter with
// these keys and names. Pure functions; any thread.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "model/families/families.h"

namespace candor::model {

inline constexpr std::string_view kEagleTokens = "d2t";  // [rows of the output matrix], I64: ids of the model's tokens

// It has neither metadata of a model nor its words: not one of families().
const Family& eagle3_family();

bool is_eagle(const formats::ModelFile& file);

// The head in `file`, of that model: which blocks it reads, and whether both fit. REQUIRES: is_eagle(file).
Result<ArchSpec> eagle_arch(const formats::ModelFile& file, const ArchSpec& model);

// drafted_tokens() of such a head. Refuses ids that the model does not have, and those that stand twice.
Result<std::vector<TokenId>> eagle_tokens(const formats::ModelFile& file, const ArchSpec& spec);

}  // namespace candor::model
