#include "serve/batch/batch_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/hash.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"

namespace candor::serve {
namespace {

struct BatchUrl {
  std::string_view url;
  std::string_view field;  // that a body alone is known by
  bool draws;              // tokens, by a seed
};
constexpr BatchUrl kUrls[] = {{"/v1/chat/completions", "messages", true},
                              {"/v1/completions", "prompt", true},
                              {"/v1/embeddings", "input", false},
                              {"/v1/responses", "", true}};

uint64_t hash_of(std::string_view text, uint64_t seed) {
  return hash_bytes(std::as_bytes(std::span(text)), seed);
}

// A member that is text; empty where there is none.
Result<std::string> text_at(const Json& line, const char* key) {
  const auto at = line.find(key);
  if (at == line.end()) return std::string();
  if (!at->is_string() || at->get_ref<const std::string&>().empty())
    return fail(ErrorKind::kInvalidInput, fmt::format("{} is {}, expected text", key, shown(*at)));
  return at->get<std::string>();
}

Result<const BatchUrl*> find_url(std::string_view url) {
  const auto* found = std::ranges::find(kUrls, url, &BatchUrl::url);
  if (found != std::end(kUrls)) return found;
  return fail(ErrorKind::kInvalidInput, fmt::format("url is {}; a batch takes /v1/chat/completions, /v1/completions, "
                                                    "/v1/embeddings and /v1/responses",
                                                    shown(Json(url))));
}

// OpenAI's envelope.
Result<const BatchUrl*> open_envelope(Json& line) {
  CANDOR_ASSIGN(const std::string method, text_at(line, "method"));
  CANDOR_ASSIGN(const std::string url, text_at(line, "url"));
  if (!method.empty() && method != "POST")
    return fail(ErrorKind::kInvalidInput, fmt::format("method is {}, expected \"POST\"", shown(Json(method))));
  for (const auto& [key, value] : line.items()) {
    if (key != "custom_id" && key != "method" && key != "url" && key != "body")
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("{} stands beside the body; fields of the request belong into it", shown(Json(key))));
  }
  Json body = std::move(line["body"]);
  if (!body.is_object()) return fail(ErrorKind::kInvalidInput, "body is no object");
  line = std::move(body);
  return find_url(url);
}

// A body alone, which may have a custom_id among its fields.
Result<const BatchUrl*> guess_url(Json& line) {
  line.erase("custom_id");
  for (const BatchUrl& one : kUrls) {
    if (!one.field.empty() && line.contains(one.field)) return &one;
  }
  return fail(ErrorKind::kInvalidInput,
              "neither a request of OpenAI's batch format (custom_id, url, body), nor a body with messages, prompt or "
              "input, nor a prompt as JSON text");
}

}  // namespace

bool is_batch_url(std::string_view url) {
  return std::ranges::find(kUrls, url, &BatchUrl::url) != std::end(kUrls);
}

Result<BatchLine> parse_batch_line(std::string_view text, size_t number, uint64_t seed, std::string_view model) {
  const size_t first = text.find_first_not_of(" \t\r");
  std::string wrapped;
  if (first != std::string_view::npos && text[first] == '"') {
    wrapped = fmt::format("{{\"prompt\":{}}}", text);
    text = wrapped;
  }
  CANDOR_ASSIGN(Json line, parse_body(text));
  BatchLine result;
  CANDOR_ASSIGN(result.custom_id, text_at(line, "custom_id"));
  if (result.custom_id.empty()) result.custom_id = fmt::format("line-{}", number);
  CANDOR_ASSIGN(const BatchUrl* url, line.contains("body") ? open_envelope(line) : guess_url(line));
  if (const auto stream = line.find("stream"); stream != line.end() && *stream != false)
    return fail(ErrorKind::kInvalidInput, "stream: a batch answers whole");
  result.url = url->url;
  if (url->draws && !line.contains("seed")) line["seed"] = hash_of(result.custom_id, seed) & 0x7fffffff;
  result.body = to_text(line);
  result.digest = hash_of(result.body, hash_of(result.url, hash_of(model, 0)));
  return result;
}

}  // namespace candor::serve
