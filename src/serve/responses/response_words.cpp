#include "serve/responses/response_words.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace candor::serve::responses {
namespace {

// OpenAI's codes for what ends a response.
std::string code_of(const Error& error) {
  const http::ErrorWords words = http::words_for(error);
  if (!words.code.empty()) return std::string(words.code);
  return words.status < 500 ? "invalid_prompt" : "server_error";
}

Json unread_echo() {
  Json echo = {{"tools", Json::array()},
               {"tool_choice", "auto"},
               {"parallel_tool_calls", true},
               {"truncation", "disabled"},
               {"text", {{"format", {{"type", "text"}}}}},
               {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
               {"temperature", 1},
               {"top_p", 1},
               {"presence_penalty", 0},
               {"frequency_penalty", 0},
               {"top_logprobs", 0},
               {"store", false},
               {"background", false},
               {"service_tier", "default"},
               {"metadata", Json::object()}};
  for (const char* name : {"previous_response_id", "instructions", "max_output_tokens", "max_tool_calls",
                           "safety_identifier", "prompt_cache_key", "user"}) {
    echo[name] = nullptr;
  }
  return echo;
}

Json early_response(const EarlyStream& stream) {
  return response_json({std::string(kIdPrefix) + stream.number, stream.created, stream.model}, "in_progress",
                       Json::array(), unread_echo());
}

std::string frame(Json event, int64_t number) {
  event["sequence_number"] = number;
  return "event: " + event["type"].get<std::string>() + "\ndata: " + to_text(event) + "\n\n";
}

}  // namespace

Json response_json(const ResponseNames& names, std::string_view status, Json output, const Json& echo) {
  Json json = {{"id", names.id},
               {"object", "response"},
               {"created_at", names.created},
               {"completed_at", nullptr},
               {"status", status},
               {"error", nullptr},
               {"incomplete_details", nullptr},
               {"model", names.model},
               {"output", std::move(output)}};
  json.update(echo);
  json["usage"] = nullptr;
  return json;
}

Json failed_response(Json response, const Error& error) {
  response["status"] = "failed";
  response["error"] = {{"code", code_of(error)}, {"message", error.message}};
  return response;
}

Json response_event(std::string_view type, Json response) {
  return {{"type", type}, {"response", std::move(response)}};
}

std::string early_frame(const EarlyStream& stream) {
  const char* const type = stream.n_frames == 0 ? "response.created" : "response.in_progress";
  return frame(response_event(type, early_response(stream)), stream.n_frames);
}

std::string early_failure(const EarlyStream& stream, const http::HttpResponse& response) {
  Json failed = failed_response(early_response(stream), response.failure->error);
  return frame(response_event("response.failed", std::move(failed)), stream.n_frames);
}

}  // namespace candor::serve::responses
