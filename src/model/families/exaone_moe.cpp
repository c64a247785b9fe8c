// K-EXAONE: EXAONE 4's attention (norms over each head of Q and K, a window in three blocks of four, rotation only
// there) behind norms, and DeepSeek's experts behind the first blocks. LG AI Research, 2026.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/families/grouped_experts.h"
#include "model/families/prediction_parts.h"

namespace candor::model {
namespace exaone_moe {
namespace {

constexpr int32_t kWindowPattern = 4;

constexpr auto kTensors =
    join(kStemTensors, kPreNormTensors, kAttnTensors, kQkNormTensors, kGatedFfnTensors, kMoeTensors, kGroupedTensors);
constexpr std::string_view kIgnored[] = {"rope_freqs.weight"};  // part of the RopeSpec

constexpr std::array kHubShared = {
    HubTensor{"blk.*.ffn_gate_shexp.weight", "model.layers.*.mlp.shared_experts.gate_proj.weight"},
    HubTensor{"blk.*.ffn_up_shexp.weight", "model.layers.*.mlp.shared_experts.up_proj.weight"},
    HubTensor{"blk.*.ffn_down_shexp.weight", "model.layers.*.mlp.shared_experts.down_proj.weight"},
    HubTensor{"blk.*.exp_probs_b.bias", "model.layers.*.mlp.e_score_correction_bias", HubChange::kWiden},
};
constexpr auto kHubTensors =
    join(kHubStem, kHubPreNorm, kHubAttn, kHubQkNorm, kHubGatedFfn, kHubExperts, kHubShared, kHubPrediction);

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_grouped(config, prefix, metadata, backend::ExpertShare::kSigmoid));
  CANDOR_ASSIGN(const std::optional<double> n_shared, hub_number(config, "num_shared_experts"));
  const double count = n_shared.value_or(1.0);
  if (count >= 0.0 && count <= 65536.0) {
    metadata.add(fmt::format("{}.expert_shared_count", prefix), static_cast<uint64_t>(count));
    return {};
  }
  return fail(ErrorKind::kInvalidInput,
              fmt::format("config.json: \"num_shared_experts\" is {}, expected 0 to 65536", count));
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_hub_grouped(spec, config);
  config["num_experts"] = config["n_routed_experts"];
  config["num_shared_experts"] = config["n_shared_experts"];
  for (const char* key : {"n_routed_experts", "n_shared_experts", "moe_layer_freq", "topk_method"}) config.erase(key);
  auto types = nlohmann::ordered_json::array();
  for (const BlockSpec& block : spec.blocks) types.push_back(block.ffn.is_moe() ? "sparse" : "dense");
  config["mlp_layer_types"] = std::move(types);
}

constexpr HubForm kHub[] = {{.model_type = "exaone_moe",
                             .architecture = "ExaoneMoeForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                             .prediction = kApartPrediction}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "exaone-moe");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(leave_prediction(hparams, spec));
  const auto n_layers = static_cast<int32_t>(spec.blocks.size());
  CANDOR_ASSIGN(const std::vector<bool> is_windowed, read_window_pattern(hparams, n_layers, kWindowPattern));
  const bool is_hybrid = spec.blocks.front().attn.window_tokens > 0;
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.qk_norm = QkNorm::kHeads;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    if (!is_hybrid || is_windowed[layer]) continue;
    block.attn.window_tokens = 0;
    block.attn.rope = {};
  }
  CANDOR_TRY(add_grouped_experts(hparams, spec));
  return spec;
}

}  // namespace
}  // namespace exaone_moe

Family exaone_moe_family() {
  using namespace exaone_moe;
  return {"exaone-moe", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
