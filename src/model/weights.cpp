#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "backend/op_specs.h"
#include "formats/quote.h"
#include "tensor/dtype.h"

namespace candor::model {
namespace {

using backend::WeightRole;

enum class Extent : uint8_t {
  kNone,
  kDim,
  kVocab,
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
};

// Shape, packing and place of each role. Rows of kNone: a vector. Experts have one more, outer dimension.
struct RoleTraits {
  TensorRole role;
  WeightRole packing;
  Extent rows;
  Extent cols;
  Projection BlockWeights::*projection = nullptr;  // a vector is its bias
  Norm BlockWeights::*norm = nullptr;
  WeightPtr Norm::*part = nullptr;
  Projection ExpertWeights::*expert = nullptr;  // a vector is its bias
};

using enum TensorRole;
using enum Extent;
using B = BlockWeights;
constexpr auto kVector = WeightRole::kVector;
constexpr auto kMatrix = WeightRole::kLinear;
constexpr auto kGain = &Norm::gain;
constexpr auto kBias = &Norm::bias;
constexpr std::array<RoleTraits, kTensorRoles> kRoles = {{
    {kEmbedding, WeightRole::kEmbedding, kVocab, kDim},
    {kPositions, WeightRole::kEmbedding, kPositionRows, kDim},
    {kEmbedNorm, kVector, kNone, kDim},
    {kEmbedNormBias, kVector, kNone, kDim},
    {kFinalNorm, kVector, kNone, kDim},
    {kFinalNormBias, kVector, kNone, kDim},
    {kHead, kMatrix, kVocab, kDim},
    {kHeadBias, kVector, kNone, kVocab},
    {kAttnNorm, kVector, kNone, kDim, nullptr, &B::attn_norm, kGain},
    {kAttnNormBias, kVector, kNone, kDim, nullptr, &B::attn_norm, kBias},
    {kAttnPostNorm, kVector, kNone, kDim, nullptr, &B::attn_post_norm, kGain},
    {kQ, kMatrix, kQueryRows, kDim, &B::q},
    {kQBias, kVector, kNone, kHeads, &B::q},
    {kK, kMatrix, kKvHeads, kDim, &B::k},
    {kKBias, kVector, kNone, kKvHeads, &B::k},
    {kV, kMatrix, kKvHeads, kDim, &B::v},
    {kVBias, kVector, kNone, kKvHeads, &B::v},
    {kAttnOut, kMatrix, kDim, kHeads, &B::attn_out},
    {kAttnOutBias, kVector, kNone, kDim, &B::attn_out},
    {kSinks, kVector, kNone, kHeadCount},
    {kQNorm, kVector, kNone, kQNormed, nullptr, &B::q_norm, kGain},
    {kKNorm, kVector, kNone, kKNormed, nullptr, &B::k_norm, kGain},
    {kFfnNorm, kVector, kNone, kDim, nullptr, &B::ffn_norm, kGain},
    {kFfnNormBias, kVector, kNone, kDim, nullptr, &B::ffn_norm, kBias},
    {kFfnPostNorm, kVector, kNone, kDim, nullptr, &B::ffn_post_norm, kGain},
    {kGate, kMatrix, kFfn, kDim, &B::gate},
    {kGateBias, kVector, kNone, kFfn, &B::gate},
    {kUp, kMatrix, kFfn, kDim, &B::up},
    {kUpBias, kVector, kNone, kFfn, &B::up},
    {kDown, kMatrix, kDim, kFfn, &B::down},
    {kDownBias, kVector, kNone, kDim, &B::down},
    {kRouter, kMatrix, kExperts, kDim, &B::router},
    {kRouterBias, kVector, kNone, kExperts, &B::router},
    {kExpertGate, kMatrix, kFfn, kDim, nullptr, nullptr, nullptr, &ExpertWeights::gate},
    {kExpertGateBias, kVector, kNone, kFfn, nullptr, nullptr, nullptr, &ExpertWeights::gate},
    {kExpertUp, kMatrix, kFfn, kDim, nullptr, nullptr, nullptr, &ExpertWeights::up},
    {kExpertUpBias, kVector, kNone, kFfn, nullptr, nullptr, nullptr, &ExpertWeights::up},
    {kExpertDown, kMatrix, kDim, kFfn, nullptr, nullptr, nullptr, &ExpertWeights::down},
    {kExpertDownBias, kVector, kNone, kDim, nullptr, nullptr, nullptr, &ExpertWeights::down},
    {kQkv, kMatrix, kQkvRows, kDim},
    {kQkvBias, kVector, kNone, kQkvRows},
    {kGateUp, kMatrix, kTwiceFfn, kDim},
    {kDeltaQkv, kMatrix, kChannels, kDim, &B::delta_qkv},
    {kDeltaGate, kMatrix, kValueHeads, kDim, &B::delta_gate},
    {kDeltaAlpha, kMatrix, kValueHeadCount, kDim, &B::delta_alpha},
    {kDeltaBeta, kMatrix, kValueHeadCount, kDim, &B::delta_beta},
    {kDeltaBetaAlpha, kMatrix, kTwiceValueHeads, kDim, &B::delta_beta_alpha},
    {kDeltaTaps, kVector, kChannels, kTaps},
    {kDeltaRate, kVector, kNone, kValueHeadCount},
    {kDeltaBias, kVector, kNone, kValueHeadCount},
    {kDeltaNorm, kVector, kNone, kValueDim, nullptr, &B::delta_norm, kGain},
    {kDeltaOut, kMatrix, kDim, kValueHeads, &B::delta_out},
    {kSharedRouter, kMatrix, kOne, kDim, &B::shared_router},
    {kSharedGate, kMatrix, kSharedFfn, kDim, &B::shared_gate},
    {kSharedUp, kMatrix, kSharedFfn, kDim, &B::shared_up},
    {kSharedDown, kMatrix, kDim, kSharedFfn, &B::shared_down},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kRoles.size(); ++i) {
    if (static_cast<size_t>(kRoles[i].role) != i) return false;
  }
  return true;
}
static_assert(in_order());

const RoleTraits& traits_of(TensorRole role) {
  return kRoles[static_cast<size_t>(role)];
}

int64_t extent_of(Extent extent, const ArchSpec& spec, int32_t layer) {
  const BlockSpec& block = spec.blocks[static_cast<size_t>(layer)];
  const int64_t head_dim = block.attn.head_dim;
  const int64_t heads = block.attn.n_heads * head_dim;
  const int64_t kv_heads = block.attn.n_kv_heads * head_dim;
  switch (extent) {
    case kNone:
      return 1;
    case kDim:
      return spec.dim;
    case kVocab:
      return spec.vocab;
    case kPositionRows:
      return spec.max_positions;
    case kHeadCount:
      return block.attn.n_heads;
    case kHeads:
      return heads;
    case kKvHeads:
      return kv_heads;
    case kQkvRows:
      return heads + 2 * kv_heads;
    case kQNormed:
      return block.qk_norm == QkNorm::kWhole ? heads : head_dim;
    case kKNormed:
      return block.qk_norm == QkNorm::kWhole ? kv_heads : head_dim;
    case kFfn:
      return block.ffn.ffn_dim;
    case kTwiceFfn:
      return int64_t{2} * block.ffn.ffn_dim;
    case kExperts:
      return block.ffn.moe.n_experts;
    case kQueryRows:
      return block.has_head_gate ? 2 * heads : heads;
    case kChannels:
      return block.delta.n_channels();
    case kTaps:
      return block.delta.n_taps;
    case kValueHeadCount:
      return block.delta.n_v_heads;
    case kTwiceValueHeads:
      return int64_t{2} * block.delta.n_v_heads;
    case kValueHeads:
      return block.delta.v_width();
    case kValueDim:
      return block.delta.v_dim;
    case kSharedFfn:
      return block.ffn.shared_dim;
    case kOne:
      return 1;
  }
  return 0;
}

bool is_expert(TensorRole role) {
  return traits_of(role).expert != nullptr;
}

// Of experts: of one.
Shape expected_shape(const ArchSpec& spec, TensorRole role, int32_t layer) {
  const RoleTraits& traits = traits_of(role);
  const int64_t cols = extent_of(traits.cols, spec, layer);
  if (traits.rows == kNone) return {1, {cols}};
  return {2, {extent_of(traits.rows, spec, layer), cols}};
}

Shape stacked_shape(const ArchSpec& spec, TensorRole role, int32_t layer) {
  const Shape one = expected_shape(spec, role, layer);
  const int64_t n_experts = extent_of(kExperts, spec, layer);
  return one.n_dims == 1 ? Shape{2, {n_experts, one[0]}} : Shape{3, {n_experts, one[0], one[1]}};
}

std::string name_in_block(std::string_view pattern, int32_t layer) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, star), layer, pattern.substr(star + 1));
}

