#include "vision/families/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/rounded_math.h"
#include "image/processor_config.h"
#include "model/families/tensor_lists.h"
#include "model/hparams.h"

namespace candor::vision {
namespace {

using model::TensorName;
using model::TensorRole;
using nlohmann::json;

constexpr std::array kTensors = {
    TensorName{TensorRole::kAttnNorm, "v.blk.*.ln1.weight"},
    TensorName{TensorRole::kAttnNormBias, "v.blk.*.ln1.bias", model::kOptional},
    TensorName{TensorRole::kQkv, "v.blk.*.attn_qkv.weight", model::kOptional},
    TensorName{TensorRole::kQkvBias, "v.blk.*.attn_qkv.bias", model::kOptional},
    TensorName{TensorRole::kQ, "v.blk.*.attn_q.weight"},
    TensorName{TensorRole::kQBias, "v.blk.*.attn_q.bias", model::kOptional},
    TensorName{TensorRole::kK, "v.blk.*.attn_k.weight"},
    TensorName{TensorRole::kKBias, "v.blk.*.attn_k.bias", model::kOptional},
    TensorName{TensorRole::kV, "v.blk.*.attn_v.weight"},
    TensorName{TensorRole::kVBias, "v.blk.*.attn_v.bias", model::kOptional},
    TensorName{TensorRole::kQNorm, "v.blk.*.attn_q_norm.weight"},
    TensorName{TensorRole::kKNorm, "v.blk.*.attn_k_norm.weight"},
    TensorName{TensorRole::kAttnOut, "v.blk.*.attn_out.weight"},
    TensorName{TensorRole::kAttnOutBias, "v.blk.*.attn_out.bias", model::kOptional},
    TensorName{TensorRole::kAttnPostNorm, "v.blk.*.attn_post_norm.weight"},
    TensorName{TensorRole::kFfnNorm, "v.blk.*.ln2.weight"},
    TensorName{TensorRole::kFfnNormBias, "v.blk.*.ln2.bias", model::kOptional},
    TensorName{TensorRole::kFfnPostNorm, "v.blk.*.ffn_post_norm.weight"},
    TensorName{TensorRole::kGate, "v.blk.*.ffn_gate.weight", model::kOptional},
    TensorName{TensorRole::kGateBias, "v.blk.*.ffn_gate.bias", model::kOptional},
    TensorName{TensorRole::kUp, "v.blk.*.ffn_up.weight"},
    TensorName{TensorRole::kUpBias, "v.blk.*.ffn_up.bias", model::kOptional},
    TensorName{TensorRole::kDown, "v.blk.*.ffn_down.weight"},
    TensorName{TensorRole::kDownBias, "v.blk.*.ffn_down.bias", model::kOptional},
    // The last norm's two.
    TensorName{TensorRole::kFinalNorm, "v.post_ln.weight"},
    TensorName{TensorRole::kFinalNormBias, "v.post_ln.bias", model::kOptional},
};

constexpr const char* kPrefix = "clip.vision";
constexpr const char* kUseGelu = "clip.use_gelu";
constexpr const char* kUseSilu = "clip.use_silu";
constexpr int32_t kMostSide = 16384;       // of a tile and of a patch, in pixels
constexpr int32_t kMostPatches = 1 << 14;  // of a tile

}  // namespace

Result<void> read_pixels(const formats::ModelFile& file, image::Recipe& recipe) {
  const auto read = [&](const char* key, std::array<double, 3>& to) -> Result<void> {
    const std::string name = fmt::format("{}.{}", kPrefix, key);
    CANDOR_ASSIGN(const std::vector<double>* numbers, formats::meta_floats(file, name));
    if (numbers == nullptr || numbers->size() != to.size()) {
      return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\" has {} numbers, expected {}, one for each "
                                                        "colour",
                                                        name, numbers == nullptr ? 0 : numbers->size(), to.size()));
    }
    for (size_t i = 0; i < to.size(); ++i) to[i] = (*numbers)[i];
    return {};
  };
  CANDOR_TRY(read("image_mean", recipe.normalisation.mean));
  CANDOR_TRY(read("image_std", recipe.normalisation.deviation));
  for (const double deviation : recipe.normalisation.deviation) {
    if (deviation > 0.0 && std::isfinite(deviation)) continue;
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata key \"{}.image_std\" holds {}, expected numbers above 0", kPrefix, deviation));
  }
  return {};
}

model::Family tower_family(bool has_final_norm) {
  const std::span<const TensorName> all = kTensors;
  return {"clip", nullptr, has_final_norm ? all : all.first(all.size() - 2), {}, {}};
}

