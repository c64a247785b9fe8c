// Granite 4: most blocks have a state space (Mamba-2) instead of attention, which rotates nothing; Granite's
// multipliers; experts beside one that every row goes to, or that one alone. IBM, 2025.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "backend/state_specs.h"
#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"
#include "model/families/granite.h"
#include "model/families/hybrid.h"

namespace candor::model {
namespace granite_hybrid {
namespace {

using enum TensorRole;
using nlohmann::json;

constexpr std::array kShared = {
    TensorName{kSharedGate, "blk.*.ffn_gate_shexp.weight"},
    TensorName{kSharedUp, "blk.*.ffn_up_shexp.weight"},
    TensorName{kSharedDown, "blk.*.ffn_down_shexp.weight"},
};
constexpr auto kTensors =
    join(kStemTensors, kPreNormTensors, kAttnTensors, kSsmTensors, kGatedFfnTensors, kMoeTensors, kShared);
constexpr std::string_view kIgnored[] = {"rope_freqs.weight"};  // nothing is rotated

constexpr std::array kHubDenseOwn = {
    HubTensor{"blk.*.ffn_gate.weight", "model.layers.*.shared_mlp.input_linear.weight", HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_up.weight", "", HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.shared_mlp.output_linear.weight"},
};
constexpr std::array kHubSparseOwn = {
    HubTensor{"blk.*.ffn_gate_shexp.weight", "model.layers.*.shared_mlp.input_linear.weight", HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_up_shexp.weight", "", HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_down_shexp.weight", "model.layers.*.shared_mlp.output_linear.weight"},
    HubTensor{"blk.*.ffn_gate_exps.weight", "model.layers.*.block_sparse_moe.input_linear.weight",
              HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_up_exps.weight", "", HubChange::kSplitRows},
    HubTensor{"blk.*.ffn_down_exps.weight", "model.layers.*.block_sparse_moe.output_linear.weight"},
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.block_sparse_moe.router.layer.weight", HubChange::kWiden},
};
constexpr auto kHubDense = join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubMamba, kHubDenseOwn);
constexpr auto kHubSparse = join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubMamba, kHubSparseOwn);

constexpr std::string_view kAttends[] = {"attention", "full_attention"};
constexpr std::string_view kKeepsState[] = {"mamba", "linear_attention"};

bool has_experts(const HubConfig& config) {
  const json* count = config.find("num_local_experts");
  return count != nullptr && count->is_number() && *count != 0;
}
bool is_dense(const HubConfig& config) {
  return !has_experts(config);
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const json positions = config.contains("position_embedding_type") ? config["position_embedding_type"] : json();
  if (!positions.is_null() && positions != "nope" && positions != "rope") {
    return fail(ErrorKind::kUnsupported, fmt::format("config.json: \"position_embedding_type\" is {}, which is not "
                                                     "supported (supported: nope, rope)",
                                                     formats::in_quotes(positions.dump())));
  }
  metadata.add(fmt::format("{}.rope.scaling.finetuned", prefix), positions == "rope");
  CANDOR_TRY(read_hub_multipliers(config, prefix, metadata));
  CANDOR_TRY(read_hub_ssm(config, prefix, kMambaNames, metadata));
  CANDOR_ASSIGN(const uint64_t shared, require_hub_size(config, "shared_intermediate_size"));
  metadata.add(fmt::format("{}.expert_shared_feed_forward_length", prefix), shared);
  CANDOR_ASSIGN(const std::vector<bool> attending, hub_attending(config, kAttends, kKeepsState));
  return add_kv_heads(config, prefix, attending, metadata);
}

// The one feed-forward is what the shared expert else is.
Result<void> read_hub_dense(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub(config, prefix, metadata));
  CANDOR_ASSIGN(const uint64_t width, require_hub_size(config, "shared_intermediate_size"));
  metadata.add(fmt::format("{}.feed_forward_length", prefix), width);
  return {};
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  json types = json::array();
  for (const BlockSpec& block : spec.blocks) types.push_back(block.has_attention ? "attention" : "mamba");
  config["layer_types"] = types;
  const BlockSpec& first = spec.blocks.front();
  config["position_embedding_type"] = first.attn.rope.n_dims > 0 ? "rope" : "nope";
  write_hub_multipliers(spec, config);
  write_hub_ssm(spec, kMambaNames, config);
  config["mamba_expand"] = first.has_ssm() ? first.ssm.width() / spec.dim : 2;
  config["shared_intermediate_size"] = first.ffn.is_moe() ? first.ffn.shared_dim : first.ffn.ffn_dim;
  config["num_local_experts"] = first.ffn.moe.n_experts;
  config["num_experts_per_tok"] = first.ffn.moe.n_used;
  for (const char* key :
       {"num_experts", "moe_intermediate_size", "norm_topk_prob", "shared_expert_intermediate_size"}) {
    config.erase(key);
  }
}

constexpr HubForm kHub[] = {{.model_type = "granitemoehybrid",
                             .architecture = "GraniteMoeHybridForCausalLM",
                             .activation = "silu",
                             .tensors = kHubDense,
                             .read = read_hub_dense,
                             .write = write_hub,
                             .reads = is_dense,
                             .has_own_kinds = true},
                            {.model_type = "granitemoehybrid",
                             .architecture = "GraniteMoeHybridForCausalLM",
                             .activation = "silu",
                             .tensors = kHubSparse,
                             .read = read_hub,
                             .write = write_hub,
                             .reads = has_experts,
                             .has_own_kinds = true}};

// One that every row goes to counts whole.
Result<void> add_experts(const Hparams& hparams, ArchSpec& spec) {
  CANDOR_ASSIGN(const backend::MoeSpec moe, read_moe(hparams, true));
  CANDOR_ASSIGN(const int32_t shared_dim, hparams.int_or("expert_shared_feed_forward_length", 0, {0, kMaxWidth}));
  for (BlockSpec& block : spec.blocks) {
    block.ffn.moe = moe;
    block.ffn.shared_dim = shared_dim;
    block.ffn.is_shared_gated = false;
  }
  return {};
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "granitehybrid");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms, read_attention_of_some));
  CANDOR_TRY(read_multipliers(hparams, spec));
  CANDOR_ASSIGN(const backend::SsmSpec ssm, read_ssm(hparams));
  CANDOR_ASSIGN(const std::vector<bool> attending, read_attending(hparams, spec.blocks.size()));
  CANDOR_ASSIGN(const auto rotates, formats::meta_bool(file, hparams.key("rope.scaling.finetuned")));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    if (!rotates.value_or(true)) block.attn.rope = {};
    block.has_attention = attending[layer];
    if (!attending[layer]) block.ssm = ssm;
  }
  CANDOR_ASSIGN(const int32_t n_experts, hparams.int_or("expert_count", 0, {0, kMaxWidth}));
  if (n_experts > 0) CANDOR_TRY(add_experts(hparams, spec));
  return spec;
}

}  // namespace
}  // namespace granite_hybrid

Family granitehybrid_family() {
  using namespace granite_hybrid;
  return {"granitehybrid", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
