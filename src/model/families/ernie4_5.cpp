// ERNIE 4.5: Llama whose published weights rotate interleaved pairs. The sparse models have experts behind the first
// blocks, chosen by softmax and a bias that does not weigh, and shared ones. Baidu, 2025.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/families/grouped_experts.h"

namespace candor::model {
namespace ernie4_5 {
namespace {

using nlohmann::json;

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors, kAllBiases);
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubGatedFfn);
constexpr auto kHubBiased = join(kHubTensors, kHubAttnBiases, kHubMlpBiases);
constexpr HubFlag kFlags[] = {{"use_bias", kHubAttnBiasNames}, {"use_bias", kHubMlpBiasNames}};
constexpr HubForm kHub[] = {{.model_type = "ernie4_5",
                             .architecture = "Ernie4_5ForCausalLM",
                             .activation = "silu",
                             .tensors = kHubBiased,
                             .flags = kFlags}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  return read_decoder(Hparams(file, "ernie4_5"), backend::NormKind::kRms);
}

constexpr auto kSparseTensors = join(kTensors, kMoeTensors, kGroupedTensors);
constexpr std::array kHubBias = {HubTensor{"blk.*.exp_probs_b.bias",
                                           "model.layers.*.mlp.moe_statics.e_score_correction_bias",
                                           HubChange::kWidenRow}};
constexpr auto kHubSparse = join(kHubTensors, kHubExperts, kHubSharedExperts, kHubBias, kHubPrediction);
constexpr HubRename kPrediction[] = {
    {"model.mtp_linear_proj.*.weight", "model.layers.*.eh_proj.weight"},
    {"model.mtp_emb_norm.*.weight", "model.layers.*.enorm.weight"},
    {"model.mtp_hidden_norm.*.weight", "model.layers.*.hnorm.weight"},
    {"model.mtp_block.*.", "model.layers.*."},
};

Error bad(const char* key, double value, std::string_view expected) {
  return fail(ErrorKind::kUnsupported, fmt::format("config.json: \"{}\" is {}; supported: {}", key, value, expected));
}

Result<double> count_of(const HubConfig& config, const char* key, double fallback) {
  CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, key));
  const double count = value.value_or(fallback);
  if (count == std::floor(count) && count >= 0.0 && count <= static_cast<double>(kMaxWidth)) return count;
  return bad(key, count, fmt::format("0 to {}", kMaxWidth));
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const auto add = [&](const char* suffix, double value) {
    metadata.add(fmt::format("{}.{}", prefix, suffix), static_cast<uint64_t>(value));
  };
  CANDOR_ASSIGN(const double n_experts, count_of(config, "moe_num_experts", 64.0));
  CANDOR_ASSIGN(const double n_used, count_of(config, "moe_k", 6.0));
  CANDOR_ASSIGN(const double n_shared, count_of(config, "moe_num_shared_experts", 2.0));
  CANDOR_ASSIGN(const double interval, count_of(config, "moe_layer_interval", 1.0));
  CANDOR_ASSIGN(const double first, count_of(config, "moe_layer_start_index", 1.0));
  CANDOR_ASSIGN(const double width, count_of(config, "moe_intermediate_size", 1536.0));
  CANDOR_ASSIGN(const std::optional<double> last, hub_number(config, "moe_layer_end_index"));
  CANDOR_ASSIGN(const std::optional<double> n_layers, hub_number(config, "num_hidden_layers"));
  CANDOR_ASSIGN(const std::optional<bool> has_biases, hub_flag(config, "use_bias"));
  if (has_biases.value_or(false)) return bad("use_bias", 1.0, "false");
  const bool is_whole = !last || *last == -1.0 || !n_layers || *last == *n_layers - 1.0;
  if (!is_whole) return bad("moe_layer_end_index", *last, "-1, the last block");
  add("expert_count", n_experts);
  add("expert_used_count", n_used);
  add("expert_shared_count", n_shared);
  add("expert_shared_feed_forward_length", n_shared * width);
  add("expert_feed_forward_length", width);
  add("interleave_moe_layer_step", interval);
  add("leading_dense_block_count", first);
  return {};
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  size_t first = 0;
  while (first + 1 < spec.blocks.size() && !spec.blocks[first].ffn.is_moe()) ++first;
  size_t second = first + 1;
  while (second < spec.blocks.size() && !spec.blocks[second].ffn.is_moe()) ++second;
  const FfnSpec& ffn = spec.blocks[first].ffn;
  for (const BlockSpec& block : spec.blocks) {
    if (!block.ffn.is_moe()) config["intermediate_size"] = block.ffn.ffn_dim;
  }
  for (const char* key : {"num_local_experts", "num_experts", "num_experts_per_tok", "norm_topk_prob",
                          "shared_expert_intermediate_size"}) {
    config.erase(key);
  }
  config["moe_num_experts"] = ffn.moe.n_experts;
  config["moe_k"] = ffn.moe.n_used;
  config["moe_num_shared_experts"] = ffn.shared_dim / ffn.ffn_dim;
  config["moe_intermediate_size"] = ffn.ffn_dim;
  config["moe_layer_start_index"] = first;
  config["moe_layer_interval"] = second < spec.blocks.size() ? second - first : size_t{1};
  config["moe_layer_end_index"] = -1;
  config["use_bias"] = false;
}

constexpr HubForm kSparseHub[] = {{.model_type = "ernie4_5_moe",
                                   .architecture = "Ernie4_5_MoeForCausalLM",
                                   .activation = "silu",
                                   .tensors = kHubSparse,
                                   .read = read_hub,
                                   .write = write_hub,
                                   .prediction = kPrediction}};

Result<ArchSpec> read_sparse(const formats::ModelFile& file) {
  const Hparams hparams(file, "ernie4_5-moe");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(leave_prediction(hparams, spec));
  const auto n_layers = static_cast<int64_t>(spec.blocks.size());
  backend::MoeSpec moe;
  CANDOR_ASSIGN(moe.n_experts, hparams.require_int("expert_count", {1, 65536}));
  CANDOR_ASSIGN(moe.n_used, hparams.require_int("expert_used_count", {1, moe.n_experts}));
  CANDOR_ASSIGN(const int32_t ffn_dim, hparams.require_int("expert_feed_forward_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(const int32_t shared_dim, hparams.int_or("expert_shared_feed_forward_length", 0, {0, kMaxWidth}));
  CANDOR_ASSIGN(const int32_t step, hparams.int_or("interleave_moe_layer_step", 1, {1, n_layers}));
  CANDOR_ASSIGN(const int32_t first, hparams.int_or("leading_dense_block_count", 0, {0, n_layers}));
  moe.has_choice_bias = true;
  for (int32_t layer = first; layer < n_layers; ++layer) {
    if ((layer + 1) % step != 0) continue;
    spec.blocks[static_cast<size_t>(layer)].ffn = {
        .ffn_dim = ffn_dim, .moe = moe, .shared_dim = shared_dim, .is_shared_gated = false};
  }
  return spec;
}

}  // namespace
}  // namespace ernie4_5

Family ernie4_5_family() {
  using namespace ernie4_5;
  return {"ernie4_5", read, kTensors, {}, kHub};
}

Family ernie4_5_moe_family() {
  using namespace ernie4_5;
  return {"ernie4_5-moe", read_sparse, kSparseTensors, {}, kSparseHub};
}

}  // namespace candor::model
