#pragma once
// The roles of tensors in a transformer (embedding, Q, K, V, norms and so on), whatever a file calls them.

#include <cstdint>
#include <string_view>

namespace candor::model {

enum class TensorRole : uint8_t {
  kEmbedding,
  kPositions,
  kEmbedNorm,
  kEmbedNormBias,
  kFinalNorm,
  kFinalNormBias,
  kHead,
  kHeadBias,
  kAttnNorm,
  kAttnNormBias,
  kAttnPostNorm,
  kQ,
  kQBias,
  kK,
  kKBias,
  kV,
  kVBias,
  kAttnOut,
  kAttnOutBias,
  kSinks,
  kQNorm,
  kKNorm,
  kFfnNorm,
  kFfnNormBias,
  kFfnPostNorm,
  kGate,
  kGateBias,
  kUp,
  kUpBias,
  kDown,
  kDownBias,
  kRouter,
  kRouterBias,
  kExpertGate,
  kExpertGateBias,
  kExpertUp,
  kExpertUpBias,
  kExpertDown,
  kExpertDownBias,
  kQkv,  // rows of q, then k, then v
  kQkvBias,
  kGateUp,  // rows of gate, then up
  kDeltaQkv,
  kDeltaGate,
  kDeltaAlpha,
  kDeltaBeta,
  kDeltaBetaAlpha,  // of each key head the rows of beta, then of alpha
  kDeltaTaps,
  kDeltaRate,
  kDeltaBias,
  kDeltaNorm,
  kDeltaOut,
  kSharedRouter,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kChoiceBias,  // of experts, for the choice alone
  kQueryDown,
  kQueryNorm,
  kQueryUp,
  kLatent,  // rows of the latent, then of the rotated part
  kLatentNorm,
  kLatentKey,    // of each head: [latent, head], the transposed projection of its key
  kLatentValue,  // of each head: [value, latent]
  kConvIn,       // rows of b, then c, then x
  kConvB,
  kConvC,
  kConvX,
  kConvTaps,
  kConvOut,
  kSsmIn,  // rows of the gate, then x, b and c, then dt
  kSsmGate,
  kSsmChannels,
  kSsmStep,
  kSsmTaps,
  kSsmTapsBias,
  kSsmRate,
  kSsmSkip,
  kSsmStepBias,
  kSsmNorm,
  kSsmOut,
  kDeltaQ,  // of delta rules whose channels have gates of their own
  kDeltaK,
  kDeltaV,
  kDeltaQTaps,
  kDeltaKTaps,
  kDeltaVTaps,
  kDeltaAlphaDown,
  kDeltaAlphaUp,
  kDeltaGateDown,
  kDeltaGateUp,
  kLayerTable,       // what each token has for each block
  kLayerProjection,  // the same out of the embedding
  kLayerNorm,
  kLayerGate,
  kLayerOut,
  kLayerPostNorm,
  kOutScale,
  kSharedPostNorm,
  kExpertNorm,
  kExpertPostNorm,
  kRouterGain,
  kExpertScales,
  kQNormBias,
  kKNormBias,
  kAttnGate,
  kExpertGateUp,  // of each expert the rows of gate, then up
  kTokenTypes,
  kAttnPostNormBias,
  kFfnPostNormBias,
  kDistanceBias,  // of each head a number for each distance between two tokens, from the farthest before on
  kWordDense,     // between hidden states and the head of models that guess masked words
  kWordDenseBias,
  kWordNorm,
  kWordNormBias,
  kMixBias,  // of what all experts give together
  kJoin,     // from an embedding and a vector to where a row begins
  kJoinTokenNorm,
  kJoinVectorNorm,
  kVectorsNorm,  // of all vectors of a row together
};
inline constexpr int kTensorRoles = 120;

enum class Presence : uint8_t { kRequired, kOptional };

// Of several rows of one role the first that is in the file counts.
struct TensorName {
  TensorRole role;
  // "*" stands for the number of the block. Of experts: one tensor for all, with a dimension more.
  std::string_view name;
  Presence presence = Presence::kRequired;
};

}  // namespace candor::model
