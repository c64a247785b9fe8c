#include "model/placement.h"

#include <algorithm>

#include "model/families/families.h"
#include "model/model.h"
#include "model/role_traits.h"
#include "model/weights.h"

namespace candor::model {
namespace {

using backend::ModelPart;
using backend::Placement;
using backend::Side;

bool keeps_keys(const BlockSpec& block) {
  return block.has_attention && !block.shares_kv();
}

// Of a block of K/V, and of a slot; what another block keeps included.
struct BlockMemory {
  uint64_t kv_block_bytes = 0;
  uint64_t state_bytes = 0;
};
BlockMemory memory_of(const BlockSpec& block, KvType type) {
  BlockMemory memory;
  const backend::AttnSpec& attn = block.attn;
  if (block.has_attention) {
    const int64_t n_pages = attn.n_kv_heads * (attn.latent_dim > 0 ? 1 : 2);
    memory.kv_block_bytes = static_cast<uint64_t>(n_pages * backend::kv_page_bytes(attn.head_dim, type));
  }
  if (block.is_recurrent()) memory.state_bytes = static_cast<uint64_t>(block.state_floats()) * sizeof(float);
  return memory;
}

}  // namespace

backend::WeightPlace place_of(TensorRole role, const ArchSpec& spec, int32_t layer) {
  using enum TensorRole;
  if (is_expert(role)) return {ModelPart::kExperts, layer};
  switch (role) {
    case kEmbedding:
      return {spec.head.tied ? ModelPart::kOutput : ModelPart::kInput};
    case kPositions:
    case kTokenTypes:
    case kEmbedNorm:
    case kEmbedNormBias:
    case kLayerTable:
    case kLayerProjection:
    case kLayerNorm:
    case kJoin:
    case kJoinTokenNorm:
    case kJoinVectorNorm:
    case kVectorsNorm:
      return {ModelPart::kInput};
    case kFinalNorm:
    case kFinalNormBias:
    case kHead:
    case kHeadBias:
    case kWordDense:
    case kWordDenseBias:
    case kWordNorm:
    case kWordNormBias:
      return {ModelPart::kOutput};
    default:
      return {ModelPart::kBlock, layer};
  }
}

Placement place_parts(const ArchSpec& spec, std::span<const Side> blocks, std::span<const Side> experts, Side output) {
  Placement placement{.rest = Side::kHost, .input = Side::kHost, .output = output};
  placement.blocks.assign(blocks.begin(), blocks.end());
  placement.experts.assign(experts.begin(), experts.end());
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (keeps_keys(spec.blocks[i])) placement.kv_layers.push_back(blocks[i]);
    if (spec.blocks[i].is_recurrent()) placement.state_layers.push_back(blocks[i]);
  }
  if (!spec.keeps_kv) placement.kv_layers.assign(1, blocks.front());
  return placement;
}

Placement place_layers(const ArchSpec& spec, const LayerChoice& choice) {
  const auto n_blocks = static_cast<int32_t>(spec.blocks.size());
  std::vector<Side> blocks;
  std::vector<Side> experts;
  for (int32_t i = 0; i < n_blocks; ++i) {
    blocks.push_back(n_blocks - i < choice.n_device_layers ? Side::kDevice : Side::kHost);
    experts.push_back(i < choice.n_host_experts ? Side::kHost : blocks.back());
  }
  return place_parts(spec, blocks, experts, choice.n_device_layers > 0 ? Side::kDevice : Side::kHost);
}

Result<PartBytes> part_bytes(const formats::ModelFile& file, const backend::Backend& backend, int64_t n_ctx) {
  CANDOR_ASSIGN(const Family* family, family_of(file));
  CANDOR_ASSIGN(ArchSpec spec, read_arch(file));
  fit_context(spec, n_ctx);
  CANDOR_ASSIGN(const std::vector<Binding> bindings, bind_tensors(file, *family, spec));
  PartBytes parts;
  parts.blocks.resize(spec.blocks.size());
  parts.experts.resize(spec.blocks.size());
  for (const Binding& binding : bindings) {
    const backend::WeightRole packing = packing_of(binding, spec);
    CANDOR_ASSIGN(const uint64_t n_bytes, backend.upload_bytes(binding.view, packing));
    const backend::WeightPlace place = place_of(binding.role, spec, binding.layer);
    const auto block = static_cast<size_t>(place.block);
    if (packing == backend::WeightRole::kVector) {
      parts.vectors += n_bytes;
    } else if (place.part == ModelPart::kInput) {
      parts.input += n_bytes;
    } else if (place.part == ModelPart::kOutput) {
      parts.output += n_bytes;
    } else {
      (place.part == ModelPart::kExperts ? parts.experts : parts.blocks)[block] += n_bytes;
    }
  }
  return parts;
}

uint64_t bytes_on(Side side, const Placement& placement, const PartBytes& bytes) {
  uint64_t total = bytes.vectors;
  if (placement.input == side) total += bytes.input;
  if (placement.output == side) total += bytes.output;
  for (size_t i = 0; i < bytes.blocks.size(); ++i) {
    const auto block = static_cast<int32_t>(i);
    if (placement.of({ModelPart::kBlock, block}) == side) total += bytes.blocks[i];
    if (placement.of({ModelPart::kExperts, block}) == side) total += bytes.experts[i];
  }
  return total;
}

PartMemory part_memory(const ArchSpec& spec, KvType type, backend::KvSize size, int64_t n_past) {
  PartMemory all;
  for (const BlockSpec& block : spec.blocks) {
    const BlockMemory memory = memory_of(block, type);
    const auto n_kept = keeps_keys(block) ? static_cast<uint64_t>(size.n_blocks) : 0;
    const int64_t window = block.attn.window_tokens > 0 ? block.attn.window_tokens : block.attn.chunk_tokens;
    const auto n_seen = static_cast<double>(window > 0 ? std::min(n_past, window) : n_past);
    all.blocks.push_back(n_kept * memory.kv_block_bytes + static_cast<uint64_t>(size.n_states) * memory.state_bytes);
    all.reads.push_back(static_cast<double>(memory.kv_block_bytes) / backend::kBlockTokens * n_seen +
                        static_cast<double>(memory.state_bytes));
    if (block.has_attention) {
      const uint64_t head = memory.kv_block_bytes / static_cast<uint64_t>(block.attn.n_kv_heads);
      all.padding = std::max(all.padding, head * static_cast<uint64_t>(size.n_blocks));
    }
  }
  return all;
}

}  // namespace candor::model
