#include "model/hub/hub_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "backend/op_specs.h"
#include "base/rounded_math.h"
#include "formats/model_file.h"
#include "formats/quote.h"
#include "model/hparams.h"

namespace candor::model {
namespace {

using formats::MetaArray;
using nlohmann::json;

struct KeyNames {
  std::string_view key;
  std::initializer_list<const char*> names;  // of config.json, the first that is there
};
const KeyNames kIntegers[] = {
    {"embedding_length", {"hidden_size", "n_embd", "d_model"}},
    {"block_count", {"num_hidden_layers", "n_layer", "num_layers", "n_layers"}},
    {"attention.head_count", {"num_attention_heads", "n_head", "attention_heads", "n_heads"}},
    {"attention.head_count_kv", {"num_key_value_heads"}},
    {"feed_forward_length", {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}},
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

// The first of the names that is there and not null.
const json* find_any(const json& config, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto at = config.find(name);
    if (at != config.end() && !at->is_null()) return &*at;
  }
  return nullptr;
}

class ConfigReader {
 public:
  ConfigReader(const json& config, std::string_view prefix, std::string_view name, const HubForm& form,
               formats::MetaList& metadata)
      : config_(config), prefix_(prefix), name_(name), form_(form), metadata_(metadata) {}

  Result<void> read() {
    metadata_.add_string("general.architecture", std::string(prefix_));
    for (const KeyNames& row : kIntegers) CANDOR_TRY(copy_integer(row));
    for (const KeyNames& row : kFloats) CANDOR_TRY(copy_float(row));
    if (const json* norm = find_any(config_, {"norm_topk_prob"}))
      add("expert_weights_norm", norm->is_boolean() && norm->get<bool>());
    CANDOR_TRY(check_activation(form_.activation));
    if (find_any(config_, {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}) == nullptr)
      CANDOR_TRY(add_default_ffn());
    CANDOR_TRY(read_windows());
    return read_rope();
  }

 private:
  void add(std::string_view suffix, formats::MetaValue value) {
    metadata_.add(fmt::format("{}.{}", prefix_, suffix), std::move(value));
  }
  Error bad(std::string_view key, const json& value, std::string_view expected) const {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: \"{}\" is {}, expected {}", name_, key, formats::in_quotes(value.dump()), expected));
  }
  Error unsupported(std::string_view key, const json& value, std::string_view supported) const {
    return fail(ErrorKind::kUnsupported, fmt::format("{}: \"{}\" is {}, which is not supported (supported: {})", name_,
                                                     key, formats::in_quotes(value.dump()), supported));
  }

  Result<void> copy_integer(const KeyNames& row) {
    const json* value = find_any(config_, row.names);
    if (value == nullptr) return {};
    // One for each block, which agree.
    const bool is_list = value->is_array() && !value->empty() &&
                         std::ranges::all_of(*value, [&](const json& one) { return one == value->front(); });
    if (is_list) value = &value->front();
    if (!value->is_number_unsigned()) return bad(*row.names.begin(), *value, "a whole number");
    add(row.key, value->get<uint64_t>());
    return {};
  }
  Result<void> copy_float(const KeyNames& row) {
    const json* value = find_any(config_, row.names);
    if (value == nullptr) return {};
    if (!value->is_number()) return bad(*row.names.begin(), *value, "a number");
    // As a file of the other format would hold it.
    add(row.key, static_cast<double>(value->get<float>()));
    return {};
  }

  Result<void> check_activation(std::string_view expected) const {
    const json* value = find_any(config_, {"hidden_act", "hidden_activation", "activation_function", "activation"});
    if (value == nullptr || expected.empty()) return {};
    std::string seen = value->is_string() ? value->get<std::string>() : value->dump();
    if (seen == "gelu_pytorch_tanh" || seen == "gelu_fast") seen = "gelu_new";  // three names of the tanh form
    if (seen == expected) return {};
    return unsupported("hidden_act", *value, expected);
  }

  Result<void> add_default_ffn() {
    const json* dim = find_any(config_, {"hidden_size", "n_embd", "d_model"});
    if (dim == nullptr || !dim->is_number_unsigned() || dim->get<uint64_t>() > UINT32_MAX) return {};
    add("feed_forward_length", 4 * dim->get<uint64_t>());
    return {};
  }

