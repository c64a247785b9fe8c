// BERT and what followed its pattern: learned positions, types of tokens, LayerNorms over the stream, an ungated exact
// GELU. Devlin et al., 2019. RoBERTa and XLM-RoBERTa keep rows before the first position, for padding (Liu et al.,
// 2019; Conneau et al., 2020); DistilBERT has no types (Sanh et al., 2019).

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/encoder_parts.h"

namespace candor::model {
namespace bert {
namespace {

constexpr std::array kPositionTensors = {TensorName{TensorRole::kPositions, "position_embd.weight"}};
constexpr auto kTensors = join(kEncoderTensors, kUngatedEncoderTensors, kUngatedBiases, kPositionTensors);

constexpr std::array kHubBert = {
    HubTensor{"position_embd.weight", "bert.embeddings.position_embeddings.weight"},
    HubTensor{"token_embd_norm.weight", "bert.embeddings.LayerNorm.gamma"},
    HubTensor{"token_embd_norm.bias", "bert.embeddings.LayerNorm.beta"},
    HubTensor{"blk.*.ffn_up.weight", "bert.encoder.layer.*.intermediate.dense.weight"},
    HubTensor{"blk.*.ffn_up.bias", "bert.encoder.layer.*.intermediate.dense.bias"},
    HubTensor{"blk.*.ffn_down.weight", "bert.encoder.layer.*.output.dense.weight"},
    HubTensor{"blk.*.ffn_down.bias", "bert.encoder.layer.*.output.dense.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "bert.encoder.layer.*.attention.output.LayerNorm.gamma"},
    HubTensor{"blk.*.attn_output_norm.bias", "bert.encoder.layer.*.attention.output.LayerNorm.beta"},
    HubTensor{"blk.*.layer_output_norm.weight", "bert.encoder.layer.*.output.LayerNorm.weight"},
    HubTensor{"blk.*.layer_output_norm.weight", "bert.encoder.layer.*.output.LayerNorm.gamma"},
    HubTensor{"blk.*.layer_output_norm.bias", "bert.encoder.layer.*.output.LayerNorm.bias"},
    HubTensor{"blk.*.layer_output_norm.bias", "bert.encoder.layer.*.output.LayerNorm.beta"},
};
constexpr std::array kHubRoberta = {
    HubTensor{"token_embd.weight", "roberta.embeddings.word_embeddings.weight"},
    HubTensor{"token_types.weight", "roberta.embeddings.token_type_embeddings.weight"},
    HubTensor{"position_embd.weight", "roberta.embeddings.position_embeddings.weight", HubChange::kDropTwoRows},
    HubTensor{"token_embd_norm.weight", "roberta.embeddings.LayerNorm.weight"},
    HubTensor{"token_embd_norm.weight", "roberta.embeddings.LayerNorm.gamma"},
    HubTensor{"token_embd_norm.bias", "roberta.embeddings.LayerNorm.bias"},
    HubTensor{"token_embd_norm.bias", "roberta.embeddings.LayerNorm.beta"},
    HubTensor{"blk.*.attn_q.weight", "roberta.encoder.layer.*.attention.self.query.weight"},
    HubTensor{"blk.*.attn_q.bias", "roberta.encoder.layer.*.attention.self.query.bias"},
    HubTensor{"blk.*.attn_k.weight", "roberta.encoder.layer.*.attention.self.key.weight"},
    HubTensor{"blk.*.attn_k.bias", "roberta.encoder.layer.*.attention.self.key.bias"},
    HubTensor{"blk.*.attn_v.weight", "roberta.encoder.layer.*.attention.self.value.weight"},
    HubTensor{"blk.*.attn_v.bias", "roberta.encoder.layer.*.attention.self.value.bias"},
    HubTensor{"blk.*.attn_output.weight", "roberta.encoder.layer.*.attention.output.dense.weight"},
    HubTensor{"blk.*.attn_output.bias", "roberta.encoder.layer.*.attention.output.dense.bias"},
    HubTensor{"blk.*.ffn_up.weight", "roberta.encoder.layer.*.intermediate.dense.weight"},
    HubTensor{"blk.*.ffn_up.bias", "roberta.encoder.layer.*.intermediate.dense.bias"},
    HubTensor{"blk.*.ffn_down.weight", "roberta.encoder.layer.*.output.dense.weight"},
    HubTensor{"blk.*.ffn_down.bias", "roberta.encoder.layer.*.output.dense.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "roberta.encoder.layer.*.attention.output.LayerNorm.weight"},
    HubTensor{"blk.*.attn_output_norm.weight", "roberta.encoder.layer.*.attention.output.LayerNorm.gamma"},
    HubTensor{"blk.*.attn_output_norm.bias", "roberta.encoder.layer.*.attention.output.LayerNorm.bias"},
    HubTensor{"blk.*.attn_output_norm.bias", "roberta.encoder.layer.*.attention.output.LayerNorm.beta"},
    HubTensor{"blk.*.layer_output_norm.weight", "roberta.encoder.layer.*.output.LayerNorm.weight"},
    HubTensor{"blk.*.layer_output_norm.weight", "roberta.encoder.layer.*.output.LayerNorm.gamma"},
    HubTensor{"blk.*.layer_output_norm.bias", "roberta.encoder.layer.*.output.LayerNorm.bias"},
    HubTensor{"blk.*.layer_output_norm.bias", "roberta.encoder.layer.*.output.LayerNorm.beta"},
    HubTensor{"cls.weight", "classifier.dense.weight"},
    HubTensor{"cls.bias", "classifier.dense.bias"},
    HubTensor{"cls.output.weight", "classifier.out_proj.weight"},
    HubTensor{"cls.output.bias", "classifier.out_proj.bias"},
};
constexpr std::array kHubDistilBert = {
    HubTensor{"token_embd.weight", "distilbert.embeddings.word_embeddings.weight"},
    HubTensor{"position_embd.weight", "distilbert.embeddings.position_embeddings.weight"},
    HubTensor{"token_embd_norm.weight", "distilbert.embeddings.LayerNorm.weight"},
    HubTensor{"token_embd_norm.bias", "distilbert.embeddings.LayerNorm.bias"},
    HubTensor{"blk.*.attn_q.weight", "distilbert.transformer.layer.*.attention.q_lin.weight"},
    HubTensor{"blk.*.attn_q.bias", "distilbert.transformer.layer.*.attention.q_lin.bias"},
    HubTensor{"blk.*.attn_k.weight", "distilbert.transformer.layer.*.attention.k_lin.weight"},
    HubTensor{"blk.*.attn_k.bias", "distilbert.transformer.layer.*.attention.k_lin.bias"},
    HubTensor{"blk.*.attn_v.weight", "distilbert.transformer.layer.*.attention.v_lin.weight"},
    HubTensor{"blk.*.attn_v.bias", "distilbert.transformer.layer.*.attention.v_lin.bias"},
    HubTensor{"blk.*.attn_output.weight", "distilbert.transformer.layer.*.attention.out_lin.weight"},
    HubTensor{"blk.*.attn_output.bias", "distilbert.transformer.layer.*.attention.out_lin.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "distilbert.transformer.layer.*.sa_layer_norm.weight"},
    HubTensor{"blk.*.attn_output_norm.bias", "distilbert.transformer.layer.*.sa_layer_norm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "distilbert.transformer.layer.*.ffn.lin1.weight"},
    HubTensor{"blk.*.ffn_up.bias", "distilbert.transformer.layer.*.ffn.lin1.bias"},
    HubTensor{"blk.*.ffn_down.weight", "distilbert.transformer.layer.*.ffn.lin2.weight"},
    HubTensor{"blk.*.ffn_down.bias", "distilbert.transformer.layer.*.ffn.lin2.bias"},
    HubTensor{"blk.*.layer_output_norm.weight", "distilbert.transformer.layer.*.output_layer_norm.weight"},
    HubTensor{"blk.*.layer_output_norm.bias", "distilbert.transformer.layer.*.output_layer_norm.bias"},
    HubTensor{"cls.weight", "pre_classifier.weight"},
    HubTensor{"cls.bias", "pre_classifier.bias"},
};

constexpr auto kBertTensors = join(kHubBertAttn, kHubBert, kHubClassifier);
constexpr auto kRobertaTensors = join(kHubRoberta, kHubClassifier);
constexpr auto kDistilBertTensors = join(kHubDistilBert, kHubClassifier);
// Of heads that guess words, and buffers.
constexpr std::string_view kBertIgnored[] = {"bert.embeddings.position_ids",
                                             "cls.predictions.bias",
                                             "cls.predictions.decoder.weight",
                                             "cls.predictions.decoder.bias",
                                             "cls.predictions.transform.dense.weight",
                                             "cls.predictions.transform.dense.bias",
                                             "cls.predictions.transform.LayerNorm.weight",
                                             "cls.predictions.transform.LayerNorm.bias",
                                             "cls.predictions.transform.LayerNorm.gamma",
                                             "cls.predictions.transform.LayerNorm.beta",
                                             "cls.seq_relationship.weight",
                                             "cls.seq_relationship.bias"};
constexpr std::string_view kRobertaIgnored[] = {"roberta.embeddings.position_ids",
                                                "lm_head.bias",
                                                "lm_head.dense.weight",
                                                "lm_head.dense.bias",
                                                "lm_head.layer_norm.weight",
                                                "lm_head.layer_norm.bias",
                                                "lm_head.decoder.weight",
                                                "lm_head.decoder.bias",
                                                "roberta.pooler.dense.weight",
                                                "roberta.pooler.dense.bias"};
constexpr std::string_view kDistilBertIgnored[] = {"vocab_transform.weight",  "vocab_transform.bias",
                                                   "vocab_layer_norm.weight", "vocab_layer_norm.bias",
                                                   "vocab_projector.weight",  "vocab_projector.bias"};

Result<void> check_positions(const HubConfig& config) {
  const nlohmann::json* kind = config.stated("position_embedding_type");
  if (kind == nullptr || *kind == "absolute") return {};
  return config.unsupported("position_embedding_type", *kind, "absolute");
}

Result<void> read_bert(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(check_positions(config));
  return read_hub_encoder(config, prefix, metadata);
}

// Positions begin behind padding's.
Result<void> read_roberta(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(check_positions(config));
  constexpr uint64_t kRowsBefore = 2;
  const nlohmann::json* pad = config.stated("pad_token_id");
  if (pad != nullptr && *pad != kRowsBefore - 1) return config.unsupported("pad_token_id", *pad, "1");
  CANDOR_ASSIGN(const uint64_t rows, hub_count(config, "max_position_embeddings"));
  if (rows <= kRowsBefore) return config.bad("max_position_embeddings", rows, "3 or more");
  metadata.add(fmt::format("{}.context_length", prefix), rows - kRowsBefore);
  return read_hub_encoder(config, prefix, metadata);
}

Result<void> read_distil(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  constexpr double kEpsilon = 1e-12;  // of every published model; config.json does not say it
  CANDOR_ASSIGN(const std::optional<bool> is_fixed, hub_flag(config, "sinusoidal_pos_embds"));
  if (is_fixed.value_or(false)) config.add_without_effect("sinusoidal_pos_embds");  // the table is in the file
  metadata.add(fmt::format("{}.attention.layer_norm_epsilon", prefix),
               static_cast<double>(static_cast<float>(kEpsilon)));
  metadata.add_string("candor.text.label_activation", "relu");
  return read_hub_encoder(config, prefix, metadata);
}

constexpr HubForm kHub[] = {
    {.model_type = "bert",
     .architecture = "BertModel",
     .activation = "gelu",
     .tensors = kBertTensors,
     .ignored = kBertIgnored,
     .read = read_bert,
     .suits = suits_none,
     .not_computed = "guessing words"},
    {.model_type = "roberta",
     .architecture = "RobertaModel",
     .activation = "gelu",
     .tensors = kRobertaTensors,
     .ignored = kRobertaIgnored,
     .read = read_roberta,
     .suits = suits_none,
     .not_computed = "guessing words"},
    {.model_type = "xlm-roberta",
     .architecture = "XLMRobertaModel",
     .activation = "gelu",
     .tensors = kRobertaTensors,
     .ignored = kRobertaIgnored,
     .read = read_roberta,
     .suits = suits_none,
     .not_computed = "guessing words"},
    {.model_type = "camembert",
     .architecture = "CamembertModel",
     .activation = "gelu",
     .tensors = kRobertaTensors,
     .ignored = kRobertaIgnored,
     .read = read_roberta,
     .suits = suits_none,
     .not_computed = "guessing words"},
    {.model_type = "distilbert",
     .architecture = "DistilBertModel",
     .activation = "gelu",
     .tensors = kDistilBertTensors,
     .ignored = kDistilBertIgnored,
     .read = read_distil,
     .suits = suits_none,
     .not_computed = "guessing words"},
};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_encoder(Hparams(file, "bert")));
  spec.embed.has_positions = true;
  for (BlockSpec& block : spec.blocks) block.attn.rope = {};
  return spec;
}

}  // namespace
}  // namespace bert

Family bert_family() {
  using namespace bert;
  return {"bert", read, kTensors, {}, kHub};
}

}  // namespace candor::model
