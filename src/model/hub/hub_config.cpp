#include "model/hub/hub_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "formats/quote.h"
#include "model/hparams.h"
#include "model/hub/hub_derived.h"

namespace candor::model {

using nlohmann::json;

namespace {

constexpr size_t kShownChars = 200;

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kShownChars) text = text.substr(0, kShownChars) + "...";
  return text;
}

// Whole numbers and fractions of the same value are the same.
bool are_same(const json& a, const json& b) {
  if (a.is_number() && b.is_number()) return a.get<double>() == b.get<double>();
  return a == b;
}

}  // namespace

Result<HubConfig> HubConfig::make(json config, std::string_view model_type, std::string name) {
  if (!config.is_object()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: is no JSON object; download it again", name));
  }
  HubConfig made;
  made.model_type_ = model_type;
  made.name_ = std::move(name);
  made.stated_ = std::move(config);
  if (std::optional<HubDefaults> table = hub_defaults(model_type)) {
    made.has_table_ = true;
    made.defaults_ = std::move(table->values);
    made.names_ = std::move(table->names);
    made.rotary_ = std::move(table->rotary);
    for (const json& key : table->others) made.known_.insert(key.get<std::string>());
    for (const auto& [key, value] : made.defaults_.items()) made.known_.insert(key);
  }
  CANDOR_TRY(made.unite_names());
  made.add_defaults();
  if (const std::string_view key = missing_setting(model_type, made.values_); !key.empty()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: \"{}\" is absent, and {} has no value for it; set it", made.name_, key,
                            hub_defaults_source()));
  }
  return made;
}

// A key under another name moves to its first one.
Result<void> HubConfig::unite_names() {
  if (!has_table_) return {};
  for (const auto& [other, key] : names_.items()) {
    const auto at = stated_.find(other);
    if (at == stated_.end()) continue;
    const json value = *at;
    const auto first = stated_.find(key.get<std::string>());
    if (first == stated_.end() || first->is_null()) {
      stated_[key.get<std::string>()] = value;
      used_names_[key.get<std::string>()] = other;
    } else if (!value.is_null() && !are_same(*first, value)) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("{}: \"{}\" is {} and \"{}\" is {}, which are two names of the same; remove one", name_,
                              other, formats::in_quotes(shown(value)), key.get<std::string>(),
                              formats::in_quotes(shown(*first))));
    }
    stated_.erase(other);
  }
  return {};
}

void HubConfig::add_defaults() {
  values_ = stated_;
  if (!has_table_) return;
  for (const auto& [key, value] : defaults_.items()) {
    if (!values_.contains(key)) values_[key] = value;
    if (!value.is_object() || !values_[key].is_object()) continue;
    for (const auto& [member, usual] : value.items()) {
      if (!values_[key].contains(member)) values_[key][member] = usual;
    }
  }
  derive_settings(model_type_, values_);
}

std::string HubConfig::canonical(std::string_view key) const {
  if (has_table_) {
    const auto at = names_.find(key);
    if (at != names_.end()) return at->get<std::string>();
  }
  return std::string(key);
}

bool HubConfig::is_known(const std::string& key) const {
  return !has_table_ || known_.contains(key) || key == "rope_parameters" || is_without_effect(key);
}

const json* HubConfig::find(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view name : keys) {
    const std::string key = canonical(name);
    if (!is_known(key)) continue;
    read_.insert(key);
    const auto at = values_.find(key);
    if (at != values_.end() && !at->is_null()) return &*at;
  }
  return nullptr;
}

std::string HubConfig::name_of(std::initializer_list<std::string_view> keys) const {
  const auto* at = std::ranges::find_if(keys, [this](std::string_view key) { return find(key) != nullptr; });
  const std::string key = canonical(at == keys.end() ? *keys.begin() : *at);
  return used_names_.value(key, key);
}

const json& HubConfig::operator[](std::string_view key) const {
  static const json kNull;
  const json* value = find(key);
  return value == nullptr ? kNull : *value;
}

const json* HubConfig::stated(std::string_view name) const {
  const std::string key = canonical(name);
  const auto at = stated_.find(key);
  if (at == stated_.end() || at->is_null()) return nullptr;
  read_.insert(key);
  return &*at;
}

bool HubConfig::is_stated(std::string_view key) const {
  return stated_.contains(canonical(key));
}

void HubConfig::add_assumed(std::string key, const json& value) const {
  notes_assumed_.push_back({std::move(key), shown(value)});
}

