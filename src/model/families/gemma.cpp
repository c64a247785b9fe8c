// Gemma 1 to 3: a GELU-gated feed-forward, embeddings scaled by sqrt(D); since the second norms before and after each
// sub-layer, and blocks that see a window only between blocks that see everything. Gemma 2 caps its scores and logits;
// Gemma 3 norms each head of Q and K and rotates windowed blocks with a base of their own. VaultGemma is Gemma 2 with
// norms before each sub-layer alone. Gemma Team, 2024 and 2025.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/encoder_parts.h"

namespace candor::model {
namespace gemma {
namespace {

constexpr auto kGemma1Tensors =
    join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors, kAttnBiases);
constexpr auto kGemma2Tensors = join(kStemTensors, kPreNormTensors, kPostNormTensors, kAttnTensors, kGatedFfnTensors,
                                     kAttnBiases);
constexpr auto kGemma3Tensors = join(kGemma2Tensors, kQkNormTensors);

constexpr std::array kHubNorms = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"output_norm.weight", "model.norm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.pre_feedforward_layernorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.post_ffw_norm.weight", "model.layers.*.post_feedforward_layernorm.weight", HubChange::kAddOne},
};
constexpr std::array kHubHeadNorms = {
    HubTensor{"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_norm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_norm.weight", HubChange::kAddOne},
};
constexpr std::array kHubNorms1 = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"output_norm.weight", "model.norm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.post_attention_layernorm.weight", HubChange::kAddOne},
};
constexpr auto kHubGemma1 = join(kHubNorms1, kHubAttn, kHubGatedFfn, kHubAttnBiases);
constexpr auto kHubGemma2 = join(kHubNorms, kHubAttn, kHubGatedFfn, kHubAttnBiases);
constexpr auto kHubGemma3 = join(kHubGemma2, kHubHeadNorms);

constexpr std::array kHubVaultNorms = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"output_norm.weight", "model.norm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.pre_feedforward_layernorm.weight", HubChange::kAddOne},
};
constexpr auto kHubVault = join(kHubVaultNorms, kHubAttn, kHubGatedFfn, kHubAttnBiases);

constexpr const char* kWindowKey = "attention.sliding_window";

// Scores are scaled by a width that config.json names.
Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<double> width, hub_number(config, "query_pre_attn_scalar"));
  if (width && *width > 0.0) metadata.add(std::string(prefix) + ".attention.scale", 1.0 / std::sqrt(*width));
  // Zeros are what a folder has none of; a GGUF file that says nothing means other numbers.
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (config[key].is_null()) metadata.add(fmt::format("{}.{}", prefix, key), 0.0);
  }
  if (config["sliding_window"].is_null()) metadata.add(fmt::format("{}.{}", prefix, kWindowKey), uint64_t{0});
  return {};
}
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const double scale = static_cast<double>(spec.blocks.front().attn.scale);
  const double width = std::round(1e3 / (scale * scale)) / 1e3;
  if (width == std::floor(width)) {
    config["query_pre_attn_scalar"] = static_cast<int64_t>(width);
  } else {
    config["query_pre_attn_scalar"] = width;
  }
}
// Early files say "gelu" and mean the tanh form, as the `transformers` library takes it.
void write_hub1(const ArchSpec&, nlohmann::ordered_json& config) {
  config["hidden_act"] = "gelu_pytorch_tanh";
}
constexpr HubForm kGemma1Hub[] = {
    {.model_type = "gemma",
     .architecture = "GemmaForCausalLM",
     .activation = "",
     .tensors = kHubGemma1,
     .write = write_hub1,
     .flags = kAttnBiasFlag},
};
constexpr HubForm kGemma2Hub[] = {
    {.model_type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .activation = "gelu_new",
     .tensors = kHubGemma2,
     .read = read_hub,
     .write = write_hub,
     .flags = kAttnBiasFlag},
};
constexpr HubForm kVaultHub[] = {
    {.model_type = "vaultgemma",
     .architecture = "VaultGemmaForCausalLM",
     .activation = "gelu_new",
     .tensors = kHubVault,
     .read = read_hub,
     .write = write_hub,
     .flags = kAttnBiasFlag},
};
constexpr std::string_view kImages[] = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                                        "model.multi_modal_projector."};
constexpr HubOuter kGemma3Outer[] = {{"gemma3", kImages, ""}};
constexpr HubForm kGemma3Hub[] = {
    {.model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .activation = "gelu_new",
     .tensors = kHubGemma3,
     .read = read_hub,
     .write = write_hub,
     .outer = kGemma3Outer,
     .flags = kAttnBiasFlag},
};

// The files do not say it: the 27B models, known by their depth, scale by the width of D / H instead of the head's.
void set_scale(const Hparams& hparams, size_t depth_of_27b, ArchSpec& spec) {
  if (hparams.has("attention.scale") || spec.blocks.size() != depth_of_27b) return;
  for (BlockSpec& block : spec.blocks) {
    block.attn.scale = 1.0f / std::sqrt(static_cast<float>(spec.dim) / static_cast<float>(block.attn.n_heads));
  }
}

Result<ArchSpec> read_shared(const Hparams& hparams, int32_t window_pattern) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  const int32_t n_layers = static_cast<int32_t>(spec.blocks.size());
  CANDOR_ASSIGN(const std::vector<bool> is_windowed, read_window_pattern(hparams, n_layers, window_pattern));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.wiring = Wiring::kSandwich;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.ffn.gate = backend::GateKind::kGelu;
    if (!is_windowed[layer]) block.attn.window_tokens = 0;
  }
  spec.embed.scale = std::sqrt(static_cast<float>(spec.dim));
  CANDOR_ASSIGN(const auto cap, formats::meta_float(hparams.file(), hparams.key("final_logit_softcapping")));
  spec.head.logits.softcap = static_cast<float>(cap.value_or(0.0));
  return spec;
}

