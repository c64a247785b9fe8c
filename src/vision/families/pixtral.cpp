// Pixtral, and Mistral 3 from Small 3.1 on: an image keeps its shape, in whole patches; a tower with RMS norms, gated
// feed-forwards and rotary positions of rows and columns; in Mistral 3 a norm and a matrix make one row of four
// neighbours; two matrices. Agrawal et al., "Pixtral 12B", 2024.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "image/processor_config.h"
#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace pixtral {
namespace {

using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"[IMG]"};
constexpr std::string_view kModelTypes[] = {"mistral3", "llava/pixtral"};
constexpr std::string_view kActs[] = {"gelu", "silu"};
constexpr std::array kNames = {
    HubName{"v.patch_embd.weight", "patch_conv.weight"},
    HubName{"v.pre_ln.weight", "ln_pre.weight"},
    HubName{"v.blk.*.ln1.weight", "transformer.layers.*.attention_norm.weight"},
    HubName{"v.blk.*.attn_q.weight", "transformer.layers.*.attention.q_proj.weight"},
    HubName{"v.blk.*.attn_k.weight", "transformer.layers.*.attention.k_proj.weight"},
    HubName{"v.blk.*.attn_v.weight", "transformer.layers.*.attention.v_proj.weight"},
    HubName{"v.blk.*.attn_out.weight", "transformer.layers.*.attention.o_proj.weight"},
    HubName{"v.blk.*.ln2.weight", "transformer.layers.*.ffn_norm.weight"},
    HubName{"v.blk.*.ffn_gate.weight", "transformer.layers.*.feed_forward.gate_proj.weight"},
    HubName{"v.blk.*.ffn_up.weight", "transformer.layers.*.feed_forward.up_proj.weight"},
    HubName{"v.blk.*.ffn_down.weight", "transformer.layers.*.feed_forward.down_proj.weight"},
    HubName{"v.post_ln.weight", "norm.weight"},
    HubName{"mm.patch_merger.weight", "patch_merger.merging_layer.weight"},
    HubName{"mm.1.weight", "linear_1.weight"},
    HubName{"mm.1.bias", "linear_1.bias"},
    HubName{"mm.2.weight", "linear_2.weight"},
    HubName{"mm.2.bias", "linear_2.bias"},
};
constexpr HubName kFileNames[] = {{"v.post_ln.weight", "mm.input_norm.weight"}};
// llama.cpp's files repeat what the text model has for the token [IMG_BREAK].
constexpr std::string_view kIgnored[] = {"v.token_embd.img_break"};
constexpr const char* kMerger = "mm.patch_merger.weight";
constexpr TowerDefaults kDefaults = {1024, 4096, 24, 16, 1024, 16, 1e-5, kActs};
constexpr int32_t kMostPatches = 1 << 14;

// A row of the grid ends in [IMG_BREAK], the last one in [IMG_END].
std::string expand(const image::Prepared& prepared, std::string_view row, std::span<const int32_t> rows_of_tiles) {
  const image::Tile& tile = prepared.tiles.front();
  const int32_t n_rows = rows_of_tiles.front();
  const auto merge = static_cast<int32_t>(std::lround(std::sqrt(static_cast<double>(tile.rows) * tile.cols / n_rows)));
  const int32_t n_cols = tile.cols / merge;
  std::string text;
  for (int32_t done = n_cols; done <= n_rows; done += n_cols) {
    text += repeated(row, n_cols) + (done < n_rows ? "[IMG_BREAK]" : "[IMG_END]");
  }
  return text;
}

// No side of an image is longer than the bound, but for the rest of a patch. Only folders say it apart.
Result<void> bound_images(const formats::ModelFile& file, int32_t merge, VisionSpec& spec) {
  const model::Hparams hparams(file, "clip.vision");
  const model::Hparams own(file, "candor.vision");
  CANDOR_ASSIGN(const int32_t side, hparams.require_int("image_size", {1, 16384}));
  image::Size bound;
  CANDOR_ASSIGN(bound.height, own.int_or("bound_height", side, {1, 65535}));
  CANDOR_ASSIGN(bound.width, own.int_or("bound_width", side, {1, 65535}));
  spec.recipe.layout = image::LongestEdge{bound, merge};
  spec.recipe.filter = image::Filter::kBicubic;
  const int64_t step = int64_t{merge} * spec.recipe.patch_side;
  const auto patches_of = [&](int32_t length) { return (length + step - 1) / step * merge; };
  const int64_t n_patches = patches_of(bound.height) * patches_of(bound.width);
  if (n_patches > kMostPatches) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("images of {} x {} pixels have {} patches of {}, expected at most {}; lower \"size\" in "
                            "preprocessor_config.json",
                            bound.width, bound.height, n_patches, spec.recipe.patch_side, kMostPatches));
  }
  spec.max_patches = spec.tower.max_positions = static_cast<int32_t>(n_patches);
  return {};
}

