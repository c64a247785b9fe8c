// InternVL 2.5 and 3: an image becomes as many square tiles as make the nearest shape, and is read as a whole beside
// them; a tower with a class token and a factor for each output of a layer, neighbouring rows joined, a norm and two
// matrices. Chen et al., "Expanding performance boundaries of open-source multimodal models", 2024.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <variant>

#include "image/processor_config.h"
#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace internvl {
namespace {

using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"<IMG_CONTEXT>"};
constexpr std::string_view kModelTypes[] = {"internvl"};
constexpr std::string_view kActs[] = {"gelu", "silu"};
constexpr std::array kNames = {
    HubName{"v.class_embd", "embeddings.cls_token"},
    HubName{"v.position_embd.weight", "embeddings.position_embeddings"},
    HubName{"v.patch_embd.weight", "embeddings.patch_embeddings.projection.weight"},
    HubName{"v.patch_embd.bias", "embeddings.patch_embeddings.projection.bias"},
    HubName{"v.blk.*.ln1.weight", "encoder.layer.*.layernorm_before.weight"},
    HubName{"v.blk.*.ln1.bias", "encoder.layer.*.layernorm_before.bias"},
    HubName{"v.blk.*.attn_q.weight", "encoder.layer.*.attention.q_proj.weight"},
    HubName{"v.blk.*.attn_q.bias", "encoder.layer.*.attention.q_proj.bias"},
    HubName{"v.blk.*.attn_k.weight", "encoder.layer.*.attention.k_proj.weight"},
    HubName{"v.blk.*.attn_k.bias", "encoder.layer.*.attention.k_proj.bias"},
    HubName{"v.blk.*.attn_v.weight", "encoder.layer.*.attention.v_proj.weight"},
    HubName{"v.blk.*.attn_v.bias", "encoder.layer.*.attention.v_proj.bias"},
    HubName{"v.blk.*.attn_q_norm.weight", "encoder.layer.*.attention.q_norm.weight"},
    HubName{"v.blk.*.attn_k_norm.weight", "encoder.layer.*.attention.k_norm.weight"},
    HubName{"v.blk.*.attn_out.weight", "encoder.layer.*.attention.projection_layer.weight"},
    HubName{"v.blk.*.attn_out.bias", "encoder.layer.*.attention.projection_layer.bias"},
    HubName{"v.blk.*.ls1.weight", "encoder.layer.*.lambda_1"},
    HubName{"v.blk.*.ln2.weight", "encoder.layer.*.layernorm_after.weight"},
    HubName{"v.blk.*.ln2.bias", "encoder.layer.*.layernorm_after.bias"},
    HubName{"v.blk.*.ffn_up.weight", "encoder.layer.*.mlp.fc1.weight"},
    HubName{"v.blk.*.ffn_up.bias", "encoder.layer.*.mlp.fc1.bias"},
    HubName{"v.blk.*.ffn_down.weight", "encoder.layer.*.mlp.fc2.weight"},
    HubName{"v.blk.*.ffn_down.bias", "encoder.layer.*.mlp.fc2.bias"},
    HubName{"v.blk.*.ls2.weight", "encoder.layer.*.lambda_2"},
    HubName{"v.post_ln.weight", "layernorm.weight"},
    HubName{"v.post_ln.bias", "layernorm.bias"},
    HubName{"mm.model.mlp.0.weight", "layer_norm.weight"},
    HubName{"mm.model.mlp.0.bias", "layer_norm.bias"},
    HubName{"mm.model.mlp.1.weight", "linear_1.weight"},
    HubName{"mm.model.mlp.1.bias", "linear_1.bias"},
    HubName{"mm.model.mlp.3.weight", "linear_2.weight"},
    HubName{"mm.model.mlp.3.bias", "linear_2.bias"},
};
constexpr std::string_view kIgnored[] = {"embeddings.mask_token"};
constexpr TowerDefaults kDefaults = {1024, 4096, 24, 16, 448, 14, 1e-6, kActs};
constexpr float kProjectorEpsilon = 1e-5f;
constexpr float kQkEpsilon = 1e-6f;
constexpr int32_t kMostTiles = 64;

std::string expand(const image::Prepared&, std::string_view row, std::span<const int32_t> rows_of_tiles) {
  return "<img>" + repeated(row, std::accumulate(rows_of_tiles.begin(), rows_of_tiles.end(), 0)) + "</img>";
}

