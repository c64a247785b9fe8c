// jina-embeddings-v2: BERT's blocks with ALiBi to both sides in place of positions, and a GELU-gated feed-forward
// (Guenther et al., "Jina Embeddings 2", 2023). The published folders call themselves "bert".

#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "model/families/encoder_parts.h"

namespace candor::model {
namespace jina_bert {
namespace {

constexpr float kMaxBias = 8.0f;  // of every published model; no file says it

constexpr std::array kFfnTensors = {TensorName{TensorRole::kGateUp, "blk.*.ffn_up.weight"},
                                    TensorName{TensorRole::kDown, "blk.*.ffn_down.weight"},
                                    TensorName{TensorRole::kDownBias, "blk.*.ffn_down.bias", kOptional}};
constexpr auto kTensors = join(kEncoderTensors, kFfnTensors);

constexpr std::array kHubRows = {
    HubTensor{"blk.*.ffn_up.weight", "bert.encoder.layer.*.mlp.gated_layers.weight"},
    HubTensor{"blk.*.ffn_down.weight", "bert.encoder.layer.*.mlp.wo.weight"},
    HubTensor{"blk.*.ffn_down.bias", "bert.encoder.layer.*.mlp.wo.bias"},
    HubTensor{"blk.*.layer_output_norm.weight", "bert.encoder.layer.*.mlp.layernorm.weight"},
    HubTensor{"blk.*.layer_output_norm.bias", "bert.encoder.layer.*.mlp.layernorm.bias"},
};
constexpr auto kHubTensors = join(kHubBertAttn, kHubRows, kHubClassifier);
// Of the head that guesses words.
constexpr std::string_view kIgnored[] = {"cls.predictions.bias",
                                         "cls.predictions.decoder.weight",
                                         "cls.predictions.decoder.bias",
                                         "cls.predictions.transform.dense.weight",
                                         "cls.predictions.transform.dense.bias",
                                         "cls.predictions.transform.LayerNorm.weight",
                                         "cls.predictions.transform.LayerNorm.bias"};

bool has_slopes(const HubConfig& config) {
  const nlohmann::json* kind = config.stated("position_embedding_type");
  return kind != nullptr && *kind == "alibi";
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const nlohmann::json* ffn = config.stated("feed_forward_type");
  if (ffn == nullptr || *ffn != "geglu") {
    return config.unsupported("feed_forward_type", ffn == nullptr ? nlohmann::json() : *ffn, "geglu");
  }
  for (const char* key : {"emb_pooler", "model_max_length", "attn_implementation"}) {
    if (config.stated(key) != nullptr) config.add_without_effect(key);
  }
  return read_hub_encoder(config, prefix, metadata);
}

constexpr HubForm kHub[] = {{.model_type = "bert",
                             .architecture = "JinaBertModel",
                             .activation = "gelu",
                             .tensors = kHubTensors,
                             .ignored = kIgnored,
                             .read = read_hub,
                             .reads = has_slopes,
                             .suits = suits_none,
                             .not_computed = "guessing words"}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_encoder(Hparams(file, "jina-bert-v2")));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.attn.max_alibi_bias = kMaxBias;
    block.ffn.is_gated = true;
    block.ffn.gate = backend::GateKind::kGeluErf;
  }
  return spec;
}

}  // namespace
}  // namespace jina_bert

Family jina_bert_v2_family() {
  using namespace jina_bert;
  return {"jina-bert-v2", read, kTensors, {}, kHub};
}

}  // namespace candor::model
