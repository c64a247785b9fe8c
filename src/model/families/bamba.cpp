// Bamba: most blocks have a state space (Mamba-2), some attention, which rotates half of each head. IBM, Princeton, CMU
// and UIUC, 2024.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "backend/state_specs.h"
#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"
#include "model/families/hybrid.h"

namespace candor::model {
namespace bamba {
namespace {

using nlohmann::json;

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kSsmTensors, kGatedFfnTensors);

constexpr std::array kHubOwn = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output_norm.weight", "model.final_layernorm.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.pre_ff_layernorm.weight"},
    HubTensor{"blk.*.ffn_gate.weight", "model.layers.*.feed_forward.gate_proj.weight"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.feed_forward.up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.feed_forward.down_proj.weight"},
};
constexpr auto kHubTensors = join(kHubOwn, kHubAttn, kHubMamba);

Result<std::vector<bool>> attending_of(const HubConfig& config) {
  CANDOR_ASSIGN(const uint64_t n_blocks, require_hub_size(config, "num_hidden_layers"));
  const json listed = config.contains("attn_layer_indices") ? config["attn_layer_indices"] : json::array();
  std::vector<bool> attending(n_blocks, false);
  const auto is_block = [&](const json& i) { return i.is_number_unsigned() && i.get<uint64_t>() < n_blocks; };
  if (!listed.is_array() || !std::ranges::all_of(listed, is_block)) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("config.json: \"attn_layer_indices\" is {}, expected blocks below {}",
                            formats::in_quotes(listed.dump()), n_blocks));
  }
  for (const json& i : listed) attending[i.get<uint64_t>()] = true;
  return attending;
}

// Half of a head, unless config.json says another share.
Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const std::string rotated = fmt::format("{}.rope.dimension_count", prefix);
  if (metadata.find(rotated) == nullptr) {
    CANDOR_ASSIGN(const uint64_t dim, require_hub_size(config, "hidden_size"));
    CANDOR_ASSIGN(const uint64_t n_heads, require_hub_size(config, "num_attention_heads"));
    metadata.add(rotated, dim / n_heads / 2);
  }
  CANDOR_TRY(read_hub_ssm(config, prefix, kMambaNames, metadata));
  CANDOR_ASSIGN(const std::vector<bool> attending, attending_of(config));
  return add_kv_heads(config, prefix, attending, metadata);
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  auto indices = nlohmann::ordered_json::array();
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (spec.blocks[i].has_attention) indices.push_back(i);
  }
  config["attn_layer_indices"] = std::move(indices);
  write_hub_ssm(spec, kMambaNames, config);
  const auto block = std::ranges::find_if(spec.blocks, &BlockSpec::has_ssm);
  config["mamba_expand"] = block == spec.blocks.end() ? 2 : block->ssm.width() / spec.dim;
}

constexpr HubForm kHub[] = {{.model_type = "bamba",
                             .architecture = "BambaForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                             .has_own_kinds = true}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "bamba");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms, read_attention_of_some));
  CANDOR_ASSIGN(const backend::SsmSpec ssm, read_ssm(hparams));
  CANDOR_ASSIGN(const std::vector<bool> attending, read_attending(hparams, spec.blocks.size()));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.has_attention = attending[layer];
    if (!attending[layer]) block.ssm = ssm;
  }
  return spec;
}

}  // namespace
}  // namespace bamba

Family bamba_family() {
  using namespace bamba;
  return {"bamba", read, kTensors, {}, kHub};
}

}  // namespace candor::model
