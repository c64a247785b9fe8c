// Qwen3-VL and Qwen3.5: an image keeps its shape, in whole patches; a tower with a stretched table of positions and
// rotary ones of rows and columns; four neighbouring rows become one. Rows of some of its blocks also enter behind the
// first blocks of the text model. Bai et al., "Qwen3-VL technical report", 2025.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>
#include <vector>

#include "vision/families/common.h"

namespace candor::vision {
namespace qwen3vl {
namespace {

using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"<|image_pad|>"};
constexpr std::string_view kModelTypes[] = {"qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"};
constexpr std::string_view kStems[] = {"model.visual.", "visual."};
constexpr std::array kNames = {
    HubName{"v.patch_embd.weight", "patch_embed.proj.weight"},
    HubName{"v.patch_embd.bias", "patch_embed.proj.bias"},
    HubName{"v.position_embd.weight", "pos_embed.weight"},
    HubName{"v.blk.*.ln1.weight", "blocks.*.norm1.weight"},
    HubName{"v.blk.*.ln1.bias", "blocks.*.norm1.bias"},
    HubName{"v.blk.*.attn_qkv.weight", "blocks.*.attn.qkv.weight"},
    HubName{"v.blk.*.attn_qkv.bias", "blocks.*.attn.qkv.bias"},
    HubName{"v.blk.*.attn_out.weight", "blocks.*.attn.proj.weight"},
    HubName{"v.blk.*.attn_out.bias", "blocks.*.attn.proj.bias"},
    HubName{"v.blk.*.ln2.weight", "blocks.*.norm2.weight"},
    HubName{"v.blk.*.ln2.bias", "blocks.*.norm2.bias"},
    HubName{"v.blk.*.ffn_up.weight", "blocks.*.mlp.linear_fc1.weight"},
    HubName{"v.blk.*.ffn_up.bias", "blocks.*.mlp.linear_fc1.bias"},
    HubName{"v.blk.*.ffn_down.weight", "blocks.*.mlp.linear_fc2.weight"},
    HubName{"v.blk.*.ffn_down.bias", "blocks.*.mlp.linear_fc2.bias"},
    HubName{"v.post_ln.weight", "merger.norm.weight"},
    HubName{"v.post_ln.bias", "merger.norm.bias"},
    HubName{"mm.0.weight", "merger.linear_fc1.weight"},
    HubName{"mm.0.bias", "merger.linear_fc1.bias"},
    HubName{"mm.2.weight", "merger.linear_fc2.weight"},
    HubName{"mm.2.bias", "merger.linear_fc2.bias"},
    HubName{"v.deepstack.*.norm.weight", "deepstack_merger_list.*.norm.weight"},
    HubName{"v.deepstack.*.norm.bias", "deepstack_merger_list.*.norm.bias"},
    HubName{"v.deepstack.*.fc1.weight", "deepstack_merger_list.*.linear_fc1.weight"},
    HubName{"v.deepstack.*.fc1.bias", "deepstack_merger_list.*.linear_fc1.bias"},
    HubName{"v.deepstack.*.fc2.weight", "deepstack_merger_list.*.linear_fc2.weight"},
    HubName{"v.deepstack.*.fc2.bias", "deepstack_merger_list.*.linear_fc2.bias"},
};
constexpr TowerDefaults kDefaults = {1152, 4304, 27, 16, 768, 16, 1e-6, kTanhGelu};
constexpr const char* kDeepFlags = "clip.vision.is_deepstack_layers";
constexpr PixelBounds kPixels = {65536, 16777216};

// Two layers behind an exact GELU; the norm, where it has one, reads the joined rows.
RowLayersSpec merger(int32_t n_in, int32_t n_out, const std::string& norm, const std::string& first,
                     const std::string& second) {
  RowLayersSpec spec{.n_in = n_in};
  if (!norm.empty()) {
    spec.layers.push_back({.kind = RowLayerKind::kNorm,
                           .weight = norm + ".weight",
                           .bias = norm + ".bias",
                           .norm = {backend::NormKind::kLayer, 1e-6f}});
  }
  spec.layers.push_back({.weight = first + ".weight", .bias = first + ".bias", .n_out = n_in});
  spec.layers.push_back({.kind = RowLayerKind::kActivate, .act = backend::GateKind::kGeluErf});
  spec.layers.push_back({.weight = second + ".weight", .bias = second + ".bias", .n_out = n_out});
  return spec;
}

Result<void> add_taps(const formats::ModelFile& file, int32_t width, VisionSpec& spec) {
  CANDOR_ASSIGN(const std::vector<bool>* flags, formats::meta_bools(file, kDeepFlags));
  if (flags == nullptr) return {};
  if (flags->size() > spec.tower.blocks.size()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\" has {} flags, and the tower {} blocks",
                                                      kDeepFlags, flags->size(), spec.tower.blocks.size()));
  }
  for (size_t block = 0; block < flags->size(); ++block) {
    if (!(*flags)[block]) continue;
    const std::string stem = fmt::format("v.deepstack.{}.", block);
    spec.taps.push_back(
        {static_cast<int32_t>(block), merger(spec.projector.n_in, width, stem + "norm", stem + "fc1", stem + "fc2")});
  }
  return {};
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, backend::GateKind::kGelu));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.2.weight"));
  CANDOR_TRY(read_own_shape(file, kPixels, spec));
  spec.family = "qwen3vl_merger";
  spec.entry.layers.pop_back();  // positions are stretched
  spec.positions.table = "v.position_embd.weight";
  spec.projector = merger(spec.regroup.width(spec.tower.dim), width, "", "mm.0", "mm.2");
  CANDOR_TRY(add_taps(file, width, spec));
  spec.prompt = {.mark = "<|image_pad|>", .row_tokens = kRowTokens, .expand = expand_one_tile, .is_grid = true};
  return spec;
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_tower(config, processor, "qwen3vl_merger", kDefaults, metadata,
                            {.n_blocks = "depth", .n_heads = "num_heads", .image_size = nullptr}));
  const json& vision = config.at("vision_config");
  const auto number = [&](const char* key) { return std::get<uint64_t>(*metadata.find(key)); };
  CANDOR_ASSIGN(const int32_t n_positions, hub_int(vision, "num_position_embeddings", 2304, 1 << 20));
  const auto side = static_cast<uint64_t>(std::lround(std::sqrt(static_cast<double>(n_positions))));
  if (side * side != static_cast<uint64_t>(n_positions)) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("'config.json': \"num_position_embeddings\" is {}, expected a square", n_positions));
  }
  metadata.add("clip.vision.image_size", side * number("clip.vision.patch_size"));
  CANDOR_ASSIGN(const int32_t merge, hub_int(vision, "spatial_merge_size", 2, 16));
  metadata.add("clip.vision.spatial_merge_size", static_cast<uint64_t>(merge));
  CANDOR_TRY(read_hub_rotation(vision, metadata));
  CANDOR_TRY(read_hub_pixel_bounds(processor, kPixels, metadata));
  std::vector<bool> flags(number("clip.vision.block_count"));
  for (const json& index : vision.value("deepstack_visual_indexes", json::array())) {
    const bool is_block = index.is_number_unsigned() && index.get<uint64_t>() < flags.size();
    if (!is_block) {
      return fail(
          ErrorKind::kInvalidInput,
          fmt::format("'config.json': \"deepstack_visual_indexes\" holds {}, expected blocks of the tower, 0 to {}",
                      index.dump(), flags.size() - 1));
    }
    flags[index.get<size_t>()] = true;
  }
  metadata.add(kDeepFlags, formats::MetaArray(std::move(flags)));
  return {};
}

}  // namespace
}  // namespace qwen3vl

VisionFamily qwen3vl_family() {
  using namespace qwen3vl;
  return {.projector = "qwen3vl_merger",
          .read = read,
          .model_types = kModelTypes,
          .stems = kStems,
          .names = kNames,
          .ignored = {},
          .read_hub = read_hub,
          .has_frames = true};
}

}  // namespace candor::vision
