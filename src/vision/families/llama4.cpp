// Llama 4: an image becomes as many square tiles as hold it, and is read as a whole beside them; a tower with a table
// of positions, rotary ones of rows and columns, and a class token behind the patches; four neighbouring rows become
// one, three matrices. Meta, 2025.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "image/processor_config.h"
#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace llama4 {
namespace {

using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"<|patch|>"};
constexpr std::string_view kModelTypes[] = {"llama4"};
constexpr std::string_view kStems[] = {"vision_model.", "model.vision_model.", "multi_modal_projector.",
                                       "model.multi_modal_projector."};
constexpr std::string_view kActs[] = {"gelu"};
constexpr std::array kNames = {
    HubName{"v.class_embd", "class_embedding"},
    HubName{"v.position_embd.weight", "positional_embedding_vlm"},
    HubName{"v.patch_embd.weight", "patch_embedding.linear.weight"},
    HubName{"v.pre_ln.weight", "layernorm_pre.weight"},
    HubName{"v.pre_ln.bias", "layernorm_pre.bias"},
    HubName{"v.blk.*.ln1.weight", "model.layers.*.input_layernorm.weight"},
    HubName{"v.blk.*.ln1.bias", "model.layers.*.input_layernorm.bias"},
    HubName{"v.blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight"},
    HubName{"v.blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias"},
    HubName{"v.blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight"},
    HubName{"v.blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias"},
    HubName{"v.blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight"},
    HubName{"v.blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias"},
    HubName{"v.blk.*.attn_out.weight", "model.layers.*.self_attn.o_proj.weight"},
    HubName{"v.blk.*.attn_out.bias", "model.layers.*.self_attn.o_proj.bias"},
    HubName{"v.blk.*.ln2.weight", "model.layers.*.post_attention_layernorm.weight"},
    HubName{"v.blk.*.ln2.bias", "model.layers.*.post_attention_layernorm.bias"},
    HubName{"v.blk.*.ffn_up.weight", "model.layers.*.mlp.fc1.weight"},
    HubName{"v.blk.*.ffn_up.bias", "model.layers.*.mlp.fc1.bias"},
    HubName{"v.blk.*.ffn_down.weight", "model.layers.*.mlp.fc2.weight"},
    HubName{"v.blk.*.ffn_down.bias", "model.layers.*.mlp.fc2.bias"},
    HubName{"v.post_ln.weight", "layernorm_post.weight"},
    HubName{"v.post_ln.bias", "layernorm_post.bias"},
    HubName{"mm.model.mlp.1.weight", "vision_adapter.mlp.fc1.weight"},
    HubName{"mm.model.mlp.2.weight", "vision_adapter.mlp.fc2.weight"},
    HubName{"mm.model.fc.weight", "linear_1.weight"},
};
// Newer files of llama.cpp.
constexpr HubName kFileNames[] = {{"v.blk.*.ln2.weight", "v.blk.*.attn_post_norm.weight"},
                                  {"v.blk.*.ln2.bias", "v.blk.*.attn_post_norm.bias"}};
constexpr std::string_view kIgnored[] = {"rotary_embedding.freqs_ci"};
constexpr TowerDefaults kDefaults = {768, 5632, 34, 16, 448, 14, 1e-5, kActs};
constexpr int32_t kMostTiles = 64;

std::string expand(const image::Prepared& prepared, std::string_view row, std::span<const int32_t> rows_of_tiles) {
  const std::string tile = repeated(row, rows_of_tiles.front());
  std::string text = "<|image_start|>";
  for (int32_t r = 0; r < prepared.n_tile_rows; ++r) {
    for (int32_t c = 0; c < prepared.n_tile_cols; ++c) text += (c > 0 ? "<|tile_x_separator|>" : "") + tile;
    text += "<|tile_y_separator|>";
  }
  return text + "<|image|>" + tile + "<|image_end|>";
}

