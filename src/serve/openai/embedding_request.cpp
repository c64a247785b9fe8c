// POST /v1/embeddings, from JSON to engine requests.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "serve/openai/api_request.h"

namespace candor::openai {
namespace {

bool read_encoding_format(Fields& fields) {
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    fields.refuse("encoding_format",
                  fmt::format("encoding_format is {}, expected float or base64", shown(Json(format))));
  }
  return format == "base64";
}

Pooling read_pooling(Fields& fields) {
  const std::string pooling = fields.text("pooling").value_or("mean");
  if (pooling != "mean" && pooling != "last") {
    fields.refuse("pooling", fmt::format("pooling is {}, expected mean or last", shown(Json(pooling))));
  }
  return pooling == "last" ? Pooling::kLast : Pooling::kMean;
}

}  // namespace

Result<EmbeddingRequest> parse_embedding(const Json& body, const ApiLimits& limits) {
  Fields fields(body);
  EmbeddingRequest result;
  check_model(fields, limits, result.model);
  result.as_base64 = read_encoding_format(fields);
  result.n_dimensions = static_cast<size_t>(fields.integer("dimensions", 1, limits.dim).value_or(0));
  Request base;
  base.pooling = read_pooling(fields);
  base.scheduling = read_scheduling(fields);
  for (Prompt& prompt : read_prompts(fields, "input", kMaxInputs)) {
    base.prompt = std::move(prompt);
    result.requests.push_back(base);
  }
  fields.accept({"user"});
  settle_unknown(fields, limits, result.warnings);
  if (fields.fault()) return *fields.fault();
  return result;
}

}  // namespace candor::openai