namespace {

Result<bool> says(const formats::ModelFile& file, const char* key) {
  CANDOR_ASSIGN(const std::optional<bool> value, formats::meta_bool(file, key));
  return value.value_or(false);
}

}  // namespace

Result<backend::GateKind> read_gate(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const bool is_gelu, says(file, kUseGelu));
  CANDOR_ASSIGN(const bool is_silu, says(file, kUseSilu));
  if (is_gelu && is_silu) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata keys \"{}\" and \"{}\" are both true, expected one", kUseGelu, kUseSilu));
  }
  return is_gelu ? backend::GateKind::kGeluErf : backend::GateKind::kSilu;
}

Result<bool> has_quick_gelu(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const bool is_gelu, says(file, kUseGelu));
  CANDOR_ASSIGN(const bool is_silu, says(file, kUseSilu));
  return !is_gelu && !is_silu;
}

std::string repeated(std::string_view text, int32_t n) {
  std::string all;
  for (int32_t i = 0; i < n; ++i) all += text;
  return all;
}

std::string expand_one_tile(const image::Prepared&, std::string_view row, std::span<const int32_t> rows_of_tiles) {
  return repeated(row, rows_of_tiles.front());
}

std::string expand_gemma4(const image::Prepared&, std::string_view row, std::span<const int32_t> rows_of_tiles) {
  return "<|image>" + repeated(row, rows_of_tiles.front()) + "<image|>";
}

Result<int32_t> read_token_budget(const formats::ModelFile& file) {
  return model::Hparams(file, "candor.vision").int_or("max_tokens", 280, {1, 1120});
}

Result<GridPositions> read_axis_positions(const formats::ModelFile& file) {
  constexpr std::string_view kTable = "v.position_embd.weight";
  constexpr int64_t kMost = 1 << 16;
  const TensorView* table = file.find(kTable);
  if (table != nullptr && table->shape.n_dims == 3 && table->shape[1] >= 1 && table->shape[1] <= kMost) {
    return GridPositions{kTable, static_cast<int32_t>(table->shape[1]), PositionKind::kByAxis};
  }
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor \"{}\" {}; expected two tables of at most {} positions", kTable,
                          table == nullptr ? "is missing" : "has shape " + to_string(table->shape), kMost));
}

Result<void> read_hub_token_budget(const json& processor, int32_t pool, formats::MetaList& metadata) {
  const auto patch = static_cast<int32_t>(std::get<uint64_t>(*metadata.find("clip.vision.patch_size")));
  CANDOR_ASSIGN(image::Recipe recipe, image::recipe_of(processor.dump(), {.patch = patch, .merge = pool}));
  const auto* budget = std::get_if<image::TokenBudget>(&recipe.layout);
  if (budget == nullptr || recipe.filter != image::Filter::kBicubic) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("'preprocessor_config.json' describes \"{}\"; supported: what Gemma 4's processors make by a "
                    "bicubic filter",
                    image::describe(recipe)));
  }
  metadata.add("candor.vision.max_tokens", static_cast<uint64_t>(budget->max_tokens));
  if (!recipe.normalisation.does_normalise) {
    recipe.normalisation.does_normalise = true;
    recipe.normalisation.mean = {0.0, 0.0, 0.0};
    recipe.normalisation.deviation = {1.0, 1.0, 1.0};
  }
  return add_pixels(recipe, metadata);
}

void add_class_row(VisionSpec& spec) {
  ++spec.n_lead_rows;
  ++spec.tower.max_positions;
  for (RowLayer& layer : spec.entry.layers) {
    if (layer.kind == RowLayerKind::kAddPositions) ++layer.n_out;
  }
}

