// Llama 1 to 3, and the many models that kept their shape (Mistral 7B, TinyLlama, Yi, SmolLM, InternLM 3, Helium):
// pre-norm blocks of RMS norms, grouped-query attention with interleaved rotary pairs, and a SiLU-gated feed-forward.
// Touvron et al., 2023. With experts it is Mixtral (Jiang et al., 2024); with a window, Mistral (Jiang et al., 2023),
// and with one in some blocks Ministral (Mistral AI, 2024) and CWM (FAIR, 2025).

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace llama {
namespace {

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors, kMoeTensors, kAllBiases);

constexpr auto kHubLlama = join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubGatedFfn);
constexpr auto kHubBiased = join(kHubLlama, kHubPairedAttnBiases, kHubMlpBiases);
// Its rotary pairs are interleaved in checkpoints, too.
constexpr auto kHubHelium = join(kHubStem, kHubPreNorm, kHubAttn, kHubGatedFfn, kHubQkvBiases, kHubMlpBiases);
constexpr HubFlag kHeliumFlags[] = {{"attention_bias", kHubQkvBiasNames}, {"mlp_bias", kHubMlpBiasNames}};
constexpr std::array kHubMixtralExperts = {
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.block_sparse_moe.gate.weight", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate.#.weight", "model.layers.*.block_sparse_moe.experts.#.w1.weight"},
    HubTensor{"blk.*.ffn_down.#.weight", "model.layers.*.block_sparse_moe.experts.#.w2.weight"},
    HubTensor{"blk.*.ffn_up.#.weight", "model.layers.*.block_sparse_moe.experts.#.w3.weight"},
};
constexpr auto kHubMixtral = join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubMixtralExperts);
constexpr std::string_view kHubIgnored[] = {"model.layers.*.self_attn.rotary_emb.inv_freq"};
// Every block has the window; with a list of them the `transformers` library takes another class (Ministral).
void write_mistral(const ArchSpec&, nlohmann::ordered_json& config) {
  config.erase("layer_types");
}
bool is_mixed(const ArchSpec& spec) {
  const auto has_window = [](const BlockSpec& block) { return block.attn.window_tokens > 0; };
  return std::ranges::any_of(spec.blocks, has_window) && !std::ranges::all_of(spec.blocks, has_window);
}
constexpr std::string_view kImages[] = {"vision_tower.",       "multi_modal_projector.",
                                        "model.vision_tower.", "model.multi_modal_projector.",
                                        "image_newline",       "model.image_newline"};
constexpr std::string_view kVision[] = {"model.vision_model.", "model.connector."};
constexpr HubOuter kMistralOuter[] = {
    {"mistral3", kImages, ""}, {"llava", kImages, ""}, {"llava_next", kImages, ""}, {"idefics2", kVision, ""}};
constexpr HubOuter kLlamaOuter[] = {
    {"idefics3", kVision, ""}, {"smolvlm", kVision, ""}, {"llava", kImages, ""}, {"llava_next", kImages, ""}};
constexpr HubForm kHub[] = {
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .activation = "silu",
     .tensors = kHubBiased,
     .ignored = kHubIgnored,
     .outer = kLlamaOuter,
     .flags = kBiasFlags},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .activation = "silu",
     .tensors = kHubLlama,
     .ignored = kHubIgnored,
     .write = write_mistral,
     .outer = kMistralOuter},
    {.model_type = "ministral",
     .architecture = "MinistralForCausalLM",
     .activation = "silu",
     .tensors = kHubLlama,
     .ignored = kHubIgnored,
     .suits = is_mixed},
    {.model_type = "internlm3",
     .architecture = "InternLM3ForCausalLM",
     .activation = "silu",
     .tensors = kHubBiased,
     .ignored = kHubIgnored,
     .suits = suits_none,
     .flags = kBiasFlags},
    {"mixtral", "MixtralForCausalLM", "silu", kHubMixtral},
    {.model_type = "cwm",
     .architecture = "CwmForCausalLM",
     .activation = "silu",
     .tensors = kHubLlama,
     .suits = suits_none},
    {.model_type = "helium",
     .architecture = "HeliumForCausalLM",
     .activation = "silu",
     .tensors = kHubHelium,
     .suits = suits_none,
     .flags = kHeliumFlags},
};

// Rows of a text see all of it, and their mean is its vector (Babakhin et al., "Llama-Embed-Nemotron-8B", 2025).
Result<void> read_both_ways(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  metadata.add(fmt::format("{}.attention.causal", prefix), false);
  constexpr std::tuple<std::string_view, uint64_t, const char*> kPoolings[] = {
      {"avg", 1, "mean"}, {"cls", 2, "cls"}, {"last", 3, "last"}};
  const nlohmann::json& pooling = config["pooling"];
  for (const auto& [name, number, of_labels] : kPoolings) {
    if (pooling != name) continue;
    metadata.add(fmt::format("{}.pooling_type", prefix), number);
    metadata.add_string("candor.text.label_pooling", of_labels);
    const nlohmann::json& temperature = config["temperature"];
    return temperature == 1.0 ? Result<void>{} : config.unsupported("temperature", temperature, "1");
  }
  return config.unsupported("pooling", pooling, "avg, cls or last");
}

constexpr HubForm kEmbedHub[] = {{.model_type = "llama_bidirec",
                                  .architecture = "LlamaBidirectionalModel",
                                  .activation = "silu",
                                  .tensors = kHubBiased,
                                  .ignored = kHubIgnored,
                                  .read = read_both_ways,
                                  .suits = suits_none,
                                  .flags = kBiasFlags}};

// rope_freqs is part of the RopeSpec; the other was written by early converters and can be computed.
constexpr std::string_view kIgnored[] = {"rope_freqs.weight", "blk.*.attn_rot_embd"};

Result<ArchSpec> read_named(const formats::ModelFile& file, std::string_view name) {
  const Hparams hparams(file, name);
  CANDOR_TRY(hparams.refuse_unless_zero({"attention.clamp_kqv", "attention.max_alibi_bias", "attn_logit_softcapping",
                                         "final_logit_softcapping", "use_parallel_residual"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(drop_windows(hparams, spec));
  CANDOR_ASSIGN(const int32_t n_experts, hparams.int_or("expert_count", 0, {0, INT32_MAX}));
  if (n_experts == 0) return spec;
  CANDOR_ASSIGN(const backend::MoeSpec moe, read_moe(hparams));
  for (BlockSpec& block : spec.blocks) block.ffn.moe = moe;
  return spec;
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  return read_named(file, "llama");
}

// llama.cpp's files do not say that they are read in both directions.
Result<ArchSpec> read_embed(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_named(file, "llama-embed"));
  spec.is_bidirectional = true;
  spec.head = {};
  spec.head.is_absent = true;
  return spec;
}

}  // namespace
}  // namespace llama

Family llama_family() {
  using namespace llama;
  return {"llama", read, kTensors, kIgnored, kHub};
}

Family llama_embed_family() {
  using namespace llama;
  return {"llama-embed", read_embed, kTensors, kIgnored, kEmbedHub};
}

}  // namespace candor::model
