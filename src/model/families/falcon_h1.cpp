// Falcon-H1: every block has attention and a state space (Mamba-2) side by side, behind one norm. What config.json says
// of multipliers is multiplied into the tensors, as GGUF files have them. Falcon-LLM Team, 2025.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "backend/state_specs.h"
#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"
#include "model/families/hybrid.h"

namespace candor::model {
namespace falcon_h1 {
namespace {

using enum TensorRole;
using nlohmann::json;

constexpr std::array kNorms = {
    TensorName{kAttnNorm, "blk.*.attn_norm.weight"},
    TensorName{kFfnNorm, "blk.*.ffn_norm"},
};
constexpr auto kTensors = join(kStemTensors, kNorms, kAttnTensors, kSsmTensors, kGatedFfnTensors, kAllBiases);

constexpr HubChange kScaled = HubChange::kScaled;
constexpr std::array kHubTensors = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight", kScaled},
    HubTensor{"output_norm.weight", "model.final_layernorm.weight"},
    HubTensor{"output.weight", "lm_head.weight", kScaled},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.ffn_norm", "model.layers.*.pre_ff_layernorm.weight"},
    HubTensor{"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight", kScaled},
    HubTensor{"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight", kScaled},
    HubTensor{"blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight", kScaled},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.o_proj.weight", kScaled},
    HubTensor{"blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias"},
    HubTensor{"blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias", kScaled},
    HubTensor{"blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias"},
    HubTensor{"blk.*.attn_output.bias", "model.layers.*.self_attn.o_proj.bias", kScaled},
    HubTensor{"blk.*.ffn_gate.weight", "model.layers.*.feed_forward.gate_proj.weight", kScaled},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.feed_forward.up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.feed_forward.down_proj.weight", kScaled},
    HubTensor{"blk.*.ffn_gate.bias", "model.layers.*.feed_forward.gate_proj.bias", kScaled},
    HubTensor{"blk.*.ffn_up.bias", "model.layers.*.feed_forward.up_proj.bias"},
    HubTensor{"blk.*.ffn_down.bias", "model.layers.*.feed_forward.down_proj.bias", kScaled},
    HubTensor{"blk.*.ssm_in.weight", "model.layers.*.mamba.in_proj.weight", kScaled},
    HubTensor{"blk.*.ssm_conv1d.weight", "model.layers.*.mamba.conv1d.weight", HubChange::kPlainTaps},
    HubTensor{"blk.*.ssm_conv1d.bias", "model.layers.*.mamba.conv1d.bias"},
    HubTensor{"blk.*.ssm_a", "model.layers.*.mamba.A_log", HubChange::kRateColumn},
    HubTensor{"blk.*.ssm_d", "model.layers.*.mamba.D", HubChange::kColumn},
    HubTensor{"blk.*.ssm_dt.bias", "model.layers.*.mamba.dt_bias"},
    HubTensor{"blk.*.ssm_norm.weight", "model.layers.*.mamba.norm.weight", HubChange::kGroupRows},
    HubTensor{"blk.*.ssm_out.weight", "model.layers.*.mamba.out_proj.weight", kScaled},
};

Result<float> factor(const HubConfig& config, const char* key) {
  CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, key));
  return static_cast<float>(value.value_or(1.0));
}

// One number of a list; 1 where there is no list.
Result<float> factor_of(const HubConfig& config, const char* key, size_t index, size_t n) {
  const json list = config.contains(key) ? config[key] : json();
  if (list.is_null()) return 1.0f;
  if (list.is_array() && list.size() == n && list[index].is_number()) return list[index].get<float>();
  return fail(ErrorKind::kInvalidInput, fmt::format("config.json: \"{}\" is {}, expected a list of {} numbers", key,
                                                    formats::in_quotes(list.dump()), n));
}

Result<int64_t> size(const HubConfig& config, const char* key) {
  if (std::string_view(key) == "head_dim" && !config.contains(key)) {
    CANDOR_ASSIGN(const uint64_t dim, require_hub_size(config, "hidden_size"));
    CANDOR_ASSIGN(const uint64_t n_heads, require_hub_size(config, "num_attention_heads"));
    return static_cast<int64_t>(dim / n_heads);
  }
  CANDOR_ASSIGN(const uint64_t value, require_hub_size(config, key));
  return static_cast<int64_t>(value);
}

