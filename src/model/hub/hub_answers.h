#pragma once
// Decoders' folders that are for reading: those without a head, those whose head gives labels ("score"), and rerankers
// that answer with a word (Zhang et al., "Qwen3 Embedding", 2025; BAAI's bge-reranker-v2-gemma), which become what GGUF
// files of them are: rows of the head, and the text that a query and a document stand in. Pure, but for the folder's
// README.md.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/meta_list.h"

namespace candor::model {

// "score.weight" -> "cls.output.weight"
std::optional<std::string_view> label_tensor(std::string_view name);

// config: config.json. Whether every token sees all others: it says so ("is_causal"), or its class's own code does
// (gte-Qwen2's).
bool reads_both_ways(const nlohmann::json& config);

// Whether its class writes nothing: it has labels, or neither a head nor an embedding as one.
bool reads_alone(const nlohmann::json& config, bool has_head, bool is_tied);

// How a reranker answers.
struct WordAnswers {
  std::string_view class_name;
  std::string_view name;                    // in its path, in small letters
  std::string_view card;                    // in its README.md
  std::span<const std::string_view> words;  // whose rows of the head count: yes and no, or yes alone
  std::string_view pair;                    // with {query} and {document}
};

// Whether the folder says of itself that it is such a one, as other tools find out too; nullptr: no.
const WordAnswers* answers_of(const std::filesystem::path& folder, const nlohmann::json& config);

// The words' ids. Refused: a vocabulary without them.
Result<std::vector<int64_t>> answer_tokens(const WordAnswers& answers, const formats::MetaList& metadata);
void add_answer_keys(const WordAnswers& answers, std::string_view prefix, formats::MetaList& metadata);

}  // namespace candor::model
