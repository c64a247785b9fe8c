// Gemma 4: an image keeps its shape, as large as so many tokens allow; a tower with norms before and after, gated
// feed-forwards, positions from tables by row and by column and rotary ones; the mean of each few rows, brought to one
// scale, and one matrix behind a norm. Small models keep what their matrices read and give within bounds. Gemma Team,
// 2026.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/rounded_math.h"
#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace gemma4 {
namespace {

using model::Hparams;
using nlohmann::json;

constexpr std::string_view kRowTokens[] = {"<|image|>"};
constexpr std::string_view kModelTypes[] = {"gemma4"};
constexpr std::string_view kStems[] = {"model.vision_tower.", "vision_tower.", "model.embed_vision.", "embed_vision."};
constexpr std::array kNames = {
    HubName{"v.patch_embd.weight", "patch_embedder.input_proj.weight"},
    HubName{"v.position_embd.weight", "patch_embedder.position_embedding_table"},
    HubName{"v.blk.*.ln1.weight", "encoder.layers.*.input_layernorm.weight"},
    HubName{"v.blk.*.attn_q_norm.weight", "encoder.layers.*.self_attn.q_norm.weight"},
    HubName{"v.blk.*.attn_k_norm.weight", "encoder.layers.*.self_attn.k_norm.weight"},
    HubName{"v.blk.*.attn_post_norm.weight", "encoder.layers.*.post_attention_layernorm.weight"},
    HubName{"v.blk.*.ln2.weight", "encoder.layers.*.pre_feedforward_layernorm.weight"},
    HubName{"v.blk.*.ffn_post_norm.weight", "encoder.layers.*.post_feedforward_layernorm.weight"},
    HubName{"v.std_bias", "std_bias"},
    HubName{"v.std_scale", "std_scale"},
    HubName{"mm.input_projection.weight", "embedding_projection.weight"},
    HubName{"v.blk.*.attn_q.weight", "encoder.layers.*.self_attn.q_proj.linear.weight"},
    HubName{"v.blk.*.attn_q.input_min", "encoder.layers.*.self_attn.q_proj.input_min"},
    HubName{"v.blk.*.attn_q.input_max", "encoder.layers.*.self_attn.q_proj.input_max"},
    HubName{"v.blk.*.attn_q.output_min", "encoder.layers.*.self_attn.q_proj.output_min"},
    HubName{"v.blk.*.attn_q.output_max", "encoder.layers.*.self_attn.q_proj.output_max"},
    HubName{"v.blk.*.attn_k.weight", "encoder.layers.*.self_attn.k_proj.linear.weight"},
    HubName{"v.blk.*.attn_k.input_min", "encoder.layers.*.self_attn.k_proj.input_min"},
    HubName{"v.blk.*.attn_k.input_max", "encoder.layers.*.self_attn.k_proj.input_max"},
    HubName{"v.blk.*.attn_k.output_min", "encoder.layers.*.self_attn.k_proj.output_min"},
    HubName{"v.blk.*.attn_k.output_max", "encoder.layers.*.self_attn.k_proj.output_max"},
    HubName{"v.blk.*.attn_v.weight", "encoder.layers.*.self_attn.v_proj.linear.weight"},
    HubName{"v.blk.*.attn_v.input_min", "encoder.layers.*.self_attn.v_proj.input_min"},
    HubName{"v.blk.*.attn_v.input_max", "encoder.layers.*.self_attn.v_proj.input_max"},
    HubName{"v.blk.*.attn_v.output_min", "encoder.layers.*.self_attn.v_proj.output_min"},
    HubName{"v.blk.*.attn_v.output_max", "encoder.layers.*.self_attn.v_proj.output_max"},
    HubName{"v.blk.*.attn_out.weight", "encoder.layers.*.self_attn.o_proj.linear.weight"},
    HubName{"v.blk.*.attn_out.input_min", "encoder.layers.*.self_attn.o_proj.input_min"},
    HubName{"v.blk.*.attn_out.input_max", "encoder.layers.*.self_attn.o_proj.input_max"},
    HubName{"v.blk.*.attn_out.output_min", "encoder.layers.*.self_attn.o_proj.output_min"},
    HubName{"v.blk.*.attn_out.output_max", "encoder.layers.*.self_attn.o_proj.output_max"},
    HubName{"v.blk.*.ffn_gate.weight", "encoder.layers.*.mlp.gate_proj.linear.weight"},
    HubName{"v.blk.*.ffn_gate.input_min", "encoder.layers.*.mlp.gate_proj.input_min"},
    HubName{"v.blk.*.ffn_gate.input_max", "encoder.layers.*.mlp.gate_proj.input_max"},
    HubName{"v.blk.*.ffn_gate.output_min", "encoder.layers.*.mlp.gate_proj.output_min"},
    HubName{"v.blk.*.ffn_gate.output_max", "encoder.layers.*.mlp.gate_proj.output_max"},
    HubName{"v.blk.*.ffn_up.weight", "encoder.layers.*.mlp.up_proj.linear.weight"},
    HubName{"v.blk.*.ffn_up.input_min", "encoder.layers.*.mlp.up_proj.input_min"},
    HubName{"v.blk.*.ffn_up.input_max", "encoder.layers.*.mlp.up_proj.input_max"},
    HubName{"v.blk.*.ffn_up.output_min", "encoder.layers.*.mlp.up_proj.output_min"},
    HubName{"v.blk.*.ffn_up.output_max", "encoder.layers.*.mlp.up_proj.output_max"},
    HubName{"v.blk.*.ffn_down.weight", "encoder.layers.*.mlp.down_proj.linear.weight"},
    HubName{"v.blk.*.ffn_down.input_min", "encoder.layers.*.mlp.down_proj.input_min"},
    HubName{"v.blk.*.ffn_down.input_max", "encoder.layers.*.mlp.down_proj.input_max"},
    HubName{"v.blk.*.ffn_down.output_min", "encoder.layers.*.mlp.down_proj.output_min"},
    HubName{"v.blk.*.ffn_down.output_max", "encoder.layers.*.mlp.down_proj.output_max"},
};
constexpr TowerDefaults kDefaults = {768, 3072, 16, 12, 0, 16, 1e-6, kTanhGelu};
constexpr int32_t kUsualPool = 3;
constexpr int32_t kMostPatches = 1 << 14;
constexpr int32_t kMostPositions = 1 << 16;
constexpr double kUsualBase = 100.0;
constexpr const char* kOwnPrefix = "candor.vision";  // of folders alone
constexpr const char* kIsBounded = "candor.vision.is_bounded";
constexpr const char* kIsStandard = "candor.vision.is_standardised";

Result<int32_t> length_of(const formats::ModelFile& file, const char* name, int32_t dim) {
  const TensorView* tensor = file.find(name);
  const int64_t length = tensor == nullptr || tensor->shape.n_dims <= dim ? 0 : tensor->shape[dim];
  if (length >= 1 && length <= model::kMaxWidth) return static_cast<int32_t>(length);
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor \"{}\" {}: the file is incomplete, or a part of it is missing", name,
                          tensor == nullptr ? "is missing" : "has shape " + to_string(tensor->shape)));
}

