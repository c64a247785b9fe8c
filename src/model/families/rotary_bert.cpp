// Encoders after BERT that rotate their heads in place of learned positions: nomic-bert with a SiLU-gated feed-forward
// (Nussbaum et al., "Nomic Embed", 2024), and with experts in every second block ("Training sparse mixture of experts
// text embedding models", 2025); GTE with a GELU-gated one (Zhang et al., "mGTE", 2024); jina-embeddings-v3, ungated
// (Sturua et al., 2024), whose adapters for tasks model/adapter/task_adapter.h reads.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/encoder_parts.h"
#include "model/hub/hub_tasks.h"

namespace candor::model {
namespace rotary_bert {
namespace {

constexpr auto kGatedTensors = join(kEncoderTensors, kGatedFfnTensors, kUngatedBiases);
constexpr auto kUngatedTensors = join(kEncoderTensors, kUngatedEncoderTensors, kUngatedBiases);
constexpr std::array kExpertTensors = {
    TensorName{TensorRole::kRouter, "blk.*.ffn_gate_inp.weight"},
    TensorName{TensorRole::kExpertUp, "blk.*.ffn_up_exps.weight"},
    TensorName{TensorRole::kExpertDown, "blk.*.ffn_down_exps.weight"},
    TensorName{TensorRole::kMixBias, "blk.*.ffn_mix.bias", kOptional},
};
constexpr auto kSparseTensors = join(kUngatedTensors, kExpertTensors);

constexpr std::array kHubNomicRows = {
    HubTensor{"token_embd.weight", "nomic_bert.embeddings.word_embeddings.weight"},
    HubTensor{"token_types.weight", "nomic_bert.embeddings.token_type_embeddings.weight"},
    HubTensor{"token_embd_norm.weight", "nomic_bert.embeddings.LayerNorm.weight"},
    HubTensor{"token_embd_norm.bias", "nomic_bert.embeddings.LayerNorm.bias"},
    HubTensor{"token_embd_norm.weight", "nomic_bert.emb_ln.weight"},
    HubTensor{"token_embd_norm.bias", "nomic_bert.emb_ln.bias"},
    HubTensor{"blk.*.attn_q.weight", "nomic_bert.layers.*.self_attn.q_proj.weight"},
    HubTensor{"blk.*.attn_q.bias", "nomic_bert.layers.*.self_attn.q_proj.bias"},
    HubTensor{"blk.*.attn_k.weight", "nomic_bert.layers.*.self_attn.k_proj.weight"},
    HubTensor{"blk.*.attn_k.bias", "nomic_bert.layers.*.self_attn.k_proj.bias"},
    HubTensor{"blk.*.attn_v.weight", "nomic_bert.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_v.bias", "nomic_bert.layers.*.self_attn.v_proj.bias"},
    HubTensor{"blk.*.attn_output.weight", "nomic_bert.layers.*.self_attn.o_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "nomic_bert.layers.*.self_attn.o_proj.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "nomic_bert.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.attn_output_norm.bias", "nomic_bert.layers.*.post_attention_layernorm.bias"},
    HubTensor{"blk.*.layer_output_norm.weight", "nomic_bert.layers.*.post_mlp_layernorm.weight"},
    HubTensor{"blk.*.layer_output_norm.bias", "nomic_bert.layers.*.post_mlp_layernorm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "nomic_bert.layers.*.mlp.up_proj.weight"},
    HubTensor{"blk.*.ffn_up.bias", "nomic_bert.layers.*.mlp.up_proj.bias"},
    HubTensor{"blk.*.ffn_gate.weight", "nomic_bert.layers.*.mlp.gate_proj.weight"},
    HubTensor{"blk.*.ffn_gate.bias", "nomic_bert.layers.*.mlp.gate_proj.bias"},
    HubTensor{"blk.*.ffn_down.weight", "nomic_bert.layers.*.mlp.down_proj.weight"},
    HubTensor{"blk.*.ffn_down.bias", "nomic_bert.layers.*.mlp.down_proj.bias"},
    HubTensor{"blk.*.attn_qkv.weight", "nomic_bert.encoder.layers.*.attn.Wqkv.weight"},
    HubTensor{"blk.*.attn_qkv.bias", "nomic_bert.encoder.layers.*.attn.Wqkv.bias"},
    HubTensor{"blk.*.attn_output.weight", "nomic_bert.encoder.layers.*.attn.out_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "nomic_bert.encoder.layers.*.attn.out_proj.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "nomic_bert.encoder.layers.*.norm1.weight"},
    HubTensor{"blk.*.attn_output_norm.bias", "nomic_bert.encoder.layers.*.norm1.bias"},
    HubTensor{"blk.*.layer_output_norm.weight", "nomic_bert.encoder.layers.*.norm2.weight"},
    HubTensor{"blk.*.layer_output_norm.bias", "nomic_bert.encoder.layers.*.norm2.bias"},
    HubTensor{"blk.*.ffn_up.weight", "nomic_bert.encoder.layers.*.mlp.fc11.weight"},
    HubTensor{"blk.*.ffn_up.bias", "nomic_bert.encoder.layers.*.mlp.fc11.bias"},
    HubTensor{"blk.*.ffn_gate.weight", "nomic_bert.encoder.layers.*.mlp.fc12.weight"},
    HubTensor{"blk.*.ffn_gate.bias", "nomic_bert.encoder.layers.*.mlp.fc12.bias"},
    HubTensor{"blk.*.ffn_down.weight", "nomic_bert.encoder.layers.*.mlp.fc2.weight"},
    HubTensor{"blk.*.ffn_down.bias", "nomic_bert.encoder.layers.*.mlp.fc2.bias"},
    HubTensor{"cls.weight", "nomic_bert.pooler.dense.weight"},
    HubTensor{"cls.bias", "nomic_bert.pooler.dense.bias"},
};
constexpr std::array kHubExperts = {
    HubTensor{"blk.*.ffn_up.weight", "nomic_bert.encoder.layers.*.mlp.fc1.weight"},
    HubTensor{"blk.*.ffn_up.bias", "nomic_bert.encoder.layers.*.mlp.fc1.bias"},
    HubTensor{"blk.*.ffn_gate_inp.weight", "nomic_bert.encoder.layers.*.mlp.router.layer.weight", HubChange::kWiden},
    HubTensor{"blk.*.ffn_up_exps.weight", "nomic_bert.encoder.layers.*.mlp.experts.mlp.w1", HubChange::kStackRows},
    HubTensor{"blk.*.ffn_down_exps.weight", "nomic_bert.encoder.layers.*.mlp.experts.mlp.w2", HubChange::kStackColumns},
    HubTensor{"blk.*.ffn_mix.bias", "nomic_bert.encoder.layers.*.mlp.experts.bias"},
};
constexpr std::array kHubGteRows = {
    HubTensor{"token_embd.weight", "gte.embeddings.word_embeddings.weight"},
    HubTensor{"token_types.weight", "gte.embeddings.token_type_embeddings.weight"},
    HubTensor{"token_embd_norm.weight", "gte.embeddings.LayerNorm.weight"},
    HubTensor{"token_embd_norm.bias", "gte.embeddings.LayerNorm.bias"},
    HubTensor{"blk.*.attn_q.weight", "gte.layers.*.self_attn.q_proj.weight"},
    HubTensor{"blk.*.attn_q.bias", "gte.layers.*.self_attn.q_proj.bias"},
    HubTensor{"blk.*.attn_k.weight", "gte.layers.*.self_attn.k_proj.weight"},
    HubTensor{"blk.*.attn_k.bias", "gte.layers.*.self_attn.k_proj.bias"},
    HubTensor{"blk.*.attn_v.weight", "gte.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_v.bias", "gte.layers.*.self_attn.v_proj.bias"},
    HubTensor{"blk.*.attn_output.weight", "gte.layers.*.self_attn.o_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "gte.layers.*.self_attn.o_proj.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "gte.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.attn_output_norm.bias", "gte.layers.*.post_attention_layernorm.bias"},
    HubTensor{"blk.*.layer_output_norm.weight", "gte.layers.*.post_mlp_layernorm.weight"},
    HubTensor{"blk.*.layer_output_norm.bias", "gte.layers.*.post_mlp_layernorm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "gte.layers.*.mlp.up_proj.weight"},
    HubTensor{"blk.*.ffn_up.bias", "gte.layers.*.mlp.up_proj.bias"},
    HubTensor{"blk.*.ffn_gate.weight", "gte.layers.*.mlp.gate_proj.weight"},
    HubTensor{"blk.*.ffn_gate.bias", "gte.layers.*.mlp.gate_proj.bias"},
    HubTensor{"blk.*.ffn_down.weight", "gte.layers.*.mlp.down_proj.weight"},
    HubTensor{"blk.*.ffn_down.bias", "gte.layers.*.mlp.down_proj.bias"},
    HubTensor{"blk.*.attn_qkv.weight", "gte.encoder.layer.*.attention.qkv_proj.weight"},
    HubTensor{"blk.*.attn_qkv.bias", "gte.encoder.layer.*.attention.qkv_proj.bias"},
    HubTensor{"blk.*.attn_output.weight", "gte.encoder.layer.*.attention.o_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "gte.encoder.layer.*.attention.o_proj.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "gte.encoder.layer.*.attn_ln.weight"},
    HubTensor{"blk.*.attn_output_norm.bias", "gte.encoder.layer.*.attn_ln.bias"},
    HubTensor{"blk.*.layer_output_norm.weight", "gte.encoder.layer.*.mlp_ln.weight"},
    HubTensor{"blk.*.layer_output_norm.bias", "gte.encoder.layer.*.mlp_ln.bias"},
    HubTensor{"blk.*.ffn_down.weight", "gte.encoder.layer.*.mlp.down_proj.weight"},
    HubTensor{"blk.*.ffn_down.bias", "gte.encoder.layer.*.mlp.down_proj.bias"},
    HubTensor{"blk.*.ffn_up.weight", "gte.encoder.layer.*.mlp.up_gate_proj.weight", HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_gate.weight", ""},
    HubTensor{"cls.weight", "gte.pooler.dense.weight"},
    HubTensor{"cls.bias", "gte.pooler.dense.bias"},
};
constexpr std::array kHubNewRows = {
    HubTensor{"token_embd.weight", "new.embeddings.word_embeddings.weight"},
    HubTensor{"token_types.weight", "new.embeddings.token_type_embeddings.weight"},
    HubTensor{"token_embd_norm.weight", "new.embeddings.LayerNorm.weight"},
    HubTensor{"token_embd_norm.bias", "new.embeddings.LayerNorm.bias"},
    HubTensor{"blk.*.attn_qkv.weight", "new.encoder.layer.*.attention.qkv_proj.weight"},
    HubTensor{"blk.*.attn_qkv.bias", "new.encoder.layer.*.attention.qkv_proj.bias"},
    HubTensor{"blk.*.attn_output.weight", "new.encoder.layer.*.attention.o_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "new.encoder.layer.*.attention.o_proj.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "new.encoder.layer.*.attn_ln.weight"},
    HubTensor{"blk.*.attn_output_norm.bias", "new.encoder.layer.*.attn_ln.bias"},
    HubTensor{"blk.*.layer_output_norm.weight", "new.encoder.layer.*.mlp_ln.weight"},
    HubTensor{"blk.*.layer_output_norm.bias", "new.encoder.layer.*.mlp_ln.bias"},
    HubTensor{"blk.*.ffn_down.weight", "new.encoder.layer.*.mlp.down_proj.weight"},
    HubTensor{"blk.*.ffn_down.bias", "new.encoder.layer.*.mlp.down_proj.bias"},
    HubTensor{"blk.*.ffn_up.weight", "new.encoder.layer.*.mlp.up_gate_proj.weight", HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_gate.weight", ""},
    HubTensor{"cls.weight", "new.pooler.dense.weight"},
    HubTensor{"cls.bias", "new.pooler.dense.bias"},
};
constexpr std::array kHubJina = {
    HubTensor{"token_embd.weight", "roberta.embeddings.word_embeddings.weight"},
    HubTensor{"token_types.weight", "roberta.embeddings.token_type_embeddings.weight"},
    HubTensor{"token_embd_norm.weight", "roberta.embeddings.LayerNorm.weight"},
    HubTensor{"token_embd_norm.bias", "roberta.embeddings.LayerNorm.bias"},
    HubTensor{"token_embd_norm.weight", "roberta.emb_ln.weight"},
    HubTensor{"token_embd_norm.bias", "roberta.emb_ln.bias"},
    HubTensor{"blk.*.attn_qkv.weight", "roberta.encoder.layers.*.mixer.Wqkv.weight"},
    HubTensor{"blk.*.attn_qkv.bias", "roberta.encoder.layers.*.mixer.Wqkv.bias"},
    HubTensor{"blk.*.attn_output.weight", "roberta.encoder.layers.*.mixer.out_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "roberta.encoder.layers.*.mixer.out_proj.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "roberta.encoder.layers.*.norm1.weight"},
    HubTensor{"blk.*.attn_output_norm.bias", "roberta.encoder.layers.*.norm1.bias"},
    HubTensor{"blk.*.layer_output_norm.weight", "roberta.encoder.layers.*.norm2.weight"},
    HubTensor{"blk.*.layer_output_norm.bias", "roberta.encoder.layers.*.norm2.bias"},
    HubTensor{"blk.*.ffn_up.weight", "roberta.encoder.layers.*.mlp.fc1.weight"},
    HubTensor{"blk.*.ffn_up.bias", "roberta.encoder.layers.*.mlp.fc1.bias"},
    HubTensor{"blk.*.ffn_down.weight", "roberta.encoder.layers.*.mlp.fc2.weight"},
    HubTensor{"blk.*.ffn_down.bias", "roberta.encoder.layers.*.mlp.fc2.bias"},
    HubTensor{"blk.*.attn_q.weight", "roberta.layers.*.self_attn.q_proj.weight"},
    HubTensor{"blk.*.attn_q.bias", "roberta.layers.*.self_attn.q_proj.bias"},
    HubTensor{"blk.*.attn_k.weight", "roberta.layers.*.self_attn.k_proj.weight"},
    HubTensor{"blk.*.attn_k.bias", "roberta.layers.*.self_attn.k_proj.bias"},
    HubTensor{"blk.*.attn_v.weight", "roberta.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_v.bias", "roberta.layers.*.self_attn.v_proj.bias"},
    HubTensor{"blk.*.attn_output.weight", "roberta.layers.*.self_attn.o_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "roberta.layers.*.self_attn.o_proj.bias"},
    HubTensor{"blk.*.attn_output_norm.weight", "roberta.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.attn_output_norm.bias", "roberta.layers.*.post_attention_layernorm.bias"},
    HubTensor{"blk.*.layer_output_norm.weight", "roberta.layers.*.post_mlp_layernorm.weight"},
    HubTensor{"blk.*.layer_output_norm.bias", "roberta.layers.*.post_mlp_layernorm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "roberta.layers.*.mlp.fc1.weight"},
    HubTensor{"blk.*.ffn_up.bias", "roberta.layers.*.mlp.fc1.bias"},
    HubTensor{"blk.*.ffn_down.weight", "roberta.layers.*.mlp.fc2.weight"},
    HubTensor{"blk.*.ffn_down.bias", "roberta.layers.*.mlp.fc2.bias"},
    HubTensor{"cls.weight", "classifier.dense.weight"},
    HubTensor{"cls.bias", "classifier.dense.bias"},
    HubTensor{"cls.output.weight", "classifier.out_proj.weight"},
    HubTensor{"cls.output.bias", "classifier.out_proj.bias"},
};
constexpr auto kHubNomic = join(kHubNomicRows, kHubClassifier);
constexpr auto kHubNomicMoe = join(kHubNomicRows, kHubExperts, kHubClassifier);
constexpr auto kHubGte = join(kHubGteRows, kHubClassifier);
constexpr auto kHubNew = join(kHubNewRows, kHubClassifier);
constexpr std::string_view kJinaIgnored[] = {"roberta.pooler.dense.weight", "roberta.pooler.dense.bias"};
// Of heads that guess words.
constexpr std::string_view kNewIgnored[] = {"lm_head.bias",       "lm_head.decoder.weight", "lm_head.decoder.bias",
                                            "lm_head.dense.bias", "lm_head.dense.weight",   "lm_head.norm.weight",
                                            "lm_head.norm.bias"};
constexpr std::string_view kNomicIgnored[] = {"cls.predictions.decoder.weight",
                                              "cls.predictions.decoder.bias",
                                              "cls.predictions.transform.dense.weight",
                                              "cls.predictions.transform.dense.bias",
                                              "cls.predictions.transform.layer_norm.weight",
                                              "cls.predictions.transform.layer_norm.bias"};

// What the first checkpoints say in the words of another library.
Result<void> read_nomic_words(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_encoder(config, prefix, metadata));
  CANDOR_ASSIGN(const std::optional<double> base, stated_number(config, "rotary_emb_base"));
  if (base) metadata.add(fmt::format("{}.rope.freq_base", prefix), *base);
  for (const char* key : {"causal", "prenorm", "rotary_emb_interleaved", "use_rms_norm", "parallel_block",
                          "scale_attn_by_inverse_layer_idx"}) {
    CANDOR_ASSIGN(const std::optional<bool> flag, stated_flag(config, key));
    if (flag.value_or(false)) return config.unsupported(key, true, "false");
  }
  for (const char* key : {"rotary_emb_fraction", "rotary_scaling_factor", "rotary_emb_scale_base"}) {
    CANDOR_ASSIGN(const std::optional<double> number, stated_number(config, key));
    const bool is_whole = std::string_view(key) == "rotary_emb_fraction" && number == 1.0;
    if (number && !is_whole) return config.unsupported(key, *number, is_whole ? "1" : "null");
  }
  CANDOR_ASSIGN(const uint64_t trained, stated_count(config, "max_trained_positions"));
  CANDOR_ASSIGN(const uint64_t most, hub_count(config, "max_position_embeddings"));
  if (trained > 0 && trained < most) metadata.add(fmt::format("{}.context_length", prefix), trained);
  return {};
}

bool has_experts(const HubConfig& config) {
  const nlohmann::json* every = config.stated("moe_every_n_layers");
  return every != nullptr && every->is_number() && *every > 0;
}

Result<void> read_nomic(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_nomic_words(config, prefix, metadata));
  for (const char* key : {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"}) {
    CANDOR_ASSIGN(const std::optional<bool> flag, stated_flag(config, key));
    if (flag.value_or(false)) return config.unsupported(key, true, "false");
  }
  const nlohmann::json* act = config.stated("activation_function");
  if (act != nullptr && *act != "swiglu") return config.unsupported("activation_function", *act, "swiglu");
  return {};
}

Result<void> read_nomic_moe(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_nomic_words(config, prefix, metadata));
  for (const char* key : {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"}) CANDOR_TRY(stated_flag(config, key));
  for (const char* key : {"moe_normalize_expert_weights", "expert_choice_router"}) {
    CANDOR_ASSIGN(const std::optional<bool> flag, stated_flag(config, key));
    if (flag.value_or(false)) return config.unsupported(key, true, "false");
  }
  for (const auto& [key, suffix] :
       {std::pair("num_experts", "expert_count"), std::pair("moe_top_k", "expert_used_count"),
        std::pair("moe_every_n_layers", "moe_every_n_layers"),
        std::pair("num_shared_experts", "expert_shared_count")}) {
    CANDOR_ASSIGN(const uint64_t n, stated_count(config, key));
    metadata.add(fmt::format("{}.{}", prefix, suffix), n);
  }
  const nlohmann::json* act = config.stated("activation_function");
  if (act != nullptr && *act != "gelu") return config.unsupported("activation_function", *act, "gelu");
  for (const char* key : {"moe_impl", "moe_resid_pdrop", "ffn_div", "router_aux_loss_coef", "add_pooling_layer"}) {
    if (config.stated(key) != nullptr) config.add_without_effect(key);
  }
  return {};
}

Result<void> read_new(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_encoder(config, prefix, metadata));
  const nlohmann::json* positions = config.stated("position_embedding_type");
  if (positions != nullptr && *positions != "rope") {
    return config.unsupported("position_embedding_type", *positions, "rope");
  }
  const nlohmann::json* norm = config.stated("layer_norm_type");
  if (norm != nullptr && *norm != "layer_norm") return config.unsupported("layer_norm_type", *norm, "layer_norm");
  CANDOR_ASSIGN(const std::optional<bool> scales, stated_flag(config, "logn_attention_scale"));
  if (scales.value_or(false)) return config.unsupported("logn_attention_scale", true, "false");
  for (const char* key : {"logn_attention_clip1", "pack_qkv", "unpad_inputs", "use_memory_efficient_attention"}) {
    if (config.stated(key) != nullptr) config.add_without_effect(key);
  }
  return {};
}

constexpr HubForm kNomicHub[] = {{.model_type = "nomic_bert",
                                  .architecture = "NomicBertModel",
                                  .activation = "",
                                  .tensors = kHubNomic,
                                  .ignored = kNomicIgnored,
                                  .read = read_nomic,
                                  .suits = suits_none,
                                  .not_computed = "guessing words"}};
// As published: an XLM-RoBERTa by its model_type, with adapters for tasks beside its weights.
bool is_rotary(const HubConfig& config) {
  const nlohmann::json* kind = config.stated("position_embedding_type");
  return kind != nullptr && *kind == "rotary";
}

Result<void> read_published_jina(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_encoder(config, prefix, metadata));
  CANDOR_ASSIGN(const std::optional<double> base, stated_number(config, "rotary_emb_base"));
  if (base) metadata.add(fmt::format("{}.rope.freq_base", prefix), *base);
  for (const char* key : {"use_flash_attn", "use_reg_tokens", "matryoshka_dimensions", "truncate_dim", "emb_pooler"}) {
    if (config.stated(key) != nullptr) config.add_without_effect(key);
  }
  return read_tasks(config, metadata);
}

constexpr HubForm kNomicMoeHub[] = {{.model_type = "nomic_bert",
                                     .architecture = "NomicBertModel",
                                     .activation = "",
                                     .tensors = kHubNomicMoe,
                                     .ignored = kNomicIgnored,
                                     .read = read_nomic_moe,
                                     .reads = has_experts,
                                     .suits = suits_none,
                                     .not_computed = "guessing words"}};
constexpr HubForm kJinaHub[] = {{.model_type = "jina_embeddings_v3",
                                 .architecture = "JinaEmbeddingsV3Model",
                                 .activation = "gelu",
                                 .tensors = kHubJina,
                                 .ignored = kJinaIgnored,
                                 .read = read_hub_encoder,
                                 .suits = suits_none},
                                {.model_type = "xlm-roberta",
                                 .architecture = "XLMRobertaLoRA",
                                 .activation = "gelu",
                                 .tensors = kHubJina,
                                 .ignored = kJinaIgnored,
                                 .read = read_published_jina,
                                 .reads = is_rotary,
                                 .suits = suits_none}};
constexpr HubForm kGteHub[] = {{.model_type = "gte",
                                .architecture = "GteModel",
                                .activation = "gelu",
                                .tensors = kHubGte,
                                .read = read_hub_encoder,
                                .suits = suits_none},
                               {.model_type = "new",
                                .architecture = "NewModel",
                                .activation = "gelu",
                                .tensors = kHubNew,
                                .ignored = kNewIgnored,
                                .read = read_new,
                                .suits = suits_none,
                                .not_computed = "guessing words"}};

Result<ArchSpec> read_rotary(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_encoder(hparams));
  for (BlockSpec& block : spec.blocks) block.attn.rope.pairs = backend::RopePairs::kHalves;
  return spec;
}

Result<ArchSpec> read_gated(const Hparams& hparams, backend::GateKind gate) {
  CANDOR_ASSIGN(ArchSpec spec, read_rotary(hparams));
  for (BlockSpec& block : spec.blocks) {
    block.ffn.is_gated = true;
    block.ffn.gate = gate;
  }
  return spec;
}

Result<ArchSpec> read_nomic_file(const formats::ModelFile& file) {
  return read_gated(Hparams(file, "nomic-bert"), backend::GateKind::kSilu);
}

Result<ArchSpec> read_gte_file(const formats::ModelFile& file) {
  return read_gated(Hparams(file, "gte"), backend::GateKind::kGeluErf);
}

Result<ArchSpec> read_jina_file(const formats::ModelFile& file) {
  return read_rotary(Hparams(file, "jina-bert-v3"));
}

// Block 1 has experts, and each moe_every_n_layers behind it; their weights are shares of all.
Result<ArchSpec> read_sparse_file(const formats::ModelFile& file) {
  const Hparams hparams(file, "nomic-bert-moe");
  CANDOR_ASSIGN(ArchSpec spec, read_rotary(hparams));
  CANDOR_ASSIGN(const int32_t every, hparams.require_int("moe_every_n_layers", {2, kMaxLayers}));
  CANDOR_ASSIGN(backend::MoeSpec moe, read_moe(hparams));
  moe.renormalise = false;
  for (size_t layer = 1; layer < spec.blocks.size(); layer += static_cast<size_t>(every)) {
    spec.blocks[layer].ffn.moe = moe;
  }
  return spec;
}

}  // namespace
}  // namespace rotary_bert

Family nomic_bert_family() {
  using namespace rotary_bert;
  return {"nomic-bert", read_nomic_file, kGatedTensors, {}, kNomicHub};
}

Family nomic_bert_moe_family() {
  using namespace rotary_bert;
  return {"nomic-bert-moe", read_sparse_file, kSparseTensors, {}, kNomicMoeHub};
}

Family gte_family() {
  using namespace rotary_bert;
  return {"gte", read_gte_file, kGatedTensors, {}, kGteHub};
}

Family jina_bert_v3_family() {
  using namespace rotary_bert;
  return {"jina-bert-v3", read_jina_file, kUngatedTensors, {}, kJinaHub};
}

}  // namespace candor::model
