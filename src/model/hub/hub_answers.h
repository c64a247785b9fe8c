#pragma once
// Decoders' folders that are for reading: those without a head, those whose head gives labels ("score"), and rerankers
// that answer with a word (Zhang et al., "Qwen3 Embedding", 2025), which become what GGUF files of them are: two rows
// of the head, and the text that a query and a document stand in. Pure, but for the folder's README.md.

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "formats/meta_list.h"

namespace candor::model {

// "score.weight" -> "cls.output.weight"
std::optional<std::string_view> label_tensor(std::string_view name);

// config: config.json. Whether its class writes nothing: it has labels, or neither a head nor an embedding as one.
bool reads_alone(const nlohmann::json& config, bool has_head, bool is_tied);

// Whether the folder says of itself that it is Qwen3-Reranker, as other tools find out too.
bool answers_yes_or_no(const std::filesystem::path& folder, const nlohmann::json& config);

// Ids of "yes" and "no". Refused: a vocabulary without them.
Result<std::array<int64_t, 2>> answer_tokens(const formats::MetaList& metadata);
void add_answer_keys(std::string_view prefix, formats::MetaList& metadata);

}  // namespace candor::model