  // sliding_window, unless use_sliding_window is false; which blocks have it, from layer_types.
  Result<void> read_windows() {
    const json* window = find_any(config_, {"sliding_window"});
    const json* is_used = find_any(config_, {"use_sliding_window"});
    if (window == nullptr || (is_used != nullptr && is_used->is_boolean() && !is_used->get<bool>())) return {};
    if (!window->is_number_unsigned()) return bad("sliding_window", *window, "a whole number");
    const json* types = find_any(config_, {"layer_types"});
    if (types == nullptr) {
      if (is_used != nullptr && config_.contains("max_window_layers")) {
        return unsupported("max_window_layers", config_["max_window_layers"], "models without windows");
      }
      add("attention.sliding_window", window->get<uint64_t>());
      return {};
    }
    if (!types->is_array()) return bad("layer_types", *types, "a list");
    std::vector<bool> flags;
    for (const json& type : *types) {
      if (type != "sliding_attention" && type != "full_attention")
        return unsupported("layer_types", type, "sliding_attention, full_attention");
      flags.push_back(type == "sliding_attention");
    }
    if (std::ranges::find(flags, true) == flags.end()) return {};
    add("attention.sliding_window", window->get<uint64_t>());
    add("attention.sliding_window_pattern", MetaArray(std::move(flags)));
    return {};
  }

  // Today's "rope_parameters" (perhaps one for each kind of block), or "rope_theta" and "rope_scaling".
  Result<void> read_rope() {
    if (const json* parameters = find_any(config_, {"rope_parameters"})) {
      const auto sliding = parameters->find("sliding_attention");
      if (sliding != parameters->end() && sliding->is_object() && sliding->contains("rope_theta")) {
        add("rope.freq_base_swa", number(*sliding, "rope_theta", 0.0));
      }
      const auto full = parameters->find("full_attention");
      return read_rope_of(full == parameters->end() ? *parameters : *full);
    }
    json rope = json::object();
    if (const json* scaling = find_any(config_, {"rope_scaling"})) rope = *scaling;
    if (const json* theta = find_any(config_, {"rope_theta", "rotary_emb_base"})) rope["rope_theta"] = *theta;
    if (const json* local = find_any(config_, {"rope_local_base_freq"}); local != nullptr && local->is_number()) {
      add("rope.freq_base_swa", local->get<double>());
    }
    return read_rope_of(rope);
  }

  static double number(const json& object, const char* key, double fallback) {
    const auto at = object.find(key);
    return at != object.end() && at->is_number() ? at->get<double>() : fallback;
  }

  Result<void> read_rope_of(const json& rope) {
    if (!rope.is_object()) return bad("rope_parameters", rope, "an object");
    if (find_any(rope, {"rope_theta"}) != nullptr) {  // as a file of the other format would hold it
      add("rope.freq_base", static_cast<double>(static_cast<float>(number(rope, "rope_theta", 0.0))));
    }
    if (const json* kind = find_any(rope, {"rope_type"}); kind != nullptr && *kind == "proportional") return {};
    CANDOR_TRY(read_partial(number(rope, "partial_rotary_factor",
                                   number(config_, "partial_rotary_factor", number(config_, "rotary_pct", 1.0)))));
    const json* named = find_any(rope, {"rope_type", "type"});
    const std::string type = named != nullptr && named->is_string() ? named->get<std::string>() : "default";
    if (type == "dynamic" && form_.reads_alpha && number(rope, "alpha", 0.0) > 0.0) return read_alpha(rope);
    // By a rule that is felt only beyond the model's context; another has an alpha.
    if (type == "default" || (type == "dynamic" && !rope.contains("alpha"))) return {};
    if (type == "longrope" || type == "su") return read_long_rope(rope);
    if (type == "llama3") return {};  // rope_factors()
    if (type != "linear" && type != "yarn") {
      return unsupported("rope_type", type, "default, linear, dynamic without alpha, yarn, llama3, longrope");
    }
    const double factor = number(rope, "factor", 1.0);
    metadata_.add_string(fmt::format("{}.rope.scaling.type", prefix_), type);
    add("rope.scaling.factor", factor);
    if (type == "linear") return {};
    add_original_context(rope);
    return read_yarn(rope, factor);
  }

