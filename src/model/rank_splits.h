#pragma once
// What ranks that share a model keep of each of its weights, and where in the model the weight stands. Attention is shared out by heads, feed-forward and head of
// the model by outputs; nothing is split along a sum, so that every number is computed by one rank, as if it were
// alone. Latent attention and recurrent layers are computed by every rank, behind projections that are shared out.

#include <cstdint>

#include "backend/split.h"
#include "base/error.h"
#include "model/arch_spec.h"
#include "model/tensor_roles.h"

namespace candor::model {

backend::WeightSplit split_of(TensorRole role, const ArchSpec& spec, int32_t layer);

// What ranks put together in all layers, for a step of any number of rows; the embedding's rows and logits are beside
// them.
int32_t exchanges_of_layers(const ArchSpec& spec);

// As many as have at least a head each.
int32_t most_ranks(const ArchSpec& spec);
// Refuses more, by name.
Result<void> check_ranks(const ArchSpec& spec, int32_t n_ranks);

}  // namespace candor::model
