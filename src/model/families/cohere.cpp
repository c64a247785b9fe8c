// Command-R and Command R7B (Cohere 1 and 2): attention and feed-forward side by side behind one LayerNorm without a
// bias, interleaved rotary pairs, logits scaled, the head tied. Cohere 2 has a window in three blocks of four, and
// rotates only there. Cohere, 2024.

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace cohere {
namespace {

using enum TensorRole;

constexpr int32_t kWindowPattern = 4;

constexpr std::array kOwn = {TensorName{kAttnNorm, "blk.*.attn_norm.weight"}};
constexpr auto kTensors = join(kStemTensors, kAttnTensors, kOwn, kGatedFfnTensors, kAttnBiases);
constexpr auto kNormedTensors = join(kTensors, kQkNormTensors);

constexpr std::array kHubOwn = {HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"}};
constexpr auto kHubTensors = join(kHubStem, kHubAttn, kHubOwn, kHubGatedFfn, kHubAttnBiases);
constexpr auto kHubNormedTensors = join(kHubTensors, kHubQkNorm);

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<double> scale, hub_number(config, "logit_scale"));
  if (scale) metadata.add(std::string(prefix) + ".logit_scale", *scale);
  return {};
}
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_norm_epsilon(spec, "layer_norm_eps", config);
  config["logit_scale"] = shortest_decimal(spec.head.logits.scale);
}
void write_hub1(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_hub(spec, config);
  config["use_qk_norm"] = spec.blocks.front().qk_norm != QkNorm::kNone;
}
constexpr std::string_view kNormNames[] = {"model.layers.*.self_attn.q_norm.weight",
                                           "model.layers.*.self_attn.k_norm.weight"};
constexpr HubFlag kFlags1[] = {kAttnBiasFlag[0], {"use_qk_norm", kNormNames}};
constexpr HubForm kHub1[] = {{.model_type = "cohere",
                              .architecture = "CohereForCausalLM",
                              .activation = "silu",
                              .tensors = kHubNormedTensors,
                              .read = read_hub,
                              .write = write_hub1,
                              .flags = kFlags1}};
constexpr HubForm kHub2[] = {{.model_type = "cohere2",
                              .architecture = "Cohere2ForCausalLM",
                              .activation = "silu",
                              .tensors = kHubTensors,
                              .read = read_hub,
                              .write = write_hub,
                              .flags = kAttnBiasFlag}};

Result<ArchSpec> read_shared(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kLayer));
  CANDOR_ASSIGN(const double scale, hparams.positive_or("logit_scale", 1.0));
  spec.head.logits.scale = static_cast<float>(scale);
  for (BlockSpec& block : spec.blocks) block.wiring = Wiring::kParallel;
  return spec;
}

// Command R+ norms q and k, by heads that have gains of their own.
Result<ArchSpec> read_first(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_shared(Hparams(file, "command-r")));
  if (file.find("blk.0.attn_q_norm.weight") == nullptr) return spec;
  for (BlockSpec& block : spec.blocks) block.qk_norm = QkNorm::kOwnHeads;
  return spec;
}

Result<ArchSpec> read_second(const formats::ModelFile& file) {
  const Hparams hparams(file, "cohere2");
  CANDOR_ASSIGN(ArchSpec spec, read_shared(hparams));
  const int32_t n_layers = static_cast<int32_t>(spec.blocks.size());
  CANDOR_ASSIGN(const std::vector<bool> is_windowed, read_window_pattern(hparams, n_layers, kWindowPattern));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    if (is_windowed[layer]) continue;
    spec.blocks[layer].attn.window_tokens = 0;
    spec.blocks[layer].attn.rope = {};
  }
  return spec;
}

}  // namespace
}  // namespace cohere

Family command_r_family() {
  using namespace cohere;
  return {"command-r", read_first, kNormedTensors, {}, kHub1};
}

Family cohere2_family() {
  using namespace cohere;
  return {"cohere2", read_second, kTensors, {}, kHub2};
}

}  // namespace candor::model
