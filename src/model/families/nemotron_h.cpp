// Nemotron-H and Nemotron 3: every block is one layer behind one norm: a state space (Mamba-2), attention without
// rotation, or a feed-forward of squared ReLU without a gate; in the sparse ones, experts of that kind beside one that
// every row goes to. NVIDIA, 2025.

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

namespace candor::model {
namespace nemotron_h {
namespace {

using enum TensorRole;
using nlohmann::json;

// One norm for whatever the block is. A block for multi-token prediction attends and has experts behind another.
constexpr std::array kNorms = {
    TensorName{kFfnNorm, "blk.*.post_attention_norm.weight", kOptional},
    TensorName{kAttnNorm, "blk.*.attn_norm.weight"},
    TensorName{kFfnNorm, "blk.*.attn_norm.weight"},
};
constexpr std::array kDense = {
    TensorName{kUp, "blk.*.ffn_up.weight"},
    TensorName{kDown, "blk.*.ffn_down.weight"},
};
constexpr std::array kSparse = {
    TensorName{kRouter, "blk.*.ffn_gate_inp.weight"},
    TensorName{kChoiceBias, "blk.*.exp_probs_b.bias"},
    TensorName{kExpertUp, "blk.*.ffn_up_exps.weight"},
    TensorName{kExpertDown, "blk.*.ffn_down_exps.weight"},
    TensorName{kSharedUp, "blk.*.ffn_up_shexp.weight"},
    TensorName{kSharedDown, "blk.*.ffn_down_shexp.weight"},
};
constexpr auto kDenseTensors = join(kStemTensors, kNorms, kAttnTensors, kSsmTensors, kDense);
constexpr auto kSparseTensors = join(kStemTensors, kNorms, kAttnTensors, kSsmTensors, kSparse);

constexpr std::array kHubShared = {
    HubTensor{"token_embd.weight", "backbone.embeddings.weight"},
    HubTensor{"output_norm.weight", "backbone.norm_f.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"blk.*.attn_norm.weight", "backbone.layers.*.norm.weight"},
    HubTensor{"blk.*.attn_q.weight", "backbone.layers.*.mixer.q_proj.weight", HubChange::kPairRows},
    HubTensor{"blk.*.attn_k.weight", "backbone.layers.*.mixer.k_proj.weight", HubChange::kPairRows},
    HubTensor{"blk.*.attn_v.weight", "backbone.layers.*.mixer.v_proj.weight"},
    HubTensor{"blk.*.attn_output.weight", "backbone.layers.*.mixer.o_proj.weight"},
    HubTensor{"blk.*.ssm_in.weight", "backbone.layers.*.mixer.in_proj.weight"},
    HubTensor{"blk.*.ssm_conv1d.weight", "backbone.layers.*.mixer.conv1d.weight", HubChange::kPlainTaps},
    HubTensor{"blk.*.ssm_conv1d.bias", "backbone.layers.*.mixer.conv1d.bias"},
    HubTensor{"blk.*.ssm_a", "backbone.layers.*.mixer.A_log", HubChange::kRateColumn},
    HubTensor{"blk.*.ssm_d", "backbone.layers.*.mixer.D", HubChange::kColumn},
    HubTensor{"blk.*.ssm_dt.bias", "backbone.layers.*.mixer.dt_bias"},
    HubTensor{"blk.*.ssm_norm.weight", "backbone.layers.*.mixer.norm.weight", HubChange::kGroupRows},
    HubTensor{"blk.*.ssm_out.weight", "backbone.layers.*.mixer.out_proj.weight"},
};
constexpr std::array kHubDenseOwn = {
    HubTensor{"blk.*.ffn_up.weight", "backbone.layers.*.mixer.up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "backbone.layers.*.mixer.down_proj.weight"},
};
constexpr std::array kHubSparseOwn = {
    HubTensor{"blk.*.ffn_gate_inp.weight", "backbone.layers.*.mixer.gate.weight", HubChange::kWiden},
    HubTensor{"blk.*.exp_probs_b.bias", "backbone.layers.*.mixer.gate.e_score_correction_bias", HubChange::kWiden},
    HubTensor{"blk.*.ffn_up.#.weight", "backbone.layers.*.mixer.experts.#.up_proj.weight"},
    HubTensor{"blk.*.ffn_down.#.weight", "backbone.layers.*.mixer.experts.#.down_proj.weight"},
    HubTensor{"blk.*.ffn_up_shexp.weight", "backbone.layers.*.mixer.shared_experts.up_proj.weight"},
    HubTensor{"blk.*.ffn_down_shexp.weight", "backbone.layers.*.mixer.shared_experts.down_proj.weight"},
    HubTensor{"blk.*.nextn.eh_proj.weight", "backbone.layers.*.eh_proj.weight"},
    HubTensor{"blk.*.nextn.enorm.weight", "backbone.layers.*.enorm.weight"},
    HubTensor{"blk.*.nextn.hnorm.weight", "backbone.layers.*.hnorm.weight"},
    HubTensor{"blk.*.nextn.shared_head_norm.weight", "backbone.layers.*.final_layernorm.weight"},
    HubTensor{"blk.*.post_attention_norm.weight", "backbone.layers.*.experts_norm.weight"},
};
constexpr auto kHubDenseTensors = join(kHubShared, kHubDenseOwn);
constexpr auto kHubSparseTensors = join(kHubShared, kHubSparseOwn);

// Of a block for multi-token prediction, whose two layers are numbered apart.
constexpr HubRename kPrediction[] = {
    {"mtp.layers.0.enorm.weight", "backbone.layers.*.enorm.weight"},
    {"mtp.layers.0.hnorm.weight", "backbone.layers.*.hnorm.weight"},
    {"mtp.layers.0.eh_proj.weight", "backbone.layers.*.eh_proj.weight"},
    {"mtp.layers.0.norm.weight", "backbone.layers.*.norm.weight"},
    {"mtp.layers.1.norm.weight", "backbone.layers.*.experts_norm.weight"},
    {"mtp.layers.1.final_layernorm.weight", "backbone.layers.*.final_layernorm.weight"},
    {"mtp.layers.1.mixer.gate.", "backbone.layers.*.mixer.gate."},
    {"mtp.layers.1.mixer.experts.", "backbone.layers.*.mixer.experts."},
    {"mtp.layers.1.mixer.shared_experts.", "backbone.layers.*.mixer.shared_experts."},
    {"mtp.layers.0.mixer.", "backbone.layers.*.mixer."},
};

constexpr SsmNames kNames = {"mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size", "conv_kernel",
                            "time_step_min"};

// A letter for each block: M a state space, * attention, - a feed-forward, E experts; "" where config.json says
// neither.
std::string pattern_of(const HubConfig& config) {
  const json pattern = config.contains("hybrid_override_pattern") ? config["hybrid_override_pattern"] : json();
  if (pattern.is_string()) return pattern.get<std::string>();
  const json types = config.contains("layers_block_type") ? config["layers_block_type"] : json();
  std::string letters;
  if (!types.is_array()) return letters;
  for (const json& type : types) {
    const bool keeps = type == "mamba" || type == "linear_attention";
    const bool attends = type == "attention" || type == "full_attention";
    letters += keeps ? 'M' : attends ? '*' : type == "mlp" ? '-' : type == "moe" ? 'E' : '?';
  }
  return letters;
}

bool has_experts(const HubConfig& config) {
  return pattern_of(config).find('E') != std::string::npos;
}
bool is_dense(const HubConfig& config) {
  return !has_experts(config);
}

Result<void> refuse_unless(const HubConfig& config, const char* key, const json& wanted) {
  if (!config.contains(key) || config[key].is_null() || config[key] == wanted) return {};
  return fail(ErrorKind::kUnsupported, fmt::format("config.json: \"{}\" is {}, which is not supported (supported: {})",
                                                   key, formats::in_quotes(config[key].dump()), wanted.dump()));
}

// Zeros for blocks of another kind. Blocks for multi-token prediction, of both kinds, stand behind them.
Result<void> read_blocks(const HubConfig& config, std::string_view prefix, char ffn_letter, uint64_t ffn_dim,
                         formats::MetaList& metadata) {
  const std::string pattern = pattern_of(config);
  const std::string known = std::string("M*") + ffn_letter;
  const size_t odd = pattern.find_first_not_of(known);
  if (pattern.empty() || odd != std::string::npos) {
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("config.json: \"hybrid_override_pattern\" is {}, which is not supported (supported: {} for each "
                    "block)",
                    formats::in_quotes(pattern), known));
  }
  CANDOR_ASSIGN(const uint64_t n_kv_heads, require_hub_size(config, "num_key_value_heads"));
  std::vector<int64_t> kv_heads;
  std::vector<int64_t> ffn_dims;
  for (const char letter : pattern) {
    kv_heads.push_back(letter == '*' ? static_cast<int64_t>(n_kv_heads) : 0);
    ffn_dims.push_back(letter == ffn_letter ? static_cast<int64_t>(ffn_dim) : 0);
  }
  CANDOR_ASSIGN(const std::optional<double> n_prediction, hub_number(config, "num_nextn_predict_layers"));
  for (double i = 0.0; i < std::min(n_prediction.value_or(0.0), static_cast<double>(kMaxLayers)); ++i) {
    kv_heads.push_back(static_cast<int64_t>(n_kv_heads));
    ffn_dims.push_back(static_cast<int64_t>(ffn_dim));
  }
  metadata.add(fmt::format("{}.block_count", prefix), static_cast<uint64_t>(kv_heads.size()));
  metadata.add(fmt::format("{}.attention.head_count_kv", prefix), formats::MetaArray(std::move(kv_heads)));
  metadata.add(fmt::format("{}.feed_forward_length", prefix), formats::MetaArray(std::move(ffn_dims)));
  return {};
}

// Older models have these under other names.
Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(refuse_unless(config, "mlp_hidden_act", "relu2"));
  CANDOR_TRY(refuse_unless(config, "mamba_hidden_act", "silu"));
  for (const char* key : {"layer_norm_epsilon", "norm_eps", "rms_norm_eps"}) {
    CANDOR_ASSIGN(const std::optional<double> epsilon, hub_number(config, key));
    if (!epsilon) continue;
    metadata.add(fmt::format("{}.attention.layer_norm_rms_epsilon", prefix),
                 static_cast<double>(static_cast<float>(*epsilon)));
  }
  if (!config.contains("head_dim")) {
    CANDOR_ASSIGN(const uint64_t head_dim, require_hub_size(config, "attention_head_dim"));
    for (const char* key : {"key_length", "value_length"}) {
      metadata.add(fmt::format("{}.attention.{}", prefix, key), head_dim);
    }
  }
  return read_hub_ssm(config, prefix, kNames, metadata);
}

Result<void> read_hub_dense(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const uint64_t ffn_dim, require_hub_size(config, "intermediate_size"));
  CANDOR_TRY(read_blocks(config, prefix, '-', ffn_dim, metadata));
  return read_hub(config, prefix, metadata);
}

Result<void> read_hub_sparse(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(refuse_unless(config, "moe_latent_size", nullptr));
  CANDOR_ASSIGN(const uint64_t ffn_dim, require_hub_size(config, "moe_intermediate_size"));
  CANDOR_ASSIGN(const uint64_t shared, require_hub_size(config, "moe_shared_expert_intermediate_size"));
  CANDOR_TRY(read_hub_grouped(config, prefix, metadata, backend::ExpertShare::kSigmoid));
  metadata.add(fmt::format("{}.expert_shared_feed_forward_length", prefix), shared);
  CANDOR_TRY(read_blocks(config, prefix, 'E', ffn_dim, metadata));
  return read_hub(config, prefix, metadata);
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  std::string pattern;
  for (const BlockSpec& block : spec.blocks) {
    pattern += block.has_ssm() ? 'M' : block.has_attention ? '*' : block.ffn.is_moe() ? 'E' : '-';
    if (block.has_ffn()) config["intermediate_size"] = block.ffn.ffn_dim;
  }
  config["hybrid_override_pattern"] = pattern;
  config["mlp_hidden_act"] = "relu2";
  config["mamba_hidden_act"] = "silu";
  config["mlp_bias"] = false;
  write_norm_epsilon(spec, "layer_norm_epsilon", config);
  write_hub_ssm(spec, kNames, config);
}

void write_hub_sparse(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_hub_grouped(spec, config);
  write_hub(spec, config);
  const auto block = std::ranges::find_if(spec.blocks, [](const BlockSpec& b) { return b.ffn.is_moe(); });
  if (block == spec.blocks.end()) return;
  config["moe_shared_expert_intermediate_size"] = block->ffn.shared_dim;
  config["n_shared_experts"] = 1;
  config.erase("first_k_dense_replace");
}

constexpr HubForm kDenseHub[] = {{.model_type = "nemotron_h",
                                  .architecture = "NemotronHForCausalLM",
                                  .activation = "",
                                  .tensors = kHubDenseTensors,
                                  .read = read_hub_dense,
                                  .write = write_hub,
                                  .reads = is_dense,
                                  .has_own_kinds = true}};
constexpr HubForm kSparseHub[] = {{.model_type = "nemotron_h",
                                   .architecture = "NemotronHForCausalLM",
                                   .activation = "",
                                   .tensors = kHubSparseTensors,
                                   .read = read_hub_sparse,
                                   .write = write_hub_sparse,
                                   .reads = has_experts,
                                   .has_own_kinds = true,
                                   .prediction = kPrediction}};

Result<ArchSpec> read(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms, read_attention_of_some, 0));
  CANDOR_ASSIGN(const backend::SsmSpec ssm, read_ssm(hparams));
  CANDOR_ASSIGN(const std::vector<bool> attending, read_attending(hparams, spec.blocks.size()));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.attn.rope = {};
    block.ffn.gate = backend::GateKind::kReluSquared;
    block.ffn.is_gated = false;
    block.has_attention = attending[layer];
    if (!attending[layer] && !block.has_ffn()) block.ssm = ssm;
  }
  CANDOR_TRY(leave_prediction(hparams, spec));
  return spec;
}

