// LFM2-VL: an image keeps its shape, within bounds; a much larger one is cut into square tiles, and read as a whole
// beside them. A SigLIP 2 tower whose positions are resized to each tile, neighbouring rows joined, a norm where there
// is one, two matrices. Liquid AI, 2025; Tschannen et al., "SigLIP 2", 2025 (its NaFlex variant).

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "image/processor_config.h"
#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace lfm2_vl {
namespace {

using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"<image>"};
constexpr std::string_view kModelTypes[] = {"lfm2_vl"};
constexpr std::array kOwnNames = {HubName{"mm.input_norm.weight", "layer_norm.weight"},
                                  HubName{"mm.input_norm.bias", "layer_norm.bias"},
                                  HubName{"mm.1.weight", "linear_1.weight"},
                                  HubName{"mm.1.bias", "linear_1.bias"},
                                  HubName{"mm.2.weight", "linear_2.weight"},
                                  HubName{"mm.2.bias", "linear_2.bias"}};
constexpr auto kNames = model::join(kHubVit, kHubFinalNorm, kOwnNames);
constexpr TowerDefaults kDefaults = {768, 3072, 12, 12, 256, 16, 1e-6, kTanhGelu};
constexpr float kProjectorEpsilon = 1e-5f;
constexpr int32_t kMostTokens = 1 << 14;
constexpr int32_t kMostTiles = 64;

std::string expand(const image::Prepared& prepared, std::string_view row, std::span<const int32_t> rows_of_tiles) {
  std::string text = "<|image_start|>";
  size_t tile = 0;
  for (int32_t r = 0; r < prepared.n_tile_rows; ++r) {
    for (int32_t c = 0; c < prepared.n_tile_cols; ++c) {
      text += fmt::format("<|img_row_{}_col_{}|>{}", r + 1, c + 1, repeated(row, rows_of_tiles[tile++]));
    }
  }
  if (tile > 0) text += "<|img_thumbnail|>";
  return text + repeated(row, rows_of_tiles[tile]) + "<|image_end|>";
}

// Of folders alone: files of llama.cpp have one set of sizes.
Result<image::SmartTiles> read_tiles(const formats::ModelFile& file, int32_t patch, int32_t merge) {
  const model::Hparams own(file, "candor.vision");
  image::SmartTiles tiles;
  CANDOR_ASSIGN(const int32_t least, own.int_or("min_tokens", 64, {1, kMostTokens}));
  CANDOR_ASSIGN(const int32_t most, own.int_or("max_tokens", 256, {least, kMostTokens / (merge * merge)}));
  CANDOR_ASSIGN(tiles.tile_side, own.int_or("tile_side", tiles.tile_side, {patch * merge, 16384}));
  CANDOR_ASSIGN(tiles.min_tiles, own.int_or("min_tiles", tiles.min_tiles, {1, kMostTiles}));
  CANDOR_ASSIGN(tiles.max_tiles, own.int_or("max_tiles", tiles.max_tiles, {tiles.min_tiles, kMostTiles}));
  CANDOR_ASSIGN(tiles.tolerance, own.positive_or("tolerance", tiles.tolerance));
  const int64_t pixels = int64_t{patch} * patch * merge * merge;
  tiles.whole = {.min_pixels = least * pixels, .max_pixels = most * pixels, .merge = merge};
  if (tiles.tile_side % (patch * merge) == 0) return tiles;
  return fail(ErrorKind::kUnsupported, fmt::format("tiles of {} pixels: patches of {}, {} merged, do not divide them",
                                                   tiles.tile_side, patch, merge));
}