Result<VisionSpec> read_tower(const formats::ModelFile& file, backend::GateKind gate) {
  const model::Hparams hparams(file, kPrefix);
  VisionSpec spec;
  CANDOR_ASSIGN(const int32_t dim, hparams.require_int("embedding_length", {1, model::kMaxWidth}));
  CANDOR_ASSIGN(const int32_t n_blocks, hparams.require_int("block_count", {1, model::kMaxLayers}));
  CANDOR_ASSIGN(const int32_t n_heads, hparams.require_int("attention.head_count", {1, dim}));
  CANDOR_ASSIGN(const int32_t ffn_dim, hparams.require_int("feed_forward_length", {1, model::kMaxWidth}));
  CANDOR_ASSIGN(const int32_t patch, hparams.require_int("patch_size", {1, kMostSide}));
  CANDOR_ASSIGN(const int32_t side, hparams.require_int("image_size", {patch, kMostSide}));
  CANDOR_ASSIGN(const double epsilon, hparams.positive_or("attention.layer_norm_epsilon", 1e-6));
  if (dim % n_heads != 0) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata key \"{}.attention.head_count\" is {}, expected a divisor of the width {}",
                            kPrefix, n_heads, dim));
  }
  spec.recipe.patch_side = patch;
  CANDOR_TRY(read_pixels(file, spec.recipe));
  const int32_t grid = side / patch;
  spec.positions.side = grid;
  spec.max_patches = grid * grid;
  if (spec.max_patches > kMostPatches) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("metadata key \"{}.image_size\" is {}: {} patches a tile, expected at most {}", kPrefix,
                            side, spec.max_patches, kMostPatches));
  }
  spec.entry.n_in = 3 * patch * patch;
  spec.entry.layers = {{.weight = "v.patch_embd.weight", .bias = "v.patch_embd.bias", .n_out = dim},
                       {.kind = RowLayerKind::kAddPositions, .weight = "v.position_embd.weight", .n_out = grid * grid}};
  model::BlockSpec block;
  block.norm = {backend::NormKind::kLayer, static_cast<float>(epsilon)};
  block.attn.n_heads = block.attn.n_kv_heads = n_heads;
  block.attn.head_dim = dim / n_heads;
  block.attn.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block.attn.head_dim)));
  block.ffn.ffn_dim = ffn_dim;
  block.ffn.gate = gate;
  block.ffn.is_gated = false;
  spec.tower.family = "clip";
  spec.tower.dim = dim;
  spec.tower.vocab = 1;
  spec.tower.max_positions = spec.max_patches;
  spec.tower.blocks.assign(static_cast<size_t>(n_blocks), block);
  spec.tower.final_norm = block.norm;
  spec.tower.head.is_absent = true;
  spec.tower.is_bidirectional = true;
  spec.tower.keeps_kv = false;
  return spec;
}

Result<void> rotate_by_grid(const GridRotation& how, model::ArchSpec& tower) {
  const int32_t head_dim = tower.blocks.front().attn.head_dim;
  if (head_dim % 4 != 0) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("the tower's heads are {} wide, and their pairs have no two halves: expected a width that 4 "
                    "divides",
                    head_dim));
  }
  const int32_t n_each = head_dim / 4;
  backend::RopeSpec rope;
  rope.n_dims = head_dim;
  rope.pairs = how.pairs;
  rope.base = how.base;
  for (int32_t i = 0; i < 2 * n_each; ++i) {
    const bool is_column = (i >= n_each) != how.columns_first;
    const double step = i % n_each + (is_column ? how.column_step : 0.0);
    rope.axes.push_back(is_column ? 1 : 0);
    rope.own_frequencies.push_back(rounded_pow(how.base, -2.0 * step / (2.0 * n_each)));
  }
  for (model::BlockSpec& block : tower.blocks) block.attn.rope = rope;
  return {};
}

Result<double> read_rotary_base(const formats::ModelFile& file) {
  return model::Hparams(file, "candor.vision").positive_or("rope_base", GridRotation{}.base);
}

Result<void> read_own_shape(const formats::ModelFile& file, PixelBounds usual, VisionSpec& spec) {
  constexpr int64_t kMostPatches = 1 << 14;  // so that activations take no more than some gigabytes
  const model::Hparams hparams(file, "clip.vision");
  CANDOR_ASSIGN(const int32_t merge, hparams.int_or("spatial_merge_size", 2, {1, 16}));
  CANDOR_ASSIGN(const int32_t least, hparams.int_or("image_min_pixels", usual.least, {1, INT32_MAX}));
  CANDOR_ASSIGN(const int32_t most, hparams.int_or("image_max_pixels", usual.most, {1, INT32_MAX}));
  const int64_t patch_pixels = int64_t{spec.recipe.patch_side} * spec.recipe.patch_side;
  spec.recipe.layout = image::SmartSize{
      .min_pixels = least, .max_pixels = std::min<int64_t>(most, kMostPatches * patch_pixels), .merge = merge};
  spec.recipe.filter = image::Filter::kBicubic;
  spec.max_patches = static_cast<int32_t>(std::min<int64_t>(most / patch_pixels, kMostPatches));
  spec.tower.max_positions = spec.max_patches;
  spec.regroup = {RegroupKind::kJoin, merge};
  CANDOR_ASSIGN(const double base, read_rotary_base(file));
  return rotate_by_grid({.base = base}, spec.tower);
}