Result<ArchSpec> read_dense(const formats::ModelFile& file) {
  return read(Hparams(file, "nemotron_h"));
}

// Shares are sigmoids, whatever a file says of them.
Result<ArchSpec> read_sparse(const formats::ModelFile& file) {
  const Hparams hparams(file, "nemotron_h_moe");
  CANDOR_TRY(hparams.refuse_unless_zero({"leading_dense_block_count", "moe_latent_size"}));
  CANDOR_ASSIGN(ArchSpec spec, read(hparams));
  CANDOR_ASSIGN(const int32_t shared_dim, hparams.require_int("expert_shared_feed_forward_length", {1, kMaxWidth}));
  spec.has_layer_norm_prediction = true;
  ArchSpec sparse = spec;
  CANDOR_TRY(add_grouped_experts(hparams, sparse));
  backend::MoeSpec moe = sparse.blocks.front().ffn.moe;
  moe.share = backend::ExpertShare::kSigmoid;
  moe.has_choice_bias = true;
  sum_two_best(moe);
  for (BlockSpec& block : spec.blocks) {
    if (!block.has_ffn()) continue;
    block.ffn.ffn_dim = sparse.blocks.front().ffn.ffn_dim;
    block.ffn.moe = moe;
    block.ffn.shared_dim = shared_dim;
    block.ffn.is_shared_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace nemotron_h

Family nemotron_h_family() {
  using namespace nemotron_h;
  return {"nemotron_h", read_dense, kDenseTensors, {}, kDenseHub};
}

Family nemotron_h_moe_family() {
  using namespace nemotron_h;
  return {"nemotron_h_moe", read_sparse, kSparseTensors, {}, kSparseHub};
}

}  // namespace candor::model
