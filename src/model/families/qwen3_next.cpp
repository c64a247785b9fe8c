// Qwen3-Next, Qwen3.5 and Qwen3.6, dense and with experts: of every four blocks three have a gated delta rule instead
// of attention (Yang et al., "Gated delta networks", 2024); attention rotates a part of each head and is gated by a
// sigmoid (Qiu et al., "Gated attention for large language models", 2025); norms are stored as their distance from one;
// a shared expert stands beside the others. Blocks for multi-token prediction are named apart. Qwen team, 2025.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "backend/state_specs.h"
#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"
#include "model/families/hybrid.h"
#include "model/families/prediction_parts.h"

namespace candor::model {
namespace qwen3_next {
namespace {

using enum TensorRole;
using nlohmann::json;

constexpr int32_t kInterval = 4;

constexpr std::array kNorms = {
    TensorName{kAttnNorm, "blk.*.attn_norm.weight"},
    TensorName{kFfnNorm, "blk.*.post_attention_norm.weight"},
};
constexpr std::array kDelta = {
    TensorName{kDeltaQkv, "blk.*.attn_qkv.weight"},    TensorName{kDeltaGate, "blk.*.attn_gate.weight"},
    TensorName{kDeltaTaps, "blk.*.ssm_conv1d.weight"}, TensorName{kDeltaRate, "blk.*.ssm_a"},
    TensorName{kDeltaBias, "blk.*.ssm_dt.bias"},       TensorName{kDeltaNorm, "blk.*.ssm_norm.weight"},
    TensorName{kDeltaOut, "blk.*.ssm_out.weight"},
};
constexpr std::array kAlphaBeta = {
    TensorName{kDeltaAlpha, "blk.*.ssm_alpha.weight"},
    TensorName{kDeltaBeta, "blk.*.ssm_beta.weight"},
};
constexpr std::array kBetaAlpha = {TensorName{kDeltaBetaAlpha, "blk.*.ssm_ba.weight"}};
constexpr auto kBlock = join(kStemTensors, kNorms, kAttnTensors, kQkNormTensors, kDelta);
constexpr auto kDenseTensors = join(kBlock, kAlphaBeta, kGatedFfnTensors);
constexpr auto kSparseTensors = join(kBlock, kAlphaBeta, kJoinedMoeTensors, kMoeTensors, kSharedExpertTensors);
constexpr auto kNextTensors = join(kBlock, kBetaAlpha, kGatedFfnTensors, kMoeTensors, kSharedExpertTensors);

constexpr std::array kHubShared = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output_norm.weight", "model.norm.weight", HubChange::kAddOne},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_norm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_norm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.ssm_norm.weight", "model.layers.*.linear_attn.norm.weight"},
    HubTensor{"blk.*.nextn.eh_proj.weight", "model.layers.*.eh_proj.weight"},
    HubTensor{"blk.*.nextn.enorm.weight", "model.layers.*.enorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.nextn.hnorm.weight", "model.layers.*.hnorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.nextn.shared_head_norm.weight", "model.layers.*.shared_head.norm.weight", HubChange::kAddOne},
};
// Value heads of one key head stand together there, and here in turn.
constexpr std::array kHubTiled = {
    HubTensor{"blk.*.attn_qkv.weight", "model.layers.*.linear_attn.in_proj_qkv.weight", HubChange::kTileValues},
    HubTensor{"blk.*.attn_gate.weight", "model.layers.*.linear_attn.in_proj_z.weight", HubChange::kTileRows},
    HubTensor{"blk.*.ssm_alpha.weight", "model.layers.*.linear_attn.in_proj_a.weight", HubChange::kTileRows},
    HubTensor{"blk.*.ssm_beta.weight", "model.layers.*.linear_attn.in_proj_b.weight", HubChange::kTileRows},
    HubTensor{"blk.*.ssm_conv1d.weight", "model.layers.*.linear_attn.conv1d.weight", HubChange::kTileTaps},
    HubTensor{"blk.*.ssm_a", "model.layers.*.linear_attn.A_log", HubChange::kTileRates},
    HubTensor{"blk.*.ssm_dt.bias", "model.layers.*.linear_attn.dt_bias", HubChange::kTileRows},
    HubTensor{"blk.*.ssm_out.weight", "model.layers.*.linear_attn.out_proj.weight", HubChange::kTileColumns},
};
constexpr auto kHubDense = join(kHubShared, kHubAttn, kHubTiled, kHubGatedFfn);

constexpr auto kHubSparse = join(kHubShared, kHubAttn, kHubTiled, kHubExperts, kHubSharedExpert);
constexpr auto kHubJoined = join(kHubSparse, kHubJoinedExperts);
constexpr std::array kHubMixed = {
    HubTensor{"blk.*.attn_qkv.weight", "model.layers.*.linear_attn.in_proj_qkvz.weight", HubChange::kSplitMixed},
    HubTensor{"blk.*.attn_gate.weight", "", HubChange::kSplitMixed},
    HubTensor{"blk.*.ssm_ba.weight", "model.layers.*.linear_attn.in_proj_ba.weight"},
    HubTensor{"blk.*.ssm_conv1d.weight", "model.layers.*.linear_attn.conv1d.weight", HubChange::kTaps},
    HubTensor{"blk.*.ssm_a", "model.layers.*.linear_attn.A_log", HubChange::kRates},
    HubTensor{"blk.*.ssm_dt.bias", "model.layers.*.linear_attn.dt_bias"},
    HubTensor{"blk.*.ssm_out.weight", "model.layers.*.linear_attn.out_proj.weight"},
};
constexpr auto kHubNext = join(kHubShared, kHubAttn, kHubMixed, kHubGatedFfn, kHubExperts, kHubSharedExpert);

// Which blocks are recurrent: layer_types, or every full_attention_interval-th attends.
Result<void> read_kinds(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const json* types = config.find("layer_types");
  if (types == nullptr || !types->is_array()) {
    CANDOR_ASSIGN(const std::optional<double> interval, hub_number(config, "full_attention_interval"));
    metadata.add(fmt::format("{}.full_attention_interval", prefix),
                 static_cast<uint64_t>(std::clamp(interval.value_or(kInterval), 1.0, 4096.0)));
    return {};
  }
  std::vector<bool> flags;
  for (const json& type : *types) {
    if (type != "linear_attention" && type != "full_attention") {
      return fail(ErrorKind::kUnsupported, fmt::format("config.json: \"layer_types\" has {}, which is not supported "
                                                       "(supported: linear_attention, full_attention)",
                                                       formats::in_quotes(type.dump())));
    }
    flags.push_back(type == "linear_attention");
  }
  metadata.add(fmt::format("{}.attention.recurrent_layers", prefix), formats::MetaArray(std::move(flags)));
  return {};
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_delta(config, prefix, metadata));
  CANDOR_TRY(read_hub_sections(config, prefix, metadata));
  return read_kinds(config, prefix, metadata);
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  auto types = nlohmann::ordered_json::array();
  for (const BlockSpec& block : spec.blocks) {
    types.push_back(block.has_delta() ? "linear_attention" : "full_attention");
  }
  config["layer_types"] = std::move(types);
  write_hub_delta(spec, config);
  // The library wants the rotated share beside the base.
  const backend::AttnSpec& attn = spec.blocks.front().attn;
  config["rope_parameters"] = {{"rope_type", "default"},
                               {"rope_theta", attn.rope.base},
                               {"partial_rotary_factor", static_cast<double>(attn.rope.n_dims) / attn.head_dim}};
  if (attn.rope.axes.empty()) return;
  const auto n_of = [&](uint8_t axis) { return std::ranges::count(attn.rope.axes, axis); };
  config["rope_parameters"]["mrope_section"] = {n_of(0), n_of(1), n_of(2)};
  config["rope_parameters"]["mrope_interleaved"] = true;
}

