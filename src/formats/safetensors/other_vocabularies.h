#pragma once
// Vocabularies of folders that have no tokenizer.json, as the tokenizer.json that they would be: tiktoken's ranks
// (https://github.com/openai/tiktoken: a line of base64 and a rank for each token), Mistral's tekken.json, and GPT-2's
// vocab.json with merges.txt. Which expression cuts text into words, and which tokens are special, tiktoken's and GPT-2's
// files do not say: their tokenizer's class does, and one that is not known is refused by name.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"

namespace candor::formats::safetensors {

// What stands beside a vocabulary; nullptr where a file is absent.
struct VocabularyNotes {
  std::string_view name;                       // of the folder, for errors
  const nlohmann::json* config = nullptr;      // tokenizer_config.json
  const nlohmann::json* added = nullptr;       // added_tokens.json
  const nlohmann::json* special = nullptr;     // special_tokens_map.json
  bool is_gpt2_family = false;                 // config.json's model has GPT-2's tokenizer where no class is named
};

// Pairs of bytes are merged by the rank of what they make: TokenizerFiles::ranks_are_ids.
Result<nlohmann::json> tokenizer_of_tiktoken(std::string_view text, const VocabularyNotes& notes);
Result<nlohmann::json> tokenizer_of_tekken(const nlohmann::json& tekken, std::string_view name);

Result<nlohmann::json> tokenizer_of_merges(const nlohmann::json& vocab, std::string_view merges,
                                           const VocabularyNotes& notes);

// "added_tokens" of a tokenizer.json: of tokenizer_config.json, added_tokens.json and the special tokens that are named;
// those last where `vocab`, piece to id, has them.
Result<nlohmann::json> added_tokens_of(const VocabularyNotes& notes, const nlohmann::json& vocab);

}  // namespace candor::formats::safetensors
