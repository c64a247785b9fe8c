#include "model/hub/hub_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "formats/quote.h"
#include "model/eagle.h"
#include "model/families/missing.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_eagle.h"

namespace candor::model {
namespace {

using formats::in_quotes;
using nlohmann::json;

std::vector<std::string_view> known_types() {
  std::vector<std::string_view> names;
  for (const Family& family : families()) {
    for (const HubForm& form : family.hub) {
      names.push_back(form.model_type);
      for (const HubOuter& outer : form.outer) names.push_back(outer.model_type);
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// How many letters have to be added, left out or changed (Levenshtein, 1966).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t corner = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = corner + (a[i] == b[j] ? 0 : 1);
      corner = std::exchange(row[j + 1], std::min({row[j + 1] + 1, row[j] + 1, changed}));
    }
  }
  return row.back();
}

// The three known names that are most like it.
std::string nearest_types(std::string_view type) {
  constexpr size_t kMostLetters = 64;
  std::vector<std::string_view> names = known_types();
  std::ranges::stable_sort(names, {},
                           [&](std::string_view name) { return edit_distance(type.substr(0, kMostLetters), name); });
  return fmt::format("{}, {}, {}", names[0], names[1], names[2]);
}

std::string type_of(const json& config) {
  const json type = config.is_object() ? config.value("model_type", json()) : json();
  return type.is_string() ? type.get<std::string>() : std::string();
}

// Of several forms of one model_type some look at more of config.json.
Result<bool> reads(const HubForm& form, const json& config, std::string_view name) {
  if (form.reads == nullptr) return true;
  CANDOR_ASSIGN(const HubConfig completed, HubConfig::make(config, form.model_type, std::string(name)));
  return form.reads(completed);
}

}  // namespace

Result<FamilyForm> choose_form(const json& config, std::string_view name) {
  if (is_eagle_config(config)) return FamilyForm{&eagle3_family(), &eagle3_family().hub.front()};
  const std::string type = type_of(config);
  const std::string text_type = config.is_object() ? type_of(config.value("text_config", json())) : std::string();
  const bool is_flat = text_type.empty() && config.is_object() && config.contains("vision_config");
  FamilyForm chosen;  // of several forms of one type the last, which knows every name
  for (const Family& family : families()) {
    for (const HubForm& form : family.hub) {
      if (form.model_type == type) {
        CANDOR_ASSIGN(const bool is_read, reads(form, config, name));
        if (is_read) chosen = {&family, &form};
      }
      for (const HubOuter& outer : form.outer) {
        const std::string_view text = outer.text_type.empty() ? form.model_type : outer.text_type;
        if (outer.model_type == type && (text == text_type || (is_flat && outer.may_be_flat)))
          chosen = {&family, &form, &outer};
      }
    }
  }
  if (chosen.form != nullptr) return chosen;
  if (const std::string_view need = need_of(type); !need.empty()) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: model_type {} is not supported{}", name, in_quotes(type), need));
  }
  const std::string of_text = text_type.empty() ? "" : fmt::format(" with text of {}", in_quotes(text_type));
  if (type.empty()) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: names no model_type: a folder of a language model does", name));
  }
  const bool is_outer = !text_type.empty() && std::ranges::binary_search(known_types(), type);
  return fail(ErrorKind::kUnsupported,
              fmt::format("{}: model_type {}{} is not known; the nearest known ones are {} (all are in docs/models.md)",
                          name, in_quotes(type.substr(0, 100)), of_text, nearest_types(is_outer ? text_type : type)));
}

}  // namespace candor::model
