#include "apps/options/model_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>

#include "apps/options/hub_cache.h"
#include "hub/model_cache.h"

namespace candor::apps {
namespace {

bool is_hub_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

// user/repo or user/repo:quant
bool is_hub_name(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size()) return false;
  const std::string_view user = text.substr(0, slash);
  std::string_view repo = text.substr(slash + 1);
  const size_t colon = repo.find(':');
  const std::string_view quant = colon == std::string_view::npos ? std::string_view("x") : repo.substr(colon + 1);
  repo = repo.substr(0, colon);
  const auto named = [](std::string_view part) { return !part.empty() && std::ranges::all_of(part, is_hub_char); };
  return named(user) && user != "." && user != ".." && named(repo) && named(quant);
}

bool path_exists(std::string_view text) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::path(text), ignored);
}

}  // namespace

bool looks_like_model(std::string_view argument) {
  return argument.ends_with(".gguf") || argument.ends_with(".safetensors") || is_hub_name(argument) ||
         path_exists(argument);
}

Result<std::filesystem::path> shipped_model() {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const std::filesystem::path name = "pocket/pocket-q8_0.gguf";
  for (const auto& folder : {program / "../models", program / "../../models", program / "../share/candor/models"}) {
    std::filesystem::path candidate = (folder / name).lexically_normal();
    if (std::filesystem::exists(candidate, ignored)) return candidate;
  }
  return fail(ErrorKind::kNotFound,
              fmt::format("the model that ships with Candor ({}) is not beside the program ({}): give one with -m FILE",
                          name.string(), program.string()));
}

Result<ModelAndTexts> choose_model(const std::optional<std::string>& option, std::vector<std::string> positionals) {
  ModelAndTexts choice;
  std::optional<std::string> model = option;
  if (!positionals.empty() && looks_like_model(positionals.front())) {
    if (model) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("two models given: -m {} and {}; give one (a prompt that looks like a "
                              "file goes behind -p)",
                              *model, positionals.front()));
    }
    model = positionals.front();
    positionals.erase(positionals.begin());
  }
  choice.texts = std::move(positionals);
  if (!choice.texts.empty() && choice.texts.front().ends_with(".gguf")) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("two models given: {} and {}; give one", *model, choice.texts.front()));
  }
  if (!model) {
    CANDOR_ASSIGN(choice.model, shipped_model());
    choice.is_shipped = true;
    return choice;
  }
  if (!path_exists(*model) && is_hub_name(*model) && !model->ends_with(".gguf")) {
    CANDOR_ASSIGN(const hub::RepoName name, hub::parse_repo_name(*model));
    CANDOR_ASSIGN(choice.model, hub::find_cached(name, hub_cache_root()));
    return choice;
  }
  choice.model = *model;
  return choice;
}

}  // namespace candor::apps
