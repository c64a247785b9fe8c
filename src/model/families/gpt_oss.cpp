// gpt-oss: a learned sink for each head beside the scores of its softmax, a window in every other block, YaRN, biases
// on every projection, and experts with a clamped gate whose weights are the softmax over the chosen. OpenAI, 2025;
// Xiao et al., "Efficient streaming language models with attention sinks", 2024.

#include <optional>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace gpt_oss {
namespace {

using enum TensorRole;

constexpr int32_t kWindowPattern = 2;
// Of backend::GateKind::kClampedSilu.
struct GateNumber {
  const char* hub;
  double value;
};
constexpr GateNumber kGateNumbers[] = {{"swiglu_limit", 7.0}, {"swiglu_alpha", 1.702}};

constexpr std::array kOwn = {
    TensorName{kAttnNorm, "blk.*.attn_norm.weight"},
    TensorName{kFfnNorm, "blk.*.post_attention_norm.weight"},
    TensorName{kQBias, "blk.*.attn_q.bias"},
    TensorName{kKBias, "blk.*.attn_k.bias"},
    TensorName{kVBias, "blk.*.attn_v.bias"},
    TensorName{kAttnOutBias, "blk.*.attn_output.bias"},
    TensorName{kSinks, "blk.*.attn_sinks.weight"},
    TensorName{kRouterBias, "blk.*.ffn_gate_inp.bias"},
    TensorName{kExpertGateBias, "blk.*.ffn_gate_exps.bias"},
    TensorName{kExpertUpBias, "blk.*.ffn_up_exps.bias"},
    TensorName{kExpertDownBias, "blk.*.ffn_down_exps.bias"},
};
constexpr auto kTensors = join(kStemTensors, kAttnTensors, kMoeTensors, kOwn);

constexpr std::array kHubOwn = {
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias"},
    HubTensor{"blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias"},
    HubTensor{"blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias"},
    HubTensor{"blk.*.attn_output.bias", "model.layers.*.self_attn.o_proj.bias"},
    HubTensor{"blk.*.attn_sinks.weight", "model.layers.*.self_attn.sinks"},
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.mlp.router.weight", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate_inp.bias", "model.layers.*.mlp.router.bias"},
};
constexpr auto kHubTensors = join(kHubStem, kHubAttn, kHubOwn);
constexpr HubExperts kHubJoined[] = {
    {"model.layers.*.mlp.experts.gate_up_proj", {"blk.*.ffn_gate_exps", "blk.*.ffn_up_exps"}},
    {"model.layers.*.mlp.experts.down_proj", {"blk.*.ffn_down_exps", ""}},
};

Result<void> read_hub(const HubConfig& config, std::string_view, formats::MetaList&) {
  for (const GateNumber& row : kGateNumbers) {
    CANDOR_ASSIGN(const std::optional<double> seen, hub_number(config, row.hub));
    if (!seen || *seen == row.value) continue;
    return fail(
        ErrorKind::kUnsupported,
        fmt::format("config.json: \"{}\" is {}, which is not supported (supported: {})", row.hub, *seen, row.value));
  }
  return {};
}
void write_hub(const ArchSpec&, nlohmann::ordered_json& config) {
  config["attention_bias"] = true;
  for (const GateNumber& row : kGateNumbers) config[row.hub] = row.value;
}
constexpr HubForm kHub[] = {{.model_type = "gpt_oss",
                             .architecture = "GptOssForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                             .experts = kHubJoined}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "gpt-oss");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_ASSIGN(const backend::MoeSpec moe, read_moe(hparams));
  const int32_t n_layers = static_cast<int32_t>(spec.blocks.size());
  CANDOR_ASSIGN(const std::vector<bool> is_windowed, read_window_pattern(hparams, n_layers, kWindowPattern));
  CANDOR_ASSIGN(const int32_t ffn_dim,
                hparams.int_or("expert_feed_forward_length", spec.blocks.front().ffn.ffn_dim, {1, kMaxWidth}));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    // Files of the other format do not say it: every published model has its ramp untruncated.
    if (!hparams.has("rope.scaling.yarn_truncate")) block.attn.rope.is_truncated = false;
    block.attn.has_sinks = true;
    if (!is_windowed[layer]) block.attn.window_tokens = 0;
    block.ffn = {.ffn_dim = ffn_dim, .gate = backend::GateKind::kClampedSilu, .is_gated = true, .moe = moe};
  }
  return spec;
}

}  // namespace
}  // namespace gpt_oss

Family gpt_oss_family() {
  using namespace gpt_oss;
  return {"gpt-oss", read, kTensors, {}, kHub};
}

}  // namespace candor::model
