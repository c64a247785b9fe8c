// MPT: ALiBi, LayerNorms without biases, Q, K and V in one tensor, an exact-GELU feed-forward of 4 D, the head tied.
// MosaicML, 2023; Press et al., 2022.

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace mpt {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kQkv, "blk.*.attn_qkv.weight"},
    TensorName{kAttnOut, "blk.*.attn_output.weight"},
    TensorName{kUp, "blk.*.ffn_up.weight"},
    TensorName{kDown, "blk.*.ffn_down.weight"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kOwn);

constexpr std::array kHubTensors = {
    HubTensor{"token_embd.weight", "transformer.wte.weight"},
    HubTensor{"output_norm.weight", "transformer.norm_f.weight"},
    HubTensor{"blk.*.attn_norm.weight", "transformer.blocks.*.norm_1.weight"},
    HubTensor{"blk.*.attn_qkv.weight", "transformer.blocks.*.attn.Wqkv.weight"},
    HubTensor{"blk.*.attn_output.weight", "transformer.blocks.*.attn.out_proj.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "transformer.blocks.*.norm_2.weight"},
    HubTensor{"blk.*.ffn_up.weight", "transformer.blocks.*.ffn.up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "transformer.blocks.*.ffn.down_proj.weight"},
};

constexpr double kEpsilon = 1e-5;
constexpr double kUsualBias = 8.0;
constexpr double kExpansion = 4.0;

Error unsupported(const char* key) {
  return fail(ErrorKind::kUnsupported,
              fmt::format("config.json: \"{}\" has a value whose models are not supported in family mpt", key));
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const nlohmann::json& attention = config["attn_config"];
  if (!attention.is_object()) return unsupported("attn_config");
  CANDOR_ASSIGN(const std::optional<bool> has_alibi, hub_flag(attention, "alibi"));
  if (!has_alibi.value_or(false)) return unsupported("alibi");
  for (const char* key : {"clip_qkv", "softmax_scale"}) {
    CANDOR_ASSIGN(const std::optional<double> value, hub_number(attention, key));
    if (value) return unsupported(key);
  }
  for (const char* key : {"qk_ln", "prefix_lm", "attn_uses_sequence_id"}) {
    CANDOR_ASSIGN(const std::optional<bool> is_used, hub_flag(attention, key));
    if (is_used.value_or(false)) return unsupported(key);
  }
  if (config.contains("logit_scale")) return unsupported("logit_scale");
  CANDOR_ASSIGN(const std::optional<double> expansion, hub_number(config, "expansion_ratio"));
  if (expansion.value_or(kExpansion) != kExpansion) return unsupported("expansion_ratio");
  CANDOR_ASSIGN(const std::optional<double> bias, hub_number(attention, "alibi_bias_max"));
  const std::string stem = std::string(prefix) + ".attention.";
  metadata.add(stem + "max_alibi_bias", bias.value_or(kUsualBias));
  if (metadata.find(stem + "layer_norm_epsilon") == nullptr) metadata.add(stem + "layer_norm_epsilon", kEpsilon);
  return {};
}
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const BlockSpec& block = spec.blocks.front();
  config["n_layers"] = spec.blocks.size();
  config["n_heads"] = block.attn.n_heads;
  config["max_seq_len"] = spec.max_positions;
  config["expansion_ratio"] = static_cast<int>(kExpansion);
  config["no_bias"] = true;
  const double bias = shortest_decimal(block.attn.max_alibi_bias);
  config["attn_config"] = {{"alibi", true}, {"alibi_bias_max", bias}};
  if (bias == std::floor(bias)) config["attn_config"]["alibi_bias_max"] = static_cast<int64_t>(bias);
}
constexpr HubForm kHub[] = {{.model_type = "mpt",
                             .architecture = "MptForCausalLM",
                             .activation = "",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                             .has_old_keys = true}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "mpt");
  CANDOR_TRY(hparams.refuse_unless_zero({"attention.clamp_kqv"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kLayer));
  CANDOR_ASSIGN(const double max_bias, hparams.require_positive("attention.max_alibi_bias"));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.attn.max_alibi_bias = static_cast<float>(max_bias);
    block.ffn.gate = backend::GateKind::kGeluErf;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace mpt

Family mpt_family() {
  using namespace mpt;
  return {"mpt", read, kTensors, {}, kHub};
}

}  // namespace candor::model
