// Idefics 2: an image keeps its shape within bounds, and may be read as four quarters and as a whole; a SigLIP tower,
// whose patches take the nearest of its positions; a gated layer, and a resampler, which gives every tile as many rows.
// Laurencon et al., "What matters when building vision-language models?", 2024. Of folders alone: llama.cpp has no such
// projector.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "image/processor_config.h"
#include "model/hparams.h"
#include "vision/families/common.h"

namespace candor::vision {
namespace idefics2 {
namespace {

using model::Hparams;
using nlohmann::json;

constexpr std::string_view kAround = "<fake_token_around_image>";
constexpr std::string_view kRowTokens[] = {"<image>"};
constexpr std::string_view kModelTypes[] = {"idefics2"};
constexpr std::string_view kStems[] = {"model.vision_model.", "model.connector."};
constexpr std::array kOwnNames = {
    HubName{"mm.gate.weight", "modality_projection.gate_proj.weight"},
    HubName{"mm.up.weight", "modality_projection.up_proj.weight"},
    HubName{"mm.down.weight", "modality_projection.down_proj.weight"},
    HubName{"resampler.query", "perceiver_resampler.latents"},
    HubName{"resampler.norm.weight", "perceiver_resampler.norm.weight"},
    HubName{"resampler.blk.*.ln_q.weight", "perceiver_resampler.layers.*.input_latents_norm.weight"},
    HubName{"resampler.blk.*.ln_kv.weight", "perceiver_resampler.layers.*.input_context_norm.weight"},
    HubName{"resampler.blk.*.ln2.weight", "perceiver_resampler.layers.*.post_attention_layernorm.weight"},
    HubName{"resampler.blk.*.attn_q.weight", "perceiver_resampler.layers.*.self_attn.q_proj.weight"},
    HubName{"resampler.blk.*.attn_k.weight", "perceiver_resampler.layers.*.self_attn.k_proj.weight"},
    HubName{"resampler.blk.*.attn_v.weight", "perceiver_resampler.layers.*.self_attn.v_proj.weight"},
    HubName{"resampler.blk.*.attn_out.weight", "perceiver_resampler.layers.*.self_attn.o_proj.weight"},
    HubName{"resampler.blk.*.ffn_gate.weight", "perceiver_resampler.layers.*.mlp.gate_proj.weight"},
    HubName{"resampler.blk.*.ffn_up.weight", "perceiver_resampler.layers.*.mlp.up_proj.weight"},
    HubName{"resampler.blk.*.ffn_down.weight", "perceiver_resampler.layers.*.mlp.down_proj.weight"},
};
constexpr auto kNames = model::join(kHubVit, kHubFinalNorm, kOwnNames);
constexpr TowerDefaults kDefaults = {768, 3072, 12, 12, 224, 32, 1e-6, kTanhGelu};
constexpr const char* kPrefix = "candor.vision";
constexpr const char* kIsSplit = "candor.vision.is_split";
constexpr int32_t kMostPatches = 1 << 14;
constexpr int32_t kMostRows = 4096;
constexpr int32_t kUsualWidth = 4096;  // of the resampler, in the library's class

std::string expand(const image::Prepared&, std::string_view row, std::span<const int32_t> rows_of_tiles) {
  std::string text(kAround);
  for (const int32_t n_rows : rows_of_tiles) text += repeated(row, n_rows) + std::string(kAround);
  return text;
}

Result<void> read_layout(const Hparams& own, const formats::ModelFile& file, VisionSpec& spec) {
  image::BoundedEdges edges;
  CANDOR_ASSIGN(edges.shortest_edge, own.int_or("shortest_edge", edges.shortest_edge, {1, 16384}));
  CANDOR_ASSIGN(edges.longest_edge, own.int_or("longest_edge", edges.longest_edge, {1, 16384}));
  CANDOR_ASSIGN(const auto is_split, formats::meta_bool(file, kIsSplit));
  edges.is_split = is_split.value_or(false);
  const int32_t in_line = std::max(edges.shortest_edge, edges.longest_edge) / spec.recipe.patch_side;
  if (in_line < 1 || in_line > kMostPatches / in_line) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("sides of {} to {} pixels in patches of {}: expected 1 to {} patches a tile",
                            edges.shortest_edge, edges.longest_edge, spec.recipe.patch_side, kMostPatches));
  }
  spec.recipe.layout = edges;
  spec.recipe.filter = image::Filter::kBilinear;
  spec.max_patches = spec.tower.max_positions = in_line * in_line;
  return {};
}

Result<void> read_resampler(const Hparams& own, int32_t width, VisionSpec& spec) {
  ResamplerSpec& resampler = spec.resampler;
  resampler.dim = width;
  CANDOR_ASSIGN(resampler.n_rows, own.require_int("resampler_n_latents", {1, kMostRows}));
  CANDOR_ASSIGN(resampler.n_blocks, own.require_int("resampler_depth", {1, model::kMaxLayers}));
  CANDOR_ASSIGN(const double epsilon, own.positive_or("rms_norm_eps", 1e-6));
  model::BlockSpec& block = resampler.block;
  block.norm = {backend::NormKind::kRms, static_cast<float>(epsilon)};
  CANDOR_ASSIGN(block.attn.n_heads, own.require_int("resampler_n_heads", {1, 1 << 14}));
  CANDOR_ASSIGN(block.attn.n_kv_heads, own.require_int("num_key_value_heads", {1, block.attn.n_heads}));
  CANDOR_ASSIGN(block.attn.head_dim, own.require_int("resampler_head_dim", {1, model::kMaxWidth / block.attn.n_heads}));
  block.attn.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block.attn.head_dim)));
  block.ffn.ffn_dim = 4 * width;
  if (block.attn.n_heads % block.attn.n_kv_heads == 0 && width <= model::kMaxWidth / 4) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("'config.json': \"num_key_value_heads\" of \"perceiver_config\" is {}, expected a divisor of "
                          "\"resampler_n_heads\", which is {}",
                          block.attn.n_kv_heads, block.attn.n_heads));
}

