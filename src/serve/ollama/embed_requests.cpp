// POST /api/embed and /api/embeddings, from JSON to engine requests.

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/reading_fields.h"
#include "serve/ollama/requests.h"

namespace candor::serve::ollama {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Of either route. truncate must be asked for: what is left out of a text would not be seen in its vector.
EmbeddingRequest read_embedding(Fields& fields, const char* name, const ApiLimits& limits,
                                std::vector<std::string>& warnings) {
  EmbeddingRequest result;
  result.names.prompt = name;
  result.model = read_model(fields, limits);
  result.n_dimensions = static_cast<size_t>(fields.integer("dimensions", 0, limits.dim).value_or(0));
  Request base;
  base.pooling = Pooling::kModel;
  read_cut(fields, limits, base);
  for (Prompt& prompt : read_prompts(fields, name, kMaxInputs)) {
    base.prompt = std::move(prompt);
    result.requests.push_back(base);
  }
  fields.object("options");
  result.keep_alive = read_keep_alive(fields, limits, warnings);
  fields.accept({"name"});
  settle_unknown(fields, limits, warnings);
  return result;
}

Json embed_json(const std::string& model, Json vectors, int64_t n_tokens, int64_t took_ns) {
  return {{"model", model},
          {"embeddings", std::move(vectors)},
          {"total_duration", took_ns},
          {"load_duration", 0},
          {"prompt_eval_count", n_tokens}};
}

std::optional<Result<IdleReply>> idle_reply_of(const Json& body, const ApiLimits& limits, const char* name) {
  const auto input = body.find(name);
  const bool is_idle = input == body.end() || input->is_null() || *input == "" || (input->is_array() && input->empty());
  if (!is_idle) return std::nullopt;
  Fields fields(body);
  std::vector<std::string> warnings;
  const std::string model = read_model(fields, limits);
  const auto keep_alive = read_keep_alive(fields, limits, warnings);
  if (fields.fault()) return Result<IdleReply>(*fields.fault());
  return Result<IdleReply>(IdleReply{embed_json(model, Json::array(), 0, 0), keep_alive});
}

}  // namespace

std::optional<Result<IdleReply>> idle_embed_reply(const Json& body, const ApiLimits& limits) {
  return idle_reply_of(body, limits, "input");
}

std::optional<Result<IdleReply>> idle_embeddings_reply(const Json& body, const ApiLimits& limits) {
  auto reply = idle_reply_of(body, limits, "prompt");
  if (reply && *reply) (*reply)->json = Json{{"embedding", Json::array()}};
  return reply;
}

Result<EmbeddingRequest> parse_embed(const Json& body, const ApiLimits& limits) {
  Fields fields(body);
  std::vector<std::string> warnings;
  EmbeddingRequest result = read_embedding(fields, "input", limits, warnings);
  if (fields.fault()) return *fields.fault();
  result.write = [model = result.model, warnings, began = now_ns()](const ReadTexts& read) {
    Json json = embed_json(model, read.vectors, read.all_tokens(), now_ns() - began);
    if (!warnings.empty()) json["warnings"] = warnings;
    return to_text(json);
  };
  return result;
}

Result<EmbeddingRequest> parse_embeddings(const Json& body, const ApiLimits& limits) {
  Fields fields(body);
  std::vector<std::string> warnings;
  EmbeddingRequest result = read_embedding(fields, "prompt", limits, warnings);
  if (result.requests.size() > 1)
    fields.refuse("prompt", "prompt is a list, expected one string; /api/embed takes more");
  if (fields.fault()) return *fields.fault();
  result.write = [](const ReadTexts& read) { return to_text(Json{{"embedding", read.vectors.front()}}); };
  return result;
}

}  // namespace candor::serve::ollama
