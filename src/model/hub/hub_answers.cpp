#include "model/hub/hub_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace candor::model {
namespace {

using nlohmann::json;

constexpr std::string_view kYesOrNo[] = {"yes", "no"};
constexpr std::string_view kYes[] = {"Yes"};
constexpr std::string_view kQwenPair =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a "
    "web "
    "search query, retrieve relevant passages that answer the query\n<Query>: {query}\n<Document>: "
    "{document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

constexpr std::string_view kGemmaPair =
    "<bos>A: {query}\nB: {document}\nGiven a query A and a passage B, determine whether the passage contains an answer "
    "to the query by providing a prediction of either 'Yes' or 'No'.";
constexpr WordAnswers kKinds[] = {
    {"Qwen3ForCausalLM", "qwen3-reranker", "# qwen3-reranker", kYesOrNo, kQwenPair},
    {"GemmaForCausalLM", "bge-reranker-v2-gemma", "bge-reranker-v2-gemma", kYes, kGemmaPair}};

std::string class_of(const json& config) {
  const json classes = config.is_object() ? config.value("architectures", json::array()) : json::array();
  return classes.is_array() && !classes.empty() && classes[0].is_string() ? classes[0].get<std::string>() : "";
}

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The beginning of the model's card.
std::string card_of(const std::filesystem::path& folder) {
  std::string text(size_t{1} << 16, '\0');
  std::ifstream file(folder / "README.md", std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return in_small_letters(std::move(text));
}

}  // namespace

std::optional<std::string_view> label_tensor(std::string_view name) {
  if (name == "score.weight") return "cls.output.weight";
  if (name == "score.bias") return "cls.output.bias";
  return std::nullopt;
}

bool reads_both_ways(const json& config) {
  if (!config.is_object()) return false;
  if (const json causal = config.value("is_causal", json()); causal.is_boolean()) return !causal.get<bool>();
  const json map = config.value("auto_map", json());
  const json own = map.is_object() ? map.value("AutoModel", json()) : json();
  return own.is_string() && own.get<std::string>().ends_with("modeling_qwen.Qwen2Model");
}

bool reads_alone(const json& config, bool has_head, bool is_tied) {
  const std::string name = class_of(config);
  if (reads_both_ways(config)) return true;
  if (name.ends_with("ForSequenceClassification") || name.ends_with("ForTokenClassification")) return true;
  return name.ends_with("Model") && !has_head && !is_tied;
}

const WordAnswers* answers_of(const std::filesystem::path& folder, const json& config) {
  const std::string name = class_of(config);
  for (const WordAnswers& kind : kKinds) {
    if (name != kind.class_name) continue;
    const bool is_named = in_small_letters(folder.filename().string()).find(kind.name) != std::string::npos;
    if (is_named || card_of(folder).find(kind.card) != std::string::npos) return &kind;
  }
  return nullptr;
}

Result<std::vector<int64_t>> answer_tokens(const WordAnswers& answers, const formats::MetaList& metadata) {
  const formats::MetaValue* value = metadata.find("tokenizer.ggml.tokens");
  const auto* array = value == nullptr ? nullptr : std::get_if<formats::MetaArray>(value);
  const auto* tokens = array == nullptr ? nullptr : std::get_if<std::vector<std::string_view>>(array);
  std::vector<int64_t> ids;
  for (const std::string_view word : answers.words) {
    const auto at =
        tokens == nullptr ? std::vector<std::string_view>::const_iterator() : std::ranges::find(*tokens, word);
    if (tokens == nullptr || at == tokens->end()) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("the folder is a reranker that answers with a word, but its vocabulary has no token "
                              "\"{}\"",
                              word));
    }
    ids.push_back(at - tokens->begin());
  }
  return ids;
}

void add_answer_keys(const WordAnswers& answers, std::string_view prefix, formats::MetaList& metadata) {
  constexpr uint64_t kRank = 4;
  metadata.add(fmt::format("{}.pooling_type", prefix), kRank);
  metadata.add_strings(fmt::format("{}.classifier.output_labels", prefix),
                       {answers.words.begin(), answers.words.end()});
  metadata.add_string("tokenizer.chat_template.rerank", std::string(answers.pair));
}

}  // namespace candor::model
