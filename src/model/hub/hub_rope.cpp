#include "model/hub/hub_rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/rounded_math.h"
#include "formats/quote.h"
#include "model/hparams.h"

namespace candor::model {

using nlohmann::json;

namespace {

constexpr const char* kFull = "full_attention";
constexpr const char* kWindowed = "sliding_attention";
constexpr const char* kTheta = "rope_theta";
constexpr const char* kPartial = "partial_rotary_factor";
constexpr const char* kComputedFactor = "factor of contexts";
constexpr const char* kOriginal = "original_max_position_embeddings";

bool is_by_kind(const json& rope) {
  return rope.contains(kFull) || rope.contains(kWindowed);
}

// "type" is the older name of "rope_type"; members of null are as absent, but for the factor, which is then computed.
json without_nulls(json rope, bool keeps_theta) {
  if (rope.contains("factor") && rope["factor"].is_null()) rope[kComputedFactor] = true;
  for (auto at = rope.begin(); at != rope.end();) {
    at = at->is_null() && !(keeps_theta && at.key() == kTheta) ? rope.erase(at) : std::next(at);
  }
  if (rope.contains("type") && !rope.contains("rope_type")) rope["rope_type"] = rope["type"];
  rope.erase("type");
  return rope;
}

class RopeUniter {
 public:
  explicit RopeUniter(const HubConfig& config) : config_(config), table_(config.rotary_defaults()) {}

  Result<HubRope> unite() {
    CANDOR_ASSIGN(json rope, stated());
    const bool is_stated = !rope.is_null();
    if (!is_stated) rope = table_.is_null() ? json::object() : table_["default"];
    const bool has_kinds = !table_.is_null() && is_by_kind(table_["default"]);
    if (has_kinds && is_stated && !is_by_kind(rope) && is_scaling_) {
      if (!rope.contains("rope_type")) return config_.bad("rope_scaling", rope, "a \"rope_type\"");
      rope = json{{kFull, rope}};
    }
    if (has_kinds && is_stated && !is_by_kind(rope)) {
      return config_.unsupported("rope_parameters", rope, "by kind of block: full_attention, sliding_attention");
    }
    HubRope united;
    if (!is_by_kind(rope)) {
      CANDOR_ASSIGN(united.full, complete(std::move(rope), is_stated, kFull, ""));
      return united;
    }
    if (!has_kinds) return config_.unsupported("rope_parameters", rope, "the same for all blocks");
    if (config_.model_type() == "gemma4_text" && is_stated) CANDOR_TRY(check_whole(rope));
    CANDOR_ASSIGN(united.full, complete_kind(rope, is_stated, kFull, has_kinds));
    CANDOR_ASSIGN(united.windowed, complete_kind(rope, is_stated, kWindowed, has_kinds));
    return united;
  }

 private:
  // What the folder says as one object; null where it says nothing.
  Result<json> stated() {
    const json* scaling = config_.find("rope_scaling");
    const json* parameters = config_.find("rope_parameters");
    for (const auto& [key, value] : {std::pair{"rope_scaling", scaling}, std::pair{"rope_parameters", parameters}}) {
      if (value != nullptr && !value->is_object()) return config_.bad(key, *value, "an object");
    }
    const bool has_scaling = scaling != nullptr && !scaling->empty();
    const bool has_parameters = parameters != nullptr && !parameters->empty();
    if (has_scaling && has_parameters && without_nulls(*scaling, false) != without_nulls(*parameters, false)) {
      return config_.bad(
          "rope_scaling", *scaling,
          fmt::format(
              "the same as \"rope_parameters\", which is {}; remove one",
              formats::in_quotes(parameters->dump(-1, ' ', false, json::error_handler_t::replace).substr(0, kShown))));
    }
    is_scaling_ = has_scaling && !has_parameters;
    if (is_scaling_ && config_.model_type() == "gemma4_text") {
      return config_.unsupported("rope_scaling", *scaling, "rope_parameters by kind of block");
    }
    return has_parameters ? *parameters : has_scaling ? *scaling : json();
  }

