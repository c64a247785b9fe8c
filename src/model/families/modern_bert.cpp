// ModernBERT: rotary positions, norms before each sub-layer (but attention's in the first block), a GELU-gated
// feed-forward, and two blocks of three that see a window to both sides. Warner et al., 2024.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "formats/meta_list.h"
#include "model/families/encoder_parts.h"

namespace candor::model {
namespace modern_bert {
namespace {

constexpr std::array kOwn = {
    TensorName{TensorRole::kEmbedding, "token_embd.weight"},
    TensorName{TensorRole::kEmbedNorm, "token_embd_norm.weight"},
    TensorName{TensorRole::kEmbedNormBias, "token_embd_norm.bias", kOptional},
    TensorName{TensorRole::kFinalNorm, "output_norm.weight"},
    TensorName{TensorRole::kFinalNormBias, "output_norm.bias", kOptional},
    TensorName{TensorRole::kAttnNormBias, "blk.*.attn_norm.bias", kOptional},
    TensorName{TensorRole::kFfnNormBias, "blk.*.ffn_norm.bias", kOptional},
    TensorName{TensorRole::kQkv, "blk.*.attn_qkv.weight"},
    TensorName{TensorRole::kQkvBias, "blk.*.attn_qkv.bias", kOptional},
    TensorName{TensorRole::kAttnOut, "blk.*.attn_output.weight"},
    TensorName{TensorRole::kGateUp, "blk.*.ffn_up.weight"},
    TensorName{TensorRole::kDown, "blk.*.ffn_down.weight"},
    TensorName{TensorRole::kDownBias, "blk.*.ffn_down.bias", kOptional},
};
constexpr auto kTensors = join(kOwn, kMaskedHeadTensors, kPreNormTensors, kAttnOutBias);

constexpr std::array kHubRows = {
    HubTensor{"token_embd.weight", "model.embeddings.tok_embeddings.weight"},
    HubTensor{"token_embd_norm.weight", "model.embeddings.norm.weight"},
    HubTensor{"token_embd_norm.bias", "model.embeddings.norm.bias"},
    HubTensor{"output_norm.weight", "model.final_norm.weight"},
    HubTensor{"output_norm.bias", "model.final_norm.bias"},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.attn_norm.weight"},
    HubTensor{"blk.*.attn_norm.bias", "model.layers.*.attn_norm.bias"},
    HubTensor{"blk.*.attn_qkv.weight", "model.layers.*.attn.Wqkv.weight"},
    HubTensor{"blk.*.attn_qkv.bias", "model.layers.*.attn.Wqkv.bias"},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.attn.Wo.weight"},
    HubTensor{"blk.*.attn_output.bias", "model.layers.*.attn.Wo.bias"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.mlp_norm.weight"},
    HubTensor{"blk.*.ffn_norm.bias", "model.layers.*.mlp_norm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.mlp.Wi.weight"},
    HubTensor{"blk.*.ffn_up.bias", "model.layers.*.mlp.Wi.bias"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.mlp.Wo.weight"},
    HubTensor{"blk.*.ffn_down.bias", "model.layers.*.mlp.Wo.bias"},
    HubTensor{"cls.weight", "head.dense.weight"},
    HubTensor{"cls.bias", "head.dense.bias"},
    HubTensor{"cls.norm.weight", "head.norm.weight"},
};
constexpr auto kHubTensors = join(kHubRows, kHubClassifier);
constexpr std::string_view kIgnored[] = {"decoder.weight", "decoder.bias"};

// Which blocks have a window.
Result<void> read_kinds(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const nlohmann::json& kinds = config["layer_types"];
  if (!kinds.is_array()) return config.bad("layer_types", kinds, "a list");
  std::vector<bool> flags;
  for (const nlohmann::json& kind : kinds) {
    if (kind != "sliding_attention" && kind != "full_attention") {
      return config.unsupported("layer_types", kind, "sliding_attention, full_attention");
    }
    flags.push_back(kind == "sliding_attention");
  }
  metadata.add(fmt::format("{}.attention.sliding_window_pattern", prefix), formats::MetaArray(std::move(flags)));
  return {};
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const uint64_t local, hub_count(config, "local_attention"));
  metadata.add(fmt::format("{}.attention.sliding_window", prefix), local);
  const nlohmann::json& act = config["hidden_activation"];
  if (act.is_string()) metadata.add_string(fmt::format("{}.hidden_act", prefix), act.get<std::string>());
  const nlohmann::json& label_act = config["classifier_activation"];
  metadata.add_string("candor.text.label_activation", label_act.is_string() ? label_act.get<std::string>() : "gelu");
  const nlohmann::json& pooling = config["classifier_pooling"];
  if (pooling != "cls" && pooling != "mean") return config.unsupported("classifier_pooling", pooling, "cls, mean");
  metadata.add_string("candor.text.label_pooling", pooling.get<std::string>());
  CANDOR_TRY(read_kinds(config, prefix, metadata));
  metadata.add(fmt::format("{}.attention.causal", prefix), false);
  for (const char* key : {"norm_bias", "classifier_bias", "attention_bias", "decoder_bias", "sparse_prediction"}) {
    CANDOR_TRY(hub_flag(config, key));  // what is there is seen by its tensors
  }
  for (const char* key : {"deterministic_flash_attn", "initializer_cutoff_factor", "sparse_pred_ignore_index",
                          "cls_token_id", "mlp_dropout", "layer_norm_eps", "position_embedding_type"}) {
    if (config.stated(key) != nullptr) config.add_without_effect(key);
  }
  CANDOR_ASSIGN(const std::optional<bool> has_mlp_bias, hub_flag(config, "mlp_bias"));
  if (has_mlp_bias.value_or(false)) return config.unsupported("mlp_bias", true, "false");
  return {};
}

constexpr HubForm kHub[] = {{.model_type = "modernbert",
                             .architecture = "ModernBertModel",
                             .activation = "",
                             .tensors = kHubTensors,
                             .ignored = kIgnored,
                             .read = read_hub,
                             .suits = suits_none,
                             .not_computed = "guessing words",
                             .has_own_kinds = true}};

Result<backend::GateKind> gate_of(const Hparams& hparams) {
  CANDOR_ASSIGN(const std::string act, hparams.string_or("hidden_act", "gelu"));
  if (act == "gelu") return backend::GateKind::kGeluErf;
  if (act == "gelu_new" || act == "gelu_pytorch_tanh") return backend::GateKind::kGelu;
  if (act == "silu" || act == "swish") return backend::GateKind::kSilu;
  return fail(ErrorKind::kUnsupported,
              fmt::format("metadata key \"{}\": \"{}\"; expected gelu or silu", hparams.key("hidden_act"), act));
}

// Files state the width of both sides together. GGUF's pattern n: the first block of each n sees everything; folders
// list the blocks.
Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "modern-bert");
  CANDOR_ASSIGN(ArchSpec spec, read_encoder(hparams));
  CANDOR_ASSIGN(const backend::GateKind gate, gate_of(hparams));
  CANDOR_ASSIGN(const double window_base, hparams.positive_or("rope.freq_base_swa", 10000.0));
  CANDOR_ASSIGN(std::vector<bool> is_windowed,
                read_window_pattern(hparams, static_cast<int32_t>(spec.blocks.size()), 3));
  const formats::MetaValue* stated = file.meta(hparams.key("attention.sliding_window_pattern"));
  const bool is_listed = stated != nullptr && std::holds_alternative<formats::MetaArray>(*stated);
  CANDOR_ASSIGN(const int32_t period, is_listed
                                          ? Result<int32_t>(1)
                                          : hparams.int_or("attention.sliding_window_pattern", 3, {1, kMaxLayers}));
  spec.has_final_norm = true;
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.wiring = Wiring::kPreNorm;
    block.is_attn_bare = layer == 0;
    block.ffn.is_gated = true;
    block.ffn.gate = gate;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    if (!is_listed) is_windowed[layer] = layer % static_cast<size_t>(period) != 0;
    if (!is_windowed[layer] || block.attn.window_tokens == 0) {
      block.attn.window_tokens = 0;
      continue;
    }
    block.attn.window_tokens = block.attn.window_tokens / 2 + 1;
    block.attn.is_two_sided = true;
    block.attn.rope.base = window_base;
  }
  return spec;
}

}  // namespace
}  // namespace modern_bert

Family modern_bert_family() {
  using namespace modern_bert;
  return {"modern-bert", read, kTensors, {}, kHub};
}

}  // namespace candor::model
