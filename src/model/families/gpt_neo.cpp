// GPT-Neo: GPT-2 with Q, K and V apart, scores without a scale, and a window in every second block. Black et al., 2021.

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace gpt_neo {
namespace {

using enum TensorRole;
using nlohmann::json;

constexpr std::array kOwn = {TensorName{kPositions, "position_embd.weight"}};
constexpr auto kTensors = join(kStemTensors, kOwn, kPreNormTensors, kQkvTensors, kLayerNormTensors);

constexpr std::array kHubTensors = {
    HubTensor{"token_embd.weight", "transformer.wte.weight"},
    HubTensor{"position_embd.weight", "transformer.wpe.weight"},
    HubTensor{"output_norm.weight", "transformer.ln_f.weight"},
    HubTensor{"output_norm.bias", "transformer.ln_f.bias"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"blk.*.attn_norm.weight", "transformer.h.*.ln_1.weight"},
    HubTensor{"blk.*.attn_norm.bias", "transformer.h.*.ln_1.bias"},
    HubTensor{"blk.*.attn_q.weight", "transformer.h.*.attn.attention.q_proj.weight"},
    HubTensor{"blk.*.attn_k.weight", "transformer.h.*.attn.attention.k_proj.weight"},
    HubTensor{"blk.*.attn_v.weight", "transformer.h.*.attn.attention.v_proj.weight"},
    HubTensor{"blk.*.attn_output.weight", "transformer.h.*.attn.attention.out_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "transformer.h.*.attn.attention.out_proj.bias"},
    HubTensor{"blk.*.ffn_norm.weight", "transformer.h.*.ln_2.weight"},
    HubTensor{"blk.*.ffn_norm.bias", "transformer.h.*.ln_2.bias"},
    HubTensor{"blk.*.ffn_up.weight", "transformer.h.*.mlp.c_fc.weight"},
    HubTensor{"blk.*.ffn_up.bias", "transformer.h.*.mlp.c_fc.bias"},
    HubTensor{"blk.*.ffn_down.weight", "transformer.h.*.mlp.c_proj.weight"},
    HubTensor{"blk.*.ffn_down.bias", "transformer.h.*.mlp.c_proj.bias"},
};
constexpr std::string_view kHubIgnored[] = {"transformer.h.*.attn.attention.bias",
                                            "transformer.h.*.attn.attention.masked_bias"};

constexpr const char* kTypes = "attention_types";

// [[["global", "local"], 12]]: each list that often. Nothing where it is no such list.
std::optional<std::vector<bool>> windows_of(const json& types) {
  std::vector<bool> flags;
  if (!types.is_array()) return std::nullopt;
  for (const json& part : types) {
    const bool is_part = part.is_array() && part.size() == 2 && part[0].is_array() && part[1].is_number_unsigned() &&
                         part[1].get<uint64_t>() <= static_cast<uint64_t>(kMaxLayers);
    if (!is_part || part[0].size() > static_cast<size_t>(kMaxLayers)) return std::nullopt;
    for (uint64_t i = 0; i < part[1].get<uint64_t>() && flags.size() <= static_cast<size_t>(kMaxLayers); ++i) {
      for (const json& kind : part[0]) {
        if (kind != "global" && kind != "local") return std::nullopt;
        flags.push_back(kind == "local");
      }
    }
  }
  return flags;
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const uint64_t n_layers, hub_count(config, "num_layers"));
  CANDOR_ASSIGN(const uint64_t window, hub_count(config, "window_size"));
  // The kinds of all blocks stand above what they are made of.
  const json* layers = config.stated("attention_layers");
  const json& stated = config[kTypes];
  const json types = layers == nullptr ? stated : json::array({json::array({*layers, 1U})});
  std::optional<std::vector<bool>> flags = windows_of(types);
  if (!flags || flags->size() != n_layers) {
    const char* key = layers == nullptr ? kTypes : "attention_layers";
    return config.bad(key, layers == nullptr ? stated : *layers, "\"global\" or \"local\" for each of num_layers");
  }
  if (window == 0) return config.bad("window_size", config["window_size"], "a window of 1 or more");
  const std::string stem(prefix);
  metadata.add(stem + ".attention.scale", 1.0);
  metadata.add(stem + ".attention.sliding_window", window);
  metadata.add(stem + ".attention.sliding_window_pattern", formats::MetaArray(std::move(*flags)));
  return {};
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  auto kinds = nlohmann::ordered_json::array();
  for (const BlockSpec& block : spec.blocks) {
    kinds.push_back(block.attn.window_tokens > 0 ? "local" : "global");
    if (block.attn.window_tokens > 0) config["window_size"] = block.attn.window_tokens;
  }
  auto part = nlohmann::ordered_json::array({std::move(kinds), 1});
  config[kTypes] = nlohmann::ordered_json::array({std::move(part)});
  for (const auto& [from, to] : {std::pair{"num_hidden_layers", "num_layers"}, {"num_attention_heads", "num_heads"}}) {
    config[to] = config[from];
    config.erase(from);
  }
  for (const char* key : {"layer_types", "sliding_window", "num_key_value_heads", "head_dim"}) config.erase(key);
  config["activation_function"] = "gelu_new";
  write_norm_epsilon(spec, "layer_norm_epsilon", config);
}
constexpr HubForm kHub[] = {{.model_type = "gpt_neo",
                             .architecture = "GPTNeoForCausalLM",
                             .activation = "gelu_new",
                             .tensors = kHubTensors,
                             .ignored = kHubIgnored,
                             .read = read_hub,
                             .write = write_hub}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "gptneo");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kLayer));
  CANDOR_TRY(drop_windows(hparams, spec));
  spec.embed.has_positions = true;
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.ffn.gate = backend::GateKind::kGelu;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace gpt_neo

Family gptneo_family() {
  using namespace gpt_neo;
  return {"gptneo", read, kTensors, {}, kHub};
}

}  // namespace candor::model