// Blocks with experts have no dense feed-forward, and the other way round; one norm that serves both is attention's.
bool is_for(TensorRole role, const BlockSpec& block) {
  const bool is_ffn_norm = role == kFfnNorm || role == kFfnNormBias;
  if (is_ffn_norm && block.wiring == Wiring::kParallel) return false;
  const bool is_attention = role >= kQ && role <= kKNorm;
  if (is_attention || role == kQkv || role == kQkvBias) return !block.is_recurrent();
  if (role >= kDeltaQkv && role <= kDeltaOut) return block.is_recurrent();
  if (role >= kSharedRouter && role <= kSharedDown) return block.ffn.shared_dim > 0;
  if (role == kGate || role == kUp || role == kDown || role == kGateUp) return !block.ffn.is_moe();
  if (role == kRouter || role == kRouterBias || is_expert(role)) return block.ffn.is_moe();
  return true;
}

bool is_block_tensor(const TensorName& name) {
  return name.name.find('*') != std::string_view::npos;
}

Error missing(const std::string& name, const Shape& expected) {
  return fail(ErrorKind::kInvalidInput, fmt::format("tensor \"{}\" is missing; expected shape {}: the file is "
                                                    "incomplete, or a part of it is missing",
                                                    name, to_string(expected)));
}

