#include "model/families/grouped_experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "formats/model_file.h"
#include "formats/quote.h"
#include "model/hub/hub_config.h"

namespace candor::model {
namespace {

Error bad_routing(const Hparams& hparams, std::string_view suffix, int32_t value, const std::string& reason) {
  return fail(ErrorKind::kInvalidInput,
              fmt::format("metadata key \"{}\" is {}; {}", hparams.key(suffix), value, reason));
}

Result<void> read_groups(const Hparams& hparams, backend::MoeSpec& moe) {
  CANDOR_ASSIGN(moe.n_groups, hparams.int_or("expert_group_count", 1, {0, moe.n_experts}));
  moe.n_groups = std::max(moe.n_groups, 1);
  if (moe.n_experts % moe.n_groups != 0) {
    return bad_routing(hparams, "expert_group_count", moe.n_groups,
                       fmt::format("expected a divisor of \"{}\", which is {}", hparams.key("expert_count"),
                                   moe.n_experts));
  }
  CANDOR_ASSIGN(moe.n_groups_used, hparams.int_or("expert_group_used_count", moe.n_groups, {0, INT32_MAX}));
  if (moe.n_groups == 1) moe.n_groups_used = 1;
  if (moe.n_groups_used < 1 || moe.n_groups_used > moe.n_groups) {
    return bad_routing(hparams, "expert_group_used_count", moe.n_groups_used,
                       fmt::format("expected 1 to \"{}\", which is {}", hparams.key("expert_group_count"),
                                   moe.n_groups));
  }
  if (moe.n_used > moe.n_groups_used * moe.group_size()) {
    return bad_routing(hparams, "expert_used_count", moe.n_used,
                       fmt::format("expected at most {}, the experts of {} groups",
                                   moe.n_groups_used * moe.group_size(), moe.n_groups_used));
  }
  if (moe.share == backend::ExpertShare::kSigmoid) sum_two_best(moe);
  return {};
}

Result<backend::MoeSpec> read_grouped(const Hparams& hparams) {
  constexpr int32_t kSoftmaxShare = 1;
  constexpr int32_t kSigmoidShare = 2;
  backend::MoeSpec moe;
  CANDOR_ASSIGN(moe.n_experts, hparams.require_int("expert_count", {1, kMaxExperts}));
  CANDOR_ASSIGN(moe.n_used, hparams.require_int("expert_used_count", {1, std::min(moe.n_experts, kMaxExpertsUsed)}));
  CANDOR_ASSIGN(const int32_t share, hparams.int_or("expert_gating_func", kSoftmaxShare, {0, 255}));
  if (share > kSigmoidShare) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("metadata key \"{}\" is {}; supported: 1 (softmax), 2 (sigmoid)",
                            hparams.key("expert_gating_func"), share));
  }
  moe.share = share == kSigmoidShare ? backend::ExpertShare::kSigmoid : backend::ExpertShare::kSoftmax;
  CANDOR_ASSIGN(const auto normalise, formats::meta_bool(hparams.file(), hparams.key("expert_weights_norm")));
  moe.renormalise = normalise.value_or(false);
  CANDOR_ASSIGN(const double scale, hparams.positive_or("expert_weights_scale", 1.0));
  moe.scale = static_cast<float>(scale);
  CANDOR_TRY(read_groups(hparams, moe));
  return moe;
}

}  // namespace

void sum_two_best(backend::MoeSpec& moe) {
  if (moe.n_groups > 1 && moe.group_size() > 1) moe.n_group_best = 2;
}

