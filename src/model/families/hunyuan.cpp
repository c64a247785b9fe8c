// Hunyuan, dense and with experts: Llama that norms the heads of Q and K behind their rotation, whose base grows by a
// fixed power where config.json says "alpha". The sparse model has experts in every block and a shared one. Tencent,
// 2025.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"

namespace candor::model {
namespace hunyuan {
namespace {

using enum TensorRole;
using nlohmann::json;

constexpr auto kDenseTensors =
    join(kStemTensors, kPreNormTensors, kAttnTensors, kQkNormTensors, kGatedFfnTensors, kAttnBiases);
constexpr std::array kShared = {
    TensorName{kSharedGate, "blk.*.ffn_gate_shexp.weight"},
    TensorName{kSharedUp, "blk.*.ffn_up_shexp.weight"},
    TensorName{kSharedDown, "blk.*.ffn_down_shexp.weight"},
};
constexpr auto kSparseTensors =
    join(kStemTensors, kPreNormTensors, kAttnTensors, kQkNormTensors, kMoeTensors, kShared, kAttnBiases);

constexpr std::array kHubNorms = {
    HubTensor{"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.query_layernorm.weight"},
    HubTensor{"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.key_layernorm.weight"},
};
constexpr std::array kHubMoe = {
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.mlp.gate.wg.weight", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate.#.weight", "model.layers.*.mlp.experts.#.gate_proj.weight"},
    HubTensor{"blk.*.ffn_down.#.weight", "model.layers.*.mlp.experts.#.down_proj.weight"},
    HubTensor{"blk.*.ffn_up.#.weight", "model.layers.*.mlp.experts.#.up_proj.weight"},
    HubTensor{"blk.*.ffn_gate_shexp.weight", "model.layers.*.mlp.shared_mlp.gate_proj.weight"},
    HubTensor{"blk.*.ffn_up_shexp.weight", "model.layers.*.mlp.shared_mlp.up_proj.weight"},
    HubTensor{"blk.*.ffn_down_shexp.weight", "model.layers.*.mlp.shared_mlp.down_proj.weight"},
};
constexpr auto kHubDense = join(kHubStem, kHubPreNorm, kHubAttn, kHubNorms, kHubGatedFfn, kHubAttnBiases);
constexpr auto kHubSparse = join(kHubStem, kHubPreNorm, kHubAttn, kHubNorms, kHubMoe, kHubAttnBiases);

Error unsupported(const char* key, const json& value, std::string_view supported) {
  return fail(ErrorKind::kUnsupported, fmt::format("config.json: \"{}\" is {}, which is not supported (supported: {})",
                                                   key, formats::in_quotes(value.dump()), supported));
}

Result<void> read_hub(const HubConfig& config, std::string_view, formats::MetaList&) {
  for (const char* key : {"use_qk_norm", "use_cla"}) {
    const json* flag = config.stated(key);
    const bool is_wanted = std::string_view(key) == "use_qk_norm";
    if (flag != nullptr && *flag != is_wanted) return config.unsupported(key, *flag, is_wanted ? "true" : "false");
  }
  return {};
}

// A number, or one for each block, which must agree.
Result<uint64_t> same_for_all(const HubConfig& config, const char* key, uint64_t fallback) {
  const json* value = config.find(key);
  if (value == nullptr) return fallback;
  const json one = value->is_array() && !value->empty() ? value->front() : *value;
  bool is_good = one.is_number_unsigned() && one.get<uint64_t>() <= static_cast<uint64_t>(kMaxWidth);
  for (size_t i = 0; value->is_array() && i < value->size(); ++i) is_good = is_good && (*value)[i] == one;
  if (is_good) return one.get<uint64_t>();
  return unsupported(key, *value, "one number for all blocks");
}

Result<void> read_hub_sparse(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const auto add = [&](const char* suffix, uint64_t value) {
    metadata.add(fmt::format("{}.{}", prefix, suffix), value);
  };
  CANDOR_TRY(read_hub(config, prefix, metadata));
  CANDOR_ASSIGN(const uint64_t ffn_dim, same_for_all(config, "intermediate_size", 0));
  CANDOR_ASSIGN(const uint64_t expert_dim, same_for_all(config, "moe_intermediate_size", ffn_dim));
  CANDOR_ASSIGN(const uint64_t n_shared, same_for_all(config, "num_shared_expert", 1));
  CANDOR_ASSIGN(const uint64_t n_experts, same_for_all(config, "num_experts", 1));
  CANDOR_ASSIGN(const uint64_t n_used, same_for_all(config, "moe_topk", 1));
  add("expert_count", n_experts);
  add("expert_used_count", n_used);
  add("expert_feed_forward_length", expert_dim);
  add("expert_shared_count", n_shared);
  add("expert_shared_feed_forward_length", n_shared * ffn_dim);
  return {};
}

void write_hub(const ArchSpec&, nlohmann::ordered_json& config) {
  config["use_qk_norm"] = true;
}

void write_hub_sparse(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const FfnSpec& ffn = spec.blocks.front().ffn;
  write_hub(spec, config);
  config["intermediate_size"] = ffn.shared_dim;
  config["moe_topk"] = ffn.moe.n_used;
  config["num_shared_expert"] = 1;
  for (const char* key :
       {"num_local_experts", "num_experts_per_tok", "shared_expert_intermediate_size", "norm_topk_prob"}) {
    config.erase(key);
  }
}

constexpr HubForm kDenseHub[] = {{.model_type = "hunyuan_v1_dense",
                                  .architecture = "HunYuanDenseV1ForCausalLM",
                                  .activation = "silu",
                                  .tensors = kHubDense,
                                  .read = read_hub,
                                  .write = write_hub,
                                  .reads_alpha = true,
                                  .flags = kAttnBiasFlag}};
constexpr HubForm kSparseHub[] = {{.model_type = "hunyuan_v1_moe",
                                   .architecture = "HunYuanMoEV1ForCausalLM",
                                   .activation = "silu",
                                   .tensors = kHubSparse,
                                   .read = read_hub_sparse,
                                   .write = write_hub_sparse,
                                   .reads_alpha = true,
                                  .flags = kAttnBiasFlag}};

Result<ArchSpec> read_shared(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.qk_norm = QkNorm::kHeads;
    block.norms_after_rope = true;
  }
  return spec;
}

Result<ArchSpec> read_dense(const formats::ModelFile& file) {
  const Hparams hparams(file, "hunyuan-dense");
  CANDOR_TRY(hparams.refuse_unless_zero({"expert_count"}));
  return read_shared(hparams);
}

Result<ArchSpec> read_sparse(const formats::ModelFile& file) {
  const Hparams hparams(file, "hunyuan-moe");
  CANDOR_ASSIGN(ArchSpec spec, read_shared(hparams));
  CANDOR_TRY(add_experts_and_shared(hparams, spec));
  for (BlockSpec& block : spec.blocks) {
    block.ffn.moe.renormalise = true;
    block.ffn.is_shared_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace hunyuan

Family hunyuan_dense_family() {
  using namespace hunyuan;
  return {"hunyuan-dense", read_dense, kDenseTensors, {}, kDenseHub};
}

Family hunyuan_moe_family() {
  using namespace hunyuan;
  return {"hunyuan-moe", read_sparse, kSparseTensors, {}, kSparseHub};
}

}  // namespace candor::model
