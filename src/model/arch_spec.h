#pragma once
// An architecture as data: what block() needs to know, per layer, comparable and printable (`candor show`).
// Letters: D = dim, F = ffn_dim, V = vocab.

#include <cstdint>
#include <string>
#include <vector>

#include "backend/op_specs.h"

namespace candor::model {

// Where the norms stand around attention and feed-forward.
enum class Wiring : uint8_t { kPreNorm };

struct FfnSpec {
  int32_t ffn_dim = 0;
  backend::GateKind gate = backend::GateKind::kSilu;
  bool operator==(const FfnSpec&) const = default;
};

struct BlockSpec {
  Wiring wiring = Wiring::kPreNorm;
  backend::NormSpec norm;
  backend::AttnSpec attn;
  FfnSpec ffn;
  float residual_scale = 1.0f;
  bool operator==(const BlockSpec&) const = default;
};

struct EmbedSpec {
  float scale = 1.0f;
  bool operator==(const EmbedSpec&) const = default;
};

struct HeadSpec {
  bool tied = false;   // the embedding table is the output projection
  float scale = 1.0f;  // of the logits
  bool operator==(const HeadSpec&) const = default;
};

struct ArchSpec {
  std::string family;  // "llama"
  int32_t dim = 0;
  int32_t vocab = 0;
  int32_t max_positions = 0;
  EmbedSpec embed;
  std::vector<BlockSpec> blocks;
  backend::NormSpec final_norm;
  HeadSpec head;
  bool operator==(const ArchSpec&) const = default;
};

}  // namespace candor::model
