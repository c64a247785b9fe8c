#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "backend/op_specs.h"
#include "backend/split.h"
#include "formats/quote.h"
#include "model/prediction.h"
#include "model/rank_splits.h"
#include "model/role_traits.h"
#include "model/text_head.h"
#include "tensor/dtype.h"

namespace candor::model {
namespace {

using backend::WeightRole;

using enum TensorRole;
using enum Extent;

std::string name_in_block(std::string_view pattern, int32_t layer) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, star), layer, pattern.substr(star + 1));
}

bool is_block_tensor(const TensorName& name) {
  return name.name.find('*') != std::string_view::npos;
}

Error missing(const std::string& name, const Shape& expected) {
  return fail(ErrorKind::kInvalidInput, fmt::format("tensor \"{}\" is missing; expected shape {}: the file is "
                                                    "incomplete, or a part of it is missing",
                                                    name, to_string(expected)));
}

Result<void> check_shape(const TensorView& tensor, const Shape& expected, std::string_view field = {}) {
  if (tensor.shape == expected) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor \"{}\": shape {}; expected {}{}: the file's metadata and its tensors contradict each "
                          "other",
                          tensor.name, to_string(tensor.shape), to_string(expected), field));
}

// Files have vectors and taps with dimensions of one more, or less.
std::vector<int64_t> without_ones(const Shape& shape) {
  std::vector<int64_t> dims;
  for (int32_t i = 0; i < shape.n_dims; ++i) {
    if (shape[i] != 1) dims.push_back(shape[i]);
  }
  return dims;
}

