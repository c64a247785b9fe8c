#include "model/hub/hub_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "formats/json_text.h"
#include "formats/quote.h"
#include "model/hub/hub_words.h"

namespace candor::model {
namespace {

using nlohmann::json;

// Read with the vocabulary, about the file itself, or about what else a program gets than the text.
constexpr std::string_view kRead[] = {"bos_token_id",        "eos_token_id",        "pad_token_id",
                                      "_from_model_config",  "transformers_version", "trust_remote_code",
                                      "output_attentions",   "output_hidden_states", "output_logits",
                                      "output_scores",       "return_dict_in_generate", "use_cache"};

}  // namespace

Result<std::vector<formats::AssumedSetting>> suggested_settings(const std::filesystem::path& folder) {
  constexpr size_t kShown = 200;
  const std::filesystem::path path = folder / "generation_config.json";
  std::vector<formats::AssumedSetting> settings;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return settings;
  CANDOR_ASSIGN(const json config, formats::read_json_file(path, kMaxConfigBytes));
  if (!config.is_object()) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: is no JSON object; download it again", formats::in_quotes(path.string())));
  }
  for (const auto& [key, value] : config.items()) {
    if (value.is_null() || std::ranges::find(kRead, key) != std::end(kRead)) continue;
    settings.push_back({key, value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, kShown)});
  }
  return settings;
}

}  // namespace candor::model
