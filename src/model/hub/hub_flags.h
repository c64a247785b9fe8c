#pragma once
// Settings of config.json that say which tensors are there, against the tensors that are: neither is taken as a guess
// of the other.

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/model_file.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_form.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// Refuses a tensor that HubForm::flags says is not there.
Result<void> check_flags(const HubConfig& config, const HubForm& form, std::string_view tensor);

// Refuses a folder whose first block lacks a tensor that they say is there. find: by names in the checkpoint.
Result<void> check_flagged(const HubConfig& config, const HubForm& form,
                           const std::function<const TensorView*(const std::string& name)>& find);

// A head of its own where "tie_word_embeddings" is false; as many rows of the embedding as "vocab_size" says.
Result<void> check_head(const HubConfig& config, const formats::ModelFile& file, const std::string& folder);

}  // namespace candor::model