Result<void> check_shape(const TensorView& tensor, const Shape& expected) {
  if (tensor.shape == expected) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor \"{}\": shape {}; expected {}: the file's metadata and its tensors contradict each "
                          "other",
                          tensor.name, to_string(tensor.shape), to_string(expected)));
}

// Rows [first, first + n) of a matrix, or elements of a vector.
TensorView piece_of(const TensorView& tensor, int64_t first, int64_t n) {
  TensorView piece = tensor;
  const size_t unit =
      tensor.shape.n_dims == 1 ? static_cast<size_t>(dtype_info(tensor.dtype).block_bytes) : tensor.row_bytes();
  piece.shape.dims[0] = n;
  piece.data = tensor.data + static_cast<size_t>(first) * unit;
  piece.n_bytes = static_cast<size_t>(n) * unit;
  return piece;
}

// What one expert has of a tensor for all. shape: of one.
TensorView expert_of(const TensorView& tensor, const Shape& shape, int32_t expert) {
  TensorView piece = tensor;
  piece.shape = shape;
  piece.n_bytes = tensor.n_bytes / static_cast<size_t>(tensor.shape[0]);
  piece.data = tensor.data + static_cast<size_t>(expert) * piece.n_bytes;
  return piece;
}

Result<void> check_sibling(const TensorView& tensor, const TensorView& first) {
  if (tensor.dtype == first.dtype) return {};
  return fail(
      ErrorKind::kInvalidInput,
      fmt::format("tensor \"{}\": type {}; expected {}, as tensor \"{}\" has: experts of one block have one type",
                  tensor.name, dtype_info(tensor.dtype).name, dtype_info(first.dtype).name, first.name));
}

