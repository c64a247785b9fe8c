// Errors as Anthropic's clients read them.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "serve/anthropic/api.h"
#include "serve/core/json_body.h"

namespace candor::serve::anthropic {
namespace {

constexpr int kOverloadedStatus = 529;

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 500:
      return "api_error";
    case kOverloadedStatus:
      return "overloaded_error";
    default:
      return "invalid_request_error";
  }
}

int status_of(const http::HttpResponse::Failure& failure) {
  const bool is_busy = failure.words.status == 503 || failure.error.kind == ErrorKind::kOverloaded;
  return is_busy ? kOverloadedStatus : failure.words.status;
}

// Clients read both numbers of a prompt that is too long, and shorten their conversation by them.
std::string message_of(const Error& error) {
  int64_t n_prompt = 0, n_ctx = 0;
  for (const auto& [name, value] : error.figures) {
    if (name == "n_prompt_tokens") n_prompt = value;
    if (name == "n_ctx") n_ctx = value;
  }
  constexpr size_t kMostMessage = 4096;  // whatever of a request the words quote
  if (error.kind != ErrorKind::kContextLength || n_ctx == 0) return clipped(error.message, kMostMessage);
  const int64_t n_most = std::min(n_ctx, n_prompt - 1);  // a prompt that fills the context has no room for an answer
  return fmt::format("prompt is too long: {} tokens > {} maximum", n_prompt, n_most);
}

}  // namespace

void tell_error(http::HttpResponse& response, const http::HttpRequest& request) {
  response.status = status_of(*response.failure);
  response.body =
      to_text({{"type", "error"},
               {"error", {{"type", type_of(response.status)}, {"message", message_of(response.failure->error)}}},
               {"request_id", request.id}});
  response.headers.emplace_back("request-id", request.id);
}

}  // namespace candor::serve::anthropic