Result<void> read_hub_next(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub(config, prefix, metadata));
  return read_hub_dense_blocks(config, prefix, metadata);
}
void write_hub_next(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_hub(spec, config);
  write_hub_dense_blocks(spec, config);
}
constexpr std::string_view kImages[] = {"model.visual."};
constexpr HubOuter kDenseOuter[] = {{"qwen3_5", kImages, ""}};
constexpr HubOuter kSparseOuter[] = {{"qwen3_5_moe", kImages, ""}};

constexpr HubForm kDenseHub[] = {{.model_type = "qwen3_5_text",
                                  .architecture = "Qwen3_5ForCausalLM",
                                  .activation = "silu",
                                  .tensors = kHubDense,
                                  .read = read_hub,
                                  .write = write_hub,
                                  .outer = kDenseOuter,
                                  .has_own_kinds = true,
                                  .prediction = kApartPrediction}};

constexpr HubForm sparse_form(std::span<const HubTensor> tensors) {
  return {.model_type = "qwen3_5_moe_text",
          .architecture = "Qwen3_5MoeForCausalLM",
          .activation = "silu",
          .tensors = tensors,
          .read = read_hub,
          .write = write_hub,
          .outer = kSparseOuter,
          .has_own_kinds = true,
          .prediction = kApartPrediction};
}
constexpr HubForm kSparseHub[] = {sparse_form(kHubSparse), sparse_form(kHubJoined)};
constexpr HubForm kNextHub[] = {{.model_type = "qwen3_next",
                                 .architecture = "Qwen3NextForCausalLM",
                                 .activation = "silu",
                                 .tensors = kHubNext,
                                 .read = read_hub_next,
                                 .write = write_hub_next,
                                 .has_own_kinds = true,
                                 .prediction = kApartPrediction}};

