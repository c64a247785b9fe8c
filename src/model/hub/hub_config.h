#pragma once
// config.json of one language model, completed: a key that the folder leaves out has the `transformers` library's
// default for the model_type (hub_defaults.h), or what the library computes from other keys (hub_derived.h). Keeps
// account of what was read, so that no setting is passed over in silence. Borrows nothing; for one thread.

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/hub/hub_defaults.h"

namespace candor::model {

// A key, with dots where it is nested, and its value as JSON.
struct HubSetting {
  std::string key;
  std::string value;
};

class HubConfig {
 public:
  // config: of a multimodal model its text_config. name: of the file, for errors. Two names of one key that contradict
  // each other are refused.
  static Result<HubConfig> make(nlohmann::json config, std::string_view model_type, std::string name);

  const std::string& name() const { return name_; }
  const std::string& model_type() const { return model_type_; }

  // The value under one of the names, the first that has one; nullptr where each is absent or null, or unknown to the
  // library's class. Counts as read.
  const nlohmann::json* find(std::initializer_list<std::string_view> keys) const;
  const nlohmann::json* find(std::string_view key) const { return find({key}); }
  // The name that the folder has for what find() finds; the first one where it finds nothing.
  std::string name_of(std::initializer_list<std::string_view> keys) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  // null where find() has nothing.
  const nlohmann::json& operator[](std::string_view key) const;
  // What the folder says under this name, also where the library's class does not know it (the code that comes with a
  // checkpoint may); nullptr where it is absent or null. Counts as read.
  const nlohmann::json* stated(std::string_view key) const;
  // Whether the folder itself gives it, also as null.
  bool is_stated(std::string_view key) const;

  const nlohmann::json& rotary_defaults() const { return rotary_; }
  // The rotary settings of blocks that see everything, as hub_rope.h unites them; an object.
  const nlohmann::json& rope() const { return rope_; }
  void keep_rope(nlohmann::json rope) { rope_ = std::move(rope); }

  // Something that was taken from the library's table, beside the keys that have a default there; something that the
  // folder says in vain.
  void add_assumed(std::string key, const nlohmann::json& value) const;
  void add_without_effect(std::string key) const { notes_without_effect_.push_back(std::move(key)); }

  Error bad(std::string_view key, const nlohmann::json& value, std::string_view expected) const;
  Error unsupported(std::string_view key, const nlohmann::json& value, std::string_view supported) const;

  // After everything has been read. Refuses by name a key of the folder that the library's class knows and nobody
  // read, unless it is null, has the default's value or has no effect.
  Result<void> check_all_read() const;
  // What was read and is not in the folder.
  std::vector<HubSetting> assumed() const;
  // Keys of the folder that change nothing, beside those of training and generation.
  std::vector<std::string> without_effect() const;

 private:
  HubConfig() = default;
  Result<void> unite_names();
  void add_defaults();
  std::string canonical(std::string_view key) const;
  bool is_known(const std::string& key) const;

  nlohmann::json values_;
  nlohmann::json stated_;  // the folder's, under the keys' first names
  nlohmann::json defaults_;
  nlohmann::json names_;
  nlohmann::json used_names_ = nlohmann::json::object();  // key -> the other name that the folder has for it
  nlohmann::json rotary_;
  nlohmann::json rope_ = nlohmann::json::object();
  std::set<std::string, std::less<>> known_;
  bool has_table_ = false;
  std::string model_type_;
  std::string name_;
  mutable std::set<std::string, std::less<>> read_;
  mutable std::vector<HubSetting> notes_assumed_;
  mutable std::vector<std::string> notes_without_effect_;
};

// A number; nothing where it is absent or null.
Result<std::optional<double>> hub_number(const HubConfig& config, const char* key);
Result<std::optional<double>> hub_number(const nlohmann::json& object, const char* key);

// The same of true and false.
Result<std::optional<bool>> hub_flag(const HubConfig& config, const char* key);
Result<std::optional<bool>> hub_flag(const nlohmann::json& object, const char* key);

// A whole number from 0 to most; 0 where it is absent or null.
Result<uint64_t> hub_count(const HubConfig& config, const char* key);
// The same of keys that the library's class may not know (HubConfig::stated).
Result<std::optional<double>> stated_number(const HubConfig& config, const char* key);
Result<std::optional<bool>> stated_flag(const HubConfig& config, const char* key);
Result<uint64_t> stated_count(const HubConfig& config, const char* key);

// The number with the fewest digits that is the same float: what config.json says of it.
double shortest_decimal(float value);

}  // namespace candor::model
