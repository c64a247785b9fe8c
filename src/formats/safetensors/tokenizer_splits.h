#pragma once
// The pre_tokenizer of a model over bytes (tokenizer.json of the `tokenizers` library) as a rule of text/tokenizer: one
// that has a scanner there, or steps for the general engine. What neither can do is refused by name.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::formats {
class ModelFile;
}

namespace candor::formats::safetensors {

struct SplitRules {
  std::string name = {};            // tokenizer.ggml.pre; kGeneralSplits where `steps` say it
  std::vector<std::string> steps = {};  // three strings a step (text/tokenizer/general_split.h)
  bool is_general = false;          // steps, be there none
  std::optional<bool> whole_first = {};  // where it is not what the name implies
  bool adds_space = false;          // before a text that begins with none
};

inline constexpr std::string_view kGeneralSplits = "candor-splits";

// name: of the folder.
Result<SplitRules> read_split_rules(const nlohmann::json& tokenizer, std::string_view name);
// One expression, each match and what lies between being a word: of vocabularies that are no tokenizer.json.
SplitRules split_rules_of(std::string_view expression, bool whole_first);

// The other direction: {"pre_tokenizer": ..., "ignore_merges": ...} of a model file; nothing for a rule that is not
// listed.
Result<std::optional<nlohmann::ordered_json>> split_json(const ModelFile& file);

}  // namespace candor::formats::safetensors
