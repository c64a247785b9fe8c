// Kimi Linear: most blocks have a delta rule whose state forgets each of its rows at a rate of its own (Kimi Team,
// "Kimi Linear", 2025), the others latent attention that rotates nothing; DeepSeek's experts behind the first blocks.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "backend/state_specs.h"
#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"
#include "model/families/grouped_experts.h"
#include "model/families/hybrid.h"
#include "model/families/latent_parts.h"

namespace candor::model {
namespace kimi_linear {
namespace {

using enum TensorRole;
using nlohmann::json;

constexpr std::array kDelta = {
    TensorName{kDeltaQ, "blk.*.attn_q.weight"},          TensorName{kDeltaK, "blk.*.attn_k.weight"},
    TensorName{kDeltaV, "blk.*.attn_v.weight"},          TensorName{kDeltaQTaps, "blk.*.ssm_conv1d_q.weight"},
    TensorName{kDeltaKTaps, "blk.*.ssm_conv1d_k.weight"}, TensorName{kDeltaVTaps, "blk.*.ssm_conv1d_v.weight"},
    TensorName{kDeltaAlphaDown, "blk.*.ssm_f_a.weight"}, TensorName{kDeltaAlphaUp, "blk.*.ssm_f_b.weight"},
    TensorName{kDeltaGateDown, "blk.*.ssm_g_a.weight"},  TensorName{kDeltaGateUp, "blk.*.ssm_g_b.weight"},
    TensorName{kDeltaBeta, "blk.*.ssm_beta.weight"},     TensorName{kDeltaRate, "blk.*.ssm_a"},
    TensorName{kDeltaBias, "blk.*.ssm_dt.bias"},         TensorName{kDeltaNorm, "blk.*.ssm_norm.weight"},
    TensorName{kDeltaOut, "blk.*.attn_output.weight"},
};
constexpr auto kTensors =
    join(kStemTensors, kPreNormTensors, kLatentAttnTensors, kDelta, kGatedFfnTensors, kMoeTensors, kGroupedTensors);
constexpr std::string_view kIgnored[] = {"blk.*.attn_kv_b.weight"};

constexpr std::array kHubOwn = {
    HubTensor{"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight"},
    HubTensor{"blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.ssm_conv1d_q.weight", "model.layers.*.self_attn.q_conv1d.weight", HubChange::kWiden},
    HubTensor{"blk.*.ssm_conv1d_k.weight", "model.layers.*.self_attn.k_conv1d.weight", HubChange::kWiden},
    HubTensor{"blk.*.ssm_conv1d_v.weight", "model.layers.*.self_attn.v_conv1d.weight", HubChange::kWiden},
    HubTensor{"blk.*.ssm_f_a.weight", "model.layers.*.self_attn.f_a_proj.weight"},
    HubTensor{"blk.*.ssm_f_b.weight", "model.layers.*.self_attn.f_b_proj.weight"},
    HubTensor{"blk.*.ssm_g_a.weight", "model.layers.*.self_attn.g_a_proj.weight"},
    HubTensor{"blk.*.ssm_g_b.weight", "model.layers.*.self_attn.g_b_proj.weight"},
    HubTensor{"blk.*.ssm_beta.weight", "model.layers.*.self_attn.b_proj.weight"},
    HubTensor{"blk.*.ssm_a", "model.layers.*.self_attn.A_log", HubChange::kDeepRates},
    HubTensor{"blk.*.ssm_dt.bias", "model.layers.*.self_attn.dt_bias"},
    HubTensor{"blk.*.ssm_norm.weight", "model.layers.*.self_attn.o_norm.weight"},
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.block_sparse_moe.gate.weight", HubChange::kWiden},
    HubTensor{"blk.*.exp_probs_b.bias", "model.layers.*.block_sparse_moe.gate.e_score_correction_bias",
              HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate.#.weight", "model.layers.*.block_sparse_moe.experts.#.w1.weight"},
    HubTensor{"blk.*.ffn_down.#.weight", "model.layers.*.block_sparse_moe.experts.#.w2.weight"},
    HubTensor{"blk.*.ffn_up.#.weight", "model.layers.*.block_sparse_moe.experts.#.w3.weight"},
    HubTensor{"blk.*.ffn_gate_shexp.weight", "model.layers.*.block_sparse_moe.shared_experts.gate_proj.weight"},
    HubTensor{"blk.*.ffn_up_shexp.weight", "model.layers.*.block_sparse_moe.shared_experts.up_proj.weight"},
    HubTensor{"blk.*.ffn_down_shexp.weight", "model.layers.*.block_sparse_moe.shared_experts.down_proj.weight"},
};
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubLatentAttn, kHubGatedFfn, kHubOwn);

struct KeyName {
  const char* key;
  const char* hub;
};
constexpr KeyName kSizes[] = {
    {"context_length", "model_max_length"},
    {"expert_used_count", "num_experts_per_token"},
    {"expert_shared_count", "num_shared_experts"},
    {"expert_group_count", "num_expert_group"},
    {"expert_group_used_count", "topk_group"},
};

constexpr std::string_view kAttends[] = {"full_attention"};
constexpr std::string_view kForgets[] = {"linear_attention"};

// Published models number the blocks that attend from 1.
Result<std::vector<bool>> attending_blocks(const HubConfig& config, const json& linear) {
  const json listed = linear.value("full_attn_layers", json());
  if (!listed.is_array() || !linear.contains("kda_layers")) return hub_attending(config, kAttends, kForgets);
  CANDOR_ASSIGN(const uint64_t n_layers, require_hub_size(config, "num_hidden_layers"));
  std::vector<bool> attending(static_cast<size_t>(n_layers), false);
  for (const json& number : listed) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() < 1 || number.get<uint64_t>() > n_layers) {
      return fail(ErrorKind::kInvalidInput, fmt::format("config.json: \"full_attn_layers\" has {}, expected 1 to {}",
                                                        number.dump(), n_layers));
    }
    attending[number.get<size_t>() - 1] = true;
  }
  return attending;
}

Result<uint64_t> size_in(const HubConfig& config, const json& linear, const char* published, const char* today) {
  CANDOR_ASSIGN(const uint64_t stated, require_hub_size(config, today));
  return linear.contains(published) ? require_hub_size(linear, published) : stated;
}

Result<void> refuse_unless(const HubConfig& config, const char* key, const json& wanted) {
  const json* stated = config.stated(key);
  if (stated == nullptr || *stated == wanted) return {};
  return config.unsupported(key, *stated, wanted.dump());
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const auto add = [&](const char* suffix, formats::MetaValue value) {
    metadata.add(fmt::format("{}.{}", prefix, suffix), std::move(value));
  };
  CANDOR_TRY(refuse_unless(config, "moe_router_activation_func", "sigmoid"));
  CANDOR_TRY(refuse_unless(config, "mla_use_nope", true));
  const json linear = config.contains("linear_attn_config") ? config["linear_attn_config"] : json::object();
  if (!linear.is_object()) return refuse_unless(config, "linear_attn_config", json::object());
  CANDOR_TRY(read_hub_grouped(config, prefix, metadata, backend::ExpertShare::kSigmoid));
  for (const KeyName& row : kSizes) {
    CANDOR_ASSIGN(const uint64_t size, require_hub_size(config, row.hub));
    add(row.key, size);
  }
  CANDOR_ASSIGN(const std::optional<bool> sums, hub_flag(config, "moe_renormalize"));
  add("expert_weights_norm", sums.value_or(true));
  CANDOR_TRY(check_hub_heads(config));
  CANDOR_ASSIGN(const uint64_t rotated, require_hub_size(config, "qk_rope_head_dim"));
  CANDOR_ASSIGN(const uint64_t plain, require_hub_size(config, "qk_nope_head_dim"));
  CANDOR_ASSIGN(const uint64_t value_dim, require_hub_size(config, "v_head_dim"));
  CANDOR_ASSIGN(const uint64_t rank, require_hub_size(config, "kv_lora_rank"));
  add("rope.dimension_count", rotated);
  add("attention.key_length_mla", plain + rotated);
  add("attention.value_length_mla", value_dim);
  add("attention.kv_lora_rank", rank);
  add("attention.key_length", rank + rotated);
  if (config.contains("q_lora_rank") && !config["q_lora_rank"].is_null()) {
    CANDOR_ASSIGN(const uint64_t query_rank, require_hub_size(config, "q_lora_rank"));
    add("attention.q_lora_rank", query_rank);
  }
  CANDOR_ASSIGN(const uint64_t head_dim, size_in(config, linear, "head_dim", "linear_head_dim"));
  CANDOR_ASSIGN(const uint64_t n_taps, size_in(config, linear, "short_conv_kernel_size", "linear_conv_kernel_dim"));
  CANDOR_ASSIGN(const uint64_t n_heads, size_in(config, linear, "num_heads", "linear_num_heads"));
  CANDOR_TRY(refuse_unless(config, "num_attention_heads", n_heads));
  add("kda.head_dim", head_dim);
  add("ssm.conv_kernel", n_taps);
  CANDOR_ASSIGN(const std::vector<bool> attending, attending_blocks(config, linear));
  std::vector<int64_t> counts(attending.begin(), attending.end());
  add("attention.head_count_kv", formats::MetaArray(std::move(counts)));
  return {};
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_hub_grouped(spec, config);
  const auto attends = std::ranges::find_if(spec.blocks, &BlockSpec::has_attention);
  const auto forgets = std::ranges::find_if(spec.blocks, &BlockSpec::has_delta);
  nlohmann::ordered_json linear = {{"full_attn_layers", json::array()}, {"kda_layers", json::array()}};
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    linear[spec.blocks[layer].has_attention ? "full_attn_layers" : "kda_layers"].push_back(layer + 1);
  }
  if (forgets != spec.blocks.end()) {
    linear["head_dim"] = forgets->delta.k_dim;
    linear["num_heads"] = forgets->delta.n_v_heads;
    linear["short_conv_kernel_size"] = forgets->delta.n_taps;
  }
  config["linear_attn_config"] = std::move(linear);
  config["q_lora_rank"] = attends->latent.query_rank > 0 ? json(attends->latent.query_rank) : json();
  config["kv_lora_rank"] = attends->attn.latent_dim;
  config["qk_nope_head_dim"] = attends->latent.head_dim;
  config["qk_rope_head_dim"] = attends->rotated_dim();
  config["v_head_dim"] = attends->latent.value_dim;
  config["head_dim"] = attends->rotated_dim();
  config["num_key_value_heads"] = attends->attn.n_heads;
  config["model_max_length"] = spec.max_positions;
  config["mla_use_nope"] = true;
  config["moe_router_activation_func"] = "sigmoid";
  for (const auto& [published, key] : {std::pair("num_experts", "n_routed_experts"),
                                       std::pair("num_experts_per_token", "num_experts_per_tok"),
                                       std::pair("num_shared_experts", "n_shared_experts"),
                                       std::pair("num_expert_group", "n_group"),
                                       std::pair("moe_renormalize", "norm_topk_prob")}) {
    if (!config.contains(key)) continue;
    config[published] = config[key];
    config.erase(key);
  }
}