  // NTK-aware scaling with a fixed alpha.
  Result<void> read_alpha(const json& rope) {
    const double heads = number(config_, "num_attention_heads", 0.0);
    const double per_head = heads >= 1.0 ? std::floor(number(config_, "hidden_size", 0.0) / heads) : 0.0;
    const double width = number(config_, "head_dim", per_head);
    if (!(width > 2.0 && width <= static_cast<double>(kMaxWidth))) return {};  // refused with the sizes
    const double growth = rounded_exp(width / (width - 2.0) * rounded_log(number(rope, "alpha", 1.0)));
    const double base = number(rope, "rope_theta", number(config_, "rope_theta", 10000.0)) * growth;
    add("rope.freq_base", static_cast<double>(static_cast<float>(base)));
    return {};
  }

  Result<void> read_partial(double share) {
    if (share == 1.0) return {};
    const double heads = number(config_, "num_attention_heads", 0.0);
    const double per_head = heads >= 1.0 ? std::floor(number(config_, "hidden_size", 0.0) / heads) : 0.0;
    const double head_dim = number(config_, "head_dim", per_head);
    if (!(head_dim >= 1.0 && head_dim <= static_cast<double>(kMaxWidth))) return {};
    if (!(share > 0.0 && share < 1.0)) return bad("partial_rotary_factor", share, "a share of 1");
    add("rope.dimension_count", static_cast<uint64_t>(share * head_dim));
    return {};
  }

  void add_original_context(const json& rope) {
    const json* original = find_any(rope, {"original_max_position_embeddings"});
    if (original == nullptr) original = find_any(config_, {"original_max_position_embeddings"});
    if (original != nullptr && original->is_number_unsigned()) {
      add("rope.scaling.original_context_length", original->get<uint64_t>());
    }
  }

  Result<void> read_yarn(const json& rope, double factor) {
    for (const char* key : {"mscale", "mscale_all_dim"}) {
      if (rope.contains(key) && !form_.reads_mscale) return unsupported(key, rope[key], "yarn without it");
    }
    const json* truncates = find_any(rope, {"truncate"});
    if (truncates != nullptr && !truncates->is_boolean()) return bad("truncate", *truncates, "true or false");
    if (truncates != nullptr) add("rope.scaling.yarn_truncate", truncates->get<bool>());
    add("rope.scaling.yarn_beta_fast", number(rope, "beta_fast", 32.0));
    add("rope.scaling.yarn_beta_slow", number(rope, "beta_slow", 1.0));
    const double usual = 1.0 + 0.1 * rounded_log(factor);
    add("rope.scaling.attn_factor", number(rope, "attention_factor", usual) / usual);
    return {};
  }

  // The factors themselves become tensors (hub_folder); the attention factor is what the paper's code computes.
  Result<void> read_long_rope(const json& rope) {
    add_original_context(rope);
    const double context = number(config_, "max_position_embeddings", 0.0);
    const double original =
        number(rope, "original_max_position_embeddings", number(config_, "original_max_position_embeddings", context));
    const double scale = original > 0.0 ? context / original : 0.0;
    const double usual =
        scale > 1.0 && original > 1.0 ? std::sqrt(1.0 + rounded_log(scale) / rounded_log(original)) : 1.0;
    add("rope.scaling.attn_factor", static_cast<double>(static_cast<float>(number(rope, "attention_factor", usual))));
    return {};
  }

  const json& config_;
  std::string_view prefix_;
  std::string_view name_;
  const HubForm& form_;
  formats::MetaList& metadata_;
};

}  // namespace

Result<std::optional<double>> hub_number(const json& config, const char* key) {
  const json* value = find_any(config, {key});
  if (value == nullptr) return std::optional<double>();
  if (value->is_number()) return std::optional<double>(value->get<double>());
  return fail(ErrorKind::kInvalidInput,
              fmt::format("config.json: \"{}\" is {}, expected a number", key, formats::in_quotes(value->dump())));
}

Result<std::optional<bool>> hub_flag(const json& config, const char* key) {
  const json* value = find_any(config, {key});
  if (value == nullptr) return std::optional<bool>();
  if (value->is_boolean()) return std::optional<bool>(value->get<bool>());
  return fail(ErrorKind::kInvalidInput,
              fmt::format("config.json: \"{}\" is {}, expected true or false", key, formats::in_quotes(value->dump())));
}

