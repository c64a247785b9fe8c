#include "serve/http/message.h"

#include <cstddef>

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace candor::http {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

std::string_view reason_phrase(int status) {
  static constexpr std::pair<int, std::string_view> kPhrases[] = {
      {200, "OK"},
      {204, "No Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"},
      {529, "Overloaded"},
  };
  for (const auto& [value, phrase] : kPhrases) {
    if (value == status) return phrase;
  }
  return "Status";
}

ErrorWords words_for(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kInvalidInput:
    case ErrorKind::kUnsupported:
      break;
    case ErrorKind::kContextLength:
      return {.code = "context_length_exceeded"};
    case ErrorKind::kNotFound:
      return {.status = 404, .code = error.field == "model" ? "model_not_found" : ""};
    case ErrorKind::kOverloaded:
      return {.status = 429, .type = "rate_limit_error", .code = "queue_full"};
    case ErrorKind::kRateLimited:
      return {.status = 429, .type = "rate_limit_error", .code = "rate_limit_exceeded"};
    case ErrorKind::kBusy:
    case ErrorKind::kOutOfMemory:
    case ErrorKind::kCancelled:
      return {.status = 503, .type = "server_error"};
    case ErrorKind::kIo:
    case ErrorKind::kInternal:
      return {.status = 500, .type = "server_error"};
  }
  return {};
}

HttpResponse error_response(const Error& error, const ErrorWords& words) {
  constexpr size_t kMostMessage = 4096;  // whatever of a request the words quote
  constexpr size_t kMostParam = 256;
  Json body = {{"error",
                {{"message", clipped(error.message, kMostMessage)},
                 {"type", words.type},
                 {"param", text_or_null(clipped(error.field, kMostParam))},
                 {"code", text_or_null(words.code)}}}};
  for (const auto& [name, value] : error.figures) body["error"][name] = value;
  HttpResponse response;
  response.status = words.status;
  response.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  response.failure = {error, words};
  if (words.status == 429 || words.status == 503) response.headers.emplace_back("retry-after", "1");
  return response;
}

HttpResponse in_form_of(const HttpRequest& request, HttpResponse response) {
  if (request.error_form != nullptr && response.failure) request.error_form(response, request);
  return response;
}

}  // namespace candor::http