// Files of llama.cpp say the side alone.
Result<void> read_tiles(const formats::ModelFile& file, image::Recipe& recipe) {
  const model::Hparams own(file, "candor.vision");
  image::FittedTiles tiles;
  CANDOR_ASSIGN(tiles.tile_side, model::Hparams(file, "clip.vision").require_int("image_size", {1, 16384}));
  CANDOR_ASSIGN(tiles.max_tiles, own.int_or("max_tiles", tiles.max_tiles, {1, kMostTiles}));
  CANDOR_ASSIGN(const auto is_largest, formats::meta_bool(file, "candor.vision.is_largest"));
  tiles.is_largest = is_largest.value_or(false);
  recipe.layout = tiles;
  recipe.filter = image::Filter::kBilinear;
  recipe.normalisation.is_rounded = true;
  return {};
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, backend::GateKind::kGeluErf));
  CANDOR_ASSIGN(const int32_t n, model::Hparams(file, "clip.vision").int_or("projector.scale_factor", 2, {1, 64}));
  CANDOR_ASSIGN(const int32_t first, projection_width(file, "mm.model.mlp.1.weight"));
  CANDOR_ASSIGN(const int32_t second, projection_width(file, "mm.model.mlp.2.weight"));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.model.fc.weight"));
  CANDOR_ASSIGN(const double base, read_rotary_base(file));
  CANDOR_TRY(read_tiles(file, spec.recipe));
  spec.family = "llama4";
  spec.first_axis = 1;
  CANDOR_TRY(
      rotate_by_grid({.base = base, .pairs = backend::RopePairs::kInterleaved, .columns_first = true}, spec.tower));
  add_class_row(spec);
  spec.entry.layers.front().bias.clear();
  spec.entry.layers.push_back({.kind = RowLayerKind::kNorm,
                               .weight = "v.pre_ln.weight",
                               .bias = "v.pre_ln.bias",
                               .norm = spec.tower.blocks.front().norm});
  spec.regroup = {RegroupKind::kJoin, n};
  spec.projector.n_in = spec.regroup.width(spec.tower.dim);
  spec.projector.layers = {{.weight = "mm.model.mlp.1.weight", .n_out = first},
                           {.kind = RowLayerKind::kActivate, .act = backend::GateKind::kGeluErf},
                           {.weight = "mm.model.mlp.2.weight", .n_out = second},
                           {.kind = RowLayerKind::kActivate, .act = backend::GateKind::kGeluErf},
                           {.weight = "mm.model.fc.weight", .n_out = width}};
  spec.prompt = {.mark = "<|image|>", .row_tokens = kRowTokens, .expand = expand};
  return spec;
}

Result<void> read_processor(const json& processor, formats::MetaList& metadata) {
  const auto number = [&](const char* key) { return static_cast<int32_t>(std::get<uint64_t>(*metadata.find(key))); };
  const int32_t side = number("clip.vision.image_size");
  CANDOR_ASSIGN(const image::Recipe recipe,
                image::recipe_of(processor.dump(), {.patch = number("clip.vision.patch_size")}));
  const auto* tiles = std::get_if<image::FittedTiles>(&recipe.layout);
  if (tiles == nullptr || tiles->tile_side != side || recipe.filter != image::Filter::kBilinear) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("'preprocessor_config.json' describes \"{}\"; supported: what Llama4ImageProcessor makes by "
                    "a bilinear filter, tiles of {} x {}",
                    image::describe(recipe), side, side));
  }
  metadata.add("candor.vision.max_tiles", static_cast<uint64_t>(tiles->max_tiles));
  metadata.add("candor.vision.is_largest", tiles->is_largest);
  return add_pixels(recipe, metadata);
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  const json& vision = config.at("vision_config");
  CANDOR_TRY(hub_only(vision, "model_type", "llama4_vision_model"));
  CANDOR_TRY(read_hub_tower(config, processor, "llama4", kDefaults, metadata));
  CANDOR_TRY(hub_only(vision, "num_channels", 3));
  CANDOR_TRY(hub_only(vision, "multi_modal_projector_bias", false));
  CANDOR_TRY(read_hub_rotation(vision, metadata));
  CANDOR_ASSIGN(const int32_t n, hub_inverse(vision, "pixel_shuffle_ratio"));
  metadata.add("clip.vision.projector.scale_factor", static_cast<uint64_t>(n));
  return read_processor(processor, metadata);
}

}  // namespace
}  // namespace llama4

VisionFamily llama4_family() {
  using namespace llama4;
  return {.projector = "llama4",
          .read = read,
          .model_types = kModelTypes,
          .stems = kStems,
          .names = kNames,
          .ignored = kIgnored,
          .read_hub = read_hub,
          .file_names = kFileNames,
          .folds = {.class_row = true, .class_row_is_last = true}};
}

}  // namespace candor::vision