Result<int32_t> projection_width(const formats::ModelFile& file, std::string_view name) {
  const TensorView* tensor = file.find(name);
  if (tensor != nullptr && tensor->shape.n_dims == 2 && tensor->shape[0] >= 1 && tensor->shape[0] <= model::kMaxWidth) {
    return static_cast<int32_t>(tensor->shape[0]);
  }
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor \"{}\" {}; expected a matrix with a row for each column of the text model", name,
                          tensor == nullptr ? "is missing" : "has shape " + to_string(tensor->shape)));
}

Result<int32_t> hub_int(const json& object, const char* key, int32_t fallback, int32_t most) {
  const auto value = object.find(key);
  if (value == object.end() || value->is_null()) {
    if (fallback != 0) return fallback;
    return fail(ErrorKind::kInvalidInput, fmt::format("'config.json': \"{}\" is absent from \"vision_config\"", key));
  }
  if (value->is_number_integer()) {
    const auto number = value->get<int64_t>();
    if (number >= 1 && number <= most) return static_cast<int32_t>(number);
  }
  return fail(ErrorKind::kInvalidInput, fmt::format("'config.json': \"{}\" is {}, expected a whole number from 1 to {}",
                                                    key, value->dump(), most));
}

namespace {

// As files have it: quick_gelu is neither of the two.
Result<void> read_hub_act(const json& vision, std::span<const std::string_view> known, formats::MetaList& metadata) {
  const json act = vision.value("hidden_act", json(known.front()));
  const std::string name = act.is_string() ? act.get<std::string>() : "";
  if (std::ranges::find(known, name) == known.end()) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("'config.json': \"hidden_act\" of \"vision_config\" is {}; supported: {}", act.dump(),
                            fmt::join(known, ", ")));
  }
  metadata.add(kUseGelu, name.starts_with("gelu"));
  metadata.add(kUseSilu, name == "silu");
  return {};
}

}  // namespace

Result<void> hub_only(const json& object, const char* key, const json& known) {
  const auto value = object.find(key);
  if (value == object.end() || value->is_null() || *value == known) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("'config.json': \"{}\" is {}; supported: {}", key, value->dump(), known.dump()));
}

Result<double> hub_positive(const json& object, const char* key, double fallback) {
  const auto value = object.find(key);
  if (value == object.end() || value->is_null()) return fallback;
  if (value->is_number() && value->get<double>() > 0.0) return value->get<double>();
  return fail(ErrorKind::kInvalidInput,
              fmt::format("'config.json': \"{}\" is {}, expected a number above 0", key, value->dump()));
}

Result<int32_t> hub_inverse(const json& object, const char* key) {
  const json share = object.value(key, json(0.5));
  for (const int32_t n : {1, 2, 4}) {
    if (share.is_number() && share.get<double>() * n == 1.0) return n;
  }
  return fail(ErrorKind::kUnsupported,
              fmt::format("'config.json': \"{}\" is {}; supported: 1, 0.5, 0.25", key, share.dump()));
}

Result<void> read_hub_rotation(const json& vision, formats::MetaList& metadata) {
  const json rope = vision.value("rope_parameters", json());
  const json own = rope.is_object() ? rope : json::object();
  if (own.value("rope_type", json("axial")) != "default") CANDOR_TRY(hub_only(own, "rope_type", "axial"));
  CANDOR_ASSIGN(const double usual, hub_positive(vision, "rope_theta", GridRotation{}.base));
  CANDOR_ASSIGN(const double base, hub_positive(own, "rope_theta", usual));
  metadata.add("candor.vision.rope_base", base);
  return {};
}

Result<void> read_hub_pixel_bounds(const json& processor, PixelBounds usual, formats::MetaList& metadata) {
  const json size = processor.value("size", json::object());
  const bool is_old = processor.contains("min_pixels") || processor.contains("max_pixels");
  const json& from = is_old ? processor : size;
  CANDOR_ASSIGN(const int32_t least, hub_int(from, is_old ? "min_pixels" : "shortest_edge", usual.least, INT32_MAX));
  CANDOR_ASSIGN(const int32_t most, hub_int(from, is_old ? "max_pixels" : "longest_edge", usual.most, INT32_MAX));
  metadata.add(fmt::format("{}.image_min_pixels", kPrefix), static_cast<uint64_t>(least));
  metadata.add(fmt::format("{}.image_max_pixels", kPrefix), static_cast<uint64_t>(most));
  return {};
}

