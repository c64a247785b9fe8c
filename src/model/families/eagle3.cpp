// EAGLE-3 heads (model/eagle.h): their keys and names in GGUF files, and in folders.

#include <algorithm>
#include <array>
#include <optional>

#include "formats/meta_list.h"
#include "model/eagle.h"
#include "model/families/common.h"
#include "model/hub/hub_eagle.h"

namespace candor::model {
namespace eagle3 {
namespace {

using enum TensorRole;

constexpr std::array kOwnTensors = {
    TensorName{kEmbedding, "token_embd.weight", kOptional},
    TensorName{kVectorsNorm, "enc.output_norm.weight", kOptional},
    TensorName{kJoin, "fc.weight"},
    TensorName{kJoinTokenNorm, "blk.*.attn_norm.weight"},
    TensorName{kAttnNorm, "blk.*.attn_norm_2.weight"},
    TensorName{kJoinVectorNorm, "blk.*.attn_norm_2.weight"},
    TensorName{kFfnNorm, "blk.*.ffn_norm.weight"},
    TensorName{kFinalNorm, "output_norm.weight"},
    TensorName{kHead, "output.weight", kOptional},
};
constexpr auto kTensors = join(kOwnTensors, kAttnTensors, kGatedFfnTensors, kAttnBiases);
constexpr std::string_view kIgnored[] = {kEagleTokens, "rope_freqs.weight"};

constexpr std::array kHubStemNames = {
    HubTensor{"fc.weight", "fc.weight"},
    HubTensor{"enc.output_norm.weight", "input_norm.weight"},
    HubTensor{"token_embd.weight", "embed_tokens.weight"},
    HubTensor{"output_norm.weight", "norm.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{kEagleTokens, "d2t", HubChange::kOffsets},
};
// "midlayer." is another name of "layers.0.": hub_eagle.h.
constexpr std::array kHubBlock = {
    HubTensor{"blk.*.attn_norm.weight", "layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.attn_norm_2.weight", "layers.*.hidden_norm.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.attn_q.weight", "layers.*.self_attn.q_proj.weight", HubChange::kPairRows},
    HubTensor{"blk.*.attn_k.weight", "layers.*.self_attn.k_proj.weight", HubChange::kPairRows},
    HubTensor{"blk.*.attn_v.weight", "layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_output.weight", "layers.*.self_attn.o_proj.weight"},
    HubTensor{"blk.*.attn_q.bias", "layers.*.self_attn.q_proj.bias", HubChange::kPairRows},
    HubTensor{"blk.*.attn_k.bias", "layers.*.self_attn.k_proj.bias", HubChange::kPairRows},
    HubTensor{"blk.*.attn_v.bias", "layers.*.self_attn.v_proj.bias"},
    HubTensor{"blk.*.attn_output.bias", "layers.*.self_attn.o_proj.bias"},
    HubTensor{"blk.*.ffn_gate.weight", "layers.*.mlp.gate_proj.weight"},
    HubTensor{"blk.*.ffn_up.weight", "layers.*.mlp.up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "layers.*.mlp.down_proj.weight"},
};
constexpr auto kHubTensors = join(kHubStemNames, kHubBlock);
// Of training; and which tokens the head has, which its table says too.
constexpr std::string_view kHubIgnored[] = {"t2d", "verifier_norm.weight", "verifier_lm_head.weight"};
constexpr HubForm kHub[] = {{.model_type = "llama",
                             .architecture = "LlamaForCausalLMEagle3",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .ignored = kHubIgnored,
                             .read = read_hub_eagle,
                             .suits = suits_none,
                             .rename = eagle_name,
                             .is_head = true}};

// Alone: without what the model decides.
Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "eagle3");
  ArchSpec spec;
  spec.family = hparams.prefix();
  CANDOR_ASSIGN(spec.dim, hparams.require_int("embedding_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(spec.max_positions, hparams.require_int("context_length", {1, kMaxPositions}));
  CANDOR_TRY(hparams.require_int("block_count", {1, 1}));
  CANDOR_ASSIGN(const double epsilon, hparams.require_positive("attention.layer_norm_rms_epsilon"));
  BlockSpec block;
  block.norm = {backend::NormKind::kRms, static_cast<float>(epsilon)};
  CANDOR_ASSIGN(block.attn, read_attention(hparams, spec.dim, 1));
  CANDOR_ASSIGN(block.ffn.ffn_dim, hparams.require_int("feed_forward_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(const auto norms_residual, formats::meta_bool(file, hparams.key("norm_before_residual")));
  CANDOR_ASSIGN(const auto norms_vectors, formats::meta_bool(file, hparams.key("norm_before_fc")));
  CANDOR_ASSIGN(const auto norms_output, formats::meta_bool(file, hparams.key("norm_output")));
  block.is_attn_bare = norms_residual.value_or(false);
  block.attends_beside_token = true;
  spec.blocks = {block};
  spec.final_norm = block.norm;
  spec.embed.join_norm = block.norm;
  spec.embed.norms_vectors = norms_vectors.value_or(false);
  spec.head.gives_stream = !norms_output.value_or(false);
  return spec;
}

}  // namespace
}  // namespace eagle3

const Family& eagle3_family() {
  static const Family kFamily{"eagle3", eagle3::read, eagle3::kTensors, eagle3::kIgnored, eagle3::kHub};
  return kFamily;
}

}  // namespace candor::model