Result<int64_t> inner_size(const HubConfig& config) {
  if (config.contains("mamba_d_ssm") && config["mamba_d_ssm"].is_number()) return size(config, "mamba_d_ssm");
  CANDOR_ASSIGN(const int64_t dim, size(config, "hidden_size"));
  CANDOR_ASSIGN(const int64_t expand, size(config, "mamba_expand"));
  return dim * expand;
}

// Of the gate, x, b, c and dt, in this order.
Result<std::vector<RowFactors>> input_factors(const HubConfig& config) {
  constexpr const char* kList = "ssm_multipliers";
  constexpr size_t kParts = 5;
  CANDOR_ASSIGN(const int64_t width, inner_size(config));
  CANDOR_ASSIGN(const int64_t n_groups, size(config, "mamba_n_groups"));
  CANDOR_ASSIGN(const int64_t state_dim, size(config, "mamba_d_state"));
  CANDOR_ASSIGN(const int64_t n_heads, size(config, "mamba_n_heads"));
  CANDOR_ASSIGN(const float all, factor(config, "ssm_in_multiplier"));
  const int64_t n_rows[kParts] = {width, width, n_groups * state_dim, n_groups * state_dim, n_heads};
  std::vector<RowFactors> factors;
  for (size_t part = 0; part < kParts; ++part) {
    CANDOR_ASSIGN(const float own, factor_of(config, kList, part, kParts));
    factors.push_back({n_rows[part], all, own});
  }
  return factors;
}

// Of rows that all have the same.
struct Scaling {
  std::string_view tensor;  // how its name ends
  const char* rows;         // keys of config.json: its rows, a product of two
  const char* times;
  const char* first;
  const char* second;
};
constexpr Scaling kScalings[] = {
    {"embed_tokens.weight", "vocab_size", "", "embedding_multiplier", ""},
    {"lm_head.weight", "vocab_size", "", "lm_head_multiplier", ""},
    {"q_proj.weight", "num_attention_heads", "head_dim", "attention_in_multiplier", ""},
    {"k_proj.weight", "num_key_value_heads", "head_dim", "key_multiplier", "attention_in_multiplier"},
    {"v_proj.weight", "num_key_value_heads", "head_dim", "attention_in_multiplier", ""},
    {"o_proj.weight", "hidden_size", "", "attention_out_multiplier", ""},
    {"k_proj.bias", "num_key_value_heads", "head_dim", "key_multiplier", ""},
    {"o_proj.bias", "hidden_size", "", "attention_out_multiplier", ""},
    {"out_proj.weight", "hidden_size", "", "ssm_out_multiplier", ""},
};

// A tied table has no factors of its own where those of the embedding and of the head differ: the stream and the logits
// are scaled instead.
struct TableScales {
  float embedding = 1.0f;
  float head = 1.0f;
  bool are_outside = false;
};
Result<TableScales> table_scales(const HubConfig& config) {
  TableScales scales;
  CANDOR_ASSIGN(const std::optional<bool> is_tied, hub_flag(config, "tie_word_embeddings"));
  CANDOR_ASSIGN(scales.embedding, factor(config, "embedding_multiplier"));
  CANDOR_ASSIGN(scales.head, factor(config, "lm_head_multiplier"));
  scales.are_outside = is_tied.value_or(false) && scales.embedding != scales.head;
  return scales;
}

Result<std::vector<RowFactors>> factors_of(const HubConfig& config, std::string_view name) {
  if (name.ends_with("in_proj.weight")) return input_factors(config);
  CANDOR_ASSIGN(const TableScales table, table_scales(config));
  if (table.are_outside && name.ends_with("embed_tokens.weight")) {
    CANDOR_ASSIGN(const int64_t n_rows, size(config, "vocab_size"));
    return std::vector<RowFactors>{{n_rows, 1.0f, 1.0f}};
  }
  const bool is_gate = name.find(".gate_proj.") != std::string_view::npos;
  if (is_gate || name.find(".down_proj.") != std::string_view::npos) {
    CANDOR_ASSIGN(const int64_t n_rows, size(config, is_gate ? "intermediate_size" : "hidden_size"));
    CANDOR_ASSIGN(const float first, factor_of(config, "mlp_multipliers", is_gate ? 0 : 1, 2));
    return std::vector<RowFactors>{{n_rows, first, 1.0f}};
  }
  std::vector<RowFactors> factors;
  for (const Scaling& row : kScalings) {
    const bool is_named = name == row.tensor || name.ends_with(std::string(".").append(row.tensor));
    if (!is_named || !factors.empty()) continue;
    CANDOR_ASSIGN(int64_t n_rows, size(config, row.rows));
    if (*row.times != 0) {
      CANDOR_ASSIGN(const int64_t times, size(config, row.times));
      n_rows *= times;
    }
    CANDOR_ASSIGN(const float first, factor(config, row.first));
    CANDOR_ASSIGN(const float second, *row.second == 0 ? Result<float>(1.0f) : factor(config, row.second));
    factors.push_back({n_rows, first, second});
  }
  return factors;
}

