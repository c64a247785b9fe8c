// POST /rerank and its spellings: documents in the order of their likeness to a query, in Jina's shape and in TEI's. No
// model that is read here has a head for ranks: a score is the cosine of the mean-pooled embeddings, and the reply says
// so.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/request_terms.h"
#include "serve/llama_cpp/requests.h"

namespace candor::serve::llama_cpp {
namespace {

constexpr const char* kMethod =
    "scores are cosines of mean-pooled embeddings: the model has no rank head, and was not trained for this";

struct Shape {
  std::string model{};
  bool is_tei = false;
  bool with_texts = false;
  size_t n_top = 0;
  std::vector<std::string> texts{};
  std::vector<std::string> warnings{};
};

struct Score {
  size_t index = 0;
  double value = 0;
};

std::vector<Score> scores_of(const std::vector<std::vector<float>>& vectors) {
  std::vector<Score> scores;
  const std::vector<float>& query = vectors.front();
  for (size_t i = 1; i < vectors.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < query.size(); ++k) sum += static_cast<double>(query[k]) * static_cast<double>(vectors[i][k]);
    scores.push_back({i - 1, std::clamp(sum, -1.0, 1.0)});  // of vectors whose length is 1 but for rounding
  }
  std::ranges::stable_sort(scores, [](const Score& a, const Score& b) { return a.value > b.value; });
  return scores;
}

std::string reply_of(const Shape& shape, const std::vector<std::vector<float>>& vectors, int64_t n_tokens) {
  std::vector<Score> scores = scores_of(vectors);
  scores.resize(std::min(scores.size(), shape.n_top));
  Json results = Json::array();
  for (const Score& score : scores) {
    Json one = {{"index", score.index}, {shape.is_tei ? "score" : "relevance_score", score.value}};
    const std::string& text = shape.texts[score.index];
    if (shape.with_texts) one[shape.is_tei ? "text" : "document"] = shape.is_tei ? Json(text) : Json{{"text", text}};
    results.push_back(std::move(one));
  }
  if (shape.is_tei) return to_text(results);
  return to_text(Json{{"model", shape.model},
                      {"object", "list"},
                      {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}},
                      {"results", std::move(results)},
                      {"warnings", shape.warnings}});
}

void read_documents(Fields& fields, const char* name, Shape& shape) {
  const Json* list = fields.array(name);
  if (list == nullptr || list->empty() || list->size() >= kMaxInputs) {
    return fields.refuse(name, fmt::format("{} has {} elements, expected 1 to {} texts", name,
                                           list == nullptr ? 0 : list->size(), kMaxInputs - 1));
  }
  for (const Json& item : *list) {
    const bool is_wrapped = item.is_object() && item.contains("text") && item["text"].is_string();
    if (!item.is_string() && !is_wrapped)
      return fields.refuse(name, fmt::format("{} holds {}, expected texts", name, shown(item)));
    shape.texts.push_back(is_wrapped ? item["text"].get<std::string>() : item.get<std::string>());
  }
}

}  // namespace

Result<EmbeddingRequest> parse_rerank(const Json& body, const RequestTerms& terms) {
  Fields fields(body);
  EmbeddingRequest result;
  Shape shape;
  check_model(fields, terms.limits(), result.model);
  shape.model = result.model;
  shape.is_tei = fields.has("texts");
  if (!fields.has("query")) fields.refuse("query", "query is missing, expected a text");
  const std::string query = fields.text("query").value_or("");
  result.names.prompt = shape.is_tei ? "texts" : "documents";
  read_documents(fields, result.names.prompt.c_str(), shape);
  shape.with_texts = fields.boolean(shape.is_tei ? "return_text" : "return_documents").value_or(false);
  const auto n_top = fields.integer("top_n", 1, static_cast<int64_t>(kMaxInputs));
  shape.n_top = n_top ? static_cast<size_t>(*n_top) : shape.texts.size();
  fields.accept({"raw_scores", "truncate", "truncation_direction"});
  Request base;
  base.pooling = Pooling::kMean;
  base.scheduling = read_scheduling(fields);
  shape.warnings.emplace_back(kMethod);
  settle_unknown(fields, terms.limits(), shape.warnings);
  if (fields.fault()) return *fields.fault();
  base.prompt = TextPrompt{.text = query};
  result.requests.push_back(base);
  for (const std::string& text : shape.texts) {
    base.prompt = TextPrompt{.text = text};
    result.requests.push_back(base);
  }
  add_warnings_header(shape.warnings, result.headers);
  result.write = [shape](const auto& vectors, int64_t n_tokens) { return reply_of(shape, vectors, n_tokens); };
  return result;
}

}  // namespace candor::serve::llama_cpp
