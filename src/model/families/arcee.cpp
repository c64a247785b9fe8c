// Arcee (AFM): Llama with a feed-forward of squared ReLU and no gate. Arcee AI, 2025.

#include <nlohmann/json.hpp>

#include "model/families/common.h"

namespace candor::model {
namespace arcee {
namespace {

using enum TensorRole;

constexpr std::array kFfn = {
    TensorName{kUp, "blk.*.ffn_up.weight"},
    TensorName{kDown, "blk.*.ffn_down.weight"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kFfn, kAttnBiases, kUngatedBiases);

constexpr std::array kHubFfn = {
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.mlp.up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.mlp.down_proj.weight"},
};
constexpr auto kHubTensors =
    join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubFfn, kHubPairedAttnBiases, kHubUngatedBiases);
void write_hub(const ArchSpec&, nlohmann::ordered_json& config) {
  config["hidden_act"] = "relu2";
}
constexpr HubForm kHub[] = {{.model_type = "arcee",
                             .architecture = "ArceeForCausalLM",
                             .activation = "relu2",
                             .tensors = kHubTensors,
                             .write = write_hub,
                             .flags = kUngatedBiasFlags}};

constexpr std::string_view kIgnored[] = {"rope_freqs.weight"};  // part of the RopeSpec

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "arcee"), backend::NormKind::kRms));
  for (BlockSpec& block : spec.blocks) {
    block.ffn.gate = backend::GateKind::kReluSquared;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace arcee

Family arcee_family() {
  using namespace arcee;
  return {"arcee", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