double shortest_decimal(float value) {
  return std::stod(fmt::format("{}", value));
}

namespace {

// Of blocks that see everything, whose heads may have a width of their own.
std::vector<float> proportional_factors(const json& config, const json& rope) {
  constexpr float kEndless = 1e30f;
  const auto number_in = [](const json& object, const char* key, double fallback) {
    const auto at = object.find(key);
    return at != object.end() && at->is_number() ? at->get<double>() : fallback;
  };
  double head_dim = number_in(config, "global_head_dim", 0.0);
  const json* blocks = find_any(config, {"per_layer_config"});
  if (head_dim == 0.0 && blocks != nullptr && blocks->is_object()) {
    for (const json& block : *blocks) head_dim = block.is_object() ? number_in(block, "head_dim", head_dim) : head_dim;
  }
  if (head_dim == 0.0) head_dim = number_in(config, "head_dim", 0.0);
  const double share = number_in(rope, "partial_rotary_factor", 1.0);
  if (!(head_dim >= 2.0 && head_dim <= static_cast<double>(kMaxWidth) && share > 0.0 && share <= 1.0)) return {};
  std::vector<float> factors(static_cast<size_t>(head_dim / 2.0), kEndless);
  std::fill_n(factors.begin(), std::min(factors.size(), static_cast<size_t>(share * head_dim / 2.0)), 1.0f);
  return factors;
}

}  // namespace

Result<std::vector<float>> rope_factors(const json& config, std::string_view name) {
  const json* rope = find_any(config, {"rope_parameters", "rope_scaling"});
  if (rope != nullptr && rope->is_object()) {
    const auto full = rope->find("full_attention");
    if (full != rope->end() && full->is_object() && full->value("rope_type", json()) == "proportional") {
      return proportional_factors(config, *full);
    }
  }
  std::vector<float> factors;
  if (rope == nullptr || !rope->is_object() || rope->value("rope_type", json()) != "llama3") return factors;
  const auto number = [&](const char* key, double fallback) {
    const json* value = find_any(*rope, {key});
    if (value == nullptr) value = find_any(config, {key});
    return value != nullptr && value->is_number() ? value->get<double>() : fallback;
  };
  const double heads = number("num_attention_heads", 0.0);
  const double head_dim = number("head_dim", heads > 0.0 ? number("hidden_size", 0.0) / heads : 0.0);
  backend::RopeSpec spec;
  spec.base = number("rope_theta", spec.base);
  spec.factor = number("factor", 1.0);
  spec.low_freq_factor = number("low_freq_factor", spec.low_freq_factor);
  spec.high_freq_factor = number("high_freq_factor", spec.high_freq_factor);
  if (!(head_dim >= 2.0 && head_dim <= static_cast<double>(kMaxWidth))) return factors;  // refused with the sizes
  const double original = number("original_max_position_embeddings", 0.0);
  const bool is_good = spec.base > 1.0 && spec.factor > 0.0 && spec.low_freq_factor > 0.0 &&
                       spec.high_freq_factor > spec.low_freq_factor && original >= 1.0 &&
                       original <= static_cast<double>(kMaxPositions);
  if (!is_good) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: \"rope_scaling\" is {}, expected a factor, low_freq_factor below high_freq_factor and "
                            "original_max_position_embeddings",
                            name, formats::in_quotes(rope->dump())));
  }
  spec.n_dims = static_cast<int32_t>(head_dim) / 2 * 2;
  const std::vector<double> plain = backend::rope_frequencies(spec);
  spec.original_positions = static_cast<int32_t>(original);
  spec.scaling = backend::RopeScaling::kLlama3;
  const std::vector<double> scaled = backend::rope_frequencies(spec);
  for (size_t i = 0; i < plain.size(); ++i) factors.push_back(static_cast<float>(plain[i] / scaled[i]));
  return factors;
}

Result<void> read_hub_config(const json& config, std::string_view prefix, std::string_view name, const HubForm& form,
                             formats::MetaList& metadata) {
  if (!config.is_object()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: is no JSON object; download it again", name));
  }
  CANDOR_TRY(ConfigReader(config, prefix, name, form, metadata).read());
  return form.read == nullptr ? Result<void>{} : form.read(config, prefix, metadata);
}

}  // namespace candor::model
