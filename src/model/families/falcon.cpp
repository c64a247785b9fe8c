// Falcon: attention and feed-forward side by side behind one norm (7B, 11B) or two (40B, 180B), one or few K/V heads,
// rotary pairs in halves, no biases but the norms'. Almazrouei et al., 2023.

#include <map>
#include <optional>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace falcon {
namespace {

using enum TensorRole;

// Where there are two norms, the second is attention's and the first the feed-forward's.
constexpr std::array kOwn = {
    TensorName{kFinalNormBias, "output_norm.bias"},
    TensorName{kAttnNorm, "blk.*.attn_norm_2.weight", kOptional},
    TensorName{kAttnNormBias, "blk.*.attn_norm_2.bias", kOptional},
    TensorName{kAttnNorm, "blk.*.attn_norm.weight"},
    TensorName{kAttnNormBias, "blk.*.attn_norm.bias"},
    TensorName{kFfnNorm, "blk.*.attn_norm.weight"},
    TensorName{kFfnNormBias, "blk.*.attn_norm.bias"},
    TensorName{kQkv, "blk.*.attn_qkv.weight"},
    TensorName{kAttnOut, "blk.*.attn_output.weight"},
    TensorName{kUp, "blk.*.ffn_up.weight"},
    TensorName{kDown, "blk.*.ffn_down.weight"},
};
constexpr auto kTensors = join(kStemTensors, kOwn);

constexpr std::array kHubShared = {
    HubTensor{"token_embd.weight", "transformer.word_embeddings.weight"},
    HubTensor{"output_norm.weight", "transformer.ln_f.weight"},
    HubTensor{"output_norm.bias", "transformer.ln_f.bias"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"blk.*.attn_qkv.weight", "transformer.h.*.self_attention.query_key_value.weight", HubChange::kSplitHeads},
    HubTensor{"blk.*.attn_output.weight", "transformer.h.*.self_attention.dense.weight"},
    HubTensor{"blk.*.ffn_up.weight", "transformer.h.*.mlp.dense_h_to_4h.weight"},
    HubTensor{"blk.*.ffn_down.weight", "transformer.h.*.mlp.dense_4h_to_h.weight"},
};
constexpr std::array kHubOneNorm = {
    HubTensor{"blk.*.attn_norm.weight", "transformer.h.*.input_layernorm.weight"},
    HubTensor{"blk.*.attn_norm.bias", "transformer.h.*.input_layernorm.bias"},
};
constexpr std::array kHubTwoNorms = {
    HubTensor{"blk.*.attn_norm.weight", "transformer.h.*.ln_mlp.weight"},
    HubTensor{"blk.*.attn_norm.bias", "transformer.h.*.ln_mlp.bias"},
    HubTensor{"blk.*.attn_norm_2.weight", "transformer.h.*.ln_attn.weight"},
    HubTensor{"blk.*.attn_norm_2.bias", "transformer.h.*.ln_attn.bias"},
};
constexpr auto kHubOne = join(kHubShared, kHubOneNorm);
constexpr auto kHubTwo = join(kHubShared, kHubTwoNorms, kHubOneNorm);

constexpr uint64_t kUsualPositions = 2048;  // of the models whose config.json does not say it

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<bool> has_groups, hub_flag(config, "new_decoder_architecture"));
  CANDOR_ASSIGN(const std::optional<bool> shares_kv, hub_flag(config, "multi_query"));
  CANDOR_ASSIGN(const std::optional<bool> is_parallel, hub_flag(config, "parallel_attn"));
  CANDOR_ASSIGN(const std::optional<bool> has_alibi, hub_flag(config, "alibi"));
  // Tensors show which norms there are; config.json must not deny them.
  const nlohmann::json& n_norms = config["num_ln_in_parallel_attn"];
  if (!n_norms.is_null() && n_norms != 1 && n_norms != 2) {
    return config.unsupported("num_ln_in_parallel_attn", n_norms, "1, 2");
  }
  if (has_alibi.value_or(false)) {
    return fail(ErrorKind::kUnsupported, "config.json: \"alibi\" is true: falcon models that use it are not supported");
  }
  if (!has_groups.value_or(false) && !is_parallel.value_or(true)) {
    return fail(ErrorKind::kUnsupported,
                "config.json: \"parallel_attn\" is false: falcon models that use it are not supported");
  }
  CANDOR_ASSIGN(const std::optional<double> groups,
                hub_number(config, config.contains("num_kv_heads") ? "num_kv_heads" : "n_head_kv"));
  const std::string stem = std::string(prefix) + ".";
  if (has_groups.value_or(false)) {
    if (groups && *groups >= 1.0 && *groups <= static_cast<double>(kMaxWidth)) {
      metadata.add(stem + "attention.head_count_kv", static_cast<uint64_t>(*groups));
    }
  } else if (shares_kv.value_or(true)) {
    metadata.add(stem + "attention.head_count_kv", uint64_t{1});
  }
  if (metadata.find(stem + "context_length") == nullptr) metadata.add(stem + "context_length", kUsualPositions);
  return {};
}
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const backend::AttnSpec& attn = spec.blocks.front().attn;
  config["activation"] = "gelu";
  config["alibi"] = false;
  config["bias"] = false;
  config["parallel_attn"] = true;
  config["multi_query"] = attn.n_kv_heads == 1;
  config["new_decoder_architecture"] = attn.n_kv_heads != 1 && attn.n_kv_heads != attn.n_heads;
  config["num_kv_heads"] = attn.n_kv_heads;
  config["num_ln_in_parallel_attn"] = spec.blocks.front().wiring == Wiring::kParallelTwoNorms ? 2 : 1;
  config["ffn_hidden_size"] = spec.blocks.front().ffn.ffn_dim;
  for (const char* key : {"num_key_value_heads", "head_dim"}) config.erase(key);  // computed there
}
// A file with one norm is written by the first, one with two by the second; that one reads both.
constexpr HubForm kHub[] = {
    {"falcon", "FalconForCausalLM", "gelu", kHubOne, {}, read_hub, write_hub},
    {"falcon", "FalconForCausalLM", "gelu", kHubTwo, {}, read_hub, write_hub},
};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "falcon"), backend::NormKind::kLayer));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    const bool has_two_norms = file.find(fmt::format("blk.{}.attn_norm_2.weight", layer)) != nullptr;
    block.wiring = has_two_norms ? Wiring::kParallelTwoNorms : Wiring::kParallel;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.ffn.gate = backend::GateKind::kGeluErf;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace falcon

Family falcon_family() {
  using namespace falcon;
  return {"falcon", read, kTensors, {}, kHub};
}

}  // namespace candor::model
