#include "vision/row_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "backend/operations.h"
#include "backend/step_batch.h"
#include "base/checked.h"
#include "tensor/tensor_view.h"

namespace candor::vision {
namespace {

namespace op = backend::op;
using backend::Activation;
using backend::WeightRole;

// What a layer reads and what it writes stand in one slot and the other; a gate in the third.
constexpr int32_t kSlots = 3;
constexpr int32_t kGateSlot = 2;

WeightRole role_of(const RowLayer& layer) {
  if (layer.kind == RowLayerKind::kLinear || layer.kind == RowLayerKind::kGate) return WeightRole::kLinear;
  return layer.kind == RowLayerKind::kAddPositions ? WeightRole::kEmbedding : WeightRole::kVector;
}

Result<void> check_shape(const TensorView& tensor, const Shape& expected) {
  if (tensor.shape == expected) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor \"{}\": shape {}; expected {}: the file's metadata and its tensors contradict each "
                          "other",
                          tensor.name, to_string(tensor.shape), to_string(expected)));
}

// Where positions are added there may be more of them than rows.
Shape shape_of(const RowLayer& layer, int32_t n_in) {
  if (layer.kind == RowLayerKind::kNorm) return {1, {n_in}};
  return {2, {layer.n_out, n_in}};
}

struct LayerTensors {
  const TensorView* weight = nullptr;
  const TensorView* bias = nullptr;
  const TensorView* up = nullptr;
};

Result<const TensorView*> matrix_of(const formats::ModelFile& file, const std::string& name, const Shape& expected) {
  const TensorView* tensor = file.find(name);
  if (tensor == nullptr) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor \"{}\" is missing; expected shape {}: the file is incomplete, or a part of it is "
                            "missing",
                            name, to_string(expected)));
  }
  CANDOR_TRY(check_shape(*tensor, expected));
  return tensor;
}

Result<LayerTensors> tensors_of(const formats::ModelFile& file, const RowLayer& layer, int32_t n_in) {
  LayerTensors found;
  const bool is_bare = layer.kind == RowLayerKind::kNorm && layer.weight.empty();
  if (is_bare || layer.kind == RowLayerKind::kActivate) return found;
  const Shape expected = shape_of(layer, n_in);
  CANDOR_ASSIGN(found.weight, matrix_of(file, layer.weight, expected));
  if (layer.kind == RowLayerKind::kGate) {
    CANDOR_ASSIGN(found.up, matrix_of(file, layer.up, expected));
  }
  found.bias = layer.bias.empty() ? nullptr : file.find(layer.bias);
  if (found.bias != nullptr)
    CANDOR_TRY(check_shape(*found.bias, {1, {layer.kind == RowLayerKind::kNorm ? n_in : layer.n_out}}));
  return found;
}

// Of a layer, where rows n_in wide come in.
int32_t width_behind(const RowLayer& layer, int32_t n_in) {
  const bool is_product = layer.kind == RowLayerKind::kLinear || layer.kind == RowLayerKind::kGate;
  return is_product ? layer.n_out : n_in;
}

}  // namespace

int32_t RowLayersSpec::n_out() const {
  return std::accumulate(layers.begin(), layers.end(), n_in,
                         [](int32_t n, const RowLayer& layer) { return width_behind(layer, n); });
}

Result<RowLayers> RowLayers::load(const formats::ModelFile& file, RowLayersSpec spec, backend::Backend& backend) {
  RowLayers loaded;
  int32_t n_in = spec.n_in;
  for (const RowLayer& layer : spec.layers) {
    CANDOR_ASSIGN(const LayerTensors tensors, tensors_of(file, layer, n_in));
    Weights weights;
    for (const auto& [tensor, weight] : {std::pair(tensors.weight, &weights.weight), {tensors.up, &weights.up}}) {
      if (tensor == nullptr) continue;
      CANDOR_TRY(file.make_copy(tensor->bytes()));
      CANDOR_ASSIGN(*weight, backend.upload(*tensor, role_of(layer)));
      file.has_read(tensor->bytes());
    }
    if (tensors.bias != nullptr) {
      CANDOR_ASSIGN(weights.bias, backend.upload(*tensors.bias, WeightRole::kVector));
    }
    CANDOR_TRY(file.check_intact());
    loaded.weights_.push_back(std::move(weights));
    n_in = width_behind(layer, n_in);
  }
  loaded.spec_ = std::move(spec);
  return loaded;
}