// What config.json repeats of the tensors.
Result<void> check_stated(const formats::ModelFile& file, const char* key, int32_t length) {
  CANDOR_ASSIGN(const int32_t stated, Hparams(file, kOwnPrefix).int_or(key, length, {1, model::kMaxWidth}));
  if (stated == length) return {};
  return fail(
      ErrorKind::kInvalidInput,
      fmt::format("'config.json': \"{}\" of \"vision_config\" is {}, and by the tower's tensors {}; set it to {}", key,
                  stated, length, length));
}

Result<void> read_heads(const formats::ModelFile& file, VisionSpec& spec) {
  const Hparams own(file, kOwnPrefix);
  CANDOR_ASSIGN(const int32_t head_dim, length_of(file, "v.blk.0.attn_q_norm.weight", 0));
  CANDOR_ASSIGN(const int32_t kv_width, length_of(file, "v.blk.0.attn_k.weight", 0));
  CANDOR_TRY(check_stated(file, "head_dim", head_dim));
  CANDOR_ASSIGN(const double base, own.positive_or("rope_theta", kUsualBase));
  const int32_t n_kv_heads = kv_width / head_dim;
  const int32_t n_heads = spec.tower.blocks.front().attn.n_heads;
  if (head_dim % 4 != 0 || n_kv_heads == 0 || kv_width % head_dim != 0 || n_heads % n_kv_heads != 0 ||
      int64_t{n_heads} * head_dim > model::kMaxWidth) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("the tower has {} heads of {} over keys {} wide; expected a width that 4 divides, and keys "
                            "of a divisor of the heads",
                            n_heads, head_dim, kv_width));
  }
  CANDOR_TRY(check_stated(file, "num_key_value_heads", n_kv_heads));
  const int32_t n_each = head_dim / 4;
  for (model::BlockSpec& block : spec.tower.blocks) {
    block.attn.head_dim = head_dim;
    block.attn.n_kv_heads = n_kv_heads;
    block.attn.scale = 1.0f;
    backend::RopeSpec& rope = block.attn.rope;
    rope.n_dims = head_dim;
    rope.pairs = backend::RopePairs::kHalves;
    rope.base = base;
    for (int32_t i = 0; i < 2 * n_each; ++i) {
      rope.axes.push_back(i < n_each ? 1 : 0);  // by column, then by row
      rope.own_frequencies.push_back(rounded_pow(base, -2.0 * (i % n_each) / (2.0 * n_each)));
    }
  }
  return {};
}

