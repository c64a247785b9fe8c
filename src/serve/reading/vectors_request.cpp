// Vectors of texts: TEI's /embed, /embed_all and /similarity, Cohere's /v2/embed.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "candor/request.h"
#include "serve/core/fields.h"
#include "serve/core/reading_fields.h"
#include "serve/reading/requests.h"

namespace candor::serve::reading {
namespace {

// Texts, or lists of token ids.
void add_inputs(Fields& fields, const char* name, const ReadingTerms& terms, EmbeddingRequest& result) {
  result.names.prompt = name;
  for (Prompt& prompt : read_prompts(fields, name, kMaxInputs)) {
    result.requests.push_back(terms.base);
    const auto* text = std::get_if<TextPrompt>(&prompt);
    result.requests.back().prompt = text != nullptr ? terms.text(text->text) : std::move(prompt);
  }
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double dot = 0, square_a = 0, square_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    dot += x * y;
    square_a += x * x;
    square_b += y * y;
  }
  const double length = std::sqrt(square_a) * std::sqrt(square_b);
  return length > 0 ? std::clamp(dot / length, -1.0, 1.0) : 0.0;
}

// [tokens, dim].
Json rows_of(const std::vector<float>& numbers, size_t n_tokens) {
  Json rows = Json::array();
  const size_t width = n_tokens == 0 ? 0 : numbers.size() / n_tokens;
  for (size_t row = 0; row < n_tokens; ++row) {
    const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(row * width);
    rows.push_back(std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(width)));
  }
  return rows;
}

struct EmbeddingTypes {
  bool floats = false;
  bool base64 = false;
};

// Nothing where none are asked for.
std::optional<EmbeddingTypes> read_types(Fields& fields) {
  EmbeddingTypes types;
  const Json* list = fields.array("embedding_types");
  if (list == nullptr) return std::nullopt;
  for (const Json& type : *list) {
    types.floats = types.floats || type == "float";
    types.base64 = types.base64 || type == "base64";
    if (type != "float" && type != "base64") {
      fields.refuse("embedding_types", fmt::format("embedding_types holds {}, expected float or base64", shown(type)));
    }
  }
  return types;
}

Json meta_of(const ReadTexts& read, const char* version) {
  return {{"api_version", {{"version", version}}}, {"billed_units", {{"input_tokens", read.all_tokens()}}}};
}

std::string typed_reply(const std::vector<std::string>& texts, const std::optional<EmbeddingTypes>& asked,
                        const ReadTexts& read) {
  const EmbeddingTypes types = asked.value_or(EmbeddingTypes{.floats = true});
  Json embeddings = Json::object();
  if (types.floats) embeddings["float"] = read.vectors;
  if (types.base64) {
    embeddings["base64"] = Json::array();
    for (const std::vector<float>& vector : read.vectors) embeddings["base64"].push_back(to_base64(vector));
  }
  return to_text(Json{{"id", "embed"},
                      {"response_type", "embeddings_by_type"},
                      {"embeddings", std::move(embeddings)},
                      {"texts", texts},
                      {"meta", meta_of(read, "2")}});
}

std::string plain_reply(const std::vector<std::string>& texts, const std::optional<EmbeddingTypes>& asked,
                        const ReadTexts& read) {
  if (asked) return typed_reply(texts, asked, read);
  return to_text(Json{{"id", "embed"},
                      {"response_type", "embeddings_floats"},
                      {"embeddings", read.vectors},
                      {"texts", texts},
                      {"meta", meta_of(read, "1")}});
}

using WriteTexts = std::string (*)(const std::vector<std::string>& texts, const std::optional<EmbeddingTypes>& types,
                                   const ReadTexts& read);

Result<EmbeddingRequest> parse_cohere(const Json& body, const RequestTerms& terms, WriteTexts write) {
  Fields fields(body);
  EmbeddingRequest result;
  check_model(fields, terms.limits(), result.model);
  const std::optional<EmbeddingTypes> types = read_types(fields);
  result.n_dimensions = static_cast<size_t>(fields.integer("output_dimension", 1, terms.limits().dim).value_or(0));
  const ReadingTerms reading = read_reading(fields, terms.limits(), result.warnings);
  const std::vector<std::string> texts = read_texts(fields, "texts", kMaxInputs);
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  result.names.prompt = "texts";
  for (const std::string& text : texts) {
    result.requests.push_back(reading.base);
    result.requests.back().prompt = reading.text(text);
  }
  result.write = [texts, types, write](const ReadTexts& read) { return write(texts, types, read); };
  return result;
}