Result<VisionSpec> read(const formats::ModelFile& file) {
  const Hparams own(file, kPrefix);
  CANDOR_ASSIGN(VisionSpec spec, read_tower(file, backend::GateKind::kGelu));
  CANDOR_ASSIGN(const int32_t inner, projection_width(file, "mm.up.weight"));
  CANDOR_ASSIGN(const int32_t width, projection_width(file, "mm.down.weight"));
  spec.family = "idefics2";
  CANDOR_TRY(read_layout(own, file, spec));
  spec.entry.layers.pop_back();  // positions are the nearest
  spec.positions = {"v.position_embd.weight", spec.positions.side, PositionKind::kNearest};
  spec.projector.n_in = spec.tower.dim;
  spec.projector.layers = {{.kind = RowLayerKind::kGate,
                            .weight = "mm.gate.weight",
                            .n_out = inner,
                            .act = backend::GateKind::kSilu,
                            .up = "mm.up.weight"},
                           {.weight = "mm.down.weight", .n_out = width}};
  CANDOR_TRY(read_resampler(own, width, spec));
  spec.prompt = {.mark = "<image>", .row_tokens = kRowTokens, .expand = expand, .joint = kAround};
  return spec;
}

Result<void> read_processor(const json& processor, formats::MetaList& metadata) {
  const auto patch = static_cast<int32_t>(std::get<uint64_t>(*metadata.find("clip.vision.patch_size")));
  CANDOR_ASSIGN(const image::Recipe recipe, image::recipe_of(processor.dump(), {.patch = patch}));
  const auto* edges = std::get_if<image::BoundedEdges>(&recipe.layout);
  if (edges == nullptr || recipe.filter != image::Filter::kBilinear) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("'preprocessor_config.json' describes \"{}\"; supported: what Idefics2ImageProcessor makes by a "
                    "bilinear filter",
                    image::describe(recipe)));
  }
  metadata.add("candor.vision.shortest_edge", static_cast<uint64_t>(edges->shortest_edge));
  metadata.add("candor.vision.longest_edge", static_cast<uint64_t>(edges->longest_edge));
  metadata.add(kIsSplit, edges->is_split);
  return add_pixels(recipe, metadata);
}

// Of the resampler; where its width is not the text's, the library takes both from the text.
Result<void> read_epsilon(const json& perceiver, const json& text, formats::MetaList& metadata) {
  const json width = perceiver.value("hidden_size", json(kUsualWidth));
  const bool is_own = width == text.value("hidden_size", json(kUsualWidth));
  const json epsilon = is_own ? perceiver.value("rms_norm_eps", json(1e-6)) : text.value("rms_norm_eps", json(1e-5));
  if (!epsilon.is_number()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("'config.json': \"rms_norm_eps\" is {}, expected a number", epsilon.dump()));
  }
  metadata.add("candor.vision.rms_norm_eps", epsilon.get<double>());
  return {};
}

Result<void> read_hub(const json& config, const json& processor, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_tower(config, processor, "idefics2", kDefaults, metadata));
  const json perceiver = config.value("perceiver_config", json::object());
  const json text = config.value("text_config", json::object());
  if (!perceiver.is_object() || !text.is_object()) {
    return fail(ErrorKind::kInvalidInput,
                "'config.json': \"perceiver_config\" and \"text_config\" are no objects, expected the resampler's and "
                "the text's settings");
  }
  CANDOR_TRY(hub_only(perceiver, "hidden_act", "silu"));
  CANDOR_TRY(hub_only(text, "hidden_act", "silu"));
  constexpr std::pair<const char*, int32_t> kNumbers[] = {{"resampler_n_latents", 64},
                                                          {"resampler_depth", 3},
                                                          {"resampler_n_heads", 16},
                                                          {"resampler_head_dim", 96},
                                                          {"num_key_value_heads", 4}};
  for (const auto& [key, usual] : kNumbers) {
    CANDOR_ASSIGN(const int32_t value, hub_int(perceiver, key, usual, 1 << 16));
    metadata.add(fmt::format("{}.{}", kPrefix, key), static_cast<uint64_t>(value));
  }
  CANDOR_TRY(read_epsilon(perceiver, text, metadata));
  return read_processor(processor, metadata);
}

}  // namespace
}  // namespace idefics2

VisionFamily idefics2_family() {
  using namespace idefics2;
  return {.projector = "idefics2",
          .read = read,
          .model_types = kModelTypes,
          .stems = kStems,
          .names = kNames,
          .ignored = {},
          .read_hub = read_hub};
}

}  // namespace candor::vision