Result<void> add_projector(const formats::ModelFile& file, int32_t merge, VisionSpec& spec) {
  CANDOR_ASSIGN(const int32_t hidden, projection_width(file, "mm.1.weight"));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.2.weight"));
  spec.projector.n_in = spec.tower.dim;
  spec.tower.has_final_norm = merge > 1 || file.find(kMerger) != nullptr;
  if (spec.tower.has_final_norm) {
    CANDOR_ASSIGN(
        const double epsilon,
        model::Hparams(file, "candor.vision").positive_or("projector_epsilon", spec.tower.final_norm.epsilon));
    spec.tower.final_norm.epsilon = static_cast<float>(epsilon);
    spec.regroup = {RegroupKind::kUnfold, merge};
    spec.projector.n_in = spec.regroup.width(spec.tower.dim);
    spec.projector.layers.push_back({.weight = kMerger, .n_out = spec.tower.dim});
  }
  spec.projector.layers.push_back({.weight = "mm.1.weight", .bias = "mm.1.bias", .n_out = hidden});
  spec.projector.layers.push_back({.kind = RowLayerKind::kActivate, .act = backend::GateKind::kGeluErf});
  spec.projector.layers.push_back({.weight = "mm.2.weight", .bias = "mm.2.bias", .n_out = width});
  return {};
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const bool is_quick, has_quick_gelu(file));
  if (is_quick) {
    return fail(ErrorKind::kUnsupported,
                "metadata keys \"clip.use_gelu\" and \"clip.use_silu\" are both false, expected one to be true");
  }
  CANDOR_ASSIGN(const backend::GateKind gate, read_gate(file));
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, gate));
  CANDOR_ASSIGN(const int32_t merge, model::Hparams(file, "clip.vision").int_or("spatial_merge_size", 1, {1, 16}));
  CANDOR_ASSIGN(const double base, read_rotary_base(file));
  spec.family = "pixtral";
  for (model::BlockSpec& block : spec.tower.blocks) {
    block.norm.kind = backend::NormKind::kRms;
    block.ffn.is_gated = true;
  }
  spec.tower.final_norm.kind = backend::NormKind::kRms;
  CANDOR_TRY(rotate_by_grid({.base = base, .pairs = backend::RopePairs::kInterleaved, .column_step = 0.5}, spec.tower));
  spec.entry.layers.resize(1);
  spec.entry.layers.front().bias.clear();
  spec.entry.layers.push_back(
      {.kind = RowLayerKind::kNorm, .weight = "v.pre_ln.weight", .norm = spec.tower.blocks.front().norm});
  CANDOR_TRY(bound_images(file, merge, spec));
  CANDOR_TRY(add_projector(file, merge, spec));
  spec.prompt = {.mark = "[IMG]", .row_tokens = kRowTokens, .expand = expand};
  return spec;
}

Result<void> read_processor(const json& processor, int32_t merge, formats::MetaList& metadata) {
  const auto patch = static_cast<int32_t>(std::get<uint64_t>(*metadata.find("clip.vision.patch_size")));
  CANDOR_ASSIGN(const image::Recipe recipe, image::recipe_of(processor.dump(), {.patch = patch, .merge = merge}));
  const auto* layout = std::get_if<image::LongestEdge>(&recipe.layout);
  if (layout == nullptr || recipe.filter != image::Filter::kBicubic) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("'preprocessor_config.json' describes \"{}\"; supported: what PixtralImageProcessor makes by "
                    "a bicubic filter",
                    image::describe(recipe)));
  }
  metadata.add("candor.vision.bound_height", static_cast<uint64_t>(layout->bound.height));
  metadata.add("candor.vision.bound_width", static_cast<uint64_t>(layout->bound.width));
  return add_pixels(recipe, metadata);
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  const bool is_mistral = config.at("model_type") == "mistral3";
  const json& vision = config.at("vision_config");
  CANDOR_TRY(hub_only(vision, "model_type", "pixtral"));
  CANDOR_TRY(read_hub_tower(config, processor, "pixtral", kDefaults, metadata));
  CANDOR_TRY(hub_only(vision, "num_channels", 3));
  CANDOR_TRY(hub_only(config, "projector_hidden_act", "gelu"));
  CANDOR_TRY(read_hub_rotation(vision, metadata));
  if (!is_mistral && config.value("vision_feature_select_strategy", json("default")) != "full") {
    return fail(ErrorKind::kUnsupported,
                "'config.json': \"vision_feature_select_strategy\" is not \"full\": without a class token it drops a "
                "patch");
  }
  CANDOR_TRY(read_hub_feature_layer(config, is_mistral ? -1 : -2, metadata));
  CANDOR_ASSIGN(const int32_t merge, hub_int(config, "spatial_merge_size", is_mistral ? 2 : 1, 16));
  metadata.add("clip.vision.spatial_merge_size", static_cast<uint64_t>(merge));
  const json text = config.value("text_config", json());
  CANDOR_ASSIGN(const double epsilon, hub_positive(text.is_object() ? text : json::object(), "rms_norm_eps", 1e-5));
  metadata.add("candor.vision.projector_epsilon", epsilon);
  return read_processor(processor, merge, metadata);
}

}  // namespace
}  // namespace pixtral

VisionFamily pixtral_family() {
  using namespace pixtral;
  return {.projector = "pixtral",
          .read = read,
          .model_types = kModelTypes,
          .stems = kHubStems,
          .names = kNames,
          .ignored = kIgnored,
          .read_hub = read_hub,
          .has_halves = true,
          .file_names = kFileNames};
}

}  // namespace candor::vision