  // Gemma 4 takes nothing where a kind of block, or its base, is left out.
  Result<void> check_whole(const json& rope) const {
    for (const char* kind : {kFull, kWindowed}) {
      const bool is_whole = rope.contains(kind) && rope[kind].is_object() && rope[kind].contains(kTheta);
      if (!is_whole) return config_.bad("rope_parameters", rope, fmt::format("a base for {}", kind));
    }
    return {};
  }

  Result<json> complete_kind(const json& all, bool is_stated, const char* kind, bool has_default) {
    const json own = all.contains(kind) ? all[kind] : json();
    if (!own.is_null() && !own.is_object()) return config_.bad("rope_parameters", own, "an object by kind of block");
    if (!own.is_null()) return complete(own, is_stated, kind, fmt::format("{}.", kind));
    if (!has_default) return config_.bad("rope_parameters", all, fmt::format("settings of {} too", kind));
    return complete(json{{"rope_type", "default"}}, is_stated, kind, fmt::format("{}.", kind));
  }

  Result<json> complete(json rope, bool is_stated, const char* kind, const std::string& place) {
    rope = without_nulls(std::move(rope), rotates_nothing_without_base());
    if (!rope.contains("rope_type")) rope["rope_type"] = "default";
    if (!rope["rope_type"].is_string()) return config_.bad("rope_type", rope["rope_type"], "a name");
    // Phi-3's class takes older names, and YaRN, for long rope.
    if (config_.model_type() == "phi3" && (rope["rope_type"] == "su" || rope["rope_type"] == "yarn")) {
      rope["rope_type"] = "longrope";
    }
    if (config_.model_type() == "phi3" && rope["rope_type"] != "longrope" && rope["rope_type"] != "default") {
      return config_.unsupported("rope_type", rope["rope_type"], "default, longrope");
    }
    CANDOR_TRY(add_theta(rope, is_stated, kind, place));
    CANDOR_TRY(add_partial(rope, is_stated, place));
    for (const char* key : {kTheta, kPartial}) {
      if (is_neox() && config_.contains(key)) config_.add_without_effect(key);
    }
    CANDOR_TRY(add_original(rope));
    return rope;
  }

  // The key of the folder beside the object that stands for a member of it.
  const json* beside(const char* member, const char* kind) const {
    const bool is_windowed = std::string_view(kind) == kWindowed;
    if (is_neox()) return config_.find(member == kTheta ? "rotary_emb_base" : "rotary_pct");
    if (member == kTheta && is_windowed && config_.model_type() == "olmo3") return nullptr;
    if (member == kTheta && is_windowed && has_base_by_kind()) return config_.find("rope_local_base_freq");
    return config_.find(member);
  }
  // OLMo Hybrid, where the base is null.
  bool rotates_nothing_without_base() const { return config_.model_type() == "olmo_hybrid"; }
  // GPT-NeoX has names of its own beside the object, and heeds no others there.
  bool is_neox() const { return config_.model_type() == "gpt_neox"; }
  bool has_base_by_kind() const { return !table_.is_null() && table_["theta"].is_object(); }
  bool takes(const char* flag) const { return table_.is_null() || is_neox() || table_[flag] == true; }

  Error contradicts(const char* key, const json& inside, const json& beside) const {
    return config_.bad(
        key, beside,
        fmt::format("what the rotary settings say of it, {}; remove one", formats::in_quotes(inside.dump())));
  }

  Result<void> add_theta(json& rope, bool is_stated, const char* kind, const std::string& place) {
    const json* outside = beside(kTheta, kind);
    if (rope.contains(kTheta) && is_stated) return check_beside(kTheta, rope[kTheta], outside);
    if (rotates_nothing_without_base() && config_.is_stated(kTheta) && outside == nullptr) {
      rope[kTheta] = json();
      return {};
    }
    if (outside != nullptr && (is_stated || takes("takes_theta"))) {
      rope[kTheta] = *outside;
      return {};
    }
    if (outside != nullptr) config_.add_without_effect(kTheta);
    if (!rope.contains(kTheta)) {
      if (table_.is_null()) return {};
      rope[kTheta] =
          has_base_by_kind() ? table_["theta"][std::string_view(kind) == kFull ? "global" : "local"] : table_["theta"];
    }
    config_.add_assumed(place + kTheta, rope[kTheta]);
    return {};
  }

