// Documents by how well they answer a query, and scores of pairs: Jina's, Cohere's, TEI's and vLLM's shapes. A score is
// the sigmoid of what the model's head gives for the pair, or that itself (raw_scores).

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "candor/request.h"
#include "serve/core/fields.h"
#include "serve/core/reading_fields.h"
#include "serve/reading/requests.h"

namespace candor::serve::reading {
namespace {

constexpr const char* kByLikeness =
    "scores are cosines of embeddings: the model has no head for ranks, and was not trained for this";

struct Shape {
  std::string model{};
  bool is_tei = false;
  bool with_texts = false;
  bool is_raw = false;
  bool has_head = true;
  size_t n_top = 0;
  std::vector<std::string> texts{};
  std::vector<std::string> warnings{};
};

struct Score {
  size_t index = 0;
  double value = 0;
};

double score_of(const std::vector<float>& numbers, bool is_raw) {
  const double logit = rank_logit(numbers);
  return is_raw ? logit : sigmoid(logit);
}

// Of vectors whose length is 1 but for rounding.
double likeness(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return std::clamp(sum, -1.0, 1.0);
}

std::vector<Score> scores_of(const Shape& shape, const ReadTexts& read) {
  std::vector<Score> scores;
  const size_t first = shape.has_head ? 0 : 1;  // the query stands before the documents
  for (size_t i = first; i < read.vectors.size(); ++i) {
    const double value =
        shape.has_head ? score_of(read.vectors[i], shape.is_raw) : likeness(read.vectors.front(), read.vectors[i]);
    scores.push_back({i - first, value});
  }
  std::ranges::stable_sort(scores, [](const Score& a, const Score& b) { return a.value > b.value; });
  return scores;
}

std::string reply_of(const Shape& shape, const ReadTexts& read) {
  std::vector<Score> scores = scores_of(shape, read);
  scores.resize(std::min(scores.size(), shape.n_top));
  Json results = Json::array();
  for (const Score& score : scores) {
    Json one = {{"index", score.index}, {shape.is_tei ? "score" : "relevance_score", score.value}};
    const std::string& text = shape.texts[score.index];
    if (shape.with_texts) one[shape.is_tei ? "text" : "document"] = shape.is_tei ? Json(text) : Json{{"text", text}};
    results.push_back(std::move(one));
  }
  if (shape.is_tei) return to_text(results);
  const int64_t n_tokens = read.all_tokens();
  Json reply = {{"id", "rerank"},
                {"model", shape.model},
                {"object", "list"},
                {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}},
                {"results", std::move(results)},
                {"meta", {{"api_version", {{"version", "2"}}}, {"billed_units", {{"search_units", 1}}}}}};
  if (!shape.warnings.empty()) reply["warnings"] = shape.warnings;
  return to_text(reply);
}

// Why the model scores no pairs; nullptr where it does.
const char* fault_of(const ReadingInfo& reading) {
  if (reading.labels.empty()) {
    return "this model has no head that scores pairs of texts: serve a reranker (bge-reranker, say), or start the "
           "server "
           "with --rerank-by-similarity for the likeness of embeddings";
  }
  if (!reading.ranks_pairs()) {
    return "this model's head classifies, and scores no pairs: ask /predict or /classify";
  }
  return nullptr;
}

std::vector<std::string> one_or_more(Fields& fields, const char* name) {
  const Json* value = fields.raw(name);
  if (value != nullptr && value->is_string()) return {value->get<std::string>()};
  return read_texts(fields, name, kMaxInputs);
}

// True: by the head.
bool check_head(Fields& fields, const ApiLimits& limits) {
  const char* fault = fault_of(limits.reading);
  if (fault == nullptr) return true;
  if (!limits.ranks_by_likeness) fields.refuse_with({ErrorKind::kUnsupported, fault, "model"});
  return false;
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
  shape.texts = read_texts(fields, result.names.prompt.c_str(), kMaxInputs - 1);
  shape.with_texts = fields.boolean(shape.is_tei ? "return_text" : "return_documents").value_or(false);
  shape.is_raw = fields.boolean("raw_scores").value_or(false);
  const auto n_top = fields.integer("top_n", 1, static_cast<int64_t>(kMaxInputs));
  shape.n_top = n_top ? static_cast<size_t>(*n_top) : shape.texts.size();
  Request base;
  read_cut(fields, terms.limits(), base);
  const auto most = fields.integer("max_tokens_per_doc", 1, terms.limits().n_ctx);
  if (most) base.max_prompt_tokens = std::min<int64_t>(terms.limits().n_ctx, *most);
  base.scheduling = read_scheduling(fields);
  shape.has_head = check_head(fields, terms.limits());
  base.pooling = shape.has_head ? Pooling::kLabels : Pooling::kModel;
  if (!shape.has_head) shape.warnings.emplace_back(kByLikeness);
  settle_unknown(fields, terms.limits(), shape.warnings);
  if (fields.fault()) return *fields.fault();
  if (!shape.has_head) {
    base.prompt = TextPrompt{.text = query};
    result.requests.push_back(base);
  }
  for (const std::string& text : shape.texts) {
    if (shape.has_head)
      base.prompt = PairPrompt{query, text};
    else
      base.prompt = TextPrompt{.text = text};
    result.requests.push_back(base);
  }
  result.warnings = shape.warnings;
  result.write = [shape](const ReadTexts& read) { return reply_of(shape, read); };
  return result;
}

Result<EmbeddingRequest> parse_score(const Json& body, const RequestTerms& terms) {
  Fields fields(body);
  EmbeddingRequest result;
  check_model(fields, terms.limits(), result.model);
  const std::vector<std::string> first = one_or_more(fields, "text_1");
  const std::vector<std::string> second = one_or_more(fields, "text_2");
  if (first.size() != 1 && first.size() != second.size()) {
    fields.refuse("text_1", fmt::format("text_1 has {} texts and text_2 {}, expected one, or as many", first.size(),
                                        second.size()));
  }
  const bool is_raw = !fields.boolean("activation").value_or(true);
  Request base;
  read_cut(fields, terms.limits(), base);
  base.scheduling = read_scheduling(fields);
  base.pooling = Pooling::kLabels;
  if (const char* fault = fault_of(terms.limits().reading))
    fields.refuse_with({ErrorKind::kUnsupported, fault, "model"});
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  result.names.prompt = "text_2";
  for (size_t i = 0; i < second.size(); ++i) {
    base.prompt = PairPrompt{first[first.size() == 1 ? 0 : i], second[i]};
    result.requests.push_back(base);
  }
  result.write = [model = result.model, is_raw](const ReadTexts& read) {
    Json data = Json::array();
    for (size_t i = 0; i < read.vectors.size(); ++i) {
      data.push_back({{"index", i}, {"object", "score"}, {"score", score_of(read.vectors[i], is_raw)}});
    }
    const int64_t n_tokens = read.all_tokens();
    return to_text(Json{{"id", "score"},
                        {"object", "list"},
                        {"model", model},
                        {"data", std::move(data)},
                        {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}}});
  };
  return result;
}

}  // namespace candor::serve::reading
