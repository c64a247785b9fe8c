// Qwen2-VL: an image keeps its shape, in whole patches; a tower with rotary positions of rows and columns; four
// neighbouring rows become one. Wang et al., "Qwen2-VL: enhancing vision-language model's perception of the world at
// any resolution", 2024.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "vision/families/common.h"

namespace candor::vision {
namespace qwen2vl {
namespace {

using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"<|image_pad|>"};
constexpr std::string_view kModelTypes[] = {"qwen2_vl"};
constexpr std::string_view kStems[] = {"model.visual.", "visual."};
constexpr std::array kNames = {
    HubName{"v.patch_embd.weight", "patch_embed.proj.weight"},
    HubName{"v.blk.*.ln1.weight", "blocks.*.norm1.weight"},
    HubName{"v.blk.*.ln1.bias", "blocks.*.norm1.bias"},
    HubName{"v.blk.*.attn_qkv.weight", "blocks.*.attn.qkv.weight"},
    HubName{"v.blk.*.attn_qkv.bias", "blocks.*.attn.qkv.bias"},
    HubName{"v.blk.*.attn_out.weight", "blocks.*.attn.proj.weight"},
    HubName{"v.blk.*.attn_out.bias", "blocks.*.attn.proj.bias"},
    HubName{"v.blk.*.ln2.weight", "blocks.*.norm2.weight"},
    HubName{"v.blk.*.ln2.bias", "blocks.*.norm2.bias"},
    HubName{"v.blk.*.ffn_up.weight", "blocks.*.mlp.fc1.weight"},
    HubName{"v.blk.*.ffn_up.bias", "blocks.*.mlp.fc1.bias"},
    HubName{"v.blk.*.ffn_down.weight", "blocks.*.mlp.fc2.weight"},
    HubName{"v.blk.*.ffn_down.bias", "blocks.*.mlp.fc2.bias"},
    HubName{"v.post_ln.weight", "merger.ln_q.weight"},
    HubName{"v.post_ln.bias", "merger.ln_q.bias"},
    HubName{"mm.0.weight", "merger.mlp.0.weight"},
    HubName{"mm.0.bias", "merger.mlp.0.bias"},
    HubName{"mm.2.weight", "merger.mlp.2.weight"},
    HubName{"mm.2.bias", "merger.mlp.2.bias"},
};
constexpr std::string_view kActs[] = {"quick_gelu", "gelu"};
constexpr TowerDefaults kDefaults = {1280, 5120, 32, 16, 560, 14, 1e-6, kActs};
constexpr PixelBounds kPixels = {56 * 56, 28 * 28 * 1280};
constexpr double kMostRatio = 64.0;

Result<VisionSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(const backend::GateKind gate, read_gate(file));
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, gate));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.2.weight"));
  CANDOR_TRY(read_own_shape(file, kPixels, spec));
  spec.family = "qwen2vl_merger";
  spec.entry.layers.resize(1);
  spec.entry.layers.front().bias.clear();
  // Files of llama.cpp say the text model's width instead.
  const TensorView* up = file.find("v.blk.0.ffn_up.weight");
  if (up != nullptr && up->shape.n_dims == 2 && up->shape[0] <= model::kMaxWidth) {
    for (model::BlockSpec& block : spec.tower.blocks) block.ffn.ffn_dim = static_cast<int32_t>(up->shape[0]);
  }
  const int32_t n_joined = spec.regroup.width(spec.tower.dim);
  spec.projector.n_in = n_joined;
  spec.projector.layers = {{.weight = "mm.0.weight", .bias = "mm.0.bias", .n_out = n_joined},
                           {.kind = RowLayerKind::kActivate, .act = backend::GateKind::kGeluErf},
                           {.weight = "mm.2.weight", .bias = "mm.2.bias", .n_out = width}};
  spec.prompt = {.mark = "<|image_pad|>", .row_tokens = kRowTokens, .expand = expand_one_tile, .is_grid = true};
  return spec;
}

// "hidden_size" is the text model's width here, and "embed_dim" the tower's.
Result<json> with_widths(const json& config) {
  json changed = config;
  json& vision = changed.at("vision_config");
  if (!vision.is_object()) return changed;
  CANDOR_ASSIGN(const int32_t dim, hub_int(vision, "embed_dim", kDefaults.dim, 1 << 20));
  CANDOR_ASSIGN(const double ratio, hub_positive(vision, "mlp_ratio", 4.0));
  if (ratio > kMostRatio) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("'config.json': \"mlp_ratio\" is {}, expected at most {}", ratio, kMostRatio));
  }
  vision["hidden_size"] = dim;
  vision["intermediate_size"] = static_cast<int64_t>(std::floor(dim * ratio));
  return changed;
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const json own, with_widths(config));
  CANDOR_TRY(read_hub_tower(own, processor, "qwen2vl_merger", kDefaults, metadata,
                            {.n_blocks = "depth", .n_heads = "num_heads", .image_size = nullptr}));
  const json& vision = config.at("vision_config");
  CANDOR_TRY(hub_only(vision, "in_channels", 3));
  CANDOR_TRY(hub_only(vision, "temporal_patch_size", 2));
  CANDOR_TRY(read_hub_rotation(vision, metadata));
  metadata.add("clip.vision.image_size", uint64_t{40} * std::get<uint64_t>(*metadata.find("clip.vision.patch_size")));
  CANDOR_ASSIGN(const int32_t merge, hub_int(vision, "spatial_merge_size", 2, 16));
  metadata.add("clip.vision.spatial_merge_size", static_cast<uint64_t>(merge));
  return read_hub_pixel_bounds(processor, kPixels, metadata);
}

}  // namespace
}  // namespace qwen2vl

VisionFamily qwen2vl_family() {
  using namespace qwen2vl;
  return {.projector = "qwen2vl_merger",
          .read = read,
          .model_types = kModelTypes,
          .stems = kStems,
          .names = kNames,
          .ignored = {},
          .read_hub = read_hub,
          .has_frames = true,
          .folds = {.quick_gelu = true}};
}

}  // namespace candor::vision
