#pragma once
// The steps of tokenizer.json around its model (normalizer, pre_tokenizer, decoder of the `tokenizers` library) as
// rules that text/tokenizer knows. What has no such rule is refused by name.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/safetensors/tokenizer_splits.h"

namespace candor::formats::safetensors {

// "type" of a part; "" where it has none.
std::string type_of(const nlohmann::json& part);
bool flag_at(const nlohmann::json& object, const char* key, bool fallback);
std::string text_at(const nlohmann::json& object, const char* key);
// The pattern of a Split or a Replace; kind: "Regex" or "String". "" where it is of the other kind.
std::string pattern_at(const nlohmann::json& step, const char* kind);
// A member as a list of steps: a Sequence's, itself alone, or none for null.
std::vector<nlohmann::json> steps_of(const nlohmann::json& tokenizer, const char* member, const char* inner);
// An error for a part that is not supported. name: of the folder.
Error unsupported_part(std::string_view name, std::string_view part, std::string_view seen, std::string_view expected);

// How a model over characters sees text.
struct CharacterRules {
  std::vector<std::string> normalizer;  // three strings a step (text/tokenizer/normalizer.h)
  std::string space_prefix;             // "", "each", "each_once", "first_once" (text/tokenizer/space_rules.h)
  bool splits_at_marks = false;
  bool splits_at_white_space = false;
  bool strips_space = false;
};
Result<CharacterRules> read_character_rules(const nlohmann::json& tokenizer, std::string_view name);

// The same of a model over bytes.
struct ByteRules {
  std::vector<std::string> normalizer;
  SplitRules words;
};
Result<ByteRules> read_byte_rules(const nlohmann::json& tokenizer, std::string_view name);

// The normaliser of WordPiece, whose other parts have one form.
Result<std::vector<std::string>> read_word_rules(const nlohmann::json& tokenizer, std::string_view name);

// The other direction. A step and its arguments as a normalizer.
nlohmann::ordered_json normalizer_json(std::string_view step, std::string_view first, std::string_view second);

}  // namespace candor::formats::safetensors