  const char* partial_key() const {
    return config_.model_type() == "minimax_m2" && !config_.contains(kPartial) ? "rotary_dim" : kPartial;
  }

  // MiniMax states how many dimensions of a head rotate.
  Result<json> stated_partial() const {
    const json* n_dims = config_.model_type() == "minimax_m2" ? config_.find("rotary_dim") : nullptr;
    const json* outside = beside(kPartial, kFull);
    if (n_dims == nullptr || outside != nullptr) return outside == nullptr ? json() : *outside;
    CANDOR_ASSIGN(const std::optional<double> width, hub_number(config_, "head_dim"));
    if (!n_dims->is_number()) return config_.bad("rotary_dim", *n_dims, "a number");
    return width.value_or(0.0) > 0.0 ? json(n_dims->get<double>() / *width) : json();
  }

  Result<void> add_partial(json& rope, bool is_stated, const std::string& place) {
    CANDOR_ASSIGN(const json outside, stated_partial());
    const json* stated = outside.is_null() ? nullptr : &outside;
    if (rope.contains(kPartial) && is_stated) return check_beside(partial_key(), rope[kPartial], stated);
    if (stated != nullptr && (takes("takes_partial") || config_.model_type() == "minimax_m2")) {
      rope[kPartial] = *stated;
      return {};
    }
    if (stated != nullptr) config_.add_without_effect(kPartial);
    if (rope.contains(kPartial)) return {};
    const json usual = table_.is_null() || table_["partial"].is_null() ? json(1.0) : table_["partial"];
    if (usual == 1.0) return {};
    rope[kPartial] = usual;
    config_.add_assumed(place + kPartial, usual);
    return {};
  }

  // What is not taken from beside the object must say the same.
  Result<void> check_beside(const char* key, const json& inside, const json* beside) const {
    const bool is_same = beside == nullptr || *beside == inside ||
                         (beside->is_number() && inside.is_number() && beside->get<double>() == inside.get<double>());
    return is_same ? Result<void>{} : contradicts(key, inside, *beside);
  }

  // The key beside the object stands above the one inside, as in the library; where neither is there, the model's
  // context is meant.
  Result<void> add_original(json& rope) {
    const std::string type = rope["rope_type"].get<std::string>();
    const json* outside = config_.find(kOriginal);
    if (type != "llama3" && type != "yarn" && type != "longrope" && type != "su") return {};
    if (outside != nullptr && rope.contains(kOriginal) && rope[kOriginal] != *outside)
      return contradicts(kOriginal, rope[kOriginal], *outside);
    if (outside != nullptr) rope[kOriginal] = *outside;
    if (rope.contains(kOriginal)) return {};
    const json* context = config_.find({"max_position_embeddings"});
    if (context == nullptr) return {};
    rope[kOriginal] = *context;
    config_.add_assumed(kOriginal, *context);
    return {};
  }

