#pragma once
// A vocabulary's metadata (tokenizer.ggml.*, tokenizer.candor.*) as the files that the `tokenizers` and `transformers`
// libraries read. The other direction of tokenizer_json.h.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/model_file.h"

namespace candor::formats::safetensors {

struct TokenizerJson {
  nlohmann::ordered_json tokenizer;   // tokenizer.json
  nlohmann::ordered_json config;      // tokenizer_config.json, with the chat template
  nlohmann::ordered_json generation;  // generation_config.json
};

// Refuses, by name, rules for words that tokenizer.json is not known to have.
Result<TokenizerJson> write_tokenizer(const ModelFile& file);

}  // namespace candor::formats::safetensors
