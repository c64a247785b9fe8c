#include "model/families/hybrid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "formats/model_file.h"
#include "formats/quote.h"
#include "model/hub/hub_config.h"

namespace candor::model {

using nlohmann::json;

Result<std::vector<bool>> read_attending(const Hparams& hparams, size_t n_layers) {
  CANDOR_ASSIGN(const std::vector<int32_t> counts,
                hparams.per_layer("attention.head_count_kv", static_cast<int32_t>(n_layers), {0, kMaxWidth}));
  std::vector<bool> attending;
  attending.reserve(counts.size());
  for (const int32_t count : counts) attending.push_back(count != 0);
  return attending;
}

namespace {

template <class Config>
Result<uint64_t> require_size(const Config& config, const char* key) {
  CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, key));
  if (value && *value >= 1.0 && *value <= static_cast<double>(kMaxWidth) && *value == std::floor(*value)) {
    return static_cast<uint64_t>(*value);
  }
  return fail(ErrorKind::kInvalidInput,
              fmt::format("config.json: \"{}\" is {}, expected 1 to {}", key, value ? fmt::to_string(*value) : "absent",
                          kMaxWidth));
}

}  // namespace

Result<uint64_t> require_hub_size(const HubConfig& config, const char* key) {
  return require_size(config, key);
}
Result<uint64_t> require_hub_size(const json& object, const char* key) {
  return require_size(object, key);
}

Result<std::vector<bool>> hub_attending(const HubConfig& config, std::span<const std::string_view> attends,
                                        std::span<const std::string_view> keeps) {
  const json* types = config.find("layer_types");
  if (types == nullptr || !types->is_array()) {
    return fail(ErrorKind::kInvalidInput, "config.json: \"layer_types\" is absent or no list; expected a kind for each "
                                          "block");
  }
  std::vector<bool> attending;
  for (const json& type : *types) {
    const std::string name = type.is_string() ? type.get<std::string>() : std::string();
    const bool does_attend = std::ranges::find(attends, name) != attends.end();
    if (!does_attend && std::ranges::find(keeps, name) == keeps.end()) {
      return fail(ErrorKind::kUnsupported,
                  fmt::format("config.json: \"layer_types\" has {}, which is not supported (supported: {}, {})",
                              formats::in_quotes(type.dump()), fmt::join(keeps, ", "), fmt::join(attends, ", ")));
    }
    attending.push_back(does_attend);
  }
  return attending;
}

Result<void> add_kv_heads(const HubConfig& config, std::string_view prefix, const std::vector<bool>& attending,
                          formats::MetaList& metadata) {
  CANDOR_ASSIGN(const uint64_t n_kv_heads, require_hub_size(config, "num_key_value_heads"));
  std::vector<int64_t> counts;
  counts.reserve(attending.size());
  for (const bool attends : attending) counts.push_back(attends ? static_cast<int64_t>(n_kv_heads) : 0);
  metadata.add(fmt::format("{}.attention.head_count_kv", prefix), formats::MetaArray(std::move(counts)));
  return {};
}

namespace {

// Of folders alone.
constexpr std::string_view kLeastStepKey = "ssm.time_step_min";
constexpr std::string_view kMostStepKey = "ssm.time_step_max";

Error contradicts(const Hparams& hparams, std::string_view suffix, int32_t value, std::string_view other, int32_t is) {
  return fail(ErrorKind::kInvalidInput,
              fmt::format("metadata key \"{}\" is {}; expected a multiple of \"{}\", which is {}", hparams.key(suffix),
                          value, hparams.key(other), is));
}

Result<void> refuse(const HubConfig& config, const char* key, bool is_fine, std::string_view supported) {
  if (is_fine) return {};
  return fail(ErrorKind::kUnsupported, fmt::format("config.json: \"{}\" is {}, which is not supported (supported: {})",
                                                   key, formats::in_quotes(config[key].dump()), supported));
}

// A limit of steps, however infinity is written; nothing where it is no such number.
std::optional<double> step_limit(const json& limit) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (limit.is_object() && limit.value("__float__", json()) == "Infinity") return kInfinity;
  if (!limit.is_number() || limit.get<double>() < 0.0) return std::nullopt;
  return limit.get<double>() >= 1e30 ? kInfinity : limit.get<double>();
}

