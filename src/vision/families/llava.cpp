// LLaVA 1.5 and models of its shape: the middle of an image; a CLIP tower with a class token, whose second last block
// gives the features; two matrices. LLaVA-NeXT: tiles of a canvas and the whole image, with a vector behind each line
// of rows. Liu et al., "Improved baselines with visual instruction tuning", 2024; Liu et al., "LLaVA-NeXT: improved
// reasoning, OCR, and world knowledge", 2024; Radford et al., "Learning transferable visual models from natural
// language supervision", 2021.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "formats/quote.h"
#include "image/processor_config.h"
#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace llava {
namespace {

using nlohmann::json;

// Files of a text model whose vocabulary came without the first have the second.
constexpr std::string_view kRowTokens[] = {"<image>", "<unk>"};
constexpr std::string_view kModelTypes[] = {"llava", "llava_next"};
constexpr std::string_view kActs[] = {"quick_gelu", "gelu"};
constexpr std::array kOwnNames = {HubName{"v.class_embd", "embeddings.class_embedding"},
                                  HubName{"v.pre_ln.weight", "pre_layrnorm.weight"},
                                  HubName{"v.pre_ln.bias", "pre_layrnorm.bias"},
                                  HubName{"v.image_newline", "newline"},
                                  HubName{"mm.0.weight", "linear_1.weight"},
                                  HubName{"mm.0.bias", "linear_1.bias"},
                                  HubName{"mm.2.weight", "linear_2.weight"},
                                  HubName{"mm.2.bias", "linear_2.bias"}};
constexpr auto kNames = model::join(kHubVit, kOwnNames);
constexpr std::array<std::string_view, 2> kNewlineStems = {"model.image_", "image_"};
constexpr auto kStems = model::join(std::to_array(kHubStems), kNewlineStems);
constexpr const char* kNewline = "v.image_newline";
constexpr HubName kFileNames[] = {{kNewline, "model.image_newline"}};
constexpr const char* kCanvases = "clip.vision.image_grid_pinpoints";
constexpr std::string_view kIgnored[] = {"post_layernorm.weight", "post_layernorm.bias", "embeddings.position_ids"};
constexpr TowerDefaults kDefaults = {768, 3072, 12, 12, 224, 32, 1e-5, kActs};
constexpr int32_t kMostCanvasSide = 16384;

// What llama.cpp's converter writes where the features are not those of the last block in the file, or where an image
// is cut or padded.
Result<void> refuse_others(const formats::ModelFile& file, int32_t n_blocks, bool has_canvases) {
  CANDOR_ASSIGN(const std::vector<int64_t>* layers, formats::meta_ints(file, "clip.vision.feature_layer"));
  if (layers != nullptr && *layers != std::vector<int64_t>{n_blocks}) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("metadata key \"clip.vision.feature_layer\" is [{}], expected [{}], which is the number of "
                            "blocks",
                            fmt::join(*layers, ", "), n_blocks));
  }
  const auto expect = [&](const char* key, std::string_view known) -> Result<void> {
    CANDOR_ASSIGN(const std::optional<std::string_view> value, formats::meta_string(file, key));
    if (!value || *value == known) return {};
    return fail(ErrorKind::kUnsupported,
                fmt::format("metadata key \"{}\" is {}, expected \"{}\"", key, formats::in_quotes(*value), known));
  };
  CANDOR_TRY(expect("clip.vision.image_aspect_ratio", has_canvases ? "anyres" : "square"));
  return expect("clip.vision.mm_patch_merge_type", has_canvases ? "spatial_unpad" : "flat");
}

