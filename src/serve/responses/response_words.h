#pragma once
// Writes the response object of the Responses API, and the events about it, for the reply and for the stream before it.

#include <cstdint>
#include <string>
#include <string_view>

#include "serve/core/early_stream.h"
#include "serve/core/json_body.h"
#include "serve/http/message.h"

namespace candor::serve::responses {

inline constexpr std::string_view kIdPrefix = "resp_";

// What differs between two responses.
struct ResponseNames {
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
};

// echo: the members that repeat what was asked.
Json response_json(const ResponseNames& names, std::string_view status, Json output, const Json& echo);
// With an error as OpenAI has it.
Json failed_response(Json response, const Error& error);
// An event of that type, without its sequence number.
Json response_event(std::string_view type, Json response);

// While the model is being loaded: first response.created, then response.in_progress again and again. The request is
// not parsed yet, so that the members that repeat it have their default values.
std::string early_frame(const EarlyStream& stream);
// response.failed. REQUIRES: response.created was said; the response tells an error.
std::string early_failure(const EarlyStream& stream, const http::HttpResponse& response);

}  // namespace candor::serve::responses