// Where the file has it.
Result<void> read_bound(const formats::ModelFile& file, const std::string& name, float& bound, VisionSpec& spec) {
  const TensorView* tensor = file.find(name);
  if (tensor == nullptr) return {};
  CANDOR_ASSIGN(const auto is_bounded, formats::meta_bool(file, kIsBounded));
  if (!is_bounded.value_or(true)) {
    return fail(ErrorKind::kUnsupported, fmt::format("'config.json': \"use_clipped_linears\" of \"vision_config\" is "
                                                     "false, but there is a tensor \"{}\"; set it to true",
                                                     name));
  }
  float value = std::nanf("");
  if (tensor->shape.n_elements() == 1 && dtype_info(tensor->dtype).block_elements == 1) {
    decode_elements(tensor->dtype, tensor->data, 1, &value);
  }
  if (std::isnan(value)) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor \"{}\" {}: expected one number that is a bound", name, to_string(tensor->shape)));
  }
  bound = value;
  spec.settings.push_back(name);
  return {};
}

Result<void> read_bounds(const formats::ModelFile& file, VisionSpec& spec) {
  for (size_t i = 0; i < spec.tower.blocks.size(); ++i) {
    model::BlockBounds& bounds = spec.tower.blocks[i].bounds;
    const std::pair<const char*, backend::MatrixBounds*> all[] = {
        {"attn_q", &bounds.q},      {"attn_k", &bounds.k},  {"attn_v", &bounds.v},     {"attn_out", &bounds.attn_out},
        {"ffn_gate", &bounds.gate}, {"ffn_up", &bounds.up}, {"ffn_down", &bounds.down}};
    for (const auto& [matrix, own] : all) {
      const std::string stem = fmt::format("v.blk.{}.{}.", i, matrix);
      CANDOR_TRY(read_bound(file, stem + "input_min", own->in.low, spec));
      CANDOR_TRY(read_bound(file, stem + "input_max", own->in.high, spec));
      CANDOR_TRY(read_bound(file, stem + "output_min", own->out.low, spec));
      CANDOR_TRY(read_bound(file, stem + "output_max", own->out.high, spec));
      if (own->in.low <= own->in.high && own->out.low <= own->out.high) continue;
      return fail(
          ErrorKind::kInvalidInput,
          fmt::format("tensors \"{0}input_min\" to \"{0}output_max\": a lower bound is above its upper one: the "
                      "file is damaged",
                      stem));
    }
  }
  return {};
}

Result<void> read_standard(const formats::ModelFile& file, VisionSpec& spec) {
  spec.standard.factor = static_cast<float>(std::sqrt(static_cast<double>(spec.tower.dim)));
  CANDOR_ASSIGN(const auto stated, formats::meta_bool(file, kIsStandard));
  const bool is_there = file.find("v.std_bias") != nullptr || file.find("v.std_scale") != nullptr;
  if (stated.value_or(is_there) != is_there) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("'config.json': \"standardize\" of \"vision_config\" is {}, but tensors \"v.std_bias\" and "
                            "\"v.std_scale\" are {}; set it to {}",
                            !is_there, is_there ? "there" : "missing", is_there));
  }
  if (is_there) spec.standard = {spec.standard.factor, "v.std_bias", "v.std_scale"};
  return {};
}

Result<void> read_layout(const formats::ModelFile& file, VisionSpec& spec) {
  const Hparams hparams(file, "clip.vision");
  CANDOR_ASSIGN(const int32_t n, hparams.int_or("projector.scale_factor", kUsualPool, {1, 16}));
  CANDOR_ASSIGN(const int32_t n_tokens, read_token_budget(file));
  CANDOR_ASSIGN(spec.positions, read_axis_positions(file));
  CANDOR_TRY(check_stated(file, "position_embedding_size", spec.positions.side));
  if (n_tokens * n * n > kMostPatches) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("images of {} tokens, each of {} x {} patches: expected at most {} "
                            "patches",
                            n_tokens, n, n, kMostPatches));
  }
  spec.recipe.layout = image::TokenBudget{n_tokens, n};
  spec.recipe.filter = image::Filter::kBicubic;
  // The tower reads twice the numbers, less 1.
  for (size_t i = 0; i < 3; ++i) {
    spec.recipe.normalisation.deviation[i] /= 2;
    spec.recipe.normalisation.mean[i] += spec.recipe.normalisation.deviation[i];
  }
  spec.max_patches = spec.tower.max_positions = n_tokens * n * n;
  spec.regroup = {RegroupKind::kAverage, n};
  return {};
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, backend::GateKind::kGelu));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.input_projection.weight"));
  spec.family = "gemma4v";
  spec.entry.layers.resize(1);
  spec.entry.layers.front().bias.clear();
  for (model::BlockSpec& block : spec.tower.blocks) {
    block.norm.kind = backend::NormKind::kRms;
    block.wiring = model::Wiring::kSandwich;
    block.qk_norm = model::QkNorm::kHeads;
    block.has_value_norm = true;
    block.ffn.is_gated = true;
  }
  spec.tower.has_final_norm = false;
  CANDOR_TRY(read_layout(file, spec));
  CANDOR_TRY(read_heads(file, spec));
  CANDOR_TRY(read_bounds(file, spec));
  CANDOR_TRY(read_standard(file, spec));
  spec.projector.n_in = spec.tower.dim;
  spec.projector.layers = {{.kind = RowLayerKind::kNorm, .norm = spec.tower.blocks.front().norm},
                           {.weight = "mm.input_projection.weight", .n_out = width}};
  spec.prompt = {.mark = "<|image|>", .row_tokens = kRowTokens, .expand = expand_gemma4, .is_seen_whole = true};
  return spec;
}

