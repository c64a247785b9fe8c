// POST /v1/embeddings, from JSON to engine requests.

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/reading_fields.h"
#include "serve/openai/requests.h"

namespace candor::serve::openai {
namespace {

bool read_encoding_format(Fields& fields) {
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    fields.refuse("encoding_format",
                  fmt::format("encoding_format is {}, expected float or base64", shown(Json(format))));
  }
  return format == "base64";
}

std::string reply_of(const std::string& model, bool as_base64, const std::vector<std::string>& warnings,
                     const ReadTexts& read) {
  const int64_t n_tokens = read.all_tokens();
  Json data = Json::array();
  for (size_t i = 0; i < read.vectors.size(); ++i) {
    Json shown = as_base64 ? Json(to_base64(read.vectors[i])) : Json(read.vectors[i]);
    data.push_back({{"object", "embedding"}, {"index", i}, {"embedding", std::move(shown)}});
  }
  Json json = {{"object", "list"},
               {"data", std::move(data)},
               {"model", model},
               {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}}};
  if (!warnings.empty()) json["warnings"] = warnings;
  return to_text(json);
}

}  // namespace

Result<EmbeddingRequest> parse_embedding(const Json& body, const ApiLimits& limits) {
  Fields fields(body);
  EmbeddingRequest result;
  check_model(fields, limits, result.model);
  const bool as_base64 = read_encoding_format(fields);
  result.n_dimensions = static_cast<size_t>(fields.integer("dimensions", 1, limits.dim).value_or(0));
  std::vector<std::string> warnings;
  const ReadingTerms reading = read_reading(fields, limits, warnings);
  for (Prompt& prompt : read_prompts(fields, "input", kMaxInputs)) {
    result.requests.push_back(reading.base);
    const auto* text = std::get_if<TextPrompt>(&prompt);
    result.requests.back().prompt = text != nullptr ? reading.text(text->text) : std::move(prompt);
  }
  fields.accept({"user"});
  settle_unknown(fields, limits, warnings);
  if (fields.fault()) return *fields.fault();
  result.warnings = warnings;
  result.write = [model = result.model, as_base64, warnings](const ReadTexts& read) {
    return reply_of(model, as_base64, warnings, read);
  };
  return result;
}

}  // namespace candor::serve::openai
