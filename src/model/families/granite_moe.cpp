// Granite 3's sparse models: Granite with experts in every block, whose gate and up stand in one tensor on the hub, and
// perhaps a shared one. Granite Team, IBM, 2024.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/families/granite.h"

namespace candor::model {
namespace granite_moe {
namespace {

using enum TensorRole;

constexpr std::array kShared = {
    TensorName{kSharedGate, "blk.*.ffn_gate_shexp.weight"},
    TensorName{kSharedUp, "blk.*.ffn_up_shexp.weight"},
    TensorName{kSharedDown, "blk.*.ffn_down_shexp.weight"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kMoeTensors, kShared, kAttnBiases);
constexpr std::string_view kIgnored[] = {"rope_freqs.weight"};  // part of the RopeSpec

constexpr std::array kHubMoe = {
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.block_sparse_moe.router.layer.weight", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate_exps.weight", "model.layers.*.block_sparse_moe.input_linear.weight",
              HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_up_exps.weight", "", HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_down_exps.weight", "model.layers.*.block_sparse_moe.output_linear.weight"},
};
constexpr std::array kHubShared = {
    HubTensor{"blk.*.ffn_gate_shexp.weight", "model.layers.*.shared_mlp.input_linear.weight", HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_up_shexp.weight", "", HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_down_shexp.weight", "model.layers.*.shared_mlp.output_linear.weight"},
};
constexpr auto kHubAlone = join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubMoe, kHubPairedAttnBiases);
constexpr auto kHubWithShared = join(kHubAlone, kHubShared);

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_multipliers(config, prefix, metadata));
  CANDOR_ASSIGN(const std::optional<double> shared, hub_number(config, "shared_intermediate_size"));
  if (!shared || *shared == 0.0) return {};
  if (*shared > 0.0 && *shared <= static_cast<double>(kMaxWidth)) {
    metadata.add(fmt::format("{}.expert_shared_feed_forward_length", prefix), static_cast<uint64_t>(*shared));
    return {};
  }
  return fail(ErrorKind::kInvalidInput, fmt::format("config.json: \"shared_intermediate_size\" is {}, expected 0 to {}",
                                                    *shared, kMaxWidth));
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_hub_multipliers(spec, config);
  config["shared_intermediate_size"] = spec.blocks.front().ffn.shared_dim;
  for (const char* key :
       {"num_experts", "moe_intermediate_size", "shared_expert_intermediate_size", "norm_topk_prob"}) {
    config.erase(key);
  }
}

constexpr HubForm kHub[] = {{.model_type = "granitemoe",
                             .architecture = "GraniteMoeForCausalLM",
                             .activation = "silu",
                             .tensors = kHubAlone,
                             .read = read_hub,
                             .write = write_hub,
                             .flags = kAttnBiasFlag},
                            {.model_type = "granitemoeshared",
                             .architecture = "GraniteMoeSharedForCausalLM",
                             .activation = "silu",
                             .tensors = kHubWithShared,
                             .read = read_hub,
                             .write = write_hub,
                             .flags = kAttnBiasFlag}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "granitemoe");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(read_multipliers(hparams, spec));
  CANDOR_ASSIGN(backend::MoeSpec moe, read_moe(hparams, true));
  CANDOR_ASSIGN(const int32_t shared_dim, hparams.int_or("expert_shared_feed_forward_length", 0, {0, kMaxWidth}));
  moe.renormalise = true;
  for (BlockSpec& block : spec.blocks) {
    block.ffn.moe = moe;
    block.ffn.shared_dim = shared_dim;
    block.ffn.is_shared_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace granite_moe

Family granitemoe_family() {
  using namespace granite_moe;
  return {"granitemoe", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
