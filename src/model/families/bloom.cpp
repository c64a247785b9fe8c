// BLOOM: no positions but ALiBi's distances, a norm after the embedding, LayerNorms with biases, a GELU feed-forward.
// BigScience, 2022; Press et al., 2022.

#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace bloom {
namespace {

using enum TensorRole;

constexpr float kMaxAlibiBias = 8.0f;

constexpr std::array kOwn = {
    TensorName{kEmbedNorm, "token_embd_norm.weight"},
    TensorName{kEmbedNormBias, "token_embd_norm.bias"},
    TensorName{kQkv, "blk.*.attn_qkv.weight"},
    TensorName{kQkvBias, "blk.*.attn_qkv.bias"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kLayerNormTensors, kOwn);

constexpr std::array kHubTensors = {
    HubTensor{"token_embd.weight", "transformer.word_embeddings.weight"},
    HubTensor{"token_embd_norm.weight", "transformer.word_embeddings_layernorm.weight"},
    HubTensor{"token_embd_norm.bias", "transformer.word_embeddings_layernorm.bias"},
    HubTensor{"output_norm.weight", "transformer.ln_f.weight"},
    HubTensor{"output_norm.bias", "transformer.ln_f.bias"},
    HubTensor{"blk.*.attn_norm.weight", "transformer.h.*.input_layernorm.weight"},
    HubTensor{"blk.*.attn_norm.bias", "transformer.h.*.input_layernorm.bias"},
    HubTensor{"blk.*.attn_qkv.weight", "transformer.h.*.self_attention.query_key_value.weight", HubChange::kSplitHeads},
    HubTensor{"blk.*.attn_qkv.bias", "transformer.h.*.self_attention.query_key_value.bias", HubChange::kSplitHeads},
    HubTensor{"blk.*.attn_output.weight", "transformer.h.*.self_attention.dense.weight"},
    HubTensor{"blk.*.attn_output.bias", "transformer.h.*.self_attention.dense.bias"},
    HubTensor{"blk.*.ffn_norm.weight", "transformer.h.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.ffn_norm.bias", "transformer.h.*.post_attention_layernorm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "transformer.h.*.mlp.dense_h_to_4h.weight"},
    HubTensor{"blk.*.ffn_up.bias", "transformer.h.*.mlp.dense_h_to_4h.bias"},
    HubTensor{"blk.*.ffn_down.weight", "transformer.h.*.mlp.dense_4h_to_h.weight"},
    HubTensor{"blk.*.ffn_down.bias", "transformer.h.*.mlp.dense_4h_to_h.bias"},
};

// Published without a length that ALiBi would need; "seq_length" is that of the training.
constexpr uint64_t kTrainingPositions = 2048;
Result<void> read_hub(const HubConfig&, std::string_view prefix, formats::MetaList& metadata) {
  const std::string key = std::string(prefix) + ".context_length";
  if (metadata.find(key) == nullptr) metadata.add(key, kTrainingPositions);
  return {};
}
constexpr HubForm kHub[] = {{.model_type = "bloom",
                             .architecture = "BloomForCausalLM",
                             .activation = "",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .has_old_keys = true}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "bloom"), backend::NormKind::kLayer));
  spec.embed.has_norm = true;
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.attn.max_alibi_bias = kMaxAlibiBias;
    block.ffn.gate = backend::GateKind::kGelu;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace bloom

Family bloom_family() {
  using namespace bloom;
  return {"bloom", read, kTensors, {}, kHub};
}

}  // namespace candor::model
