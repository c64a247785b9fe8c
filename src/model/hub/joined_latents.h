#pragma once
// Lets old GGUF files of models with latent attention be read like newer ones. Old files hold the up-projection from
// the latent to keys and values as one tensor, "blk.N.attn_kv_b.weight"; newer ones, and the engine, have "attn_k_b"
// and "attn_v_b" (hub_latent.h).

#include <memory>

#include "base/error.h"
#include "formats/model_file.h"

namespace candor::model {

// The file itself where it has no such tensor, or the two as well. Copies: values as they are; keys, whose transposed
// rows no block format need divide, as they are or, of a block format, as the f32 numbers that they decode to.
Result<std::unique_ptr<formats::ModelFile>> with_split_latents(std::unique_ptr<formats::ModelFile> file);

}  // namespace candor::model
