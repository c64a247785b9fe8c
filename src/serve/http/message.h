#pragma once
// Plain data, without sockets: a request as the network thread read it, and a reply as it will be sent. Header names
// are in lower case; values are as the client sent them, without the spaces around them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace candor::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest;
struct HttpResponse;

// What HTTP says beside an Error: a status, and OpenAI's words for it.
struct ErrorWords {
  int status = 400;
  std::string_view type = "invalid_request_error";
  std::string_view code = {};
};
// Tells a response's error, which it has, in the words of an interface. Any thread.
using ErrorForm = void (*)(HttpResponse& response, const HttpRequest& request);

struct HttpRequest {
  std::string method;
  std::string path;   // without the query, as sent: never decoded
  std::string query;  // behind '?'
  Headers headers;
  std::string body;
  std::string id;           // the client's x-request-id where it is well formed, else one of ours
  int32_t key = -1;         // which API key it came with; -1: none
  int64_t arrived_ns = 0;   // steady clock, when its head was complete
  bool is_upgrade = false;  // asks for a WebSocket
  ErrorForm error_form = nullptr;  // of the route's interface; nullptr: OpenAI's

  // The first header of that (lower case) name, or "".
  std::string_view header(std::string_view name) const {
    for (const auto& [key_name, value] : headers) {
      if (key_name == name) return value;
    }
    return {};
  }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  Headers headers = {};
  bool must_close = false;  // the connection ends behind it
  // What error_response() made it of.
  struct Failure {
    Error error;
    ErrorWords words;
  };
  std::optional<Failure> failure = {};
};

// "Not Found" for 404; "Status" for what has no name here.
std::string_view reason_phrase(int status);

// By the error's kind.
ErrorWords words_for(const Error& error);

// {"error": {...}} as OpenAI's clients read it: the field is their param, null where empty, as the code is; figures are
// further members. One with a status that no kind of error has brings its own words.
HttpResponse error_response(const Error& error, const ErrorWords& words);
inline HttpResponse error_response(const Error& error) {
  return error_response(error, words_for(error));
}

// The response as the request's interface says it.
HttpResponse in_form_of(const HttpRequest& request, HttpResponse response);

}  // namespace candor::http