// Which norms there are is known by their tensors: an RMS norm has no biases.
Result<void> read_norms(const formats::ModelFile& file, VisionSpec& spec) {
  const bool is_rms = file.find("v.blk.0.ln1.bias") == nullptr;
  const bool is_qk_normed = file.find("v.blk.0.attn_q_norm.weight") != nullptr;
  for (model::BlockSpec& block : spec.tower.blocks) {
    if (is_rms) block.norm.kind = backend::NormKind::kRms;
    if (is_qk_normed) block.qk_norm = model::QkNorm::kWhole;
  }
  spec.tower.has_final_norm = file.find("v.post_ln.weight") != nullptr;
  if (!is_qk_normed || (is_rms && spec.tower.blocks.front().norm.epsilon == kQkEpsilon)) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("tensor \"v.blk.0.attn_q_norm.weight\": norms of queries and keys are known beside RMS norms "
                          "of the epsilon {} alone",
                          kQkEpsilon));
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  const model::Hparams hparams(file, "clip.vision");
  CANDOR_ASSIGN(const backend::GateKind gate, read_gate(file));
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, gate));
  CANDOR_TRY(read_norms(file, spec));
  CANDOR_ASSIGN(const int32_t n, hparams.int_or("projector.scale_factor", 2, {1, 64}));
  CANDOR_ASSIGN(const int32_t hidden, projection_width(file, "mm.model.mlp.1.weight"));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.model.mlp.3.weight"));
  CANDOR_ASSIGN(const int32_t side, hparams.require_int("image_size", {1, 16384}));
  CANDOR_ASSIGN(const int32_t min_tiles, hparams.int_or("preproc_min_tiles", 1, {1, kMostTiles}));
  CANDOR_ASSIGN(const int32_t max_tiles, hparams.int_or("preproc_max_tiles", 12, {min_tiles, kMostTiles}));
  spec.family = "internvl";
  spec.recipe.layout = image::ShapedTiles{{side, side}, min_tiles, max_tiles};
  spec.recipe.filter = image::Filter::kBicubic;
  add_class_row(spec);
  spec.regroup = {RegroupKind::kJoin, n};
  spec.projector.n_in = spec.regroup.width(spec.tower.dim);
  spec.projector.layers = {{.kind = RowLayerKind::kNorm,
                            .weight = "mm.model.mlp.0.weight",
                            .bias = "mm.model.mlp.0.bias",
                            .norm = {backend::NormKind::kLayer, kProjectorEpsilon}},
                           {.weight = "mm.model.mlp.1.weight", .bias = "mm.model.mlp.1.bias", .n_out = hidden},
                           {.kind = RowLayerKind::kActivate, .act = backend::GateKind::kGeluErf},
                           {.weight = "mm.model.mlp.3.weight", .bias = "mm.model.mlp.3.bias", .n_out = width}};
  spec.prompt = {.mark = "<IMG_CONTEXT>", .row_tokens = kRowTokens, .expand = expand};
  return spec;
}

Result<void> read_norm_type(const json& vision) {
  const json type = vision.is_object() ? vision.value("norm_type", json("layer_norm")) : json("layer_norm");
  if (type == "layer_norm" || type == "rms_norm") return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("'config.json': \"norm_type\" of \"vision_config\" is {}; supported: layer_norm, rms_norm",
                          type.dump()));
}

// Its sides may be pairs.
Result<json> with_one_side(const json& config) {
  json changed = config;
  for (const char* key : {"image_size", "patch_size"}) {
    json& vision = changed.at("vision_config");
    if (!vision.is_object() || !vision.contains(key) || !vision.at(key).is_array()) continue;
    const json sides = vision.at(key);
    if (sides.size() != 2 || sides[0] != sides[1]) {
      return fail(ErrorKind::kUnsupported,
                  fmt::format("'config.json': \"{}\" is {}, expected two equal sides", key, sides.dump()));
    }
    vision[key] = sides[0];
  }
  return changed;
}

// The library's own processor cuts tiles whatever the image processor's file says.
Result<void> read_processor(json processor, formats::MetaList& metadata) {
  processor["crop_to_patches"] = true;
  const auto number = [&](const char* key) { return static_cast<int32_t>(std::get<uint64_t>(*metadata.find(key))); };
  const int32_t side = number("clip.vision.image_size");
  CANDOR_ASSIGN(const image::Recipe recipe,
                image::recipe_of(processor.dump(), {.patch = number("clip.vision.patch_size")}));
  const auto* tiles = std::get_if<image::ShapedTiles>(&recipe.layout);
  if (tiles == nullptr || tiles->tile != image::Size{side, side} || recipe.filter != image::Filter::kBicubic) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("'preprocessor_config.json' describes \"{}\"; supported: tiles of {} x {} by a bicubic filter",
                    image::describe(recipe), side, side));
  }
  metadata.add("clip.vision.preproc_min_tiles", static_cast<uint64_t>(tiles->min_tiles));
  metadata.add("clip.vision.preproc_max_tiles", static_cast<uint64_t>(tiles->max_tiles));
  return add_pixels(recipe, metadata);
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const json own, with_one_side(config));
  CANDOR_TRY(hub_only(config, "projector_hidden_act", "gelu"));
  CANDOR_TRY(hub_only(config, "vision_feature_select_strategy", "default"));
  CANDOR_TRY(hub_only(config, "vision_feature_layer", -1));
  CANDOR_TRY(hub_only(config.at("vision_config"), "use_absolute_position_embeddings", true));
  CANDOR_TRY(read_norm_type(config.at("vision_config")));
  CANDOR_TRY(read_hub_tower(own, processor, "internvl", kDefaults, metadata));
  CANDOR_ASSIGN(const int32_t n, hub_inverse(config, "downsample_ratio"));
  metadata.add("clip.vision.projector.scale_factor", static_cast<uint64_t>(n));
  return read_processor(processor, metadata);
}

}  // namespace
}  // namespace internvl

VisionFamily internvl_family() {
  using namespace internvl;
  return {.projector = "internvl",
          .read = read,
          .model_types = kModelTypes,
          .stems = kHubStems,
          .names = kNames,
          .ignored = kIgnored,
          .read_hub = read_hub,
          .folds = {.class_row = true, .layer_scales = true, .quick_gelu = true}};
}

}  // namespace candor::vision