// Under the names that other towers have.
json with_usual_names(const json& config) {
  json changed = config;
  json& vision = changed.at("vision_config");
  if (!vision.is_object()) return changed;
  if (vision.contains("rms_norm_eps")) vision["layer_norm_eps"] = vision["rms_norm_eps"];
  if (vision.contains("hidden_activation")) vision["hidden_act"] = vision["hidden_activation"];
  return changed;
}

Result<void> read_flag(const json& vision, const char* key, const char* name, formats::MetaList& metadata) {
  const json value = vision.value(key, json(false));
  if (!value.is_boolean()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("'config.json': \"{}\" of \"vision_config\" is {}, expected true "
                                                      "or false",
                                                      key, value.dump()));
  }
  metadata.add(name, value.get<bool>());
  return {};
}

Result<void> read_rotation(const json& vision, formats::MetaList& metadata) {
  const json rope = vision.value("rope_parameters", json());
  if (!rope.is_object()) return {};
  const json type = rope.value("rope_type", json("axial"));
  const json base = rope.value("rope_theta", json(kUsualBase));
  if ((type != "axial" && type != "default") || !base.is_number() || !(base.get<double>() > 0.0)) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("'config.json': \"rope_parameters\" of \"vision_config\" is {}; supported: \"rope_type\" "
                            "axial, with a \"rope_theta\" above 0",
                            rope.dump()));
  }
  metadata.add("candor.vision.rope_theta", base.get<double>());
  return {};
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_TRY(
      read_hub_tower(with_usual_names(config), processor, "gemma4v", kDefaults, metadata, {.image_size = nullptr}));
  const json& vision = config.at("vision_config");
  CANDOR_TRY(hub_only(vision, "model_type", "gemma4_vision"));
  CANDOR_TRY(hub_only(vision, "attention_bias", false));
  metadata.add("clip.vision.image_size", std::get<uint64_t>(*metadata.find("clip.vision.patch_size")));
  CANDOR_ASSIGN(const int32_t pool, hub_int(vision, "pooling_kernel_size", kUsualPool, 16));
  CANDOR_ASSIGN(const int32_t head_dim, hub_int(vision, "head_dim", 64, 1 << 16));
  CANDOR_ASSIGN(const int32_t n_kv_heads, hub_int(vision, "num_key_value_heads", 12, 1 << 14));
  CANDOR_ASSIGN(const int32_t n_positions, hub_int(vision, "position_embedding_size", 10 * 1024, kMostPositions));
  metadata.add("clip.vision.projector.scale_factor", static_cast<uint64_t>(pool));
  metadata.add("candor.vision.head_dim", static_cast<uint64_t>(head_dim));
  metadata.add("candor.vision.num_key_value_heads", static_cast<uint64_t>(n_kv_heads));
  metadata.add("candor.vision.position_embedding_size", static_cast<uint64_t>(n_positions));
  CANDOR_TRY(read_flag(vision, "use_clipped_linears", kIsBounded, metadata));
  CANDOR_TRY(read_flag(vision, "standardize", kIsStandard, metadata));
  CANDOR_TRY(read_rotation(vision, metadata));
  return read_hub_token_budget(processor, pool, metadata);
}

}  // namespace
}  // namespace gemma4

VisionFamily gemma4_family() {
  using namespace gemma4;
  return {.projector = "gemma4v",
          .read = read,
          .model_types = kModelTypes,
          .stems = kStems,
          .names = kNames,
          .ignored = {},
          .read_hub = read_hub,
          .has_channels_last = true,
          .folds = {.half_head_pairs = true}};
}

}  // namespace candor::vision