Error HubConfig::bad(std::string_view key, const json& value, std::string_view expected) const {
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: \"{}\" is {}, expected {}", name_, key,
                                                    formats::in_quotes(shown(value)), expected));
}

Error HubConfig::unsupported(std::string_view key, const json& value, std::string_view supported) const {
  return fail(ErrorKind::kUnsupported, fmt::format("{}: \"{}\" is {}, which is not supported (supported: {})", name_,
                                                   key, formats::in_quotes(shown(value)), supported));
}

Result<void> HubConfig::check_all_read() const {
  if (!has_table_) return {};
  for (const auto& [key, value] : stated_.items()) {
    const bool is_plain = value.is_null() || is_without_effect(key) || is_derived_from(key) || read_.contains(key) ||
                          !is_known(key);
    if (is_plain) continue;
    const auto usual = defaults_.find(key);
    if (usual != defaults_.end() && are_same(*usual, value)) continue;
    return unsupported(key, value, usual == defaults_.end() || usual->is_null() ? "folders without it" : shown(*usual));
  }
  return {};
}

std::vector<HubSetting> HubConfig::assumed() const {
  std::vector<HubSetting> settings;
  for (const std::string& key : read_) {
    const auto at = values_.find(key);
    if (stated_.contains(key) && !stated_.at(key).is_null()) continue;
    if (at != values_.end() && !at->is_null() && !is_without_effect(key)) settings.push_back({key, shown(*at)});
  }
  settings.insert(settings.end(), notes_assumed_.begin(), notes_assumed_.end());
  return settings;
}

std::vector<std::string> HubConfig::without_effect() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : stated_.items()) {
    if (has_table_ && !is_known(key) && !read_.contains(key)) keys.push_back(key);
  }
  keys.insert(keys.end(), notes_without_effect_.begin(), notes_without_effect_.end());
  return keys;
}

namespace {

Error not_a(const std::string& name, const char* key, const json& value, const char* expected) {
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: \"{}\" is {}, expected {}", name, key,
                                                    formats::in_quotes(shown(value)), expected));
}

Result<std::optional<double>> number_of(const json* value, const char* key, const std::string& name) {
  if (value == nullptr || value->is_null()) return std::optional<double>();
  if (value->is_number() && std::isfinite(value->get<double>())) return std::optional<double>(value->get<double>());
  return not_a(name, key, *value, "a number");
}

Result<std::optional<bool>> flag_of(const json* value, const char* key, const std::string& name) {
  if (value == nullptr || value->is_null()) return std::optional<bool>();
  if (value->is_boolean()) return std::optional<bool>(value->get<bool>());
  return not_a(name, key, *value, "true or false");
}

Result<uint64_t> count_of(const HubConfig& config, const char* key, const std::optional<double>& value) {
  if (!value) return uint64_t{0};
  if (*value >= 0.0 && *value <= static_cast<double>(kMaxWidth) && *value == std::floor(*value)) {
    return static_cast<uint64_t>(*value);
  }
  return config.bad(key, *value, fmt::format("0 to {}", kMaxWidth));
}

const json* member(const json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

}  // namespace

Result<std::optional<double>> hub_number(const HubConfig& config, const char* key) {
  return number_of(config.find(key), key, config.name());
}
Result<std::optional<double>> hub_number(const json& object, const char* key) {
  return number_of(member(object, key), key, "config.json");
}
Result<std::optional<bool>> hub_flag(const HubConfig& config, const char* key) {
  return flag_of(config.find(key), key, config.name());
}
Result<std::optional<bool>> hub_flag(const json& object, const char* key) {
  return flag_of(member(object, key), key, "config.json");
}

Result<uint64_t> hub_count(const HubConfig& config, const char* key) {
  CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, key));
  return count_of(config, key, value);
}

Result<std::optional<double>> stated_number(const HubConfig& config, const char* key) {
  return number_of(config.stated(key), key, config.name());
}
Result<std::optional<bool>> stated_flag(const HubConfig& config, const char* key) {
  return flag_of(config.stated(key), key, config.name());
}
Result<uint64_t> stated_count(const HubConfig& config, const char* key) {
  CANDOR_ASSIGN(const std::optional<double> value, stated_number(config, key));
  return count_of(config, key, value);
}

double shortest_decimal(float value) {
  return std::stod(fmt::format("{}", value));
}

}  // namespace candor::model
