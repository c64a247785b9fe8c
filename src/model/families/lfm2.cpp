// LFM2, dense and with experts: most blocks have a short gated convolution instead of attention, whose queries and keys
// are normalised by head. Experts are chosen by sigmoids with a bias, behind some dense blocks. Liquid AI, 2025.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "backend/state_specs.h"
#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/families/grouped_experts.h"
#include "model/families/hybrid.h"

namespace candor::model {
namespace lfm2 {
namespace {

using enum TensorRole;
using nlohmann::json;

constexpr std::array kOwn = {
    TensorName{kEmbedding, "token_embd.weight"},          TensorName{kFinalNorm, "token_embd_norm.weight"},
    TensorName{kHead, "output.weight", kOptional},        TensorName{kConvIn, "blk.*.shortconv.in_proj.weight"},
    TensorName{kConvTaps, "blk.*.shortconv.conv.weight"}, TensorName{kConvOut, "blk.*.shortconv.out_proj.weight"},
};
constexpr std::array kChoice = {TensorName{kChoiceBias, "blk.*.exp_probs_b.bias"}};
constexpr auto kDenseTensors = join(kOwn, kPreNormTensors, kAttnTensors, kQkNormTensors, kGatedFfnTensors);
constexpr auto kSparseTensors = join(kDenseTensors, kMoeTensors, kChoice);

constexpr std::array kHubOwn = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"token_embd_norm.weight", "model.embedding_norm.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.operator_norm.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.ffn_norm.weight"},
    HubTensor{"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight"},
    HubTensor{"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight"},
    HubTensor{"blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.out_proj.weight"},
    HubTensor{"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_layernorm.weight"},
    HubTensor{"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_layernorm.weight"},
    HubTensor{"blk.*.shortconv.in_proj.weight", "model.layers.*.conv.in_proj.weight"},
    HubTensor{"blk.*.shortconv.conv.weight", "model.layers.*.conv.conv.weight", HubChange::kPlainTaps},
    HubTensor{"blk.*.shortconv.out_proj.weight", "model.layers.*.conv.out_proj.weight"},
    HubTensor{"blk.*.ffn_gate.weight", "model.layers.*.feed_forward.w1.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.feed_forward.w2.weight"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.feed_forward.w3.weight"},
};
constexpr std::array kHubSparse = {
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.feed_forward.gate.weight", HubChange::kWiden},
    HubTensor{"blk.*.exp_probs_b.bias", "model.layers.*.feed_forward.expert_bias", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate.#.weight", "model.layers.*.feed_forward.experts.#.w1.weight"},
    HubTensor{"blk.*.ffn_down.#.weight", "model.layers.*.feed_forward.experts.#.w2.weight"},
    HubTensor{"blk.*.ffn_up.#.weight", "model.layers.*.feed_forward.experts.#.w3.weight"},
};
constexpr auto kHubSparseTensors = join(kHubOwn, kHubSparse);

constexpr uint64_t kSigmoidShare = 2;  // "expert_gating_func"

// "intermediate_size" is what the width is made of: two thirds of it, times a factor, up to a multiple.
Result<uint64_t> ffn_width(const HubConfig& config) {
  CANDOR_ASSIGN(const uint64_t stated, require_hub_size(config, "intermediate_size"));
  CANDOR_ASSIGN(const std::optional<bool> adjusts, hub_flag(config, "block_auto_adjust_ff_dim"));
  if (!adjusts.value_or(true)) return stated;
  CANDOR_ASSIGN(const std::optional<double> factor, hub_number(config, "block_ffn_dim_multiplier"));
  CANDOR_ASSIGN(const std::optional<double> multiple, hub_number(config, "block_multiple_of"));
  const uint64_t two_thirds = 2 * stated / 3;
  const double width = std::floor(factor.value_or(1.0) * static_cast<double>(two_thirds));
  const double step = multiple.value_or(256.0);
  if (width >= 1.0 && width <= static_cast<double>(kMaxWidth) && step >= 1.0 &&
      step <= static_cast<double>(kMaxWidth)) {
    return static_cast<uint64_t>(std::ceil(width / step) * step);
  }
  return fail(ErrorKind::kInvalidInput,
              fmt::format("config.json: \"block_ffn_dim_multiplier\" is {} and \"block_multiple_of\" is {}, expected "
                          "numbers above 0 that give a width of at most {}",
                          factor.value_or(1.0), step, kMaxWidth));
}

constexpr std::string_view kAttends[] = {"full_attention"};
constexpr std::string_view kConvolves[] = {"conv"};

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<bool> has_bias, hub_flag(config, "conv_bias"));
  if (has_bias.value_or(false)) {
    return fail(ErrorKind::kUnsupported,
                "config.json: \"conv_bias\" is true, which is not supported (supported: false)");
  }
  CANDOR_ASSIGN(const std::optional<double> epsilon, hub_number(config, "norm_eps"));
  metadata.add(fmt::format("{}.attention.layer_norm_rms_epsilon", prefix),
               static_cast<double>(static_cast<float>(epsilon.value_or(1e-5))));
  if (const json* attending = config.find("full_attn_idxs"); attending != nullptr && !attending->is_array()) {
    return config.bad("full_attn_idxs", *attending, "a list of blocks");
  }
  CANDOR_ASSIGN(const uint64_t n_taps, require_hub_size(config, "conv_L_cache"));
  metadata.add(fmt::format("{}.shortconv.l_cache", prefix), n_taps);
  CANDOR_ASSIGN(const std::vector<bool> attending, hub_attending(config, kAttends, kConvolves));
  return add_kv_heads(config, prefix, attending, metadata);
}

Result<void> read_hub_dense(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const uint64_t width, ffn_width(config));
  metadata.add(fmt::format("{}.feed_forward_length", prefix), width);
  return read_hub(config, prefix, metadata);
}

