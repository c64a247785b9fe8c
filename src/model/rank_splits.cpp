#include "model/rank_splits.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "model/placement.h"

namespace candor::model {
namespace {

using backend::SplitKind;
using backend::WeightSplit;
using enum TensorRole;

bool has_own_heads(const BlockSpec& block) {
  return block.has_attention && !block.has_latent();
}

// A norm over all heads together reads all of them: K is then computed by every rank, which is little where there are
// fewer K/V heads, and Q is put together.
SplitKind kind_of_attention(TensorRole role, const BlockSpec& block) {
  switch (role) {
    case kQ:
    case kQBias:
    case kAttnGate:
    case kSinks:
    case kDistanceBias:
      return SplitKind::kQueryHeads;
    case kQNorm:
    case kQNormBias:
      return block.qk_norm == QkNorm::kOwnHeads ? SplitKind::kQueryHeads : SplitKind::kWhole;
    case kKNorm:
    case kKNormBias:
      return block.qk_norm == QkNorm::kOwnHeads ? SplitKind::kKvHeads : SplitKind::kWhole;
    case kK:
    case kKBias:
      return block.qk_norm == QkNorm::kWhole ? SplitKind::kWhole : SplitKind::kKvHeads;
    case kV:
    case kVBias:
      return SplitKind::kKvHeads;
    default:
      return SplitKind::kWhole;
  }
}

SplitKind kind_of_outputs(TensorRole role) {
  switch (role) {
    case kEmbedding:
    case kPositions:
    case kTokenTypes:
    case kLayerTable:
      return SplitKind::kFirst;
    case kHead:
    case kHeadBias:
    case kAttnOut:
    case kAttnOutBias:
    case kGate:
    case kGateBias:
    case kUp:
    case kUpBias:
    case kDown:
    case kDownBias:
    case kExpertGate:
    case kExpertGateBias:
    case kExpertUp:
    case kExpertUpBias:
    case kExpertDown:
    case kExpertDownBias:
    case kDeltaQkv:
    case kDeltaGate:
    case kDeltaOut:
    case kDeltaQ:
    case kDeltaK:
    case kDeltaV:
    case kDeltaAlphaUp:
    case kDeltaGateUp:
    case kConvB:
    case kConvC:
    case kConvX:
    case kConvOut:
    case kSsmGate:
    case kSsmChannels:
    case kSsmOut:
    case kSharedGate:
    case kSharedUp:
    case kSharedDown:
    case kQueryUp:
    case kJoin:
      return SplitKind::kOutputs;
    default:
      return SplitKind::kWhole;
  }
}

// What a layer that keeps a state reads whole; the shared expert's rows, which go with those of the others; queries of
// a latent, whose pieces are read whole; and outputs, of which some blocks add several to the stream.
bool goes_along(TensorRole role, const BlockSpec& block) {
  constexpr TensorRole kRoles[] = {kDeltaQkv,    kDeltaGate, kDeltaQ, kDeltaK,  kDeltaV,      kDeltaAlphaUp,
                                   kDeltaGateUp, kConvC,     kConvX,  kSsmGate, kSsmChannels, kSharedUp,
                                   kQueryUp,     kAttnOut,   kSsmOut, kDown};
  if (role == kSharedDown || role == kExpertDown) return block.ffn.has_parted_norms;
  return std::ranges::find(kRoles, role) != std::end(kRoles);
}

// Heads and output; of whole rows of queries that are normed, these as well.
int32_t mixer_exchanges(const BlockSpec& block) {
  if (!block.has_mixer()) return 0;
  if (block.has_attention && block.is_recurrent()) return 3;
  return block.has_attention && !block.has_latent() && block.qk_norm == QkNorm::kWhole ? 3 : 2;
}

WeightSplit split_by_ranks(TensorRole role, const ArchSpec& spec, int32_t layer) {
  const BlockSpec& block = spec.blocks[static_cast<size_t>(layer)];
  const backend::HeadCounts heads{block.attn.n_heads, block.attn.n_kv_heads};
  if (const SplitKind kind = kind_of_outputs(role); kind != SplitKind::kWhole) {
    return {.kind = kind, .heads = heads, .goes_along = goes_along(role, block)};
  }
  const bool is_read = role == kChoiceBias || role == kExpertScales || role == kMixBias;
  if (!has_own_heads(block)) {
    const bool is_query = role == kQ;
    return {is_query ? SplitKind::kOutputs : SplitKind::kWhole, heads, is_read, is_query};
  }
  return {kind_of_attention(role, block), heads, is_read};
}

}  // namespace

WeightSplit split_of(TensorRole role, const ArchSpec& spec, int32_t layer) {
  WeightSplit split = split_by_ranks(role, spec, layer);
  split.place = place_of(role, spec, layer);
  return split;
}

int32_t most_ranks(const ArchSpec& spec) {
  int32_t most = backend::kMostRanks;
  for (const BlockSpec& block : spec.blocks) {
    if (has_own_heads(block)) most = std::min(most, block.attn.n_heads);
  }
  return most;
}

int32_t exchanges_of_layers(const ArchSpec& spec) {
  int32_t n = 0;
  for (const BlockSpec& block : spec.blocks) {
    n += mixer_exchanges(block) + (block.has_ffn() ? 2 : 0) - (is_parallel(block.wiring) ? 1 : 0);
  }
  return n;
}

Result<void> check_ranks(const ArchSpec& spec, int32_t n_ranks) {
  const int32_t most = most_ranks(spec);
  if (n_ranks <= most) return {};
  return fail(ErrorKind::kInvalidInput,
              std::to_string(n_ranks) + " ranks were asked for, and this model of family " + spec.family + " can use " +
                  std::to_string(most) + ": each needs a head of its attention",
              "ranks");
}

}  // namespace candor::model
