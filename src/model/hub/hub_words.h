#pragma once
// Reads the vocabulary and the chat template of a Hugging Face checkpoint: tokenizer.json (where it is absent
// tekken.json, tokenizer.model, tiktoken.model, *.tiktoken, or vocab.json with merges.txt, the first that is there),
// tokenizer_config.json, generation_config.json and chat_template.jinja (or .json) become metadata under GGUF's keys.

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "formats/meta_list.h"

namespace candor::model {

inline constexpr size_t kMaxConfigBytes = size_t{16} << 20;

// n_vocab: rows of the embedding. Adds nothing where the folder has none of these.
Result<void> read_words(const std::filesystem::path& folder, int64_t n_vocab, formats::MetaList& metadata);

}  // namespace candor::model