// What is made of a text where that is not the vector that a body may choose.
struct Kind {
  Pooling pooling = Pooling::kNone;
  PromptRows rows = PromptRows::kNone;
};

// "inputs" and what read_reading() reads.
Result<EmbeddingRequest> parse_inputs(const Json& body, const RequestTerms& terms, Kind kind, VectorsWriter write) {
  Fields fields(body);
  EmbeddingRequest result;
  check_model(fields, terms.limits(), result.model);
  ReadingTerms reading = read_reading(fields, terms.limits(), result.warnings);
  reading.base.pooling = kind.pooling;
  reading.base.rows = kind.rows;
  add_inputs(fields, "inputs", reading, result);
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  result.write = std::move(write);
  return result;
}

}  // namespace

Result<EmbeddingRequest> parse_embed(const Json& body, const RequestTerms& terms) {
  Fields fields(body);
  EmbeddingRequest result;
  check_model(fields, terms.limits(), result.model);
  result.n_dimensions = static_cast<size_t>(fields.integer("dimensions", 1, terms.limits().dim).value_or(0));
  add_inputs(fields, "inputs", read_reading(fields, terms.limits(), result.warnings), result);
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  result.write = [](const ReadTexts& read) { return to_text(Json(read.vectors)); };
  return result;
}

Result<EmbeddingRequest> parse_embed_sparse(const Json& body, const RequestTerms& terms) {
  return parse_inputs(body, terms, {.pooling = Pooling::kSparse}, [](const ReadTexts& read) {
    Json texts = Json::array();
    for (const std::vector<WordWeight>& words : read.sparse) {
      Json& text = texts.emplace_back(Json::array());
      for (const WordWeight& word : words) text.push_back({{"index", word.token}, {"value", word.weight}});
    }
    return to_text(texts);
  });
}

Result<EmbeddingRequest> parse_embed_all(const Json& body, const RequestTerms& terms) {
  return parse_inputs(body, terms, {.rows = PromptRows::kVectors}, [](const ReadTexts& read) {
    Json texts = Json::array();
    for (size_t i = 0; i < read.vectors.size(); ++i) {
      texts.push_back(rows_of(read.vectors[i], static_cast<size_t>(read.n_tokens[i])));
    }
    return to_text(texts);
  });
}

Result<EmbeddingRequest> parse_similarity(const Json& body, const RequestTerms& terms) {
  Fields fields(body);
  EmbeddingRequest result;
  check_model(fields, terms.limits(), result.model);
  const ReadingTerms reading = read_reading(fields, terms.limits(), result.warnings);
  const Json* inputs = fields.object("inputs");
  if (inputs == nullptr) {
    fields.refuse("inputs", "inputs is missing, expected {\"source_sentence\": ..., \"sentences\": [...]}");
    return *fields.fault();
  }
  Fields inner(*inputs, "inputs");
  std::vector<std::string> texts = read_texts(inner, "sentences", kMaxInputs - 1);
  if (!inner.has("source_sentence"))
    inner.refuse("source_sentence", "inputs.source_sentence is missing, expected a text");
  texts.insert(texts.begin(), inner.text("source_sentence").value_or(""));
  fields.accept({"parameters"});
  settle_unknown(fields, terms.limits(), result.warnings);
  if (inner.fault()) return *inner.fault();
  if (fields.fault()) return *fields.fault();
  result.names.prompt = "inputs";
  for (const std::string& text : texts) {
    result.requests.push_back(reading.base);
    result.requests.back().prompt = reading.text(text);
  }
  result.write = [](const ReadTexts& read) {
    Json scores = Json::array();
    for (size_t i = 1; i < read.vectors.size(); ++i) scores.push_back(cosine(read.vectors.front(), read.vectors[i]));
    return to_text(scores);
  };
  return result;
}

Result<EmbeddingRequest> parse_typed_embed(const Json& body, const RequestTerms& terms) {
  return parse_cohere(body, terms, typed_reply);
}

Result<EmbeddingRequest> parse_plain_embed(const Json& body, const RequestTerms& terms) {
  return parse_cohere(body, terms, plain_reply);
}

}  // namespace candor::serve::reading