// Binds a tensor of the file: as it is, or the parts that it joins.
class Binder {
 public:
  Binder(const formats::ModelFile& file, const ArchSpec& spec) : file_(file), spec_(spec) {}

  Result<void> bind(const TensorName& row, int32_t layer) {
    if (bound_.contains({row.role, layer})) return {};
    if (is_expert(row.role)) return bind_experts(row, layer);
    const std::string name = name_in_block(row.name, layer);
    const Shape expected = expected_shape(spec_, row.role, layer);
    const TensorView* tensor = file_.find(name);
    if (tensor == nullptr) {
      if (row.presence == Presence::kOptional) return {};
      return missing(name, expected);
    }
    CANDOR_TRY(check_shape(*tensor, expected));
    bound_.emplace(row.role, layer);
    if (row.role == kQkv) return bind_pieces(*tensor, layer, {{kQ, kHeads}, {kK, kKvHeads}, {kV, kKvHeads}});
    if (row.role == kQkvBias) {
      return bind_pieces(*tensor, layer, {{kQBias, kHeads}, {kKBias, kKvHeads}, {kVBias, kKvHeads}});
    }
    if (row.role == kGateUp) return bind_pieces(*tensor, layer, {{kGate, kFfn}, {kUp, kFfn}});
    bindings_.push_back({*tensor, row.role, layer, 0});
    return {};
  }

  std::vector<Binding> take() { return std::move(bindings_); }

 private:
  struct Piece {
    TensorRole role;
    Extent rows;
  };

  Result<void> bind_pieces(const TensorView& tensor, int32_t layer, std::initializer_list<Piece> pieces) {
    if (tensor.shape.n_dims == 1 && dtype_info(tensor.dtype).block_elements != 1) {
      return fail(ErrorKind::kUnsupported, fmt::format("tensor \"{}\": type {} can't hold a vector; expected F32, F16 "
                                                       "or BF16",
                                                       tensor.name, dtype_info(tensor.dtype).name));
    }
    int64_t first = 0;
    for (const Piece& piece : pieces) {
      const int64_t n = extent_of(piece.rows, spec_, layer);
      bindings_.push_back({piece_of(tensor, first, n), piece.role, layer, 0});
      first += n;
    }
    return {};
  }

  // One tensor for all experts, or "blk.N.ffn_up.E.weight" where that would be "blk.N.ffn_up_exps.weight".
  Result<void> bind_experts(const TensorName& row, int32_t layer) {
    const std::string name = name_in_block(row.name, layer);
    const Shape expected = stacked_shape(spec_, row.role, layer);
    const TensorView* tensor = file_.find(name);
    if (tensor == nullptr && row.presence == Presence::kOptional) return {};
    const size_t suffix = name.find("_exps");
    if (tensor != nullptr) CANDOR_TRY(check_shape(*tensor, expected));
    const TensorView* first = nullptr;
    for (int32_t expert = 0; expert < static_cast<int32_t>(expected[0]); ++expert) {
      if (tensor != nullptr) {
        bindings_.push_back(
            {expert_of(*tensor, expected_shape(spec_, row.role, layer), expert), row.role, layer, expert});
        continue;
      }
      const std::string own = fmt::format("{}.{}{}", name.substr(0, suffix), expert, name.substr(suffix + 5));
      const TensorView* single = file_.find(own);
      if (single == nullptr) return missing(name, expected);
      if (first == nullptr) first = single;
      CANDOR_TRY(check_sibling(*single, *first));
      CANDOR_TRY(check_shape(*single, expected_shape(spec_, row.role, layer)));
      bindings_.push_back({*single, row.role, layer, expert});
    }
    return {};
  }

  const formats::ModelFile& file_;
  const ArchSpec& spec_;
  std::vector<Binding> bindings_;
  std::set<std::pair<TensorRole, int32_t>> bound_;
};

