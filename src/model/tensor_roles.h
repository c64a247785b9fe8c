#pragma once
// What a tensor is to a transformer, apart from what a file calls it.

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
  kExpertGate,
  kExpertUp,
  kExpertDown,
  kQkv,  // rows of q, then k, then v
  kQkvBias,
  kGateUp,  // rows of gate, then up
};
inline constexpr int kTensorRoles = 36;

enum class Presence : uint8_t { kRequired, kOptional };

struct TensorName {
  TensorRole role;
  // "*" stands for the number of the block. Of experts: one tensor of three dimensions.
  std::string_view name;
  Presence presence = Presence::kRequired;
};

}  // namespace candor::model
