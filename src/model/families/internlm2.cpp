// Llama with Q, K and V joined in one tensor: InternLM 2 and 2.5, by K/V head (Cai et al., 2024), and Baichuan, one
// after another (Yang et al., 2023). GGUF files have them parted.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"

namespace candor::model {
namespace internlm2 {
namespace {

using enum TensorRole;

constexpr std::array kJoined = {TensorName{kQkv, "blk.*.attn_qkv.weight", kOptional}};
constexpr auto kTensors = join(kJoined, kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors);

constexpr std::array kHubInternlm = {
    HubTensor{"token_embd.weight", "model.tok_embeddings.weight"},
    HubTensor{"output_norm.weight", "model.norm.weight"},
    HubTensor{"output.weight", "output.weight"},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.attention_norm.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.ffn_norm.weight"},
    HubTensor{"blk.*.attn_qkv.weight", "model.layers.*.attention.wqkv.weight", HubChange::kSplitPairedHeads},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.attention.wo.weight"},
    HubTensor{"blk.*.ffn_gate.weight", "model.layers.*.feed_forward.w1.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.feed_forward.w2.weight"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.feed_forward.w3.weight"},
};
constexpr std::array kHubPacked = {
    HubTensor{"blk.*.attn_qkv.weight", "model.layers.*.self_attn.W_pack.weight", HubChange::kPairJoined},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.o_proj.weight"},
};
constexpr auto kHubBaichuan = join(kHubStem, kHubPreNorm, kHubPacked, kHubGatedFfn);
constexpr std::string_view kHubIgnored[] = {"model.layers.*.self_attn.rotary_emb.inv_freq"};

Result<void> read_internlm(const HubConfig& config, std::string_view, formats::MetaList&) {
  CANDOR_ASSIGN(const std::optional<bool> has_biases, hub_flag(config, "bias"));
  if (!has_biases.value_or(false)) return {};
  return fail(ErrorKind::kUnsupported,
              "config.json: \"bias\" is true: internlm2 models that use it are not supported");
}

// The models' own class takes biases where nothing is said.
void write_internlm(const ArchSpec&, nlohmann::ordered_json& config) {
  config["bias"] = false;
}
// Baichuan 2 has a vocabulary of its own, and a head whose rows it makes 1 long at every step.
constexpr int64_t kNormedVocab = 125696;
constexpr size_t kAlibiBlocks = 40;  // of the 13B models, as in llama.cpp: files say nothing
constexpr float kMaxAlibiBias = 8.0f;

Result<void> read_baichuan(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  if (config["vocab_size"] == kNormedVocab) {
    return fail(ErrorKind::kUnsupported,
                "config.json: \"vocab_size\" is 125696, that of Baichuan 2, whose head is normalised while it runs: "
                "not supported (supported: Baichuan 1, and GGUF files, whose head was normalised before)");
  }
  const std::string key = std::string(prefix) + ".context_length";
  const nlohmann::json* length = config.find("model_max_length");
  if (length == nullptr || config.is_stated("max_position_embeddings")) return {};
  if (length->is_number_unsigned()) {
    metadata.add(key, length->get<uint64_t>());
    return {};
  }
  return fail(ErrorKind::kInvalidInput, "config.json: \"model_max_length\" is " + formats::in_quotes(length->dump()) +
                                            ", expected a whole number");
}

constexpr HubForm kInternlmForms[] = {{"internlm2", "InternLM2ForCausalLM", "silu", kHubInternlm, {}, read_internlm,
                                       write_internlm}};
constexpr HubForm kBaichuanForms[] = {
    {"baichuan", "BaichuanForCausalLM", "silu", kHubBaichuan, kHubIgnored, read_baichuan}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  return read_decoder(Hparams(file, "internlm2"), backend::NormKind::kRms);
}

Result<ArchSpec> read_packed(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "baichuan"), backend::NormKind::kRms));
  if (spec.blocks.size() != kAlibiBlocks) return spec;
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.attn.max_alibi_bias = kMaxAlibiBias;
  }
  return spec;
}

}  // namespace
}  // namespace internlm2

Family internlm2_family() {
  using namespace internlm2;
  return {"internlm2", read, kTensors, {}, kInternlmForms};
}

Family baichuan_family() {
  using namespace internlm2;
  return {"baichuan", read_packed, kTensors, {}, kBaichuanForms};
}

}  // namespace candor::model
