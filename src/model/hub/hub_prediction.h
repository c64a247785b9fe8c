#pragma once
// Blocks for multi-token prediction under the names that checkpoints have for them. Some checkpoints go on counting
// blocks ("model.layers.61.eh_proj.weight" of 61); others name them apart ("mtp.fc.weight"), and are renamed here to
// what the former would have. Pure functions; any thread.

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/meta_list.h"
#include "model/hub/hub_form.h"

namespace candor::model {

// The name of a tensor of such a block becomes the one behind the model's n_layers blocks. How many of the blocks there
// must be; 0: it is no tensor of such a block, and keeps its name.
uint64_t put_behind(std::string& name, const HubForm& form, uint64_t n_layers);
// Back: the checkpoint's name of a tensor that may be of such a block.
std::string name_apart(const std::string& name, const HubForm& form, uint64_t n_layers);

// Of metadata that has no such blocks, or counts them too.
uint64_t count_layers(std::string_view prefix, const formats::MetaList& metadata);
// As GGUF files say how many of the blocks, which they count too, are for prediction.
void count_prediction(std::string_view prefix, uint64_t n_layers, uint64_t n_blocks, formats::MetaList& metadata);

}  // namespace candor::model