  static constexpr size_t kShown = 200;
  const HubConfig& config_;
  const json& table_;
  bool is_scaling_ = false;  // "rope_scaling" alone
};

// Members that a kind of scaling heeds, and those that it cannot do without.
struct RopeKind {
  std::string_view type;
  std::array<const char*, 4> needed;
  std::array<const char*, 7> heeded;
};
constexpr RopeKind kKinds[] = {
    {"default", {}, {}},
    {"mrope", {}, {}},  // as older folders call it where positions have several axes
    {"linear", {"factor"}, {}},
    {"dynamic", {"factor"}, {"alpha"}},
    {"ntk", {"factor"}, {}},
    {"yarn", {"factor"}, {"attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"}},
    {"longrope", {"short_factor", "long_factor"}, {"factor", "attention_factor"}},
    {"su", {"short_factor", "long_factor"}, {"factor", "attention_factor"}},
    {"llama3", {"factor", "low_freq_factor", "high_freq_factor"}, {}},
    {"proportional", {}, {}},
};

bool is_listed(const auto& names, std::string_view name) {
  return std::ranges::any_of(names, [&](const char* one) { return one != nullptr && name == one; });
}

// Every member is heeded or noted as without effect.
Result<void> check_kind(const HubConfig& config, const json& rope) {
  const std::string type = rope["rope_type"].get<std::string>();
  const auto* kind = std::ranges::find(kKinds, std::string_view(type), &RopeKind::type);
  if (kind == std::end(kKinds)) {
    return config.unsupported("rope_type", type, "default, linear, dynamic, yarn, llama3, longrope");
  }
  for (const char* key : kind->needed) {
    if (key == nullptr || rope.contains(key)) continue;
    if (type == "yarn" && rope.contains(kComputedFactor)) continue;
    return config.bad("rope_scaling", rope, fmt::format("a \"{}\", which {} needs", key, type));
  }
  for (const auto& [key, value] : rope.items()) {
    const bool is_shared =
        key == "rope_type" || key == kComputedFactor || key == kTheta || key == kPartial || key == kOriginal;
    const bool is_own = key == "llama_4_scaling_beta" && (type == "yarn" || type == "default");
    const bool is_idle = key.starts_with("mrope_") || key == "max_position_embeddings";
    if (is_shared || is_own || is_idle || is_listed(kind->needed, key) || is_listed(kind->heeded, key)) continue;
    config.add_without_effect(fmt::format("rope_scaling.{}", key));
  }
  return {};
}

}  // namespace

double yarn_length(double scale, double share) {
  return scale <= 1.0 ? 1.0 : 1.0 + 0.1 * share * rounded_log(scale);
}

Result<std::optional<double>> rope_number(const HubConfig& config, const json& rope, const char* key) {
  const auto at = rope.find(key);
  if (at == rope.end() || at->is_null()) return std::optional<double>();
  if (!at->is_number() || !std::isfinite(at->get<double>())) return config.bad(key, *at, "a number");
  return std::optional<double>(at->get<double>());
}

Result<HubRope> unite_rope(const HubConfig& config) {
  CANDOR_ASSIGN(HubRope rope, RopeUniter(config).unite());
  CANDOR_TRY(check_kind(config, rope.full));
  if (!rope.windowed.is_null()) CANDOR_TRY(check_kind(config, rope.windowed));
  return rope;
}

namespace {

class RopeReader {
 public:
  RopeReader(const HubConfig& config, const HubForm& form, std::string_view prefix, formats::MetaList& metadata)
      : config_(config), form_(form), prefix_(prefix), metadata_(metadata) {}

  Result<void> read(const HubRope& rope) {
    if (!rope.windowed.is_null()) CANDOR_TRY(read_windowed(rope));
    const std::string type = rope.full["rope_type"].get<std::string>();
    CANDOR_ASSIGN(const std::optional<double> base, rope_number(config_, rope.full, kTheta));
    if (base) add("rope.freq_base", as_float(*base));
    if (type == "proportional") return {};
    CANDOR_TRY(read_partial(rope.full, type));
    if (type == "default" || type == "llama3") return {};
    if (type == "ntk") return read_ntk(rope.full, base.value_or(kUsualBase));
    if (type == "dynamic") return read_dynamic(rope.full, base.value_or(kUsualBase));
    if (type == "longrope" || type == "su") return read_long_rope(rope.full);
    return read_scaling(rope.full, type);
  }

 private:
  static constexpr double kUsualBase = 10000.0;
  // As a file of the other format would hold it.
  static double as_float(double value) { return static_cast<double>(static_cast<float>(value)); }

  void add(std::string_view suffix, formats::MetaValue value) {
    metadata_.add(fmt::format("{}.{}", prefix_, suffix), std::move(value));
  }

  // Blocks with a window rotate by a base alone.
  Result<void> read_windowed(const HubRope& rope) {
    CANDOR_ASSIGN(const std::optional<double> base, rope_number(config_, rope.windowed, kTheta));
    if (base) add("rope.freq_base_swa", *base);
    const bool is_plain = rope.windowed["rope_type"] == "default" && !rope.windowed.contains(kPartial);
    if (is_plain || rope.windowed == rope.full) return {};
    return config_.unsupported("rope_parameters", rope.windowed, "windowed blocks that are not scaled");
  }

