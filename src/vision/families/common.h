#pragma once
// What most towers share: the blocks of a Vision Transformer (Dosovitskiy et al., 2021) with a table of positions.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "formats/model_file.h"
#include "model/families/families.h"
#include "vision/families.h"
#include "vision/vision_spec.h"

namespace candor::vision {

// The tensors of the tower's blocks, and its last norm where it has one.
model::Family tower_family(bool has_final_norm);

// Sizes, blocks, entry and normalisation of pixels, from "clip.vision.*". gate: the feed-forward's activation. All
// but the recipe's way of cutting, the regrouping, the projector and the prompt.
Result<VisionSpec> read_tower(const formats::ModelFile& file, backend::GateKind gate);

// How the pairs of a head turn: half of them by a patch's row, the other half by its column, both as in a head half as
// wide (Heo et al., "Rotary position embedding for vision transformer", 2024).
struct GridRotation {
  double base = 10000.0;
  backend::RopePairs pairs = backend::RopePairs::kHalves;
  bool columns_first = false;
  double column_step = 0.0;  // so much slower, in steps from one pair to the next, turn the pairs of columns
};
// Refuses heads whose width 4 does not divide.
Result<void> rotate_by_grid(const GridRotation& how, model::ArchSpec& tower);

// The base of a tower's rotation; only folders say it.
Result<double> read_rotary_base(const formats::ModelFile& file);

// Of an image; smaller ones are made larger, larger ones smaller.
struct PixelBounds {
  int32_t least;
  int32_t most;
};
// What Qwen's towers share: an image keeps its shape, in whole patches and within bounds (`usual`: where the file says
// none); rotary positions of rows and columns in every block; square groups of neighbouring rows become one.
Result<void> read_own_shape(const formats::ModelFile& file, PixelBounds usual, VisionSpec& spec);

// What "clip.use_gelu" and "clip.use_silu" say. With neither it is the one that Folds::quick_gelu makes kSilu of.
Result<backend::GateKind> read_gate(const formats::ModelFile& file);
// Whether it is that one.
Result<bool> has_quick_gelu(const formats::ModelFile& file);

// A class token before the patches: Folds::class_row.
void add_class_row(VisionSpec& spec);

std::string repeated(std::string_view text, int32_t n);
// VisionSpec::prompt's, of an image that is one tile with nothing around it.
std::string expand_one_tile(const image::Prepared& prepared, std::string_view row,
                            std::span<const int32_t> rows_of_tiles);

// What Gemma 4's models share. An image's rows between two tokens; how many tokens a folder allows it, 280 where the
// file does not say it; the tables of positions by axis.
std::string expand_gemma4(const image::Prepared& prepared, std::string_view row,
                          std::span<const int32_t> rows_of_tiles);
Result<int32_t> read_token_budget(const formats::ModelFile& file);
Result<GridPositions> read_axis_positions(const formats::ModelFile& file);
// Of a folder: the budget, and how bytes become numbers. pool: patches that become one token, along a side.
Result<void> read_hub_token_budget(const nlohmann::json& processor, int32_t pool, formats::MetaList& metadata);
// How bytes become numbers, by "clip.vision.image_mean" and "image_std".
Result<void> read_pixels(const formats::ModelFile& file, image::Recipe& recipe);

// The rows of a projector's last matrix.
Result<int32_t> projection_width(const formats::ModelFile& file, std::string_view tensor);

// Names as the `transformers` library has them for SigLIP and CLIP.
inline constexpr std::array kHubVit = {
    HubName{"v.patch_embd.weight", "embeddings.patch_embedding.weight"},
    HubName{"v.patch_embd.bias", "embeddings.patch_embedding.bias"},
    HubName{"v.position_embd.weight", "embeddings.position_embedding.weight"},
    HubName{"v.blk.*.ln1.weight", "encoder.layers.*.layer_norm1.weight"},
    HubName{"v.blk.*.ln1.bias", "encoder.layers.*.layer_norm1.bias"},
    HubName{"v.blk.*.attn_q.weight", "encoder.layers.*.self_attn.q_proj.weight"},
    HubName{"v.blk.*.attn_q.bias", "encoder.layers.*.self_attn.q_proj.bias"},
    HubName{"v.blk.*.attn_k.weight", "encoder.layers.*.self_attn.k_proj.weight"},
    HubName{"v.blk.*.attn_k.bias", "encoder.layers.*.self_attn.k_proj.bias"},
    HubName{"v.blk.*.attn_v.weight", "encoder.layers.*.self_attn.v_proj.weight"},
    HubName{"v.blk.*.attn_v.bias", "encoder.layers.*.self_attn.v_proj.bias"},
    HubName{"v.blk.*.attn_out.weight", "encoder.layers.*.self_attn.out_proj.weight"},
    HubName{"v.blk.*.attn_out.bias", "encoder.layers.*.self_attn.out_proj.bias"},
    HubName{"v.blk.*.ln2.weight", "encoder.layers.*.layer_norm2.weight"},
    HubName{"v.blk.*.ln2.bias", "encoder.layers.*.layer_norm2.bias"},
    HubName{"v.blk.*.ffn_up.weight", "encoder.layers.*.mlp.fc1.weight"},
    HubName{"v.blk.*.ffn_up.bias", "encoder.layers.*.mlp.fc1.bias"},
    HubName{"v.blk.*.ffn_down.weight", "encoder.layers.*.mlp.fc2.weight"},
    HubName{"v.blk.*.ffn_down.bias", "encoder.layers.*.mlp.fc2.bias"},
};
inline constexpr std::array kHubFinalNorm = {
    HubName{"v.post_ln.weight", "post_layernorm.weight"},
    HubName{"v.post_ln.bias", "post_layernorm.bias"},
};

// SigLIP's head, which gives one row for an image.
inline constexpr std::string_view kHubPooling[] = {"head.probe",
                                                   "head.attention.in_proj_weight",
                                                   "head.attention.in_proj_bias",
                                                   "head.attention.out_proj.weight",
                                                   "head.attention.out_proj.bias",
                                                   "head.layernorm.weight",
                                                   "head.layernorm.bias",
                                                   "head.mlp.fc1.weight",
                                                   "head.mlp.fc1.bias",
                                                   "head.mlp.fc2.weight",
                                                   "head.mlp.fc2.bias"};

// How the names of a tower and of a projector begin in checkpoints of many models.
inline constexpr std::string_view kHubStems[] = {"vision_tower.vision_model.", "model.vision_tower.vision_model.",
                                                 "model.vision_tower.",        "vision_tower.",
                                                 "multi_modal_projector.",     "model.multi_modal_projector."};
// Of folders alone: blocks that the checkpoint has, where features are those of an earlier one.
inline constexpr std::string_view kStoredBlocks = "candor.vision.stored_blocks";

// What the library's class takes where "vision_config" leaves a key out.
struct TowerDefaults {
  int32_t dim;
  int32_t ffn_dim;
  int32_t n_blocks;
  int32_t n_heads;
  int32_t image_size;
  int32_t patch_size;
  double epsilon;
  std::span<const std::string_view> acts;  // that are known; the first is the default
};
// What "vision_config" calls some of them; nullptr: it does not say it.
struct TowerNames {
  const char* n_blocks = "num_hidden_layers";
  const char* n_heads = "num_attention_heads";
  const char* image_size = "image_size";
};

inline constexpr std::string_view kTanhGelu[] = {"gelu_pytorch_tanh"};
// "clip.vision.*" from "vision_config" and from what the image processor normalises by. projector: its name there.
Result<void> read_hub_tower(const nlohmann::json& config, const nlohmann::json& processor, std::string_view projector,
                            const TowerDefaults& defaults, formats::MetaList& metadata, const TowerNames& names = {});

// A whole number in [1, most]; `fallback` where it is absent or null, and an error where that is 0.
Result<int32_t> hub_int(const nlohmann::json& object, const char* key, int32_t fallback, int32_t most);
// Refuses a key that says something else, by its name. Absent and null mean the same.
Result<void> hub_only(const nlohmann::json& object, const char* key, const nlohmann::json& known);
// How bytes become numbers. What mmproj files cannot say of it is refused.
Result<void> add_pixels(const image::Recipe& recipe, formats::MetaList& metadata);
// A number above 0.
Result<double> hub_positive(const nlohmann::json& object, const char* key, double fallback);
// A share of 1, 0.5 or 0.25, as the number of rows along a side that become one.
Result<int32_t> hub_inverse(const nlohmann::json& object, const char* key);
// For read_rotary_base(): "rope_theta", in "rope_parameters" or beside it. Refuses a "rope_type" that changes more.
Result<void> read_hub_rotation(const nlohmann::json& vision, formats::MetaList& metadata);
// Bounds of read_own_shape(), as Qwen's image processors have them.
Result<void> read_hub_pixel_bounds(const nlohmann::json& processor, PixelBounds usual, formats::MetaList& metadata);
// "vision_feature_layer", a number as Python counts: how many blocks give the features. More blocks of the checkpoint
// are left out.
Result<void> read_hub_feature_layer(const nlohmann::json& config, int32_t fallback, formats::MetaList& metadata);

}  // namespace candor::vision
