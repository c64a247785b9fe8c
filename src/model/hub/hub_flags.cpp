#include "model/hub/hub_flags.h"

#include <fmt/format.h>

#include <optional>

#include "formats/quote.h"
#include "model/hub/hub_names.h"
#include "model/text_head.h"

namespace candor::model {
namespace {

// Whose value it is, where the folder leaves it out.
std::string origin(const HubConfig& config, std::string_view key) {
  return config.is_stated(key) ? ""
                               : fmt::format(" (left out; {} takes this)", hub_defaults_source());
}

Result<bool> is_on(const HubConfig& config, const HubFlag& flag) {
  CANDOR_ASSIGN(const std::optional<bool> value, hub_flag(config, flag.key));
  return value.value_or(false);
}

}  // namespace

Result<void> check_flags(const HubConfig& config, const HubForm& form, std::string_view tensor) {
  for (const HubFlag& flag : form.flags) {
    for (const std::string_view pattern : flag.tensors) {
      if (!match_name(pattern, tensor)) continue;
      CANDOR_ASSIGN(const bool is_there, is_on(config, flag));
      if (is_there) continue;
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("{}: \"{}\" is false{}, but the folder has tensor {}; set it to true", config.name(),
                              flag.key, origin(config, flag.key), formats::in_quotes(tensor)));
    }
  }
  return {};
}

Result<void> check_flagged(const HubConfig& config, const HubForm& form,
                           const std::function<const TensorView*(const std::string& name)>& find) {
  for (const HubFlag& flag : form.flags) {
    CANDOR_ASSIGN(const bool is_there, is_on(config, flag));
    std::string missing;
    for (const std::string_view pattern : flag.tensors) {
      const std::string name = fill_name(pattern, {.block = "0", .expert = "0"});
      if (find(name) == nullptr) missing = name;
    }
    if (!is_there || missing.empty()) continue;
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: \"{}\" is true{}, but tensor {} is missing; set it to false", config.name(), flag.key,
                            origin(config, flag.key), formats::in_quotes(missing)));
  }
  return {};
}

Result<void> check_head(const HubConfig& config, const formats::ModelFile& file, const std::string& folder) {
  const nlohmann::json& is_tied = config["tie_word_embeddings"];
  CANDOR_ASSIGN(const auto has_no_head, formats::meta_bool(file, kHasNoHead));
  if (file.find("output.weight") == nullptr && is_tied == false && !has_no_head.value_or(false)) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: \"tie_word_embeddings\" is false{}, but lm_head.weight is "
                                                      "missing",
                                                      folder, origin(config, "tie_word_embeddings")));
  }
  const TensorView* embedding = file.find("token_embd.weight");
  const nlohmann::json& vocab = config["vocab_size"];
  if (embedding == nullptr || vocab.is_null() || vocab == embedding->shape[0]) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("{}: \"vocab_size\" is {}{}, but the embedding has {} rows; set it to {}", config.name(),
                          formats::in_quotes(vocab.dump()), origin(config, "vocab_size"), embedding->shape[0],
                          embedding->shape[0]));
}

}  // namespace candor::model
