// Labels of texts, of pairs, and of tokens: TEI's /predict and vLLM's /classify. Labels are those of the model's files;
// scores are a softmax over them, or a sigmoid where there is one label.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
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

std::vector<double> shares_of(std::span<const float> logits, bool is_raw) {
  if (is_raw) return {logits.begin(), logits.end()};
  if (logits.size() == 1) return {sigmoid(static_cast<double>(logits.front()))};
  return softmax(logits);
}

// Best first.
Json labels_json(const std::vector<std::string>& labels, std::span<const float> logits, bool is_raw) {
  const std::vector<double> shares = shares_of(logits, is_raw);
  std::vector<size_t> order(shares.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return shares[a] > shares[b]; });
  Json list = Json::array();
  for (const size_t i : order) list.push_back({{"score", shares[i]}, {"label", labels[i]}});
  return list;
}

// Each token with its likeliest label, as id and text.
Json tokens_json(const Engine& engine, const Request& request, const std::vector<std::string>& labels,
                 const std::vector<float>& rows, bool is_raw) {
  Json list = Json::array();
  const auto tokens = engine.tokenize(request.prompt);
  if (!tokens) return list;
  for (size_t t = 0; t < tokens->size() && (t + 1) * labels.size() <= rows.size(); ++t) {
    const std::span<const float> logits(rows.data() + t * labels.size(), labels.size());
    const std::vector<double> shares = shares_of(logits, is_raw);
    const auto best = static_cast<size_t>(std::ranges::max_element(shares) - shares.begin());
    const auto word = engine.detokenize(std::span(&(*tokens)[t], 1));
    list.push_back({{"index", t},
                    {"token", (*tokens)[t]},
                    {"word", word ? *word : std::string()},
                    {"entity", labels[best]},
                    {"score", shares[best]}});
  }
  return list;
}

// "text", ["text", "its pair"], or a list of lists of one or two.
std::vector<Prompt> read_pairs(Fields& fields, const char* name, bool& is_batch) {
  const Json* value = fields.raw(name);
  std::vector<Prompt> prompts;
  const auto add = [&](const Json& one) {
    if (one.is_string()) return prompts.push_back(TextPrompt{.text = one.get<std::string>()}), true;
    const bool is_list = one.is_array() && (one.size() == 1 || one.size() == 2) &&
                         std::ranges::all_of(one, [](const Json& text) { return text.is_string(); });
    if (!is_list) return false;
    if (one.size() == 1)
      prompts.push_back(TextPrompt{.text = one[0].get<std::string>()});
    else
      prompts.push_back(PairPrompt{one[0].get<std::string>(), one[1].get<std::string>()});
    return true;
  };
  is_batch = value != nullptr && value->is_array() && !value->empty() && value->front().is_array();
  const bool is_read =
      value != nullptr && (is_batch ? value->size() <= kMaxInputs && std::ranges::all_of(*value, add) : add(*value));
  if (!is_read) {
    fields.refuse(name, fmt::format("{} is {}, expected a text, two texts, or a list of lists of these, at most {}",
                                    name, value == nullptr ? "missing" : shown(*value), kMaxInputs));
  }
  return prompts;
}

Request base_of(Fields& fields, const ApiLimits& limits) {
  Request base;
  read_cut(fields, limits, base);
  base.scheduling = read_scheduling(fields);
  if (limits.reading.labels.empty()) {
    fields.refuse_with({ErrorKind::kUnsupported,
                        "this model has no head that classifies: serve one whose files have labels", "model"});
  }
  base.pooling = limits.reading.labels_tokens ? Pooling::kNone : Pooling::kLabels;
  base.rows = limits.reading.labels_tokens ? PromptRows::kLabels : PromptRows::kNone;
  return base;
}

}  // namespace

Result<EmbeddingRequest> parse_predict(const Json& body, const RequestTerms& terms) {
  Fields fields(body);
  EmbeddingRequest result;
  check_model(fields, terms.limits(), result.model);
  const bool is_raw = fields.boolean("raw_scores").value_or(false);
  bool is_batch = false;
  const Request base = base_of(fields, terms.limits());
  for (Prompt& prompt : read_pairs(fields, "inputs", is_batch)) {
    result.requests.push_back(base);
    result.requests.back().prompt = std::move(prompt);
  }
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  result.names.prompt = "inputs";
  result.write = [labels = terms.limits().reading.labels, of_tokens = terms.limits().reading.labels_tokens, is_raw,
                  is_batch, requests = result.requests, &engine = terms.engine()](const ReadTexts& read) {
    Json all = Json::array();
    for (size_t i = 0; i < read.vectors.size(); ++i) {
      all.push_back(of_tokens ? tokens_json(engine, requests[i], labels, read.vectors[i], is_raw)
                              : labels_json(labels, read.vectors[i], is_raw));
    }
    return to_text(is_batch ? all : all.front());
  };
  return result;
}

Result<EmbeddingRequest> parse_classify(const Json& body, const RequestTerms& terms) {
  Fields fields(body);
  EmbeddingRequest result;
  check_model(fields, terms.limits(), result.model);
  const Request base = base_of(fields, terms.limits());
  if (terms.limits().reading.labels_tokens) {
    fields.refuse_with({ErrorKind::kUnsupported, "this model's labels are those of tokens: ask /predict", "model"});
  }
  for (Prompt& prompt : read_prompts(fields, "input", kMaxInputs)) {
    result.requests.push_back(base);
    result.requests.back().prompt = std::move(prompt);
  }
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  result.names.prompt = "input";
  result.write = [labels = terms.limits().reading.labels, model = result.model](const ReadTexts& read) {
    Json data = Json::array();
    for (size_t i = 0; i < read.vectors.size(); ++i) {
      const std::vector<double> shares = shares_of(read.vectors[i], false);
      const auto best = static_cast<size_t>(std::ranges::max_element(shares) - shares.begin());
      data.push_back({{"index", i}, {"label", labels[best]}, {"probs", shares}, {"num_classes", labels.size()}});
    }
    const int64_t n_tokens = read.all_tokens();
    return to_text(Json{{"id", "classify"},
                        {"object", "list"},
                        {"created", std::time(nullptr)},
                        {"model", model},
                        {"data", std::move(data)},
                        {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}}});
  };
  return result;
}

}  // namespace candor::serve::reading