Result<ArchSpec> read_gemma1(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "gemma"), backend::NormKind::kRms));
  spec.embed.scale = std::sqrt(static_cast<float>(spec.dim));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.ffn.gate = backend::GateKind::kGelu;
  }
  return spec;
}

Result<ArchSpec> read_capped(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_shared(hparams, 2));
  CANDOR_ASSIGN(const auto cap, formats::meta_float(hparams.file(), hparams.key("attn_logit_softcapping")));
  for (BlockSpec& block : spec.blocks) block.attn.softcap = static_cast<float>(cap.value_or(0.0));
  return spec;
}

// What the first converted files left out, which are all of Gemma 2.
Result<void> complete_gemma2(const Hparams& hparams, ArchSpec& spec) {
  constexpr float kScoreCap = 50.0f, kLogitCap = 30.0f;
  constexpr int32_t kWindow = 4096;
  CANDOR_ASSIGN(const std::vector<bool> is_windowed,
                read_window_pattern(hparams, static_cast<int32_t>(spec.blocks.size()), 2));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    backend::AttnSpec& attn = spec.blocks[layer].attn;
    if (!hparams.has("attn_logit_softcapping")) attn.softcap = kScoreCap;
    if (!hparams.has(kWindowKey) && is_windowed[layer]) attn.window_tokens = kWindow;
  }
  if (!hparams.has("final_logit_softcapping")) spec.head.logits.softcap = kLogitCap;
  return {};
}

Result<ArchSpec> read_gemma2(const formats::ModelFile& file) {
  const Hparams hparams(file, "gemma2");
  CANDOR_ASSIGN(ArchSpec spec, read_capped(hparams));
  CANDOR_TRY(complete_gemma2(hparams, spec));
  set_scale(hparams, 46, spec);
  return spec;
}

Result<ArchSpec> read_vault(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_capped(Hparams(file, "vaultgemma")));
  for (BlockSpec& block : spec.blocks) block.wiring = Wiring::kPreNorm;
  return spec;
}

Result<ArchSpec> read_gemma3_blocks(const Hparams& hparams) {
  CANDOR_TRY(hparams.refuse_unless_zero({"attn_logit_softcapping"}));
  CANDOR_ASSIGN(ArchSpec spec, read_shared(hparams, 6));
  CANDOR_ASSIGN(const double window_base, hparams.positive_or("rope.freq_base_swa", 10000.0));
  for (BlockSpec& block : spec.blocks) {
    block.qk_norm = QkNorm::kHeads;
    if (block.attn.window_tokens == 0) continue;
    backend::RopeSpec rope;
    rope.pairs = backend::RopePairs::kHalves;
    rope.n_dims = block.attn.rope.n_dims;
    rope.base = window_base;
    block.attn.rope = rope;
  }
  return spec;
}

Result<ArchSpec> read_gemma3(const formats::ModelFile& file) {
  const Hparams hparams(file, "gemma3");
  CANDOR_ASSIGN(ArchSpec spec, read_gemma3_blocks(hparams));
  set_scale(hparams, 62, spec);
  return spec;
}

// Gemma 3 as an encoder: every token sees all others, in windowed blocks those of a window to both sides, whose width
// files state for both together. Vera et al., "EmbeddingGemma", 2025.
Result<ArchSpec> read_embedding(const formats::ModelFile& file) {
  const Hparams hparams(file, "gemma-embedding");
  CANDOR_ASSIGN(ArchSpec spec, read_gemma3_blocks(hparams));
  spec.is_bidirectional = true;
  spec.head = {};
  spec.head.is_absent = true;
  for (BlockSpec& block : spec.blocks) {
    if (block.attn.window_tokens == 0) continue;
    block.attn.window_tokens = block.attn.window_tokens / 2 + 1;
    block.attn.is_two_sided = true;
  }
  return spec;
}

Result<void> read_embedding_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(hub_flag(config, "use_bidirectional_attention"));
  metadata.add(std::string(prefix) + ".attention.causal", false);
  return read_hub(config, prefix, metadata);
}
bool reads_both_ways(const HubConfig& config) {
  return config["use_bidirectional_attention"] == true;
}
constexpr HubForm kEmbeddingHub[] = {
    {.model_type = "gemma3_text",
     .architecture = "Gemma3TextModel",
     .activation = "gelu_new",
     .tensors = kHubGemma3,
     .read = read_embedding_hub,
     .reads = reads_both_ways,
     .suits = suits_none,
     .flags = kAttnBiasFlag},
};

}  // namespace
}  // namespace gemma

Family gemma_family() {
  using namespace gemma;
  return {"gemma", read_gemma1, kGemma1Tensors, {}, kGemma1Hub};
}

Family gemma2_family() {
  using namespace gemma;
  return {"gemma2", read_gemma2, kGemma2Tensors, {}, kGemma2Hub};
}

Family vaultgemma_family() {
  using namespace gemma;
  return {"vaultgemma", read_vault, kGemma1Tensors, {}, kVaultHub};
}

Family gemma3_family() {
  using namespace gemma;
  return {"gemma3", read_gemma3, kGemma3Tensors, {}, kGemma3Hub};
}

Family gemma_embedding_family() {
  using namespace gemma;
  return {"gemma-embedding", read_embedding, kGemma3Tensors, {}, kEmbeddingHub};
}

}  // namespace candor::model