Result<void> refuse_unbound(const formats::ModelFile& file, const Family& family, const ArchSpec& spec,
                            const std::vector<Binding>& bindings) {
  std::unordered_set<std::string> known;
  for (const Binding& binding : bindings) known.emplace(binding.view.name);
  const auto n_blocks = static_cast<int32_t>(spec.blocks.size());
  std::vector<std::string> prediction;
  for (int32_t i = 0; i < spec.n_prediction_blocks; ++i) prediction.push_back(fmt::format("blk.{}.", n_blocks + i));
  const auto is_of_prediction = [&](std::string_view name) {
    return std::ranges::any_of(prediction, [&](const std::string& block) { return name.starts_with(block); });
  };
  for (const std::string_view pattern : family.ignored) {
    for (int32_t layer = 0; layer < n_blocks; ++layer) known.insert(name_in_block(pattern, layer));
  }
  for (const TensorView& tensor : file.tensors()) {
    if (known.contains(std::string(tensor.name)) || is_of_prediction(tensor.name)) continue;
    return fail(ErrorKind::kUnsupported,
                fmt::format("tensor {} {} has no place in a {} model of {} blocks: the model differs from what its "
                            "architecture says",
                            formats::in_quotes(tensor.name), to_string(tensor.shape), family.name, spec.blocks.size()));
  }
  return {};
}

Result<void> check_finite(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
  decode_elements(tensor.dtype, tensor.data, tensor.shape.n_elements(), values.data());
  const auto odd = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (odd == values.end()) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor \"{}\": element {} is {}; expected finite numbers: the file is damaged", tensor.name,
                          odd - values.begin(), *odd));
}

Result<WeightPtr> upload_one(const TensorView& tensor, WeightRole packing, backend::Backend& backend) {
  CANDOR_ASSIGN(WeightPtr weight, backend.upload(tensor, packing));
  if (packing == WeightRole::kVector) CANDOR_TRY(check_finite(tensor));
  return weight;
}

WeightPtr& place_of(ModelWeights& weights, const Binding& binding) {
  if (binding.role == kEmbedding) return weights.embedding;
  if (binding.role == kPositions) return weights.positions;
  if (binding.role == kEmbedNorm) return weights.embed_norm.gain;
  if (binding.role == kEmbedNormBias) return weights.embed_norm.bias;
  if (binding.role == kFinalNorm) return weights.final_norm.gain;
  if (binding.role == kFinalNormBias) return weights.final_norm.bias;
  if (binding.role == kHead) return weights.head.weight;
  if (binding.role == kHeadBias) return weights.head.bias;
  const RoleTraits& traits = traits_of(binding.role);
  BlockWeights& block = weights.blocks[static_cast<size_t>(binding.layer)];
  if (binding.role == kSinks) return block.sinks;
  if (binding.role == kDeltaTaps) return block.delta_taps;
  if (binding.role == kDeltaRate) return block.delta_rate;
  if (binding.role == kDeltaBias) return block.delta_bias;
  if (traits.norm != nullptr) return block.*traits.norm.*traits.part;
  const auto expert = static_cast<size_t>(binding.expert);
  Projection& projection = traits.expert != nullptr ? block.experts[expert].*traits.expert : block.*traits.projection;
  return traits.packing == WeightRole::kVector ? projection.bias : projection.weight;
}

WeightRole packing_of(const Binding& binding, const ArchSpec& spec) {
  const bool is_also_head = binding.role == kEmbedding && spec.head.tied;
  return is_also_head ? WeightRole::kEmbeddingAndLinear : traits_of(binding.role).packing;
}

void list_experts(BlockWeights& block) {
  for (const ExpertWeights& expert : block.experts) {
    block.expert_views.push_back({expert.gate.weight.get(), expert.up.weight.get(), expert.down.weight.get(),
                                  expert.gate.bias.get(), expert.up.bias.get(), expert.down.bias.get()});
  }
}

}  // namespace