Error unsupported(const char* key, std::string_view is, std::string_view supported) {
  return fail(ErrorKind::kUnsupported,
              fmt::format("config.json: \"{}\" is {}, which is not supported (supported: {})", key, is, supported));
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<bool> has_norm, hub_flag(config, "mamba_rms_norm"));
  CANDOR_ASSIGN(const std::optional<bool> norms_first, hub_flag(config, "mamba_norm_before_gate"));
  if (has_norm.value_or(false) && norms_first.value_or(true)) {
    return unsupported("mamba_norm_before_gate", "true", "false, with mamba_rms_norm");
  }
  CANDOR_ASSIGN(const TableScales table, table_scales(config));
  if (table.are_outside) {
    metadata.add(fmt::format("{}.embedding_scale", prefix), static_cast<double>(table.embedding));
    metadata.add(fmt::format("{}.logit_scale", prefix), static_cast<double>(table.head));
  }
  CANDOR_TRY(read_hub_ssm(config, prefix, kMambaNames, metadata));
  CANDOR_ASSIGN(const int64_t width, inner_size(config));
  metadata.add(fmt::format("{}.ssm.inner_size", prefix), static_cast<uint64_t>(width));
  return {};
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const BlockSpec& block = spec.blocks.front();
  write_hub_ssm(spec, kMambaNames, config);
  config["mamba_d_ssm"] = block.ssm.width();
  config["mamba_rms_norm"] = block.has_ssm_norm;
  config["mamba_norm_before_gate"] = false;
  for (const Scaling& row : kScalings) config[row.first] = 1.0;
  config["embedding_multiplier"] = shortest_decimal(spec.embed.scale);
  config["lm_head_multiplier"] = shortest_decimal(spec.head.logits.scale);
  config["attention_in_multiplier"] = 1.0;
  config["ssm_in_multiplier"] = 1.0;
  config["ssm_multipliers"] = {1.0, 1.0, 1.0, 1.0, 1.0};
  config["mlp_multipliers"] = {1.0, 1.0};
}

constexpr std::string_view kNormNames[] = {"model.layers.*.mamba.norm.weight"};
constexpr std::string_view kMlpBiasNames[] = {"model.layers.*.feed_forward.gate_proj.bias",
                                              "model.layers.*.feed_forward.up_proj.bias",
                                              "model.layers.*.feed_forward.down_proj.bias"};
constexpr HubFlag kFlags[] = {
    {"mamba_rms_norm", kNormNames}, {"attention_bias", kHubAttnBiasNames}, {"mlp_bias", kMlpBiasNames}};
constexpr HubForm kHub[] = {{.model_type = "falcon_h1",
                             .architecture = "FalconH1ForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                             .factors = factors_of,
                             .flags = kFlags,
                             .has_own_kinds = true}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "falcon-h1");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_ASSIGN(const backend::SsmSpec ssm, read_ssm(hparams));
  const bool has_norm = file.find("blk.0.ssm_norm.weight") != nullptr;
  CANDOR_ASSIGN(const double embedding, hparams.positive_or("embedding_scale", 1.0));
  CANDOR_ASSIGN(const double logits, hparams.positive_or("logit_scale", 1.0));
  spec.embed.scale = static_cast<float>(embedding);
  spec.head.logits.scale = static_cast<float>(logits);
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.ssm = ssm;
    block.has_ssm_norm = has_norm;
  }
  return spec;
}

}  // namespace
}  // namespace falcon_h1

Family falcon_h1_family() {
  using namespace falcon_h1;
  return {"falcon-h1", read, kTensors, {}, kHub};
}

}  // namespace candor::model
