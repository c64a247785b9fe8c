#pragma once
// Heads that draft for a model, of either kind: for multi-token prediction (prediction.h), and EAGLE-3 (eagle.h). A
// head is a model of one block whose rows begin with vectors that the model gives. Pure functions; any thread.

#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "model/weights.h"

namespace candor::model {

// The file has a head and no model.
bool is_head_alone(const formats::ModelFile& file);

// The head in `file`, of that model. Refused where there is none, or one of another model.
Result<ArchSpec> head_arch(const formats::ModelFile& file, const ArchSpec& model);

// spec: by head_arch().
Result<std::vector<Binding>> bind_head(const formats::ModelFile& file, const ArchSpec& spec);

// The model's token for each of the head's logits; empty: they are the same.
Result<std::vector<TokenId>> drafted_tokens(const formats::ModelFile& file, const ArchSpec& spec);

}  // namespace candor::model