Result<void> read_hub_sparse(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<bool> has_bias, hub_flag(config, "use_expert_bias"));
  if (!has_bias.value_or(true)) {
    return fail(ErrorKind::kUnsupported,
                "config.json: \"use_expert_bias\" is false, which is not supported (supported: true)");
  }
  CANDOR_ASSIGN(const std::optional<double> scale, hub_number(config, "routed_scaling_factor"));
  CANDOR_ASSIGN(const std::optional<double> n_dense, hub_number(config, "num_dense_layers"));
  if (scale)
    metadata.add(fmt::format("{}.expert_weights_scale", prefix), static_cast<double>(static_cast<float>(*scale)));
  metadata.add(fmt::format("{}.expert_gating_func", prefix), kSigmoidShare);
  metadata.add(fmt::format("{}.leading_dense_block_count", prefix),
               static_cast<uint64_t>(std::clamp(n_dense.value_or(2.0), 0.0, static_cast<double>(kMaxLayers))));
  return read_hub(config, prefix, metadata);
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  json types = json::array();
  for (const BlockSpec& block : spec.blocks) {
    types.push_back(block.has_attention ? "full_attention" : "conv");
    if (block.has_gated_conv()) config["conv_L_cache"] = block.gated_conv.n_taps;
  }
  config["layer_types"] = types;
  config["conv_bias"] = false;
  config["block_auto_adjust_ff_dim"] = false;
  write_norm_epsilon(spec, "norm_eps", config);
}

void write_hub_sparse(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_hub(spec, config);
  const auto first = std::ranges::find_if(spec.blocks, [](const BlockSpec& block) { return block.ffn.is_moe(); });
  config["num_dense_layers"] = first - spec.blocks.begin();
  if (first == spec.blocks.end()) return;
  const backend::MoeSpec& moe = first->ffn.moe;
  config["num_experts"] = moe.n_experts;
  config["num_experts_per_tok"] = moe.n_used;
  config["moe_intermediate_size"] = first->ffn.ffn_dim;
  config["norm_topk_prob"] = moe.renormalise;
  config["routed_scaling_factor"] = shortest_decimal(moe.scale);
  config["use_expert_bias"] = true;
  config.erase("num_local_experts");
}

constexpr std::string_view kImages[] = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                                        "model.multi_modal_projector."};
constexpr HubOuter kOuter[] = {{"lfm2_vl", kImages, ""}};
constexpr HubForm kDenseHub[] = {{.model_type = "lfm2",
                                  .architecture = "Lfm2ForCausalLM",
                                  .activation = "",
                                  .tensors = kHubOwn,
                                  .read = read_hub_dense,
                                  .write = write_hub,
                                  .outer = kOuter,
                                  .has_own_kinds = true}};
constexpr HubForm kSparseHub[] = {{.model_type = "lfm2_moe",
                                   .architecture = "Lfm2MoeForCausalLM",
                                   .activation = "",
                                   .tensors = kHubSparseTensors,
                                   .read = read_hub_sparse,
                                   .write = write_hub_sparse,
                                   .has_own_kinds = true}};

Result<ArchSpec> read(const Hparams& hparams) {
  CANDOR_TRY(hparams.refuse_unless_zero({"attention.sliding_window"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms, read_attention_of_some));
  CANDOR_ASSIGN(const std::vector<bool> attending, read_attending(hparams, spec.blocks.size()));
  CANDOR_ASSIGN(const int32_t n_taps, hparams.require_int("shortconv.l_cache", {2, backend::kMaxConvTaps}));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.qk_norm = QkNorm::kHeads;
    block.has_attention = attending[layer];
    if (!attending[layer]) block.gated_conv = {.n_channels = spec.dim, .n_taps = n_taps, .has_silu = false};
  }
  return spec;
}

Result<ArchSpec> read_dense(const formats::ModelFile& file) {
  return read(Hparams(file, "lfm2"));
}

// Files say nothing about the sum of the weights, which is 1.
Result<ArchSpec> read_sparse(const formats::ModelFile& file) {
  const Hparams hparams(file, "lfm2moe");
  CANDOR_ASSIGN(ArchSpec spec, read(hparams));
  CANDOR_TRY(add_grouped_experts(hparams, spec));
  if (hparams.has("expert_weights_norm")) return spec;
  for (BlockSpec& block : spec.blocks) block.ffn.moe.renormalise = true;
  return spec;
}

}  // namespace
}  // namespace lfm2

Family lfm2_family() {
  using namespace lfm2;
  return {"lfm2", read_dense, kDenseTensors, {}, kDenseHub};
}

Family lfm2moe_family() {
  using namespace lfm2;
  return {"lfm2moe", read_sparse, kSparseTensors, {}, kSparseHub};
}

}  // namespace candor::model