  Result<std::optional<double>> head_dim() const {
    CANDOR_ASSIGN(const std::optional<double> own, hub_number(config_, "head_dim"));
    if (own) return own;
    CANDOR_ASSIGN(const std::optional<double> dim, hub_number(config_, "hidden_size"));
    CANDOR_ASSIGN(const std::optional<double> heads, hub_number(config_, "num_attention_heads"));
    if (!dim || heads.value_or(0.0) < 1.0) return std::optional<double>();
    return std::optional<double>(std::floor(*dim / *heads));
  }

  Result<void> read_partial(const json& rope, std::string_view type) {
    CANDOR_ASSIGN(const std::optional<double> share, rope_number(config_, rope, kPartial));
    if (!share || *share == 1.0) return {};
    if (form_.implies_partial) return {};
    const json& table = config_.rotary_defaults();
    if (!table.is_null() && table["uses_partial"] != true) {
      const bool is_by_alpha = type == "dynamic" && form_.reads_alpha;
      if (type != "default" && !is_by_alpha) return config_.unsupported(kPartial, *share, "1");
      config_.add_without_effect(kPartial);
      return {};
    }
    if (!form_.reads_partial) return config_.unsupported(kPartial, *share, "1");
    CANDOR_ASSIGN(const std::optional<double> width, head_dim());
    if (!width || !(*width >= 1.0 && *width <= static_cast<double>(kMaxWidth))) return {};  // refused with the sizes
    if (!(*share > 0.0 && *share < 1.0)) return config_.bad(kPartial, *share, "a share of 1");
    const auto n_dims = static_cast<uint64_t>(*share * *width);
    add("rope.dimension_count", n_dims + n_dims % 2);
    return {};
  }

  // The rule is felt only beyond the model's context; NTK-aware scaling with a fixed alpha is felt everywhere.
  Result<void> read_dynamic(const json& rope, double base) {
    CANDOR_ASSIGN(const std::optional<double> alpha, rope_number(config_, rope, "alpha"));
    if (alpha.value_or(0.0) == 0.0) return {};
    if (!form_.reads_alpha) return config_.unsupported("rope_type", "dynamic", "dynamic without alpha");
    CANDOR_ASSIGN(const std::optional<double> width, head_dim());
    if (!width || !(*width > 2.0 && *width <= static_cast<double>(kMaxWidth))) return {};  // refused with the sizes
    if (!(*alpha > 0.0)) return config_.bad("alpha", *alpha, "a number above 0");
    const double growth = rounded_exp(*width / (*width - 2.0) * rounded_log(*alpha));
    add("rope.freq_base", as_float(base * growth));
    return {};
  }

  // NTK-aware scaling as NewModel's code has it, whatever the context: base * factor, and all frequencies by
  // factor^(2 / width) less.
  Result<void> read_ntk(const json& rope, double base) {
    if (form_.model_type != "new") return config_.unsupported("rope_type", "ntk", "linear, dynamic, yarn");
    CANDOR_ASSIGN(const std::optional<double> factor, rope_number(config_, rope, "factor"));
    CANDOR_ASSIGN(const std::optional<double> width, head_dim());
    if (!(*factor > 0.0)) return config_.bad("factor", *factor, "a number above 0");
    if (!width || !(*width >= 1.0) || *factor <= 1.0) return {};
    add("rope.freq_base", as_float(base * *factor));
    metadata_.add_string(fmt::format("{}.rope.scaling.type", prefix_), "linear");
    add("rope.scaling.factor", as_float(rounded_pow(*factor, 2.0 / *width)));
    return {};
  }

