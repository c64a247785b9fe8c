// nanochat: RMS norms without gains, also over the embedding and over each head of Q and K behind its rotation, a
// feed-forward of squared ReLU, capped logits. Its rotation turns the other way, which is the usual one of heads whose
// halves are swapped. Karpathy, 2025.

#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace nanochat {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kEmbedding, "token_embd.weight"},
    TensorName{kHead, "output.weight", kOptional},
    TensorName{kUp, "blk.*.ffn_up.weight"},
    TensorName{kDown, "blk.*.ffn_down.weight"},
};
constexpr auto kTensors = join(kOwn, kAttnTensors, kAttnBiases);

constexpr HubChange kSwapHalves = HubChange::kSwapHalves;
constexpr std::array kHubTensors = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight", kSwapHalves},
    HubTensor{"blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias", kSwapHalves},
    HubTensor{"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight", kSwapHalves},
    HubTensor{"blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias", kSwapHalves},
    HubTensor{"blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias"},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.o_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "model.layers.*.self_attn.o_proj.bias"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.mlp.fc1.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.mlp.fc2.weight"},
};

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  config["hidden_act"] = "relu2";
  config["final_logit_softcapping"] = shortest_decimal(spec.head.logits.softcap);
  if (spec.head.logits.softcap == 0.0f) config["final_logit_softcapping"] = nullptr;
}
constexpr HubForm kHub[] = {{.model_type = "nanochat",
                             .architecture = "NanoChatForCausalLM",
                             .activation = "relu2",
                             .tensors = kHubTensors,
                             .write = write_hub,
                             .flags = kAttnBiasFlag}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "nanochat");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_ASSIGN(const auto cap, formats::meta_float(file, hparams.key("final_logit_softcapping")));
  spec.embed.has_norm = true;
  spec.head.logits.softcap = static_cast<float>(cap.value_or(0.0));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.qk_norm = QkNorm::kHeads;
    block.norms_after_rope = true;
    block.ffn.gate = backend::GateKind::kReluSquared;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace nanochat

Family nanochat_family() {
  using namespace nanochat;
  return {"nanochat", read, kTensors, {}, kHub};
}

}  // namespace candor::model