Result<uint64_t> RowLayers::planned_bytes(const formats::ModelFile& file, const RowLayersSpec& spec,
                                          const backend::Backend& backend) {
  uint64_t total = 0;
  int32_t n_in = spec.n_in;
  for (const RowLayer& layer : spec.layers) {
    CANDOR_ASSIGN(const LayerTensors tensors, tensors_of(file, layer, n_in));
    n_in = width_behind(layer, n_in);
    for (const TensorView* tensor : {tensors.weight, tensors.up}) {
      if (tensor == nullptr) continue;
      CANDOR_ASSIGN(const uint64_t n_bytes, backend.upload_bytes(*tensor, role_of(layer)));
      total += n_bytes;
    }
    if (tensors.bias != nullptr) {
      CANDOR_ASSIGN(const uint64_t n_bytes, backend.upload_bytes(*tensors.bias, WeightRole::kVector));
      total += n_bytes;
    }
  }
  return total;
}

backend::ArenaLayout RowLayers::arena_layout(const RowLayersSpec& spec, int32_t max_rows) {
  int32_t widest = spec.n_in;
  int32_t n_in = spec.n_in;
  int32_t n_positions = 1;
  for (const RowLayer& layer : spec.layers) {
    n_in = width_behind(layer, n_in);
    widest = std::max(widest, n_in);
    if (layer.kind == RowLayerKind::kAddPositions) n_positions = layer.n_out;
  }
  return {.slot_cols = std::vector<int32_t>(kSlots, widest),
          .slot_is_output = std::vector<bool>(kSlots, false),
          .max_rows = max_rows,
          .max_out_rows = 1,
          .max_input_cols = widest,
          .max_positions = std::max(n_positions, max_rows)};
}

backend::RowsView RowLayers::run(std::span<const float> rows, int32_t n_rows, backend::Backend& backend,
                                 backend::KvStore& kv) {
  tokens_.assign(static_cast<size_t>(n_rows), 0);
  positions_.resize(static_cast<size_t>(n_rows));
  std::iota(positions_.begin(), positions_.end(), 0);
  const std::array seqs{backend::SeqSlice{.first_row = 0, .n_rows = n_rows}};
  const std::vector<BlockId> blocks(static_cast<size_t>((n_rows + backend::kBlockTokens - 1) / backend::kBlockTokens),
                                    0);
  const backend::StepBatch batch{.tokens = tokens_,
                                 .positions = positions_,
                                 .seqs = seqs,
                                 .block_table = blocks,
                                 .max_blocks = static_cast<int32_t>(blocks.size()),
                                 .vector_rows = positions_,
                                 .vectors = rows};
  backend.begin_step(batch, kv);
  backend::Ops& ops = backend.ops();
  Activation x{0, n_rows, spec_.n_in};
  ops.run(op::Embed{.dst = x, .takes_vectors = true});
  for (size_t i = 0; i < spec_.layers.size(); ++i) {
    const RowLayer& layer = spec_.layers[i];
    const backend::Weight* weight = weights_[i].weight.get();
    const backend::Weight* bias = weights_[i].bias.get();
    const Activation out{1 - x.slot, n_rows, layer.n_out};
    switch (layer.kind) {
      case RowLayerKind::kNorm:
        ops.run(op::Norm{x, x, {weight, bias}, layer.norm});
        break;
      case RowLayerKind::kLinear:
        ops.run(op::Linear{std::array{backend::LinearTerm{weight, bias, out}}, x});
        x = out;
        break;
      case RowLayerKind::kActivate:
        ops.run(op::Activate{x, layer.act});
        break;
      case RowLayerKind::kGate: {
        const Activation gate{kGateSlot, n_rows, layer.n_out};
        ops.run(op::Linear{std::array{backend::LinearTerm{weight, nullptr, gate},
                                      backend::LinearTerm{weights_[i].up.get(), nullptr, out}},
                           x});
        ops.run(op::Gate{out, gate, out, layer.act});
        x = out;
        break;
      }
      case RowLayerKind::kAddPositions:
        ops.run(op::AddPositions{x, weight});
        break;
    }
  }
  backend.read_logits(backend.end_step());
  return backend.read_rows(x);
}

size_t RowLayers::weight_bytes() const {
  size_t total = 0;
  for (const Weights& weights : weights_) {
    if (weights.weight) total += weights.weight->n_bytes();
    if (weights.bias) total += weights.bias->n_bytes();
    if (weights.up) total += weights.up->n_bytes();
  }
  return total;
}

}  // namespace candor::vision
