// OLMo Hybrid: three blocks of four have a gated delta rule behind a norm, whose q, k and v are projected each by
// itself and whose corrections may go beyond what the state holds (Grazzi et al., "Unlocking state-tracking in linear
// RNNs through negative eigenvalues", 2025); the others are OLMo 3's without windows, and rotate nothing in the
// published models. OLMo Team, 2026.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "backend/state_specs.h"
#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/families/hybrid.h"

namespace candor::model {
namespace olmo_hybrid {
namespace {

using enum TensorRole;
using nlohmann::json;

constexpr float kDeltaEpsilon = 1e-5f;
constexpr double kMostShare = 2.0;
constexpr const char* kShareKey = "ssm.share_scale";

constexpr std::array kDelta = {
    TensorName{kDeltaRate, "blk.*.ssm_a"},
    TensorName{kDeltaBias, "blk.*.ssm_dt.bias"},
    TensorName{kDeltaQTaps, "blk.*.ssm_conv1d_q.weight"},
    TensorName{kDeltaKTaps, "blk.*.ssm_conv1d_k.weight"},
    TensorName{kDeltaVTaps, "blk.*.ssm_conv1d_v.weight"},
    TensorName{kDeltaQ, "blk.*.ssm_q.weight"},
    TensorName{kDeltaK, "blk.*.ssm_k.weight"},
    TensorName{kDeltaV, "blk.*.ssm_v.weight"},
    TensorName{kDeltaAlpha, "blk.*.ssm_alpha.weight"},
    TensorName{kDeltaBeta, "blk.*.ssm_beta.weight"},
    TensorName{kDeltaGate, "blk.*.ssm_gate.weight"},
    TensorName{kDeltaNorm, "blk.*.ssm_norm.weight"},
    TensorName{kDeltaOut, "blk.*.ssm_out.weight"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kPostNormTensors, kAttnTensors, kQkNormTensors, kDelta,
                               kGatedFfnTensors);

constexpr std::array kHubOwn = {
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.attention_layer_norm.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.feedforward_layer_norm.weight"},
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.post_ffw_norm.weight", "model.layers.*.post_feedforward_layernorm.weight"},
    HubTensor{"blk.*.ssm_a", "model.layers.*.linear_attn.A_log", HubChange::kRates},
    HubTensor{"blk.*.ssm_dt.bias", "model.layers.*.linear_attn.dt_bias"},
    HubTensor{"blk.*.ssm_conv1d_q.weight", "model.layers.*.linear_attn.q_conv1d.weight", HubChange::kPlainTaps},
    HubTensor{"blk.*.ssm_conv1d_k.weight", "model.layers.*.linear_attn.k_conv1d.weight", HubChange::kPlainTaps},
    HubTensor{"blk.*.ssm_conv1d_v.weight", "model.layers.*.linear_attn.v_conv1d.weight", HubChange::kPlainTaps},
    HubTensor{"blk.*.ssm_q.weight", "model.layers.*.linear_attn.q_proj.weight"},
    HubTensor{"blk.*.ssm_k.weight", "model.layers.*.linear_attn.k_proj.weight"},
    HubTensor{"blk.*.ssm_v.weight", "model.layers.*.linear_attn.v_proj.weight"},
    HubTensor{"blk.*.ssm_alpha.weight", "model.layers.*.linear_attn.a_proj.weight"},
    HubTensor{"blk.*.ssm_beta.weight", "model.layers.*.linear_attn.b_proj.weight"},
    HubTensor{"blk.*.ssm_gate.weight", "model.layers.*.linear_attn.g_proj.weight"},
    HubTensor{"blk.*.ssm_norm.weight", "model.layers.*.linear_attn.o_norm.weight"},
    HubTensor{"blk.*.ssm_out.weight", "model.layers.*.linear_attn.o_proj.weight"},
};
constexpr auto kHubTensors = join(kHubStem, kHubOwn, kHubAttn, kHubQkNorm, kHubGatedFfn);

constexpr std::string_view kAttends[] = {"full_attention"};
constexpr std::string_view kRecurs[] = {"linear_attention"};

// Nothing is rotated where config.json names no base.
Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_delta(config, prefix, metadata));
  CANDOR_ASSIGN(const std::optional<bool> turns, hub_flag(config, "linear_allow_neg_eigval"));
  metadata.add(fmt::format("{}.{}", prefix, kShareKey), turns.value_or(true) ? kMostShare : 1.0);
  if (metadata.find(fmt::format("{}.rope.freq_base", prefix)) == nullptr) {
    metadata.add(fmt::format("{}.rope.dimension_count", prefix), uint64_t{0});
  }
  CANDOR_ASSIGN(const std::vector<bool> attending, hub_attending(config, kAttends, kRecurs));
  return add_kv_heads(config, prefix, attending, metadata);
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  auto types = nlohmann::ordered_json::array();
  for (const BlockSpec& block : spec.blocks) {
    types.push_back(block.has_attention ? "full_attention" : "linear_attention");
  }
  config["layer_types"] = std::move(types);
  write_hub_delta(spec, config);
  const auto recurs = std::ranges::find_if(spec.blocks, &BlockSpec::has_delta);
  config["linear_allow_neg_eigval"] = recurs == spec.blocks.end() || recurs->delta.share_scale != 1.0f;
  config.erase("head_dim");
  if (spec.blocks.front().attn.rope.n_dims == 0) {
    config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", nullptr}};
  }
}

constexpr HubForm kHub[] = {{.model_type = "olmo_hybrid",
                             .architecture = "OlmoHybridForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                             .has_own_kinds = true}};

Result<float> read_share(const Hparams& hparams) {
  CANDOR_ASSIGN(const double share, hparams.positive_or(kShareKey, 1.0));
  if (share == 1.0 || share == kMostShare) return static_cast<float>(share);
  return fail(ErrorKind::kUnsupported,
              fmt::format("metadata key \"{}\" is {}, which is not supported (supported: 1, 2)", hparams.key(kShareKey),
                          share));
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "olmo-hybrid");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms, read_attention_of_some));
  CANDOR_ASSIGN(backend::DeltaSpec delta, read_delta(hparams, backend::KeyHeads::kGrouped));
  CANDOR_ASSIGN(delta.share_scale, read_share(hparams));
  CANDOR_ASSIGN(const std::vector<bool> attending, read_attending(hparams, spec.blocks.size()));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.qk_norm = QkNorm::kWhole;
    block.has_attention = attending[layer];
    if (attending[layer]) {
      block.wiring = Wiring::kPostNorm;
      continue;
    }
    block.delta = delta;
    block.has_delta_parts = true;
    block.delta_epsilon = kDeltaEpsilon;
  }
  return spec;
}

}  // namespace
}  // namespace olmo_hybrid

Family olmo_hybrid_family() {
  using namespace olmo_hybrid;
  return {"olmo-hybrid", read, kTensors, {}, kHub};
}

}  // namespace candor::model
