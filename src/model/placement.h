#pragma once
// The parts of a model, what each of them takes, and which of them a device has whose memory may not hold them all.
// What is where never changes a number, only how long a step takes. Pure functions; any thread.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/placement.h"
#include "base/error.h"
#include "formats/model_file.h"
#include "model/arch_spec.h"
#include "model/tensor_roles.h"

namespace candor::model {

// The place of a tensor; what a tied embedding is part of is the output.
backend::WeightPlace place_of(TensorRole role, const ArchSpec& spec, int32_t layer);

// Layers are counted from the end: the output is one, before it each block. Of blocks that the device has, experts may
// stay on the host: those of the model's first n_host_experts blocks.
struct LayerChoice {
  int32_t n_device_layers = std::numeric_limits<int32_t>::max();
  int32_t n_host_experts = 0;
};
// Tables of tokens and positions stay on the host, which looks rows up in them.
backend::Placement place_layers(const ArchSpec& spec, const LayerChoice& choice);
// The same of any choice of parts: the memory of each block's layers goes to its side. blocks, experts: [blocks].
backend::Placement place_parts(const ArchSpec& spec, std::span<const backend::Side> blocks,
                               std::span<const backend::Side> experts, backend::Side output);

// Bytes of each part, as a backend has them.
struct PartBytes {
  uint64_t vectors = 0;  // of all parts, and on both sides
  uint64_t input = 0;
  uint64_t output = 0;
  std::vector<uint64_t> blocks{};   // [blocks]
  std::vector<uint64_t> experts{};  // [blocks]
};
// Refuses what plan_model() refuses.
Result<PartBytes> part_bytes(const formats::ModelFile& file, const backend::Backend& backend, int64_t n_ctx = 0);
// Those of one side. bytes: as that side's backend has them.
uint64_t bytes_on(backend::Side side, const backend::Placement& placement, const PartBytes& bytes);

// K/V and recurrent states in a store.
struct PartMemory {
  std::vector<uint64_t> blocks{};  // [blocks]: bytes
  std::vector<double> reads{};     // [blocks]: bytes that a row reads behind n_past tokens
  uint64_t padding = 0;            // that the store of a side may have besides (backend::kv_pool_block_bytes)
};
PartMemory part_memory(const ArchSpec& spec, KvType type, backend::KvSize size, int64_t n_past);

}  // namespace candor::model