Result<void> read_step_limits(const HubConfig& config, std::string_view prefix, const char* least_step,
                              formats::MetaList& metadata) {
  const json& limits = config["time_step_limit"];
  if (least_step != nullptr) {
    if (config.is_stated("time_step_limit")) config.add_without_effect("time_step_limit");
    const std::optional<double> alone = step_limit(config[least_step]);
    if (!alone || std::isinf(*alone)) return config.bad(least_step, config[least_step], "a number, 0 or more");
    if (*alone > 0.0) metadata.add(fmt::format("{}.{}", prefix, kLeastStepKey), *alone);
    return {};
  }
  if (limits.is_null()) return {};
  const bool is_pair = limits.is_array() && limits.size() == 2;
  const std::optional<double> least = is_pair ? step_limit(limits[0]) : std::nullopt;
  const std::optional<double> most = is_pair ? step_limit(limits[1]) : std::nullopt;
  if (!least || !most || std::isinf(*least) || *most <= *least) {
    return config.bad("time_step_limit", limits, "two numbers, 0 or more, the second one larger");
  }
  if (*least > 0.0) metadata.add(fmt::format("{}.{}", prefix, kLeastStepKey), *least);
  if (std::isfinite(*most)) metadata.add(fmt::format("{}.{}", prefix, kMostStepKey), *most);
  return {};
}

}  // namespace

Result<backend::SsmSpec> read_ssm(const Hparams& hparams) {
  constexpr int64_t kMostHeads = 4096;
  backend::SsmSpec ssm;
  CANDOR_ASSIGN(ssm.n_heads, hparams.require_int("ssm.time_step_rank", {1, kMostHeads}));
  CANDOR_ASSIGN(ssm.n_groups, hparams.require_int("ssm.group_count", {1, kMostHeads}));
  CANDOR_ASSIGN(ssm.state_dim, hparams.require_int("ssm.state_size", {1, backend::kMaxStateDim}));
  CANDOR_ASSIGN(ssm.n_taps, hparams.require_int("ssm.conv_kernel", {2, backend::kMaxConvTaps}));
  CANDOR_ASSIGN(const int32_t width, hparams.require_int("ssm.inner_size", {1, kMaxWidth}));
  if (ssm.n_heads % ssm.n_groups != 0) {
    return contradicts(hparams, "ssm.time_step_rank", ssm.n_heads, "ssm.group_count", ssm.n_groups);
  }
  if (width % ssm.n_heads != 0) return contradicts(hparams, "ssm.inner_size", width, "ssm.time_step_rank", ssm.n_heads);
  ssm.head_dim = width / ssm.n_heads;
  if (hparams.has(kLeastStepKey)) {
    CANDOR_ASSIGN(const double least, hparams.require_positive(kLeastStepKey));
    ssm.least_step = static_cast<float>(least);
  }
  if (hparams.has(kMostStepKey)) {
    CANDOR_ASSIGN(const double most, hparams.require_positive(kMostStepKey));
    ssm.most_step = static_cast<float>(most);
  }
  if (ssm.least_step < ssm.most_step) return ssm;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("metadata key \"{}\" is {}; expected less than \"{}\", which is {}", hparams.key(kLeastStepKey),
                          ssm.least_step, hparams.key(kMostStepKey), ssm.most_step));
}

Result<void> read_hub_ssm(const HubConfig& config, std::string_view prefix, const SsmNames& names,
                          formats::MetaList& metadata) {
  const auto value_of = [&](const char* key) { return config.contains(key) ? config[key] : json(); };
  CANDOR_TRY(read_step_limits(config, prefix, names.least_step, metadata));
  const json bias = value_of("mamba_proj_bias");
  CANDOR_TRY(refuse(config, "mamba_proj_bias", bias.is_null() || bias == false, "false"));
  const auto add = [&](const char* suffix, uint64_t value) {
    metadata.add(fmt::format("{}.ssm.{}", prefix, suffix), value);
  };
  CANDOR_ASSIGN(const uint64_t n_heads, require_hub_size(config, names.n_heads));
  CANDOR_ASSIGN(const uint64_t n_groups, require_hub_size(config, names.n_groups));
  CANDOR_ASSIGN(const uint64_t state_dim, require_hub_size(config, names.state_dim));
  CANDOR_ASSIGN(const uint64_t n_taps, require_hub_size(config, names.n_taps));
  add("time_step_rank", n_heads);
  add("group_count", n_groups);
  add("state_size", state_dim);
  add("conv_kernel", n_taps);
  if (value_of(names.head_dim).is_number()) {
    CANDOR_ASSIGN(const uint64_t head_dim, require_hub_size(config, names.head_dim));
    add("inner_size", n_heads * head_dim);
    return {};
  }
  CANDOR_ASSIGN(const uint64_t dim, require_hub_size(config, "hidden_size"));
  CANDOR_ASSIGN(const uint64_t factor, require_hub_size(config, "mamba_expand"));
  add("inner_size", dim * factor);
  return {};
}

