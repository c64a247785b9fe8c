// OLMo 1: Llama with LayerNorms that have neither gain nor bias (Groeneveld et al., 2024). OLMoE: sparse experts whose
// weights are the softmax over all, and norms over the whole of Q and of K (Muennighoff et al., 2024). FlexOlmo: the
// same with norms behind each sub-layer (Shi et al., 2025).

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace olmo {
namespace {

using enum TensorRole;

constexpr std::array kStem = {
    TensorName{kEmbedding, "token_embd.weight"},
    TensorName{kHead, "output.weight", kOptional},
};
constexpr auto kDenseTensors = join(kStem, kAttnTensors, kGatedFfnTensors, kAttnBiases);
constexpr auto kSparseTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kQkNormTensors, kMoeTensors,
                                     kAttnBiases);

constexpr auto kFlexTensors = join(kStemTensors, kPostNormTensors, kAttnTensors, kQkNormTensors, kMoeTensors,
                                   kAttnBiases);

constexpr std::array kHubDenseStem = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
};
constexpr auto kHubDense = join(kHubDenseStem, kHubPairedAttn, kHubGatedFfn, kHubPairedAttnBiases);
constexpr auto kHubSparse = join(kHubStem, kHubPreNorm, kHubAttn, kHubQkNorm, kHubExperts, kHubAttnBiases);

constexpr auto kHubFlex = join(kHubStem, kHubPostNorm, kHubAttn, kHubQkNorm, kHubExperts, kHubAttnBiases);

constexpr double kEpsilon = 1e-5;  // of every published model; config.json does not say it

Result<void> refuse_clipping(const HubConfig& config) {
  CANDOR_ASSIGN(const std::optional<double> limit, hub_number(config, "clip_qkv"));
  if (!limit) return {};
  return fail(ErrorKind::kUnsupported, "config.json: \"clip_qkv\" is set: models that use it are not supported");
}
Result<void> read_dense_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(refuse_clipping(config));
  metadata.add(std::string(prefix) + ".attention.layer_norm_epsilon", kEpsilon);
  return {};
}
Result<void> read_sparse_hub(const HubConfig& config, std::string_view, formats::MetaList&) {
  return refuse_clipping(config);
}
constexpr HubForm kDenseHub[] = {{.model_type = "olmo",
                                  .architecture = "OlmoForCausalLM",
                                  .activation = "silu",
                                  .tensors = kHubDense,
                                  .read = read_dense_hub,
                                  .flags = kAttnBiasFlag}};
constexpr HubForm kSparseHub[] = {{.model_type = "olmoe",
                                   .architecture = "OlmoeForCausalLM",
                                   .activation = "silu",
                                   .tensors = kHubSparse,
                                   .read = read_sparse_hub,
                                   .flags = kAttnBiasFlag}};

constexpr HubForm kFlexHub[] = {{.model_type = "flex_olmo",
                                 .architecture = "FlexOlmoForCausalLM",
                                 .activation = "silu",
                                 .tensors = kHubFlex,
                                 .flags = kAttnBiasFlag}};

Result<ArchSpec> read_dense(const formats::ModelFile& file) {
  const Hparams hparams(file, "olmo");
  CANDOR_TRY(hparams.refuse_unless_zero({"attention.clamp_kqv"}));
  return read_decoder(hparams, backend::NormKind::kLayer);
}

Result<ArchSpec> read_experts(const Hparams& hparams) {
  CANDOR_TRY(hparams.refuse_unless_zero({"attention.clamp_kqv"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_ASSIGN(backend::MoeSpec moe, read_moe(hparams));
  if (!hparams.has("expert_weights_norm")) moe.renormalise = false;
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.qk_norm = QkNorm::kWhole;
    block.ffn.moe = moe;
  }
  return spec;
}

Result<ArchSpec> read_sparse(const formats::ModelFile& file) {
  return read_experts(Hparams(file, "olmoe"));
}

Result<ArchSpec> read_flex(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_experts(Hparams(file, "flexolmo")));
  for (BlockSpec& block : spec.blocks) block.wiring = Wiring::kPostNorm;
  return spec;
}

}  // namespace
}  // namespace olmo

Family olmo_family() {
  using namespace olmo;
  return {"olmo", read_dense, kDenseTensors, {}, kDenseHub};
}

Family olmoe_family() {
  using namespace olmo;
  return {"olmoe", read_sparse, kSparseTensors, {}, kSparseHub};
}

Family flexolmo_family() {
  using namespace olmo;
  return {"flexolmo", read_flex, kFlexTensors, {}, kFlexHub};
}

}  // namespace candor::model