// What metadata says of a dimension that differs: " by \"lfm2.shortconv.l_cache\"", where one key does.
std::string field_of(const Binding& binding, const Shape& expected, const ArchSpec& spec) {
  const RoleTraits& traits = traits_of(binding.role);
  const Shape& shape = binding.view.shape;
  if (shape.n_dims != expected.n_dims) return "";
  const bool is_rows = expected.n_dims == 2 && shape[0] != expected[0];
  const BlockSpec& block = spec.blocks[static_cast<size_t>(binding.layer)];
  const std::string_view key = key_of(is_rows ? traits.rows : traits.cols, block);
  return key.empty() ? "" : fmt::format(" by metadata key \"{}.{}\"", spec.family, key);
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

// The matrices of all heads as one, one after another.
TensorView rows_of(const TensorView& tensor) {
  TensorView rows = tensor;
  rows.shape = {2, {tensor.shape[0] * tensor.shape[1], tensor.shape[2]}};
  return rows;
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
    if (spec_.head.is_absent && (row.role == kHead || row.role == kHeadBias)) return {};
    if (is_expert(row.role)) return bind_experts(row, layer);
    const std::string name = name_of(row, layer);
    const Shape expected = expected_shape(spec_, row.role, layer);
    const TensorView* tensor = file_.find(name);
    if (tensor == nullptr) {
      if (row.presence == Presence::kOptional) return {};
      return missing(name, expected);
    }
    // Some converters write a vector as one row, and ggml a matrix of one row as a vector.
    TensorView flat = *tensor;
    if (expected.n_dims == 2 && expected[0] == 1 && flat.shape.n_dims == 1) flat.shape = {2, {1, flat.shape[0]}};
    const BlockSpec& block = spec_.blocks[static_cast<size_t>(layer)];
    const bool has_head_rows = block.qk_norm == QkNorm::kOwnHeads && (row.role == kQNorm || row.role == kKNorm);
    if (expected.n_dims == 1 && flat.shape.n_dims == 2 && (flat.shape[0] == 1 || has_head_rows)) {
      flat.shape = {1, {flat.shape.n_elements()}};
    }
    const bool is_vector = traits_of(row.role).packing == WeightRole::kVector;
    if (!is_vector || without_ones(flat.shape) != without_ones(expected)) {
      CANDOR_TRY(check_shape(flat, expected, field_of({flat, row.role, layer}, expected, spec_)));
    }
    bound_.emplace(row.role, layer);
    if (row.role == kQkv) return bind_pieces(*tensor, layer, {{kQ, kHeads}, {kK, kKvHeads}, {kV, kKvHeads}});
    if (row.role == kQkvBias) {
      return bind_pieces(*tensor, layer, {{kQBias, kHeads}, {kKBias, kKvHeads}, {kVBias, kKvHeads}});
    }
    if (row.role == kGateUp) return bind_pieces(*tensor, layer, {{kGate, kFfn}, {kUp, kFfn}});
    if (row.role == kConvIn) return bind_pieces(*tensor, layer, {{kConvB, kDim}, {kConvC, kDim}, {kConvX, kDim}});
    if (row.role == kSsmIn) {
      return bind_pieces(*tensor, layer,
                         {{kSsmGate, kSsmWidth}, {kSsmChannels, kSsmChannelCount}, {kSsmStep, kSsmHeadCount}});
    }
    bindings_.push_back({is_by_head(row.role) ? rows_of(*tensor) : flat, row.role, layer, 0});
    return {};
  }

  std::vector<Binding> take() { return std::move(bindings_); }

 private:
  std::string name_of(const TensorName& row, int32_t layer) const {
    return name_in_block(row.name, spec_.first_block + layer);
  }

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
      bound_.emplace(piece.role, layer);
      bindings_.push_back({piece_of(tensor, first, n), piece.role, layer, 0});
      first += n;
    }
    return {};
  }

  // One tensor for all experts, or "blk.N.ffn_up.E.weight" where that would be "blk.N.ffn_up_exps.weight".
  Result<void> bind_experts(const TensorName& row, int32_t layer) {
    const std::string name = name_of(row, layer);
    const Shape expected = stacked_shape(spec_, row.role, layer);
    const TensorView* tensor = file_.find(name);
    if (tensor == nullptr && row.presence == Presence::kOptional) return {};
    if (row.role == kExpertGateUp) return bind_gate_up(name, layer);
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

  // One tensor for gate and up of all experts.
  Result<void> bind_gate_up(const std::string& name, int32_t layer) {
    const TensorView* tensor = file_.find(name);
    const Shape expected = stacked_shape(spec_, kExpertGateUp, layer);
    if (tensor == nullptr) return missing(name, expected);
    CANDOR_TRY(check_shape(*tensor, expected));
    bound_.emplace(kExpertGate, layer);
    bound_.emplace(kExpertUp, layer);
    const int64_t n = extent_of(kFfn, spec_, layer);
    for (int32_t expert = 0; expert < static_cast<int32_t>(expected[0]); ++expert) {
      const TensorView both = expert_of(*tensor, expected_shape(spec_, kExpertGateUp, layer), expert);
      bindings_.push_back({piece_of(both, 0, n), kExpertGate, layer, expert});
      bindings_.push_back({piece_of(both, n, n), kExpertUp, layer, expert});
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
  prediction.reserve(static_cast<size_t>(spec.n_prediction_blocks));
  for (int32_t i = 0; i < spec.n_prediction_blocks; ++i) prediction.push_back(fmt::format("blk.{}.", n_blocks + i));
  const auto is_of_prediction = [&](std::string_view name) {
    return std::ranges::any_of(prediction, [&](const std::string& block) { return name.starts_with(block); });
  };
  const auto has_factors = [](const BlockSpec& block) { return !block.attn.rope.frequency_factors.empty(); };
  if (std::ranges::any_of(spec.blocks, has_factors)) known.emplace("rope_freqs.weight");  // part of the RopeSpec
  for (const std::string_view name : text_head_tensors()) known.emplace(name);
  if (spec.head.is_absent) known.insert({"output.weight", "output.bias"});  // what reads alone has no use for it
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

// Copies of what the head shares with the model may be there.
Result<void> refuse_unknown_of_head(const formats::ModelFile& file, const ArchSpec& spec,
                                    const std::vector<Binding>& bindings) {
  const std::string stem = fmt::format("blk.{}.", spec.first_block);
  for (const TensorView& tensor : file.tensors()) {
    if (!tensor.name.starts_with(stem)) continue;
    const auto is_it = [&](const Binding& binding) { return binding.view.name == tensor.name; };
    const bool is_copy =
        std::ranges::find(kPredictionCopies, tensor.name.substr(stem.size())) != std::end(kPredictionCopies);
    if (is_copy || std::ranges::any_of(bindings, is_it)) continue;
    return fail(ErrorKind::kUnsupported,
                fmt::format("tensor {} {} has no place in a head for multi-token prediction of a {} model",
                            formats::in_quotes(tensor.name), to_string(tensor.shape), spec.family));
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

Result<WeightPtr> upload_one(const Binding& binding, WeightRole packing, const Upload& upload) {
  const std::span part = binding.view.bytes();
  CANDOR_TRY(upload.file.make_copy(part));
  upload.contents.note(part);
  const backend::WeightSplit split = split_of(binding.role, upload.spec, binding.layer);
  CANDOR_ASSIGN(WeightPtr weight, upload.backend.upload_split(binding.view, packing, split));
  if (packing == WeightRole::kVector) CANDOR_TRY(check_finite(binding.view));
  return weight;
}

WeightPtr& place_of(ModelWeights& weights, const Binding& binding) {
  if (binding.role == kEmbedding) return weights.embedding;
  if (binding.role == kPositions) return weights.positions;
  if (binding.role == kTokenTypes) return weights.types;
  if (binding.role == kEmbedNorm) return weights.embed_norm.gain;
  if (binding.role == kEmbedNormBias) return weights.embed_norm.bias;
  if (binding.role == kFinalNorm) return weights.final_norm.gain;
  if (binding.role == kFinalNormBias) return weights.final_norm.bias;
  if (binding.role == kHead) return weights.head.weight;
  if (binding.role == kHeadBias) return weights.head.bias;
  if (binding.role == kWordDense) return weights.word_dense.weight;
  if (binding.role == kWordDenseBias) return weights.word_dense.bias;
  if (binding.role == kWordNorm) return weights.word_norm.gain;
  if (binding.role == kWordNormBias) return weights.word_norm.bias;
  if (binding.role == kJoin) return weights.join.weight;
  if (binding.role == kJoinTokenNorm) return weights.join_token_norm.gain;
  if (binding.role == kJoinVectorNorm) return weights.join_vector_norm.gain;
  if (binding.role == kVectorsNorm) return weights.vectors_norm.gain;
  if (binding.role == kLayerTable) return weights.layer_table;
  if (binding.role == kLayerProjection) return weights.layer_projection.weight;
  if (binding.role == kLayerNorm) return weights.layer_norm.gain;
  const RoleTraits& traits = traits_of(binding.role);
  BlockWeights& block = weights.blocks[static_cast<size_t>(binding.layer)];
  if (binding.role == kSinks) return block.sinks;
  if (binding.role == kDistanceBias) return block.distance_biases;
  if (binding.role == kChoiceBias) return block.choice_bias;
  if (binding.role == kDeltaTaps) return block.delta_taps;
  if (binding.role == kDeltaRate) return block.delta_rate;
  if (binding.role == kDeltaBias) return block.delta_bias;
  if (binding.role == kConvTaps) return block.conv_taps;
  if (binding.role >= kDeltaQTaps && binding.role <= kDeltaVTaps) {
    return block.delta_part_taps[static_cast<size_t>(binding.role) - static_cast<size_t>(kDeltaQTaps)];
  }
  if (binding.role == kSsmTaps) return block.ssm_taps;
  if (binding.role == kSsmTapsBias) return block.ssm_taps_bias;
  if (binding.role == kSsmRate) return block.ssm_rate;
  if (binding.role == kSsmSkip) return block.ssm_skip;
  if (binding.role == kSsmStepBias) return block.ssm_step_bias;
  if (binding.role == kOutScale) return block.out_scale;
  if (binding.role == kExpertScales) return block.expert_scales;
  if (binding.role == kMixBias) return block.mix_bias;
  if (traits.norm != nullptr) return block.*traits.norm.*traits.part;
  const auto expert = static_cast<size_t>(binding.expert);
  Projection& projection = traits.expert != nullptr ? block.experts[expert].*traits.expert : block.*traits.projection;
  return traits.packing == WeightRole::kVector ? projection.bias : projection.weight;
}

// Asks for what is read next, and lets go of what was read, so that the disk works beside the packing and no second
// copy of a weight stays in memory.
class Reading {
 public:
  Reading(const formats::ModelFile& file, std::span<const Binding> bindings) : file_(file), bindings_(bindings) {}

  void begin(size_t i) {
    constexpr size_t kAheadBytes = size_t{256} << 20;
    for (; next_ < bindings_.size() && (next_ <= i || ahead_bytes_ < kAheadBytes); ++next_) {
      file_.will_read(bindings_[next_].view.bytes());
      ahead_bytes_ += bindings_[next_].view.n_bytes;
    }
  }
  void end(size_t i) {
    file_.has_read(bindings_[i].view.bytes());
    ahead_bytes_ -= bindings_[i].view.n_bytes;
  }

 private:
  const formats::ModelFile& file_;
  std::span<const Binding> bindings_;
  size_t next_ = 0;
  size_t ahead_bytes_ = 0;
};

void list_experts(BlockWeights& block) {
  for (const ExpertWeights& expert : block.experts) {
    block.expert_views.push_back({expert.gate.weight.get(), expert.up.weight.get(), expert.down.weight.get(),
                                  expert.gate.bias.get(), expert.up.bias.get(), expert.down.bias.get()});
  }
}

}  // namespace

WeightRole packing_of(const Binding& binding, const ArchSpec& spec) {
  const bool is_also_head = binding.role == kEmbedding && spec.head.tied;
  return is_also_head ? WeightRole::kEmbeddingAndLinear : traits_of(binding.role).packing;
}

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

Result<std::vector<Binding>> bind_prediction(const formats::ModelFile& file, const Family& family,
                                             const ArchSpec& spec) {
  Binder binder(file, spec);
  for (const std::span<const TensorName> rows : {std::span<const TensorName>(kPredictionTensors), family.tensors}) {
    for (const TensorName& row : rows) {
      const bool is_needed = row.role == kHead ? spec.head.is_own : is_for(row.role, spec.blocks.front());
      if (is_block_tensor(row) && is_needed) CANDOR_TRY(binder.bind(row, 0));
    }
  }
  std::vector<Binding> bindings = binder.take();
  CANDOR_TRY(refuse_unknown_of_head(file, spec, bindings));
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
  Reading reading(upload.file, bindings);
  for (size_t i = 0; i < bindings.size(); ++i) {
    const Binding& binding = bindings[i];
    const WeightRole packing = packing_of(binding, spec);
    reading.begin(i);
    auto weight = upload_one(binding, packing, upload);
    CANDOR_TRY(upload.file.check_intact());
    if (!weight) return std::move(weight).error();
    place_of(*weights, binding) = std::move(*weight);
    reading.end(i);
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
    const backend::WeightSplit split = split_of(binding.role, spec, binding.layer);
    CANDOR_ASSIGN(const uint64_t n_bytes, backend.upload_split_bytes(binding.view, packing_of(binding, spec), split));
    total += n_bytes;
  }
  return total;
}

size_t weight_bytes(const ModelWeights& weights) {
  const auto bytes_of = [](const WeightPtr& weight) { return weight ? weight->n_bytes() : size_t{0}; };
  const auto norm_bytes = [&](const Norm& norm) { return bytes_of(norm.gain) + bytes_of(norm.bias); };
  const auto projection_bytes = [&](const Projection& p) { return bytes_of(p.weight) + bytes_of(p.bias); };
  size_t total = bytes_of(weights.embedding) + bytes_of(weights.positions) + bytes_of(weights.types) +
                 projection_bytes(weights.head) + projection_bytes(weights.word_dense) + norm_bytes(weights.word_norm) +
                 norm_bytes(weights.embed_norm) + norm_bytes(weights.final_norm) + bytes_of(weights.layer_table) +
                 projection_bytes(weights.layer_projection) + norm_bytes(weights.layer_norm) +
                 projection_bytes(weights.join) + norm_bytes(weights.join_token_norm) +
                 norm_bytes(weights.join_vector_norm) + norm_bytes(weights.vectors_norm);
  for (const BlockWeights& block : weights.blocks) {
    for (const Norm* norm : {&block.attn_norm, &block.q_norm, &block.k_norm, &block.attn_post_norm, &block.ffn_norm,
                             &block.ffn_post_norm, &block.delta_norm, &block.query_norm, &block.latent_norm,
                             &block.ssm_norm, &block.router_norm, &block.expert_norm, &block.expert_post_norm,
                             &block.shared_post_norm, &block.layer_post_norm}) {
      total += norm_bytes(*norm);
    }
    for (const Projection* projection :
         {&block.q, &block.k, &block.v, &block.attn_out, &block.gate, &block.up, &block.down, &block.router,
          &block.delta_qkv, &block.delta_gate, &block.delta_alpha, &block.delta_beta, &block.delta_beta_alpha,
          &block.delta_out, &block.query_down, &block.latent, &block.latent_key, &block.latent_value,
          &block.shared_router, &block.shared_gate, &block.shared_up, &block.shared_down, &block.delta_q,
          &block.delta_k, &block.delta_v, &block.delta_alpha_down, &block.delta_gate_down, &block.conv_b,
          &block.conv_c, &block.conv_x, &block.conv_out, &block.ssm_gate, &block.ssm_channels, &block.ssm_step,
          &block.ssm_out, &block.layer_gate, &block.layer_out}) {
      total += projection_bytes(*projection);
    }
    for (const WeightPtr* vector :
         {&block.sinks, &block.distance_biases, &block.choice_bias, &block.delta_taps, &block.delta_rate,
          &block.delta_bias, &block.delta_part_taps[0], &block.delta_part_taps[1], &block.delta_part_taps[2],
          &block.conv_taps, &block.ssm_taps, &block.ssm_taps_bias, &block.ssm_rate, &block.ssm_skip,
          &block.ssm_step_bias, &block.out_scale, &block.expert_scales}) {
      total += bytes_of(*vector);
    }
    for (const ExpertWeights& expert : block.experts) {
      total += projection_bytes(expert.gate) + projection_bytes(expert.up) + projection_bytes(expert.down);
    }
  }
  return total;
}

}  // namespace candor::model