void write_hub_ssm(const ArchSpec& spec, const SsmNames& names, nlohmann::ordered_json& config) {
  const auto block = std::ranges::find_if(spec.blocks, &BlockSpec::has_ssm);
  if (block == spec.blocks.end()) return;
  const backend::SsmSpec& ssm = block->ssm;
  config[names.n_heads] = ssm.n_heads;
  config[names.head_dim] = ssm.head_dim;
  config[names.n_groups] = ssm.n_groups;
  config[names.state_dim] = ssm.state_dim;
  config[names.n_taps] = ssm.n_taps;
  if (names.least_step != nullptr) {
    config[names.least_step] = shortest_decimal(ssm.least_step);
    return;
  }
  if (ssm.least_step == 0.0f && std::isinf(ssm.most_step)) return;
  json most = shortest_decimal(ssm.most_step);
  if (std::isinf(ssm.most_step)) most = {{"__float__", "Infinity"}};
  config["time_step_limit"] = {shortest_decimal(ssm.least_step), std::move(most)};
}

namespace {

struct KeyName {
  const char* key;
  const char* hub;
};
constexpr KeyName kDeltaSizes[] = {
    {"ssm.conv_kernel", "linear_conv_kernel_dim"},
    {"ssm.state_size", "linear_key_head_dim"},
    {"ssm.group_count", "linear_num_key_heads"},
    {"ssm.time_step_rank", "linear_num_value_heads"},
};

Error contradiction(const Hparams& hparams, std::string_view suffix, int32_t value, std::string_view reason) {
  return fail(ErrorKind::kInvalidInput,
              fmt::format("metadata key \"{}\" is {}, {}", hparams.key(suffix), value, reason));
}

}  // namespace

Result<backend::DeltaSpec> read_delta(const Hparams& hparams, backend::KeyHeads key_heads) {
  backend::DeltaSpec delta;
  delta.key_heads = key_heads;
  constexpr int64_t kMostHeads = 4096;
  CANDOR_ASSIGN(delta.n_k_heads, hparams.require_int("ssm.group_count", {1, kMostHeads}));
  CANDOR_ASSIGN(delta.n_v_heads, hparams.require_int("ssm.time_step_rank", {1, kMostHeads}));
  CANDOR_ASSIGN(delta.k_dim, hparams.require_int("ssm.state_size", {1, backend::kMaxStateDim}));
  CANDOR_ASSIGN(delta.n_taps, hparams.require_int("ssm.conv_kernel", {2, backend::kMaxConvTaps}));
  CANDOR_ASSIGN(const int32_t v_width, hparams.require_int("ssm.inner_size", {1, kMaxWidth}));
  if (delta.n_v_heads % delta.n_k_heads != 0) {
    return contradiction(hparams, "ssm.time_step_rank", delta.n_v_heads,
                         fmt::format("expected a multiple of \"{}\", which is {}", hparams.key("ssm.group_count"),
                                     delta.n_k_heads));
  }
  delta.v_dim = v_width / delta.n_v_heads;
  if (v_width % delta.n_v_heads != 0 || delta.v_dim > backend::kMaxStateDim) {
    return contradiction(hparams, "ssm.inner_size", v_width,
                         fmt::format("expected a multiple of \"{}\", which is {}, and at most {} times that",
                                     hparams.key("ssm.time_step_rank"), delta.n_v_heads, backend::kMaxStateDim));
  }
  return delta;
}

Result<void> read_hub_delta(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  for (const KeyName& row : kDeltaSizes) {
    CANDOR_ASSIGN(const uint64_t size, require_hub_size(config, row.hub));
    metadata.add(fmt::format("{}.{}", prefix, row.key), size);
  }
  CANDOR_ASSIGN(const uint64_t n_heads, require_hub_size(config, "linear_num_value_heads"));
  CANDOR_ASSIGN(const uint64_t v_dim, require_hub_size(config, "linear_value_head_dim"));
  metadata.add(fmt::format("{}.ssm.inner_size", prefix), n_heads * v_dim);
  return {};
}

void write_hub_delta(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const auto block = std::ranges::find_if(spec.blocks, &BlockSpec::has_delta);
  if (block == spec.blocks.end()) return;
  const backend::DeltaSpec& delta = block->delta;
  config["linear_conv_kernel_dim"] = delta.n_taps;
  config["linear_key_head_dim"] = delta.k_dim;
  config["linear_value_head_dim"] = delta.v_dim;
  config["linear_num_key_heads"] = delta.n_k_heads;
  config["linear_num_value_heads"] = delta.n_v_heads;
}

}  // namespace candor::model