Result<void> add_pixels(const image::Recipe& recipe, formats::MetaList& metadata) {
  const image::Normalisation usual;
  const image::Normalisation& how = recipe.normalisation;
  if (!how.does_rescale || !how.does_normalise || how.rescale_factor != usual.rescale_factor) {
    return fail(ErrorKind::kUnsupported,
                "'preprocessor_config.json': supported are \"do_rescale\" and \"do_normalize\" true, and a "
                "\"rescale_factor\" of 1 / 255");
  }
  const auto list = [](const std::array<double, 3>& numbers) {
    return formats::MetaArray(std::vector<double>(numbers.begin(), numbers.end()));
  };
  metadata.add(fmt::format("{}.image_mean", kPrefix), list(how.mean));
  metadata.add(fmt::format("{}.image_std", kPrefix), list(how.deviation));
  return {};
}

Result<void> read_hub_feature_layer(const json& config, int32_t fallback, formats::MetaList& metadata) {
  const std::string key = fmt::format("{}.block_count", kPrefix);
  const auto n_blocks = static_cast<int64_t>(std::get<uint64_t>(*metadata.find(key)));
  const json layer = config.value("vision_feature_layer", json(fallback));
  const int64_t number = layer.is_number_integer() ? layer.get<int64_t>() : INT64_MIN;
  const int64_t n_used = number < 0 && number >= -n_blocks ? n_blocks + 1 + number : number;
  if (n_used < 1 || n_used > n_blocks) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("'config.json': \"vision_feature_layer\" is {}, expected one whole number from -{} to {}, "
                            "but for 0",
                            layer.dump(), n_blocks, n_blocks));
  }
  metadata.add(std::string(kStoredBlocks), static_cast<uint64_t>(n_blocks));
  metadata.add(key, static_cast<uint64_t>(n_used));
  return {};
}

Result<void> read_hub_tower(const json& config, const json& processor, std::string_view projector,
                            const TowerDefaults& defaults, formats::MetaList& metadata, const TowerNames& names) {
  const auto vision = config.find("vision_config");
  if (vision == config.end() || !vision->is_object()) {
    return fail(ErrorKind::kInvalidInput,
                "'config.json': \"vision_config\" is absent, which describes the images' tower");
  }
  const auto key = [](const char* name) { return fmt::format("{}.{}", kPrefix, name); };
  const auto add = [&](const char* name, const char* hub, int32_t fallback, int32_t most) -> Result<void> {
    if (hub == nullptr) return {};
    CANDOR_ASSIGN(const int32_t value, hub_int(*vision, hub, fallback, most));
    metadata.add(key(name), static_cast<uint64_t>(value));
    return {};
  };
  metadata.add_string("general.architecture", "clip");
  metadata.add_string("clip.projector_type", std::string(projector));
  CANDOR_TRY(add("embedding_length", "hidden_size", defaults.dim, static_cast<int32_t>(model::kMaxWidth)));
  CANDOR_TRY(add("feed_forward_length", "intermediate_size", defaults.ffn_dim, static_cast<int32_t>(model::kMaxWidth)));
  CANDOR_TRY(add("block_count", names.n_blocks, defaults.n_blocks, static_cast<int32_t>(model::kMaxLayers)));
  CANDOR_TRY(add("attention.head_count", names.n_heads, defaults.n_heads, static_cast<int32_t>(model::kMaxWidth)));
  CANDOR_TRY(add("image_size", names.image_size, defaults.image_size, kMostSide));
  CANDOR_TRY(add("patch_size", "patch_size", defaults.patch_size, kMostSide));
  const json epsilon = vision->value("layer_norm_eps", json(defaults.epsilon));
  if (!epsilon.is_number()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("'config.json': \"layer_norm_eps\" is {}, expected a number", epsilon.dump()));
  }
  metadata.add(key("attention.layer_norm_epsilon"), epsilon.get<double>());
  CANDOR_TRY(read_hub_act(*vision, defaults.acts, metadata));
  for (const char* name : {"image_mean", "image_std"}) {
    const auto numbers = processor.find(name);
    std::vector<double> values;
    if (numbers != processor.end() && numbers->is_array()) {
      for (const json& number : *numbers) {
        if (number.is_number()) values.push_back(number.get<double>());
      }
    }
    metadata.add(key(name), formats::MetaArray(values.empty() ? std::vector<double>(3, 0.5) : std::move(values)));
  }
  return {};
}

}  // namespace candor::vision
