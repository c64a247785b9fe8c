// LLaVA 1.5 and models of its shape: the middle of an image; a CLIP tower with a class token, whose second last block
// gives the features; two matrices. Liu et al., "Improved baselines with visual instruction tuning", 2024; Radford et
// al., "Learning transferable visual models from natural language supervision", 2021.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

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
constexpr std::string_view kModelTypes[] = {"llava"};
constexpr std::string_view kActs[] = {"quick_gelu", "gelu"};
constexpr std::array kOwnNames = {HubName{"v.class_embd", "embeddings.class_embedding"},
                                  HubName{"v.pre_ln.weight", "pre_layrnorm.weight"},
                                  HubName{"v.pre_ln.bias", "pre_layrnorm.bias"},
                                  HubName{"mm.0.weight", "linear_1.weight"},
                                  HubName{"mm.0.bias", "linear_1.bias"},
                                  HubName{"mm.2.weight", "linear_2.weight"},
                                  HubName{"mm.2.bias", "linear_2.bias"}};
constexpr auto kNames = model::join(kHubVit, kOwnNames);
constexpr std::string_view kIgnored[] = {"post_layernorm.weight", "post_layernorm.bias", "embeddings.position_ids"};
constexpr TowerDefaults kDefaults = {768, 3072, 12, 12, 224, 32, 1e-5, kActs};

// What llama.cpp's converter writes where the features are not those of the last block in the file, or where an image
// is cut or padded.
Result<void> refuse_others(const formats::ModelFile& file, int32_t n_blocks) {
  CANDOR_ASSIGN(const std::vector<int64_t>* layers, formats::meta_ints(file, "clip.vision.feature_layer"));
  if (layers != nullptr && *layers != std::vector<int64_t>{n_blocks}) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("metadata key \"clip.vision.feature_layer\" is [{}], expected [{}], which is the number of "
                            "blocks",
                            fmt::join(*layers, ", "), n_blocks));
  }
  CANDOR_ASSIGN(const std::vector<int64_t>* grids, formats::meta_ints(file, "clip.vision.image_grid_pinpoints"));
  if (grids != nullptr && !grids->empty()) {
    return fail(ErrorKind::kUnsupported,
                "metadata key \"clip.vision.image_grid_pinpoints\" cuts images into tiles (LLaVA-NeXT): known is LLaVA "
                "with one tile");
  }
  CANDOR_ASSIGN(const std::optional<std::string_view> shape,
                formats::meta_string(file, "clip.vision.image_aspect_ratio"));
  if (!shape || *shape == "square") return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("metadata key \"clip.vision.image_aspect_ratio\" is {}, expected \"square\"",
                          formats::in_quotes(*shape)));
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  const model::Hparams hparams(file, "clip.vision");
  CANDOR_ASSIGN(const backend::GateKind gate, read_gate(file));
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, gate));
  CANDOR_TRY(refuse_others(file, static_cast<int32_t>(spec.tower.blocks.size())));
  CANDOR_ASSIGN(const int32_t hidden, projection_width(file, "mm.0.weight"));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.2.weight"));
  CANDOR_ASSIGN(const int32_t side, hparams.require_int("image_size", {1, 16384}));
  spec.family = "mlp";
  spec.recipe.layout = image::ShortestEdge{side, {side, side}};
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
Result<void> read_processor(const json& processor, formats::MetaList& metadata) {
  const auto number = [&](const char* key) { return static_cast<int32_t>(std::get<uint64_t>(*metadata.find(key))); };
  const int32_t side = number("clip.vision.image_size");
  CANDOR_ASSIGN(const image::Recipe recipe,
                image::recipe_of(processor.dump(), {.patch = number("clip.vision.patch_size")}));
  const image::Layout known = image::ShortestEdge{side, {side, side}};
  if (recipe.layout == known && recipe.filter == image::Filter::kBicubic) return add_pixels(recipe, metadata);
  return fail(ErrorKind::kUnsupported,
              fmt::format("'preprocessor_config.json' describes \"{}\"; supported: the short side to {} by a bicubic "
                          "filter, then the middle {} x {}",
                          image::describe(recipe), side, side, side));
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_TRY(hub_only(config.at("vision_config"), "model_type", "clip_vision_model"));
  CANDOR_TRY(hub_only(config, "projector_hidden_act", "gelu"));
  CANDOR_TRY(hub_only(config, "vision_feature_select_strategy", "default"));
  CANDOR_TRY(read_hub_tower(config, processor, "mlp", kDefaults, metadata));
  CANDOR_TRY(read_hub_feature_layer(config, -2, metadata));
  return read_processor(processor, metadata);
}

}  // namespace
}  // namespace llava

VisionFamily llava_family() {
  using namespace llava;
  return {.projector = "mlp",
          .read = read,
          .model_types = kModelTypes,
          .stems = kHubStems,
          .names = kNames,
          .ignored = kIgnored,
          .read_hub = read_hub,
          .folds = {.class_row = true, .quick_gelu = true}};
}

}  // namespace candor::vision