Result<std::vector<Binding>> bind_tensors(const formats::ModelFile& file, const Family& family, const ArchSpec& spec) {
  Binder binder(file, spec);
  for (const TensorName& row : family.tensors) {
    const size_t n_layers = is_block_tensor(row) ? spec.blocks.size() : 1;
    for (size_t layer = 0; layer < n_layers; ++layer) {
      if (is_for(row.role, spec.blocks[layer])) CANDOR_TRY(binder.bind(row, static_cast<int32_t>(layer)));
    }
  }
  std::vector<Binding> bindings = binder.take();
  CANDOR_TRY(refuse_unbound(file, family, spec, bindings));
  std::ranges::sort(bindings, {}, [](const Binding& binding) { return binding.view.data; });
  return bindings;
}

Result<std::unique_ptr<ModelWeights>> upload_weights(std::span<const Binding> bindings, const Upload& upload,
                                                     const LoadOptions& options) {
  const ArchSpec& spec = upload.spec;
  auto weights = std::make_unique<ModelWeights>();
  weights->blocks.resize(spec.blocks.size());
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    weights->blocks[layer].experts.resize(static_cast<size_t>(spec.blocks[layer].ffn.moe.n_experts));
  }
  uint64_t total_bytes = 0;
  for (const Binding& binding : bindings) total_bytes += binding.view.n_bytes;
  uint64_t done_bytes = 0;
  for (const Binding& binding : bindings) {
    const WeightRole packing = packing_of(binding, spec);
    auto weight = upload_one(binding.view, packing, upload.backend);
    CANDOR_TRY(upload.file.check_intact());
    if (!weight) return std::move(weight).error();
    place_of(*weights, binding) = std::move(*weight);
    done_bytes += binding.view.n_bytes;
    if (options.progress) options.progress(done_bytes, total_bytes);
  }
  for (BlockWeights& block : weights->blocks) list_experts(block);
  return weights;
}

Result<uint64_t> upload_bytes(std::span<const Binding> bindings, const ArchSpec& spec,
                              const backend::Backend& backend) {
  uint64_t total = 0;
  for (const Binding& binding : bindings) {
    CANDOR_ASSIGN(const uint64_t n_bytes, backend.upload_bytes(binding.view, packing_of(binding, spec)));
    total += n_bytes;
  }
  return total;
}

size_t weight_bytes(const ModelWeights& weights) {
  const auto bytes_of = [](const WeightPtr& weight) { return weight ? weight->n_bytes() : size_t{0}; };
  const auto norm_bytes = [&](const Norm& norm) { return bytes_of(norm.gain) + bytes_of(norm.bias); };
  const auto projection_bytes = [&](const Projection& p) { return bytes_of(p.weight) + bytes_of(p.bias); };
  size_t total = bytes_of(weights.embedding) + bytes_of(weights.positions) + projection_bytes(weights.head) +
                 norm_bytes(weights.embed_norm) + norm_bytes(weights.final_norm);
  for (const BlockWeights& block : weights.blocks) {
    for (const Norm* norm : {&block.attn_norm, &block.q_norm, &block.k_norm, &block.attn_post_norm, &block.ffn_norm,
                             &block.ffn_post_norm, &block.delta_norm}) {
      total += norm_bytes(*norm);
    }
    for (const Projection* projection :
         {&block.q, &block.k, &block.v, &block.attn_out, &block.gate, &block.up, &block.down, &block.router,
          &block.delta_qkv, &block.delta_gate, &block.delta_alpha, &block.delta_beta, &block.delta_beta_alpha,
          &block.delta_out, &block.shared_router, &block.shared_gate, &block.shared_up, &block.shared_down}) {
      total += projection_bytes(*projection);
    }
    for (const WeightPtr* vector : {&block.sinks, &block.delta_taps, &block.delta_rate, &block.delta_bias}) {
      total += bytes_of(*vector);
    }
    for (const ExpertWeights& expert : block.experts) {
      total += projection_bytes(expert.gate) + projection_bytes(expert.up) + projection_bytes(expert.down);
    }
  }
  return total;
}

}  // namespace candor::model