// The table of positions instead of read_tower()'s.
Result<void> resize_positions(VisionSpec& spec, int32_t side) {
  spec.positions = {"v.position_embd.weight", side, PositionKind::kFiltered};
  std::erase_if(spec.entry.layers, [](const RowLayer& layer) { return layer.kind == RowLayerKind::kAddPositions; });
  const auto& tiles = std::get<image::SmartTiles>(spec.recipe.layout);
  const int64_t patch = spec.recipe.patch_side;
  const int64_t n_patches =
      std::max(tiles.whole.max_pixels, int64_t{tiles.tile_side} * tiles.tile_side) / (patch * patch);
  if (n_patches > kMostTokens) {
    return fail(ErrorKind::kUnsupported, fmt::format("{} patches a tile, expected at most {}", n_patches, kMostTokens));
  }
  spec.max_patches = spec.tower.max_positions = static_cast<int32_t>(n_patches);
  return {};
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  const model::Hparams hparams(file, "clip.vision");
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, backend::GateKind::kGelu));
  CANDOR_ASSIGN(const int32_t n, hparams.int_or("projector.scale_factor", 2, {1, 16}));
  CANDOR_ASSIGN(const int32_t side, hparams.require_int("image_size", {1, 16384}));
  CANDOR_ASSIGN(const int32_t hidden, projection_width(file, "mm.1.weight"));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.2.weight"));
  spec.family = "lfm2";
  CANDOR_ASSIGN(spec.recipe.layout, read_tiles(file, spec.recipe.patch_side, n));
  spec.recipe.filter = image::Filter::kBilinear;
  CANDOR_TRY(resize_positions(spec, side / spec.recipe.patch_side));
  spec.regroup = {RegroupKind::kJoin, n};
  spec.projector.n_in = spec.regroup.width(spec.tower.dim);
  spec.projector.layers = {{.weight = "mm.1.weight", .bias = "mm.1.bias", .n_out = hidden},
                           {.kind = RowLayerKind::kActivate, .act = backend::GateKind::kGeluErf},
                           {.weight = "mm.2.weight", .bias = "mm.2.bias", .n_out = width}};
  if (file.find("mm.input_norm.weight") != nullptr) {
    spec.projector.layers.insert(spec.projector.layers.begin(),
                                 {.kind = RowLayerKind::kNorm,
                                  .weight = "mm.input_norm.weight",
                                  .bias = "mm.input_norm.bias",
                                  .norm = {backend::NormKind::kLayer, kProjectorEpsilon}});
  }
  spec.prompt = {.mark = "<image>", .row_tokens = kRowTokens, .expand = expand};
  return spec;
}

// "num_patches" stands for the side of an image.
Result<json> with_image_size(const json& config) {
  json changed = config;
  json& vision = changed.at("vision_config");
  if (!vision.is_object()) return changed;
  CANDOR_ASSIGN(const int32_t n_patches, hub_int(vision, "num_patches", 256, kMostTokens));
  CANDOR_ASSIGN(const int32_t patch, hub_int(vision, "patch_size", kDefaults.patch_size, 16384));
  const auto side = static_cast<int32_t>(std::lround(std::sqrt(static_cast<double>(n_patches))));
  if (side * side != n_patches) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("'config.json': \"num_patches\" of \"vision_config\" is {}, expected a square", n_patches));
  }
  vision["image_size"] = side * patch;
  return changed;
}

Result<void> read_processor(const json& processor, int32_t merge, formats::MetaList& metadata) {
  const auto patch = static_cast<int32_t>(std::get<uint64_t>(*metadata.find("clip.vision.patch_size")));
  CANDOR_ASSIGN(const image::Recipe recipe, image::recipe_of(processor.dump(), {.patch = patch, .merge = merge}));
  const auto* tiles = std::get_if<image::SmartTiles>(&recipe.layout);
  if (tiles == nullptr || recipe.filter != image::Filter::kBilinear) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("'preprocessor_config.json' describes \"{}\"; supported: what Lfm2VlImageProcessor makes by a "
                    "bilinear filter",
                    image::describe(recipe)));
  }
  const int64_t pixels = int64_t{patch} * patch * merge * merge;
  metadata.add("candor.vision.min_tokens", static_cast<uint64_t>(tiles->whole.min_pixels / pixels));
  metadata.add("candor.vision.max_tokens", static_cast<uint64_t>(tiles->whole.max_pixels / pixels));
  metadata.add("candor.vision.tile_side", static_cast<uint64_t>(tiles->tile_side));
  metadata.add("candor.vision.min_tiles", static_cast<uint64_t>(tiles->min_tiles));
  metadata.add("candor.vision.max_tiles", static_cast<uint64_t>(tiles->max_tiles));
  metadata.add("candor.vision.tolerance", tiles->tolerance);
  return add_pixels(recipe, metadata);
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const json own, with_image_size(config));
  CANDOR_TRY(hub_only(config.at("vision_config"), "model_type", "siglip2_vision_model"));
  CANDOR_TRY(hub_only(config, "projector_hidden_act", "gelu"));
  CANDOR_TRY(hub_only(config, "vision_feature_layer", -1));
  CANDOR_TRY(read_hub_tower(own, processor, "lfm2", kDefaults, metadata));
  CANDOR_ASSIGN(const int32_t merge, hub_int(config, "downsample_factor", 2, 16));
  metadata.add("clip.vision.projector.scale_factor", static_cast<uint64_t>(merge));
  return read_processor(processor, merge, metadata);
}

}  // namespace
}  // namespace lfm2_vl

VisionFamily lfm2_vl_family() {
  using namespace lfm2_vl;
  return {.projector = "lfm2",
          .read = read,
          .model_types = kModelTypes,
          .stems = kHubStems,
          .names = kNames,
          .ignored = kHubPooling,
          .read_hub = read_hub,
          .has_channels_last = true};
}

}  // namespace candor::vision
