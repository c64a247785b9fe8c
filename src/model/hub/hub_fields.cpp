#include "model/hub/hub_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/model_file.h"
#include "model/hparams.h"

namespace candor::model {
namespace {

using formats::MetaArray;
using nlohmann::json;

struct KeyNames {
  std::string_view key;
  std::initializer_list<std::string_view> names;  // of config.json, the first that is there
};
const KeyNames kIntegers[] = {
    {"embedding_length", {"hidden_size", "n_embd", "d_model", "dim"}},
    {"block_count", {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}},
    {"attention.head_count", {"num_attention_heads", "n_head", "attention_heads", "n_heads"}},
    {"attention.head_count_kv", {"num_key_value_heads"}},
    {"feed_forward_length", {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "hidden_dim"}},
    {"context_length", {"max_position_embeddings", "n_positions", "seq_length", "max_seq_len"}},
    {"attention.key_length", {"head_dim"}},
    {"attention.value_length", {"head_dim"}},
    {"expert_count", {"num_local_experts", "num_experts"}},
    {"expert_used_count", {"num_experts_per_tok"}},
    {"expert_feed_forward_length", {"moe_intermediate_size"}},
    {"expert_shared_feed_forward_length", {"shared_expert_intermediate_size"}},
};
const KeyNames kFloats[] = {
    {"attention.layer_norm_rms_epsilon", {"rms_norm_eps"}},
    {"attention.layer_norm_epsilon", {"layer_norm_epsilon", "layer_norm_eps", "norm_epsilon", "norm_eps"}},
    {"attn_logit_softcapping", {"attn_logit_softcapping"}},
    {"final_logit_softcapping", {"final_logit_softcapping"}},
};

class FieldReader {
 public:
  FieldReader(const HubConfig& config, std::string_view prefix, const HubForm& form, formats::MetaList& metadata)
      : config_(config), prefix_(prefix), form_(form), metadata_(metadata) {}

  Result<void> read() {
    metadata_.add_string("general.architecture", std::string(prefix_));
    for (const KeyNames& row : kIntegers) CANDOR_TRY(copy_integer(row));
    for (const KeyNames& row : kFloats) CANDOR_TRY(copy_float(row));
    if (const json* norm = config_.find("norm_topk_prob")) {
      if (!norm->is_boolean()) return config_.bad("norm_topk_prob", *norm, "true or false");
      add("expert_weights_norm", norm->get<bool>());
    }
    CANDOR_TRY(check_activation());
    if (config_.find({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "hidden_dim"}) == nullptr) add_default_ffn();
    return read_windows();
  }

 private:
  void add(std::string_view suffix, formats::MetaValue value) {
    metadata_.add(fmt::format("{}.{}", prefix_, suffix), std::move(value));
  }

  Result<void> copy_integer(const KeyNames& row) {
    const json* value = config_.find(row.names);
    if (value == nullptr) return {};
    // One for each block, which agree.
    const bool is_list = value->is_array() && !value->empty() &&
                         std::ranges::all_of(*value, [&](const json& one) { return one == value->front(); });
    if (is_list) value = &value->front();
    if (!value->is_number_unsigned()) return config_.bad(config_.name_of(row.names), *value, "a whole number");
    add(row.key, value->get<uint64_t>());
    return {};
  }
  Result<void> copy_float(const KeyNames& row) {
    const json* value = config_.find(row.names);
    if (value == nullptr) return {};
    if (!value->is_number()) return config_.bad(config_.name_of(row.names), *value, "a number");
    // As a file of the other format would hold it.
    add(row.key, static_cast<double>(value->get<float>()));
    return {};
  }

  Result<void> check_activation() const {
    const json* value = config_.find({"hidden_act", "hidden_activation", "activation_function", "activation"});
    if (value == nullptr || form_.activation.empty()) return {};
    std::string seen = value->is_string() ? value->get<std::string>() : value->dump();
    if (seen == "gelu_pytorch_tanh" || seen == "gelu_fast") seen = "gelu_new";  // three names of the tanh form
    if (seen == "swish") seen = "silu";
    if (seen == form_.activation) return {};
    return config_.unsupported("hidden_act", *value, form_.activation);
  }

  void add_default_ffn() {
    const json* dim = config_.find({"hidden_size", "n_embd", "d_model", "dim"});
    if (dim == nullptr || !dim->is_number_unsigned() || dim->get<uint64_t>() > UINT32_MAX) return;
    add("feed_forward_length", 4 * dim->get<uint64_t>());
  }

  // sliding_window, unless use_sliding_window is false; which blocks have it, from layer_types.
  Result<void> read_windows() {
    const json* window = config_.find("sliding_window");
    const json* is_used = config_.find("use_sliding_window");
    const json* types = config_.find("layer_types");
    if (is_used != nullptr && !is_used->is_boolean()) return config_.bad("use_sliding_window", *is_used, "true or false");
    if (is_used != nullptr && !is_used->get<bool>()) window = nullptr;
    if (window != nullptr && !window->is_number_unsigned()) return config_.bad("sliding_window", *window, "a whole number");
    if (form_.has_own_kinds) return {};
    if (window != nullptr) add("attention.sliding_window", window->get<uint64_t>());
    if (types == nullptr) return {};
    if (!types->is_array()) return config_.bad("layer_types", *types, "a list");
    std::vector<bool> flags;
    for (const json& type : *types) {
      if (type != "sliding_attention" && type != "full_attention")
        return config_.unsupported("layer_types", type, "sliding_attention, full_attention");
      flags.push_back(type == "sliding_attention");
    }
    const bool has_windows = std::ranges::find(flags, true) != flags.end();
    if (has_windows && window == nullptr)
      return config_.bad("sliding_window", json(), "a whole number, as layer_types names windows");
    add("attention.sliding_window_pattern", MetaArray(std::move(flags)));
    return {};
  }

  const HubConfig& config_;
  std::string_view prefix_;
  const HubForm& form_;
  formats::MetaList& metadata_;
};

}  // namespace

Result<void> read_hub_fields(const HubConfig& config, const HubRope& rope, std::string_view prefix, const HubForm& form,
                             formats::MetaList& metadata) {
  CANDOR_TRY(FieldReader(config, prefix, form, metadata).read());
  if (!config.rotary_defaults().is_null() || config.contains("rope_scaling") || config.contains("rope_theta") ||
      config.contains("rope_parameters")) {
    CANDOR_TRY(read_hub_rope(config, rope, form, prefix, metadata));
  }
  return form.read == nullptr ? Result<void>{} : form.read(config, prefix, metadata);
}

int64_t largest_count(const formats::MetaList& metadata, std::string_view suffix) {
  const std::string_view prefix = std::get<std::string_view>(*metadata.find("general.architecture"));
  const formats::MetaValue* value = metadata.find(fmt::format("{}.{}", prefix, suffix));
  const uint64_t* count = value == nullptr ? nullptr : std::get_if<uint64_t>(value);
  if (count != nullptr) return *count <= INT32_MAX ? static_cast<int64_t>(*count) : 0;
  const auto* array = value == nullptr ? nullptr : std::get_if<formats::MetaArray>(value);
  const auto* counts = array == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(array);
  return counts == nullptr || counts->empty() ? 0 : std::ranges::max(*counts);
}

}  // namespace candor::model
