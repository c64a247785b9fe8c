// Gemma 4 without a tower (12B): an image keeps its shape, as large as so many tokens allow; a patch of 48 x 48 pixels
// becomes a row through norms and one matrix, with positions from tables by row and by column, and a second matrix
// behind a norm. Gemma Team, 2026.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace gemma4_unified {
namespace {

using model::Hparams;
using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"<|image|>"};
constexpr std::string_view kModelTypes[] = {"gemma4_unified"};
constexpr std::string_view kStems[] = {"model.vision_embedder.", "vision_embedder.", "model.embed_vision.",
                                       "embed_vision."};
constexpr std::array kNames = {
    HubName{"v.patch_norm.1.weight", "patch_ln1.weight"},
    HubName{"v.patch_norm.1.bias", "patch_ln1.bias"},
    HubName{"v.patch_embd.weight", "patch_dense.weight"},
    HubName{"v.patch_embd.bias", "patch_dense.bias"},
    HubName{"v.patch_norm.2.weight", "patch_ln2.weight"},
    HubName{"v.patch_norm.2.bias", "patch_ln2.bias"},
    HubName{"v.position_embd.weight", "pos_embedding"},
    HubName{"v.patch_norm.3.weight", "pos_norm.weight"},
    HubName{"v.patch_norm.3.bias", "pos_norm.bias"},
    HubName{"mm.input_projection.weight", "embedding_projection.weight"},
};
constexpr TowerDefaults kDefaults = {3840, 1, 1, 1, 0, 16, 1e-6, kTanhGelu};
constexpr float kLayerNormEpsilon = 1e-5f;
constexpr int32_t kUsualPool = 3;
constexpr int32_t kMostSide = 512;  // of a patch

// What the blocks of other towers are: one that computes nothing.
model::ArchSpec empty_tower(int32_t dim, int32_t n_rows) {
  model::ArchSpec tower;
  tower.family = "clip";
  tower.dim = dim;
  tower.vocab = 1;
  tower.max_positions = n_rows;
  tower.blocks.resize(1);
  tower.blocks.front().has_attention = false;
  tower.blocks.front().attn.n_heads = tower.blocks.front().attn.n_kv_heads = 1;
  tower.blocks.front().attn.head_dim = 16;
  tower.has_final_norm = false;
  tower.head.is_absent = true;
  tower.is_bidirectional = true;
  tower.keeps_kv = false;
  return tower;
}

RowLayer norm(const char* number) {
  const std::string stem = fmt::format("v.patch_norm.{}.", number);
  return {.kind = RowLayerKind::kNorm,
          .weight = stem + "weight",
          .bias = stem + "bias",
          .norm = {backend::NormKind::kLayer, kLayerNormEpsilon}};
}

Result<void> check_positions(const formats::ModelFile& file, int32_t n_positions) {
  const Hparams own(file, "candor.vision");
  CANDOR_ASSIGN(const int32_t stated, own.int_or("mm_posemb_size", n_positions, {1, 1 << 16}));
  if (stated == n_positions) return {};
  return fail(
      ErrorKind::kInvalidInput,
      fmt::format("'config.json': \"mm_posemb_size\" of \"vision_config\" is {}, and the tables have {} rows; set "
                  "it to {}",
                  stated, n_positions, n_positions));
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "clip.vision");
  VisionSpec spec;
  CANDOR_ASSIGN(const int32_t dim, projection_width(file, "v.patch_embd.weight"));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.input_projection.weight"));
  CANDOR_ASSIGN(const int32_t n, hparams.int_or("projector.scale_factor", kUsualPool, {1, 16}));
  CANDOR_ASSIGN(const int32_t patch, hparams.require_int("patch_size", {1, kMostSide / n}));
  CANDOR_ASSIGN(const double epsilon, hparams.positive_or("attention.layer_norm_epsilon", 1e-6));
  CANDOR_ASSIGN(const int32_t n_tokens, read_token_budget(file));
  CANDOR_ASSIGN(spec.positions, read_axis_positions(file));
  CANDOR_TRY(check_positions(file, spec.positions.side));
  CANDOR_TRY(read_pixels(file, spec.recipe));
  spec.family = "gemma4uv";
  spec.recipe.patch_side = patch * n;
  spec.recipe.layout = image::TokenBudget{n_tokens, 1};
  spec.recipe.filter = image::Filter::kBicubic;
  spec.max_patches = n_tokens;
  spec.entry.n_in = 3 * patch * n * patch * n;
  spec.entry.layers = {
      norm("1"), {.weight = "v.patch_embd.weight", .bias = "v.patch_embd.bias", .n_out = dim}, norm("2")};
  spec.tower = empty_tower(dim, n_tokens);
  spec.projector.n_in = dim;
  spec.projector.layers = {
      norm("3"),
      {.kind = RowLayerKind::kNorm, .norm = {backend::NormKind::kRms, static_cast<float>(epsilon)}},
      {.weight = "mm.input_projection.weight", .n_out = width}};
  spec.prompt = {.mark = "<|image|>", .row_tokens = kRowTokens, .expand = expand_gemma4, .is_seen_whole = true};
  return spec;
}

// Under the names that towers have.
json with_usual_names(const json& config) {
  json changed = config;
  json& vision = changed.at("vision_config");
  if (!vision.is_object()) return changed;
  if (vision.contains("mm_embed_dim")) vision["hidden_size"] = vision["mm_embed_dim"];
  if (vision.contains("rms_norm_eps")) vision["layer_norm_eps"] = vision["rms_norm_eps"];
  return changed;
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_TRY(
      read_hub_tower(with_usual_names(config), processor, "gemma4uv", kDefaults, metadata, {.image_size = nullptr}));
  const json& vision = config.at("vision_config");
  CANDOR_TRY(hub_only(vision, "model_type", "gemma4_unified_vision"));
  CANDOR_ASSIGN(const int32_t pool, hub_int(vision, "pooling_kernel_size", kUsualPool, 16));
  CANDOR_ASSIGN(const int32_t n_positions, hub_int(vision, "mm_posemb_size", 1120, 1 << 16));
  const auto patch = static_cast<int32_t>(std::get<uint64_t>(*metadata.find("clip.vision.patch_size")));
  CANDOR_TRY(hub_only(vision, "model_patch_size", patch * pool));
  metadata.add("clip.vision.projector.scale_factor", static_cast<uint64_t>(pool));
  metadata.add("candor.vision.mm_posemb_size", static_cast<uint64_t>(n_positions));
  return read_hub_token_budget(processor, pool, metadata);
}

}  // namespace
}  // namespace gemma4_unified

VisionFamily gemma4_unified_family() {
  using namespace gemma4_unified;
  return {.projector = "gemma4uv",
          .read = read,
          .model_types = kModelTypes,
          .stems = kStems,
          .names = kNames,
          .ignored = {},
          .read_hub = read_hub,
          .has_channels_last = true,
          .has_positions_first = true};
}

}  // namespace candor::vision
