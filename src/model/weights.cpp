#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

#include "formats/quote.h"

namespace candor::model {
namespace {

using backend::WeightRole;

enum class Extent : uint8_t { kNone, kDim, kVocab, kHeads, kKvHeads, kFfn };

// Shape, packing and place of each role. Rows of kNone: a vector.
struct RoleTraits {
  TensorRole role;
  WeightRole packing;
  Extent rows;
  Extent cols;
  WeightPtr BlockWeights::*vector = nullptr;
  Projection BlockWeights::*projection = nullptr;
};

using enum TensorRole;
using enum Extent;
constexpr std::array<RoleTraits, kTensorRoles> kRoles = {{
    {kEmbedding, WeightRole::kEmbedding, kVocab, kDim},
    {kFinalNorm, WeightRole::kVector, kNone, kDim},
    {kHead, WeightRole::kLinear, kVocab, kDim},
    {kAttnNorm, WeightRole::kVector, kNone, kDim, &BlockWeights::attn_norm},
    {kQ, WeightRole::kLinear, kHeads, kDim, nullptr, &BlockWeights::q},
    {kQBias, WeightRole::kVector, kNone, kHeads, nullptr, &BlockWeights::q},
    {kK, WeightRole::kLinear, kKvHeads, kDim, nullptr, &BlockWeights::k},
    {kKBias, WeightRole::kVector, kNone, kKvHeads, nullptr, &BlockWeights::k},
    {kV, WeightRole::kLinear, kKvHeads, kDim, nullptr, &BlockWeights::v},
    {kVBias, WeightRole::kVector, kNone, kKvHeads, nullptr, &BlockWeights::v},
    {kAttnOut, WeightRole::kLinear, kDim, kHeads, nullptr, &BlockWeights::attn_out},
    {kAttnOutBias, WeightRole::kVector, kNone, kDim, nullptr, &BlockWeights::attn_out},
    {kFfnNorm, WeightRole::kVector, kNone, kDim, &BlockWeights::ffn_norm},
    {kGate, WeightRole::kLinear, kFfn, kDim, nullptr, &BlockWeights::gate},
    {kGateBias, WeightRole::kVector, kNone, kFfn, nullptr, &BlockWeights::gate},
    {kUp, WeightRole::kLinear, kFfn, kDim, nullptr, &BlockWeights::up},
    {kUpBias, WeightRole::kVector, kNone, kFfn, nullptr, &BlockWeights::up},
    {kDown, WeightRole::kLinear, kDim, kFfn, nullptr, &BlockWeights::down},
    {kDownBias, WeightRole::kVector, kNone, kDim, nullptr, &BlockWeights::down},
}};

const RoleTraits& traits_of(TensorRole role) {
  return kRoles[static_cast<size_t>(role)];
}

int64_t extent_of(Extent extent, const ArchSpec& spec, int32_t layer) {
  const BlockSpec& block = spec.blocks[static_cast<size_t>(layer)];
  switch (extent) {
    case kNone:
      return 1;
    case kDim:
      return spec.dim;
    case kVocab:
      return spec.vocab;
    case kHeads:
      return int64_t{block.attn.n_heads} * block.attn.head_dim;
    case kKvHeads:
      return int64_t{block.attn.n_kv_heads} * block.attn.head_dim;
    case kFfn:
      return block.ffn.ffn_dim;
  }
  return 0;
}

Shape expected_shape(const ArchSpec& spec, TensorRole role, int32_t layer) {
  const RoleTraits& traits = traits_of(role);
  const int64_t cols = extent_of(traits.cols, spec, layer);
  if (traits.rows == kNone) return {1, {cols}};
  return {2, {extent_of(traits.rows, spec, layer), cols}};
}

std::string name_in_block(std::string_view pattern, int32_t layer) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, star), layer, pattern.substr(star + 1));
}

bool is_block_tensor(const TensorName& name) {
  return name.name.find('*') != std::string_view::npos;
}

// Adds the tensor to `bindings` if it is there and has the right shape.
Expected<void> bind_one(const formats::ModelFile& file, const ArchSpec& spec, const TensorName& row, int32_t layer,
                        std::vector<Binding>& bindings) {
  const std::string name = name_in_block(row.name, layer);
  const Shape expected = expected_shape(spec, row.role, layer);
  const TensorView* tensor = file.find(name);
  if (tensor == nullptr) {
    if (row.presence == Presence::kOptional) return {};
    return fail(ErrorKind::kInvalidInput, fmt::format("tensor \"{}\" is missing; expected shape {}: the file is "
                                                      "incomplete, or a part of it is missing",
                                                      name, to_string(expected)));
  }
  if (tensor->shape != expected) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor \"{}\": shape {}; expected {}: the file's metadata and its tensors contradict each "
                            "other",
                            name, to_string(tensor->shape), to_string(expected)));
  }
  bindings.push_back({tensor, row.role, layer});
  return {};
}