Result<void> add_grouped_experts(const Hparams& hparams, ArchSpec& spec) {
  const auto n_blocks = static_cast<int32_t>(spec.blocks.size());
  CANDOR_ASSIGN(const int32_t n_dense, hparams.int_or("leading_dense_block_count", 0, {0, n_blocks}));
  if (n_dense == n_blocks) return {};
  CANDOR_ASSIGN(backend::MoeSpec moe, read_grouped(hparams));
  CANDOR_ASSIGN(const int32_t ffn_dim, hparams.require_int("expert_feed_forward_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(const int32_t n_shared, hparams.int_or("expert_shared_count", 0, {0, kMaxWidth / ffn_dim}));
  // Where shares are sigmoids every such block has one.
  moe.has_choice_bias = moe.share == backend::ExpertShare::kSigmoid ||
                        hparams.file().find(fmt::format("blk.{}.exp_probs_b.bias", n_dense)) != nullptr;
  for (int32_t layer = n_dense; layer < n_blocks; ++layer) {
    FfnSpec& ffn = spec.blocks[static_cast<size_t>(layer)].ffn;
    ffn.ffn_dim = ffn_dim;
    ffn.moe = moe;
    ffn.shared_dim = n_shared * ffn_dim;
    ffn.is_shared_gated = false;
  }
  return {};
}

namespace {

using nlohmann::json;

struct SharedKey {
  const char* key;
  const char* hub;
};
constexpr SharedKey kCounts[] = {
    {"expert_count", "n_routed_experts"},
    {"expert_shared_count", "n_shared_experts"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"nextn_predict_layers", "num_nextn_predict_layers"},
};

Error unsupported(const char* key, const json& value, std::string_view supported) {
  return fail(ErrorKind::kUnsupported, fmt::format("config.json: \"{}\" is {}, which is not supported (supported: {})",
                                                   key, formats::in_quotes(value.dump()), supported));
}

json value_of(const HubConfig& config, const char* key) {
  return config[key];
}

// The share, by name, and the way to choose that goes with it. The library's classes know one share each; folders of
// DeepSeek name theirs.
Result<backend::ExpertShare> read_share(const HubConfig& config, backend::ExpertShare share) {
  const json* named = config.stated("scoring_func");
  const bool is_sigmoid = share == backend::ExpertShare::kSigmoid;
  if (named != nullptr && *named != (is_sigmoid ? "sigmoid" : "softmax")) {
    return unsupported("scoring_func", *named, is_sigmoid ? "sigmoid" : "softmax");
  }
  const json* stated = config.stated("topk_method");
  const json method = stated != nullptr ? *stated : value_of(config, "topk_method");
  const bool is_known = method.is_null() || (is_sigmoid ? method == "noaux_tc"
                                                        : method == "greedy" || method == "group_limited_greedy");
  if (is_known) return share;
  return unsupported("topk_method", method, is_sigmoid ? "noaux_tc" : "greedy, group_limited_greedy");
}

// From mlp_layer_types, where it is there: the dense blocks stand before all others.
Result<void> read_layers(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const json* frequency = config.stated("moe_layer_freq");
  if (frequency != nullptr && *frequency != 1) return unsupported("moe_layer_freq", *frequency, "1");
  const json types = value_of(config, "mlp_layer_types");
  if (types.is_null()) return {};
  uint64_t n_dense = 0;
  bool is_known = types.is_array();
  for (size_t layer = 0; is_known && layer < types.size(); ++layer) {
    const bool is_dense = types[layer] == "dense";
    is_known = is_dense ? n_dense == layer : types[layer] == "sparse";
    if (is_dense) ++n_dense;
  }
  if (!is_known) return unsupported("mlp_layer_types", types, "a list of dense, then sparse");
  metadata.add(fmt::format("{}.leading_dense_block_count", prefix), n_dense);
  return {};
}

}  // namespace

Result<void> read_hub_grouped(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata,
                              backend::ExpertShare share) {
  const auto add = [&](const char* suffix, formats::MetaValue value) {
    metadata.add(fmt::format("{}.{}", prefix, suffix), std::move(value));
  };
  CANDOR_ASSIGN(share, read_share(config, share));
  add("expert_gating_func", uint64_t{share == backend::ExpertShare::kSigmoid ? 2u : 1u});
  for (const SharedKey& row : kCounts) {
    CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, row.hub));
    if (!value) continue;
    if (*value < 0.0 || *value > static_cast<double>(kMaxWidth) || *value != std::floor(*value)) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("config.json: \"{}\" is {}, expected 0 to {}", row.hub, *value, kMaxWidth));
    }
    add(row.key, static_cast<uint64_t>(*value));
  }
  CANDOR_TRY(read_layers(config, prefix, metadata));
  if (value_of(config, "topk_method") == "group_limited_greedy") {
    for (const char* key : {"n_group", "topk_group"}) {
      if (!config.contains(key)) return config.bad(key, json(), "a number of groups, out of which topk_method chooses");
    }
  }
  if (value_of(config, "topk_method") == "greedy") {
    add("expert_group_count", uint64_t{1});
    add("expert_group_used_count", uint64_t{1});
  }
  CANDOR_ASSIGN(const std::optional<double> scale, hub_number(config, "routed_scaling_factor"));
  if (scale) add("expert_weights_scale", static_cast<double>(static_cast<float>(*scale)));
  CANDOR_ASSIGN(const std::optional<double> n_layers, hub_number(config, "num_hidden_layers"));
  CANDOR_ASSIGN(const std::optional<double> n_prediction, hub_number(config, "num_nextn_predict_layers"));
  if (n_layers && n_prediction && *n_layers >= 1.0 && *n_layers <= static_cast<double>(kMaxLayers)) {
    add("block_count", static_cast<uint64_t>(*n_layers) + static_cast<uint64_t>(*n_prediction));
  }
  return {};
}

void write_hub_grouped(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const auto first = std::ranges::find_if(spec.blocks, [](const BlockSpec& block) { return block.ffn.is_moe(); });
  config["first_k_dense_replace"] = first - spec.blocks.begin();
  config["num_nextn_predict_layers"] = spec.n_prediction_blocks;
  if (first == spec.blocks.end()) return;
  const FfnSpec& ffn = first->ffn;
  const backend::MoeSpec& moe = ffn.moe;
  const bool is_sigmoid = moe.share == backend::ExpertShare::kSigmoid;
  config["n_routed_experts"] = moe.n_experts;
  config["num_experts_per_tok"] = moe.n_used;
  config["n_shared_experts"] = ffn.shared_dim / ffn.ffn_dim;
  config["moe_intermediate_size"] = ffn.ffn_dim;
  config["moe_layer_freq"] = 1;
  config["n_group"] = moe.n_groups;
  config["topk_group"] = moe.n_groups_used;
  config["norm_topk_prob"] = moe.renormalise;
  config["routed_scaling_factor"] = shortest_decimal(moe.scale);
  config["scoring_func"] = is_sigmoid ? "sigmoid" : "softmax";
  config["topk_method"] = is_sigmoid ? "noaux_tc" : moe.n_groups > 1 ? "group_limited_greedy" : "greedy";
  for (const char* key : {"num_local_experts", "num_experts", "shared_expert_intermediate_size"}) config.erase(key);
}

}  // namespace candor::model