// Of LLaVA-NeXT: pairs of width and height.
Result<std::vector<image::Size>> read_canvases(const formats::ModelFile& file, int32_t side) {
  CANDOR_ASSIGN(const std::vector<int64_t>* numbers, formats::meta_ints(file, kCanvases));
  std::vector<image::Size> canvases;
  if (numbers == nullptr) return canvases;
  const bool are_sides =
      std::ranges::all_of(*numbers, [side](int64_t n) { return n >= side && n <= kMostCanvasSide && n % side == 0; });
  if (!are_sides || numbers->size() % 2 != 0) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata key \"{}\" is [{}], expected widths and heights that are multiples of a tile's "
                            "{}, at most {}",
                            kCanvases, fmt::join(*numbers, ", "), side, kMostCanvasSide));
  }
  for (size_t i = 0; i < numbers->size(); i += 2) {
    canvases.push_back(
        {.height = static_cast<int32_t>((*numbers)[i + 1]), .width = static_cast<int32_t>((*numbers)[i])});
  }
  return canvases;
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  const model::Hparams hparams(file, "clip.vision");
  CANDOR_ASSIGN(const backend::GateKind gate, read_gate(file));
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, gate));
  CANDOR_ASSIGN(const int32_t hidden, projection_width(file, "mm.0.weight"));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.2.weight"));
  CANDOR_ASSIGN(const int32_t side, hparams.require_int("image_size", {1, 16384}));
  CANDOR_ASSIGN(std::vector<image::Size> canvases, read_canvases(file, side));
  CANDOR_TRY(refuse_others(file, static_cast<int32_t>(spec.tower.blocks.size()), !canvases.empty()));
  spec.family = "mlp";
  spec.recipe.layout = image::ShortestEdge{side, {side, side}};
  if (!canvases.empty()) {
    spec.recipe.layout = image::CanvasTiles{side, std::move(canvases)};
    spec.newline = kNewline;
  }
  spec.recipe.filter = image::Filter::kBicubic;
  add_class_row(spec);
  spec.entry.layers.push_back({.kind = RowLayerKind::kNorm,
                               .weight = "v.pre_ln.weight",
                               .bias = "v.pre_ln.bias",
                               .norm = spec.tower.blocks.front().norm});
  spec.tower.has_final_norm = false;
  spec.projector.n_in = spec.tower.dim;
  spec.projector.layers = {{.weight = "mm.0.weight", .bias = "mm.0.bias", .n_out = hidden},
                           {.kind = RowLayerKind::kActivate, .act = backend::GateKind::kGeluErf},
                           {.weight = "mm.2.weight", .bias = "mm.2.bias", .n_out = width}};
  spec.prompt = {.mark = "<image>", .row_tokens = kRowTokens, .expand = expand_one_tile};
  return spec;
}

// The folder's own image processor must do what read() says, which is all that mmproj files know.
Result<void> read_processor(const json& processor, bool has_canvases, formats::MetaList& metadata) {
  const auto number = [&](const char* key) { return static_cast<int32_t>(std::get<uint64_t>(*metadata.find(key))); };
  const int32_t side = number("clip.vision.image_size");
  CANDOR_ASSIGN(const image::Recipe recipe,
                image::recipe_of(processor.dump(), {.patch = number("clip.vision.patch_size")}));
  const image::Layout one_tile = image::ShortestEdge{side, {side, side}};
  const auto* tiles = std::get_if<image::CanvasTiles>(&recipe.layout);
  const bool is_known = has_canvases ? tiles != nullptr && tiles->tile_side == side : recipe.layout == one_tile;
  if (!is_known || recipe.filter != image::Filter::kBicubic) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("'preprocessor_config.json' describes \"{}\"; supported by a bicubic filter: {} {} x {}",
                            image::describe(recipe),
                            has_canvases ? "what LlavaNextImageProcessor makes with tiles of"
                                         : fmt::format("the short side to {}, then the middle", side),
                            side, side));
  }
  std::vector<int64_t> sides;
  if (tiles != nullptr) {
    for (const image::Size canvas : tiles->canvases) sides.insert(sides.end(), {canvas.width, canvas.height});
    metadata.add(kCanvases, formats::MetaArray(std::move(sides)));
  }
  return add_pixels(recipe, metadata);
}

// The model's class and the image processor must mean the same.
Result<void> check_canvases(const json& config, const json& processor) {
  const char* key = "image_grid_pinpoints";
  const json usual = {{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  const auto stated = [&](const json& object) {
    const json value = object.value(key, json());
    return value.is_null() ? usual : value;
  };
  const json own = stated(config);
  const json other = stated(processor);
  if (own == other) return {};
  return fail(
      ErrorKind::kInvalidInput,
      fmt::format("'config.json': \"{}\" is {:.200}, and in 'preprocessor_config.json' {:.200}: expected the same", key,
                  own.dump(), other.dump()));
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_TRY(hub_only(config.at("vision_config"), "model_type", "clip_vision_model"));
  CANDOR_TRY(hub_only(config, "projector_hidden_act", "gelu"));
  CANDOR_TRY(hub_only(config, "vision_feature_select_strategy", "default"));
  CANDOR_TRY(read_hub_tower(config, processor, "mlp", kDefaults, metadata));
  CANDOR_TRY(read_hub_feature_layer(config, -2, metadata));
  const bool is_next = config.at("model_type") == "llava_next";
  if (is_next) CANDOR_TRY(check_canvases(config, processor));
  return read_processor(processor, is_next, metadata);
}

}  // namespace
}  // namespace llava

VisionFamily llava_family() {
  using namespace llava;
  return {.projector = "mlp",
          .read = read,
          .model_types = kModelTypes,
          .stems = kStems,
          .names = kNames,
          .ignored = kIgnored,
          .read_hub = read_hub,
          .file_names = kFileNames,
          .folds = {.class_row = true, .quick_gelu = true}};
}

}  // namespace candor::vision