constexpr HubForm kHub[] = {{.model_type = "kimi_linear",
                             .architecture = "KimiLinearForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                             .has_own_kinds = true,
                             .reads_partial = false}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "kimi-linear");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms, read_latent_attention));
  CANDOR_ASSIGN(const LatentSpec latent, read_latent(hparams));
  CANDOR_ASSIGN(const std::vector<bool> attending, read_attending(hparams, spec.blocks.size()));
  backend::DeltaSpec delta;
  delta.n_k_heads = delta.n_v_heads = spec.blocks.front().attn.n_heads;
  delta.has_channel_gates = true;
  CANDOR_ASSIGN(delta.k_dim, hparams.require_int("kda.head_dim", {1, backend::kMaxStateDim}));
  CANDOR_ASSIGN(delta.n_taps, hparams.require_int("ssm.conv_kernel", {2, backend::kMaxConvTaps}));
  delta.v_dim = delta.k_dim;
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.attn.rope = {};
    block.has_attention = attending[layer];
    if (attending[layer]) {
      block.latent = latent;
    } else {
      block.delta = delta;
      block.has_delta_parts = true;
      block.delta_gate = backend::GateKind::kSigmoid;
    }
  }
  if (std::ranges::none_of(attending, [](bool attends) { return attends; })) {
    return fail(ErrorKind::kUnsupported, "every block is recurrent: expected some that attend");
  }
  CANDOR_TRY(leave_prediction(hparams, spec));
  CANDOR_TRY(add_grouped_experts(hparams, spec));
  if (hparams.has("expert_weights_norm")) return spec;
  for (BlockSpec& block : spec.blocks) block.ffn.moe.renormalise = true;  // what files leave out
  return spec;
}

}  // namespace
}  // namespace kimi_linear

Family kimi_linear_family() {
  using namespace kimi_linear;
  return {"kimi-linear", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
