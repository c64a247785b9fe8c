#pragma once
// What a tensor is to a transformer, apart from what a file calls it.

#include <cstdint>
#include <string_view>

namespace candor::model {

enum class TensorRole : uint8_t {
  kEmbedding,
  kFinalNorm,
  kHead,
  kAttnNorm,
  kQ,
  kQBias,
  kK,
  kKBias,
  kV,
  kVBias,
  kAttnOut,
  kAttnOutBias,
  kFfnNorm,
  kGate,
  kGateBias,
  kUp,
  kUpBias,
  kDown,
  kDownBias,
};
inline constexpr int kTensorRoles = 19;

enum class Presence : uint8_t { kRequired, kOptional };

struct TensorName {
  TensorRole role;
  std::string_view name;  // "*" stands for the number of the block
  Presence presence = Presence::kRequired;
};

}  // namespace candor::model