Expected<void> refuse_unbound(const formats::ModelFile& file, const Family& family, const ArchSpec& spec,
                              const std::vector<Binding>& bindings) {
  std::unordered_set<std::string> known;
  for (const Binding& binding : bindings) known.emplace(binding.tensor->name);
  for (const std::string_view pattern : family.ignored) {
    for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
      known.insert(name_in_block(pattern, static_cast<int32_t>(layer)));
    }
  }
  for (const TensorView& tensor : file.tensors()) {
    if (known.contains(std::string(tensor.name))) continue;
    return fail(ErrorKind::kUnsupported,
                fmt::format("tensor {} {} has no place in a {} model of {} blocks: the model differs from what its "
                            "architecture says",
                            formats::in_quotes(tensor.name), to_string(tensor.shape), family.name, spec.blocks.size()));
  }
  return {};
}

Expected<void> check_finite(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.row_elements()));
  decode_row(tensor, 0, values.data());
  const auto odd = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (odd == values.end()) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor \"{}\": element {} is {}; expected finite numbers: the file is damaged", tensor.name,
                          odd - values.begin(), *odd));
}

WeightPtr& place_of(ModelWeights& weights, const Binding& binding) {
  if (binding.role == kEmbedding) return weights.embedding;
  if (binding.role == kFinalNorm) return weights.final_norm;
  if (binding.role == kHead) return weights.head;
  const RoleTraits& traits = traits_of(binding.role);
  BlockWeights& block = weights.blocks[static_cast<size_t>(binding.layer)];
  if (traits.vector != nullptr) return block.*traits.vector;
  Projection& projection = block.*traits.projection;
  return traits.packing == WeightRole::kVector ? projection.bias : projection.weight;
}

WeightRole packing_of(const Binding& binding, const ArchSpec& spec) {
  const bool is_also_head = binding.role == kEmbedding && spec.head.tied;
  return is_also_head ? WeightRole::kEmbeddingAndLinear : traits_of(binding.role).packing;
}

}  // namespace

Expected<std::vector<Binding>> bind_tensors(const formats::ModelFile& file, const Family& family,
                                            const ArchSpec& spec) {
  std::vector<Binding> bindings;
  for (const TensorName& row : family.tensors) {
    const size_t n_layers = is_block_tensor(row) ? spec.blocks.size() : 1;
    for (size_t layer = 0; layer < n_layers; ++layer) {
      CANDOR_TRY(bind_one(file, spec, row, static_cast<int32_t>(layer), bindings));
    }
  }
  CANDOR_TRY(refuse_unbound(file, family, spec, bindings));
  std::ranges::sort(bindings, {}, [](const Binding& binding) { return binding.tensor; });
  return bindings;
}

Expected<std::unique_ptr<ModelWeights>> upload_weights(std::span<const Binding> bindings, const ArchSpec& spec,
                                                       backend::Backend& backend, const LoadOptions& options) {
  auto weights = std::make_unique<ModelWeights>();
  weights->blocks.resize(spec.blocks.size());
  uint64_t total_bytes = 0;
  for (const Binding& binding : bindings) total_bytes += binding.tensor->n_bytes;
  uint64_t done_bytes = 0;
  for (const Binding& binding : bindings) {
    const WeightRole packing = packing_of(binding, spec);
    CANDOR_ASSIGN(WeightPtr weight, backend.upload(*binding.tensor, packing));
    if (packing == WeightRole::kVector) CANDOR_TRY(check_finite(*binding.tensor));
    place_of(*weights, binding) = std::move(weight);
    done_bytes += binding.tensor->n_bytes;
    if (options.progress) options.progress(done_bytes, total_bytes);
  }
  return weights;
}

Expected<uint64_t> upload_bytes(std::span<const Binding> bindings, const ArchSpec& spec,
                                const backend::Backend& backend) {
  uint64_t total = 0;
  for (const Binding& binding : bindings) {
    CANDOR_ASSIGN(const uint64_t n_bytes, backend.upload_bytes(*binding.tensor, packing_of(binding, spec)));
    total += n_bytes;
  }
  return total;
}

size_t weight_bytes(const ModelWeights& weights) {
  const auto bytes_of = [](const WeightPtr& weight) { return weight ? weight->n_bytes() : size_t{0}; };
  size_t total = bytes_of(weights.embedding) + bytes_of(weights.final_norm) + bytes_of(weights.head);
  for (const BlockWeights& block : weights.blocks) {
    total += bytes_of(block.attn_norm) + bytes_of(block.ffn_norm);
    for (const Projection* projection :
         {&block.q, &block.k, &block.v, &block.attn_out, &block.gate, &block.up, &block.down}) {
      total += bytes_of(projection->weight) + bytes_of(projection->bias);
    }
  }
  return total;
}

}  // namespace candor::model
