#pragma once
// What each tensor role requires: its shape, by the architecture, how it is packed, and its position among a block's
// weights. Constant; any thread.

#include <cstdint>
#include <string_view>

#include "backend/op_specs.h"
#include "model/arch_spec.h"
#include "model/tensor_roles.h"
#include "model/weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// A number of rows or columns, by what it counts.
enum class Extent : uint8_t {
  kNone,
  kDim,
  kAttnInput,  // what q, k and v are projected from
  kJoinInput,  // what a row that begins with vectors is projected from
  kVocab,
  kHeadTokens,  // that have logits
  kPositionRows,
  kHeadCount,
  kHeads,
  kKvHeads,
  kQkvRows,
  kQNormed,  // what the norm of q runs over
  kKNormed,
  kFfn,
  kTwiceFfn,
  kExperts,
  kQueryRows,  // with the gates of heads
  kChannels,
  kTaps,
  kValueHeadCount,
  kTwiceValueHeads,
  kValueHeads,
  kValueDim,
  kSharedFfn,
  kOne,
  kOutHeads,  // what attention gives
  kQueryRank,
  kLatentWidth,
  kLatentRows,  // with the rotated part
  kLatentKeyDim,
  kLatentValueDim,
  kConvRows,  // of b, c and x
  kSsmRows,   // of the gate, x, b, c and dt
  kSsmWidth,
  kSsmChannelCount,
  kSsmTapCount,
  kSsmHeadCount,
  kSsmGroupCount,
  kSsmGroupWidth,
  kConvTapCount,
  kGateCount,  // of a delta rule's decay
  kDeltaKeys,
  kDeltaKeyDim,
  kLayerDim,
  kAllLayerDims,
  kTypeCount,
  kDistanceCount,  // of all heads
};

// Shape, packing and place of each role. Rows of kNone: a vector. Experts have one more, outer dimension, and so do
// projections of each head to or from a latent.
struct RoleTraits {
  TensorRole role;
  backend::WeightRole packing;
  Extent rows;
  Extent cols;
  Projection BlockWeights::*projection = nullptr;  // a vector is its bias
  Norm BlockWeights::*norm = nullptr;
  WeightPtr Norm::*part = nullptr;
  Projection ExpertWeights::*expert = nullptr;  // a vector is its bias
};

const RoleTraits& traits_of(TensorRole role);
// kNone: 1.
int64_t extent_of(Extent extent, const ArchSpec& spec, int32_t layer);
bool is_expert(TensorRole role);
// One matrix for each head.
bool is_by_head(TensorRole role);
// Blocks with experts have no dense feed-forward, and the other way round; one norm that serves both is attention's.
bool is_for(TensorRole role, const BlockSpec& block);
// The metadata key that an extent of a layer with a state comes from, without the family's prefix; "" of others.
std::string_view key_of(Extent extent, const BlockSpec& block);
// Of an expert's tensor: for one expert.
Shape expected_shape(const ArchSpec& spec, TensorRole role, int32_t layer);
// Of a tensor that holds all experts: they are its outer dimension.
Shape stacked_shape(const ArchSpec& spec, TensorRole role, int32_t layer);

}  // namespace candor::model