  Result<double> original_context(const json& rope) {
    CANDOR_ASSIGN(const std::optional<double> original, rope_number(config_, rope, kOriginal));
    if (original && *original >= 1.0 && *original <= static_cast<double>(kMaxPositions) &&
        *original == std::floor(*original)) {
      add("rope.scaling.original_context_length", static_cast<uint64_t>(*original));
      return *original;
    }
    return config_.bad(kOriginal, original ? json(*original) : json(), fmt::format("1 to {}", kMaxPositions));
  }

  Result<double> growth_of_context(const json& rope, double original) const {
    CANDOR_ASSIGN(const std::optional<double> factor, rope_number(config_, rope, "factor"));
    if (factor) return *factor;
    CANDOR_ASSIGN(const std::optional<double> context, hub_number(config_, "max_position_embeddings"));
    return context.value_or(original) / original;
  }

  Result<void> read_scaling(const json& rope, const std::string& type) {
    metadata_.add_string(fmt::format("{}.rope.scaling.type", prefix_), type);
    if (type == "linear") {
      CANDOR_ASSIGN(const std::optional<double> factor, rope_number(config_, rope, "factor"));
      if (!(*factor > 0.0)) return config_.bad("factor", *factor, "a number above 0");
      add("rope.scaling.factor", *factor);
      return {};
    }
    CANDOR_ASSIGN(const double original, original_context(rope));
    CANDOR_ASSIGN(const double factor, growth_of_context(rope, original));
    if (!(factor > 0.0)) return config_.bad("factor", factor, "a number above 0");
    add("rope.scaling.factor", factor);
    return read_yarn(rope, factor);
  }

  Result<void> read_yarn(const json& rope, double factor) {
    const auto truncates = rope.find("truncate");
    if (truncates != rope.end() && !truncates->is_boolean())
      return config_.bad("truncate", *truncates, "true or false");
    if (truncates != rope.end()) add("rope.scaling.yarn_truncate", truncates->get<bool>());
    CANDOR_ASSIGN(const std::optional<double> fast, rope_number(config_, rope, "beta_fast"));
    CANDOR_ASSIGN(const std::optional<double> slow, rope_number(config_, rope, "beta_slow"));
    add("rope.scaling.yarn_beta_fast", fast.value_or(0.0) == 0.0 ? 32.0 : *fast);
    add("rope.scaling.yarn_beta_slow", slow.value_or(0.0) == 0.0 ? 1.0 : *slow);
    CANDOR_ASSIGN(const std::optional<double> stated, rope_number(config_, rope, "attention_factor"));
    CANDOR_ASSIGN(const std::optional<double> mscale, rope_number(config_, rope, "mscale"));
    CANDOR_ASSIGN(const std::optional<double> all, rope_number(config_, rope, "mscale_all_dim"));
    double length = yarn_length(factor, 1.0);
    if (mscale.value_or(0.0) != 0.0 && all.value_or(0.0) != 0.0) {
      length = yarn_length(factor, *mscale) / yarn_length(factor, *all);
    }
    length = stated.value_or(length);
    if (!(length > 0.0)) return config_.bad("attention_factor", length, "a number above 0");
    add("rope.scaling.attn_factor", length / (1.0 + 0.1 * rounded_log(factor)));
    return {};
  }

  // The factors themselves become tensors; the attention factor is what the paper's code computes.
  Result<void> read_long_rope(const json& rope) {
    CANDOR_ASSIGN(const double original, original_context(rope));
    CANDOR_ASSIGN(const double scale, growth_of_context(rope, original));
    CANDOR_ASSIGN(const std::optional<double> stated, rope_number(config_, rope, "attention_factor"));
    const double usual =
        scale > 1.0 && original > 1.0 ? std::sqrt(1.0 + rounded_log(scale) / rounded_log(original)) : 1.0;
    add("rope.scaling.attn_factor", as_float(stated.value_or(usual)));
    return {};
  }

  const HubConfig& config_;
  const HubForm& form_;
  std::string_view prefix_;
  formats::MetaList& metadata_;
};

}  // namespace

Result<void> read_hub_rope(const HubConfig& config, const HubRope& rope, const HubForm& form, std::string_view prefix,
                           formats::MetaList& metadata) {
  return RopeReader(config, form, prefix, metadata).read(rope);
}

}  // namespace candor::model