// [n_layers]
Result<std::vector<bool>> read_recurrent(const Hparams& hparams, size_t n_layers) {
  const std::string key = hparams.key("attention.recurrent_layers");
  std::vector<bool> flags;
  if (const formats::MetaValue* value = hparams.file().meta(key)) {
    const auto* array = std::get_if<formats::MetaArray>(value);
    const auto* listed = array == nullptr ? nullptr : std::get_if<std::vector<bool>>(array);
    if (listed == nullptr || listed->size() < n_layers) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("metadata key \"{}\": expected {} flags, one for each block", key, n_layers));
    }
    flags.assign(listed->begin(), listed->begin() + static_cast<std::ptrdiff_t>(n_layers));
  } else {
    CANDOR_ASSIGN(const int32_t interval, hparams.int_or("full_attention_interval", kInterval, {1, kMaxLayers}));
    for (size_t layer = 1; layer <= n_layers; ++layer) flags.push_back(layer % static_cast<size_t>(interval) != 0);
  }
  if (std::ranges::find(flags, false) != flags.end()) return flags;
  return fail(ErrorKind::kUnsupported, "every block is recurrent: expected some that attend");
}

Result<ArchSpec> read_shared(const Hparams& hparams, backend::KeyHeads key_heads) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(leave_prediction(hparams, spec));
  CANDOR_ASSIGN(const backend::DeltaSpec delta, read_delta(hparams, key_heads));
  CANDOR_ASSIGN(const std::vector<bool> is_recurrent, read_recurrent(hparams, spec.blocks.size()));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    CANDOR_TRY(read_rope_axes(hparams, true, block.attn.rope));
    block.qk_norm = QkNorm::kHeads;
    block.has_head_gate = true;
    block.has_attention = !is_recurrent[layer];
    if (is_recurrent[layer]) block.delta = delta;
  }
  return spec;
}

Result<ArchSpec> read_dense(const formats::ModelFile& file) {
  return read_shared(Hparams(file, "qwen35"), backend::KeyHeads::kTiled);
}

Result<ArchSpec> with_experts(const Hparams& hparams, backend::KeyHeads key_heads) {
  CANDOR_ASSIGN(ArchSpec spec, read_shared(hparams, key_heads));
  CANDOR_TRY(add_experts_and_shared(hparams, spec));
  return spec;
}

Result<ArchSpec> read_sparse(const formats::ModelFile& file) {
  return with_experts(Hparams(file, "qwen35moe"), backend::KeyHeads::kTiled);
}

Result<ArchSpec> read_next(const formats::ModelFile& file) {
  return with_experts(Hparams(file, "qwen3next"), backend::KeyHeads::kGrouped);
}

}  // namespace
}  // namespace qwen3_next

Family qwen35_family() {
  using namespace qwen3_next;
  return {"qwen35", read_dense, kDenseTensors, {}, kDenseHub};
}

Family qwen35moe_family() {
  using namespace qwen3_next;
  return {"qwen35moe", read_sparse, kSparseTensors, {}, kSparseHub};
}

Family qwen3next_family() {
  using namespace qwen3_next;
  return {"qwen3next", read_next, kNextTensors, {}, kNextHub};
}

}  // namespace candor::model
