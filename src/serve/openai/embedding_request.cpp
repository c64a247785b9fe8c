// POST /v1/embeddings, from JSON to engine requests.

#include <fmt/format.h>
#include <openssl/evp.h>

#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/openai/requests.h"

namespace candor::serve::openai {
namespace {

std::string base64(std::span<const float> vector) {
  static_assert(std::endian::native == std::endian::little, "base64 carries little-endian floats");
  const auto* bytes = reinterpret_cast<const unsigned char*>(vector.data());
  const size_t n_digits = (vector.size_bytes() + 2) / 3 * 4;
  std::string text(n_digits + 1, '\0');  // ends with a zero byte
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes, static_cast<int>(vector.size_bytes()));
  text.resize(n_digits);
  return text;
}

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

std::string reply_of(const std::string& model, bool as_base64, const std::vector<std::string>& warnings,
                     const std::vector<std::vector<float>>& vectors, int64_t n_tokens) {
  Json data = Json::array();
  for (size_t i = 0; i < vectors.size(); ++i) {
    Json shown = as_base64 ? Json(base64(vectors[i])) : Json(vectors[i]);
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
  Request base;
  base.pooling = read_pooling(fields);
  base.scheduling = read_scheduling(fields);
  for (Prompt& prompt : read_prompts(fields, "input", kMaxInputs)) {
    base.prompt = std::move(prompt);
    result.requests.push_back(base);
  }
  fields.accept({"user"});
  std::vector<std::string> warnings;
  settle_unknown(fields, limits, warnings);
  if (fields.fault()) return *fields.fault();
  result.write = [model = result.model, as_base64, warnings](const auto& vectors, int64_t n_tokens) {
    return reply_of(model, as_base64, warnings, vectors, n_tokens);
  };
  return result;
}

}  // namespace candor::serve::openai
