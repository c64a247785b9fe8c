// Trinity (AFMoE): attention with norms over heads, under a sigmoid of a gate of its own, with a window in three blocks of
// four and rotation only there; norms before and after each sub-layer; experts by sigmoids behind dense blocks. Arcee AI,
// 2025.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/families/grouped_experts.h"

namespace candor::model {
namespace afmoe {
namespace {

using enum TensorRole;

constexpr int32_t kWindowPattern = 4;

constexpr std::array kOwn = {TensorName{kAttnGate, "blk.*.attn_gate.weight"}};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kPostNormTensors, kAttnTensors, kQkNormTensors, kOwn,
                               kGatedFfnTensors, kMoeTensors, kGroupedTensors);

constexpr std::array kHubOwn = {
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.pre_mlp_layernorm.weight"},
    HubTensor{"blk.*.post_ffw_norm.weight", "model.layers.*.post_mlp_layernorm.weight"},
    HubTensor{"blk.*.attn_gate.weight", "model.layers.*.self_attn.gate_proj.weight"},
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.mlp.router.gate.weight", HubChange::kWiden},
    HubTensor{"blk.*.exp_probs_b.bias", "model.layers.*.mlp.expert_bias", HubChange::kWiden},
};
constexpr auto kHubTensors =
    join(kHubStem, kHubOwn, kHubAttn, kHubQkNorm, kHubGatedFfn, kHubExperts, kHubSharedExperts);

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const auto add = [&](const char* suffix, formats::MetaValue value) {
    metadata.add(fmt::format("{}.{}", prefix, suffix), std::move(value));
  };
  CANDOR_ASSIGN(const uint64_t n_dense, hub_count(config, "num_dense_layers"));
  CANDOR_ASSIGN(const uint64_t n_shared, hub_count(config, "num_shared_experts"));
  CANDOR_ASSIGN(const std::optional<double> scale, hub_number(config, "route_scale"));
  CANDOR_ASSIGN(const std::optional<bool> is_scaled, hub_flag(config, "mup_enabled"));
  CANDOR_ASSIGN(const uint64_t dim, hub_count(config, "hidden_size"));
  add("leading_dense_block_count", n_dense);
  add("expert_shared_count", n_shared);
  add("expert_weights_scale", scale.value_or(1.0));
  add("expert_weights_norm", true);
  add("expert_gating_func", uint64_t{2});
  add("embedding_scale", is_scaled.value_or(false) ? std::sqrt(static_cast<double>(dim)) : 1.0);
  return {};
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  size_t n_dense = 0;
  for (const BlockSpec& block : spec.blocks) {
    if (!block.ffn.is_moe()) {
      ++n_dense;
      config["intermediate_size"] = block.ffn.ffn_dim;
      continue;
    }
    config["num_experts"] = block.ffn.moe.n_experts;
    config["num_experts_per_tok"] = block.ffn.moe.n_used;
    config["moe_intermediate_size"] = block.ffn.ffn_dim;
    config["num_shared_experts"] = block.ffn.shared_dim / block.ffn.ffn_dim;
    config["route_scale"] = shortest_decimal(block.ffn.moe.scale);
  }
  config["num_dense_layers"] = n_dense;
  config["mup_enabled"] = spec.embed.scale != 1.0f;
  for (const char* key : {"num_local_experts", "norm_topk_prob"}) config.erase(key);
}
constexpr HubForm kHub[] = {{.model_type = "afmoe",
                             .architecture = "AfmoeForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "afmoe");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(add_grouped_experts(hparams, spec));
  CANDOR_ASSIGN(const std::vector<bool> is_windowed,
                read_window_pattern(hparams, static_cast<int32_t>(spec.blocks.size()), kWindowPattern));
  // Files of llama.cpp do not say it: as in all published models.
  CANDOR_ASSIGN(const double scale, hparams.positive_or("embedding_scale", std::sqrt(static_cast<double>(spec.dim))));
  spec.embed.scale = static_cast<float>(scale);
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.wiring = Wiring::kSandwich;
    block.qk_norm = QkNorm::kHeads;
    block.has_head_gate = true;
    block.is_gate_apart = true;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    if (is_windowed[layer]) continue;
    block.attn.window_tokens = 0;
    block.attn.rope = {};
  }
  return spec;
}

}  // namespace
}  // namespace afmoe

Family afmoe_family() {
  using namespace afmoe;
  return {"afmoe", read, kTensors, {}, kHub};
}

}  // namespace candor::model
