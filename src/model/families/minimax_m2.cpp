// MiniMax-M2: grouped attention that rotates a part of each head, behind norms over the whole of Q and of K; experts in
// every block, chosen by sigmoids with a bias, none shared. MiniMax, 2025.

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"
#include "model/families/grouped_experts.h"

namespace candor::model {
namespace minimax_m2 {
namespace {

using enum TensorRole;

constexpr std::array kChoice = {TensorName{kChoiceBias, "blk.*.exp_probs_b.bias"}};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kQkNormTensors, kMoeTensors, kChoice);

constexpr std::array kHubMoe = {
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.block_sparse_moe.gate.weight", HubChange::kWiden},
    HubTensor{"blk.*.exp_probs_b.bias", "model.layers.*.block_sparse_moe.e_score_correction_bias", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate.#.weight", "model.layers.*.block_sparse_moe.experts.#.w1.weight"},
    HubTensor{"blk.*.ffn_down.#.weight", "model.layers.*.block_sparse_moe.experts.#.w2.weight"},
    HubTensor{"blk.*.ffn_up.#.weight", "model.layers.*.block_sparse_moe.experts.#.w3.weight"},
};
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubQkNorm, kHubMoe);

Error unsupported(const char* key, const nlohmann::json& value, const char* supported) {
  return fail(ErrorKind::kUnsupported, "config.json: \"" + std::string(key) + "\" is " +
                                           formats::in_quotes(value.dump()) + ", which is not supported (supported: " +
                                           supported + ")");
}

// Layers of linear attention and other norms are MiniMax-M1's.
Result<void> check_kinds(const HubConfig& config) {
  for (const auto& [key, supported] : {std::pair{"qk_norm_type", "per_layer"}, std::pair{"scoring_func", "sigmoid"}}) {
    const nlohmann::json* at = config.stated(key);
    if (at != nullptr && *at != supported) return unsupported(key, *at, supported);
  }
  for (const char* key : {"use_qk_norm", "use_routing_bias"}) {
    const nlohmann::json* is_used = config.stated(key);
    if (is_used != nullptr && *is_used != true) return unsupported(key, *is_used, "true");
  }
  const nlohmann::json* types = config.stated("attn_type_list");
  if (types == nullptr) return {};
  if (!types->is_array()) return unsupported("attn_type_list", *types, "a list of 1");
  for (const nlohmann::json& type : *types) {
    if (type != 1) return unsupported("attn_type_list", type, "1 for every block");
  }
  return {};
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(check_kinds(config));
  CANDOR_TRY(read_hub_grouped(config, prefix, metadata, backend::ExpertShare::kSigmoid));
  const auto copy = [&](const char* key, const char* suffix) -> Result<void> {
    CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, key));
    if (!value) return {};
    if (*value < 0.0 || *value > kMaxWidth || *value != static_cast<double>(static_cast<int32_t>(*value))) {
      return unsupported(key, *value, "a whole number");
    }
    metadata.add(std::string(prefix) + suffix, static_cast<uint64_t>(*value));
    return {};
  };
  CANDOR_TRY(copy("intermediate_size", ".expert_feed_forward_length"));
  return {};
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const BlockSpec& block = spec.blocks.front();
  config["rotary_dim"] = block.attn.rope.n_dims;
  config["use_qk_norm"] = true;
  config["qk_norm_type"] = "per_layer";
  config["use_routing_bias"] = true;
  config["scoring_func"] = "sigmoid";
  for (const char* key : {"num_experts", "moe_intermediate_size", "norm_topk_prob"}) config.erase(key);
}
constexpr HubForm kHub[] = {{.model_type = "minimax_m2",
                             .architecture = "MiniMaxM2ForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "minimax-m2");
  CANDOR_TRY(hparams.refuse_unless_zero({"expert_shared_count", "leading_dense_block_count", "nextn_predict_layers"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(add_grouped_experts(hparams, spec));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.qk_norm = QkNorm::kWhole;
    // Files do not say it.
    if (!hparams.has("expert_weights_norm")) block.ffn.moe.renormalise = true;
  }
  return spec;
}

}  // namespace
}  // namespace minimax_m2

Family minimax_m2_family() {
  using namespace minimax_m2;
  return {"minimax-m2", read, kTensors, {}, kHub};
}

}  // namespace candor::model
