#include "model/hub/hub_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <variant>

namespace candor::model {
namespace {

// What of a name fits a pattern, "*" being a number; with a "." at its end any name that begins so.
struct Fit {
  uint64_t number = 0;
  std::string_view rest{};
};

std::optional<Fit> fit(std::string_view pattern, std::string_view name) {
  Fit found;
  const size_t star = pattern.find('*');
  const std::string_view before = pattern.substr(0, star);
  if (!name.starts_with(before)) return std::nullopt;
  name.remove_prefix(before.size());
  if (star != std::string_view::npos) {
    const auto [at, error] = std::from_chars(name.data(), name.data() + name.size(), found.number);
    if (error != std::errc() || found.number > 4096) return std::nullopt;
    name.remove_prefix(static_cast<size_t>(at - name.data()));
    const std::string_view behind = pattern.substr(star + 1);
    if (!name.starts_with(behind)) return std::nullopt;
    name.remove_prefix(behind.size());
  }
  found.rest = name;
  return pattern.ends_with('.') || name.empty() ? std::optional(found) : std::nullopt;
}

std::string filled(std::string_view pattern, uint64_t number, std::string_view rest) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return fmt::format("{}{}", pattern, rest);
  return fmt::format("{}{}{}{}", pattern.substr(0, star), number, pattern.substr(star + 1), rest);
}

}  // namespace

uint64_t put_behind(std::string& name, const HubForm& form, uint64_t n_layers) {
  for (const HubRename& row : form.prediction) {
    const std::optional<Fit> found = fit(row.hub, name);
    if (!found) continue;
    name = filled(row.name, n_layers + found->number, found->rest);
    return found->number + 1;
  }
  return 0;
}

std::string name_apart(const std::string& name, const HubForm& form, uint64_t n_layers) {
  for (const HubRename& row : form.prediction) {
    const std::optional<Fit> found = fit(row.name, name);
    if (found && found->number >= n_layers) return filled(row.hub, found->number - n_layers, found->rest);
  }
  return name;
}

uint64_t count_layers(std::string_view prefix, const formats::MetaList& metadata) {
  const auto count = [&](const char* name) {
    const formats::MetaValue* value = metadata.find(fmt::format("{}.{}", prefix, name));
    const auto* number = value == nullptr ? nullptr : std::get_if<uint64_t>(value);
    return number == nullptr ? uint64_t{0} : *number;
  };
  const uint64_t n_blocks = count("block_count");
  return n_blocks - std::min(n_blocks, count("nextn_predict_layers"));
}

void count_prediction(std::string_view prefix, uint64_t n_layers, uint64_t n_blocks, formats::MetaList& metadata) {
  if (n_blocks == 0) return;
  metadata.add(fmt::format("{}.block_count", prefix), n_layers + n_blocks);
  metadata.add(fmt::format("{}.nextn_predict_layers", prefix), n_blocks);
}

}  // namespace candor::model
