// Qwen2.5-VL: an image keeps its shape, in whole patches; a tower with RMS norms, gated feed-forwards and rotary
// positions of rows and columns, most of whose blocks see windows; four neighbouring rows become one. Bai et al.,
// "Qwen2.5-VL technical report", 2025.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>
#include <vector>

#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace qwen25vl {
namespace {

using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"<|image_pad|>"};
constexpr std::string_view kModelTypes[] = {"qwen2_5_vl"};
constexpr std::string_view kStems[] = {"model.visual.", "visual."};
constexpr std::array kNames = {
    HubName{"v.patch_embd.weight", "patch_embed.proj.weight"},
    HubName{"v.blk.*.ln1.weight", "blocks.*.norm1.weight"},
    HubName{"v.blk.*.attn_qkv.weight", "blocks.*.attn.qkv.weight"},
    HubName{"v.blk.*.attn_qkv.bias", "blocks.*.attn.qkv.bias"},
    HubName{"v.blk.*.attn_out.weight", "blocks.*.attn.proj.weight"},
    HubName{"v.blk.*.attn_out.bias", "blocks.*.attn.proj.bias"},
    HubName{"v.blk.*.ln2.weight", "blocks.*.norm2.weight"},
    HubName{"v.blk.*.ffn_gate.weight", "blocks.*.mlp.gate_proj.weight"},
    HubName{"v.blk.*.ffn_gate.bias", "blocks.*.mlp.gate_proj.bias"},
    HubName{"v.blk.*.ffn_up.weight", "blocks.*.mlp.up_proj.weight"},
    HubName{"v.blk.*.ffn_up.bias", "blocks.*.mlp.up_proj.bias"},
    HubName{"v.blk.*.ffn_down.weight", "blocks.*.mlp.down_proj.weight"},
    HubName{"v.blk.*.ffn_down.bias", "blocks.*.mlp.down_proj.bias"},
    HubName{"v.post_ln.weight", "merger.ln_q.weight"},
    HubName{"mm.0.weight", "merger.mlp.0.weight"},
    HubName{"mm.0.bias", "merger.mlp.0.bias"},
    HubName{"mm.2.weight", "merger.mlp.2.weight"},
    HubName{"mm.2.bias", "merger.mlp.2.bias"},
};
constexpr std::string_view kSilu[] = {"silu"};
constexpr TowerDefaults kDefaults = {3584, 3420, 32, 16, 560, 14, 1e-6, kSilu};
constexpr const char* kWholeBlocks = "candor.vision.whole_blocks";  // of folders alone
constexpr PixelBounds kPixels = {56 * 56, 28 * 28 * 16384};
constexpr int32_t kUsualWindow = 112;  // pixels

// Which blocks see the whole image: listed, or every n-th.
Result<void> read_windows(const formats::ModelFile& file, int32_t merge, VisionSpec& spec) {
  const model::Hparams hparams(file, "clip.vision");
  CANDOR_ASSIGN(const int32_t window, hparams.int_or("window_size", kUsualWindow, {1, 1 << 20}));
  const size_t n_blocks = spec.tower.blocks.size();
  spec.windows.side = std::max(1, window / merge / spec.recipe.patch_side) * merge;
  spec.windows.is_whole.assign(n_blocks, false);
  CANDOR_ASSIGN(const std::vector<int64_t>* listed, formats::meta_ints(file, kWholeBlocks));
  if (listed != nullptr) {
    for (const int64_t block : *listed) {
      if (block >= 0 && static_cast<size_t>(block) < n_blocks) spec.windows.is_whole[static_cast<size_t>(block)] = true;
    }
    return {};
  }
  CANDOR_ASSIGN(const int32_t every, hparams.require_int("n_wa_pattern", {1, model::kMaxLayers}));
  for (size_t i = 0; i < n_blocks; ++i) spec.windows.is_whole[i] = (i + 1) % static_cast<size_t>(every) == 0;
  return {};
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, backend::GateKind::kSilu));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.2.weight"));
  CANDOR_TRY(read_own_shape(file, kPixels, spec));
  spec.family = "qwen2.5vl_merger";
  spec.entry.layers.resize(1);
  spec.entry.layers.front().bias.clear();
  for (model::BlockSpec& block : spec.tower.blocks) {
    block.norm.kind = backend::NormKind::kRms;
    block.ffn.is_gated = true;
  }
  spec.tower.final_norm.kind = backend::NormKind::kRms;
  CANDOR_TRY(read_windows(file, spec.regroup.n, spec));
  const int32_t n_joined = spec.regroup.width(spec.tower.dim);
  spec.projector.n_in = n_joined;
  spec.projector.layers = {{.weight = "mm.0.weight", .bias = "mm.0.bias", .n_out = n_joined},
                           {.kind = RowLayerKind::kActivate, .act = backend::GateKind::kGeluErf},
                           {.weight = "mm.2.weight", .bias = "mm.2.bias", .n_out = width}};
  spec.prompt = {.mark = "<|image_pad|>", .row_tokens = kRowTokens, .expand = expand_one_tile, .is_grid = true};
  return spec;
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_tower(config, processor, "qwen2.5vl_merger", kDefaults, metadata,
                            {.n_blocks = "depth", .n_heads = "num_heads", .image_size = nullptr}));
  const json& vision = config.at("vision_config");
  metadata.add("clip.vision.image_size", uint64_t{40} * std::get<uint64_t>(*metadata.find("clip.vision.patch_size")));
  const auto add = [&](const char* key, int32_t fallback) -> Result<void> {
    CANDOR_ASSIGN(const int32_t value, hub_int(vision, key, fallback, INT32_MAX));
    metadata.add(fmt::format("clip.vision.{}", key), static_cast<uint64_t>(value));
    return {};
  };
  CANDOR_TRY(add("spatial_merge_size", 2));
  CANDOR_TRY(add("window_size", kUsualWindow));
  CANDOR_TRY(read_hub_rotation(vision, metadata));
  CANDOR_TRY(read_hub_pixel_bounds(processor, kPixels, metadata));
  std::vector<int64_t> whole;
  for (const json& index : vision.value("fullatt_block_indexes", json({7, 15, 23, 31}))) {
    if (index.is_number_unsigned()) whole.push_back(static_cast<int64_t>(index.get<uint64_t>() & 0xFFFFFF));
  }
  metadata.add(kWholeBlocks, formats::MetaArray(std::move(whole)));
  return {};
}

}  // namespace
}  // namespace qwen25vl

VisionFamily qwen25vl_family() {
  using namespace qwen25vl;
  return {.projector = "qwen2.5vl_merger",
          .read = read,
          .model_types = kModelTypes,
          .stems = kStems,
          .names = kNames,
          .ignored = {},
          .read_hub = read_hub,
          .has_frames = true};
}

}  // namespace candor::vision
