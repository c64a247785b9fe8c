#include "serve/http/message.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace candor::http {
namespace {

struct KindWords {
  ErrorKind kind;
  int status;
  const char* type;
  const char* code;  // nullptr: null
};

TEST(error_response, each_kind_has_its_status_type_and_code) {
  const KindWords kinds[] = {
      {ErrorKind::kInvalidInput, 400, "invalid_request_error", nullptr},
      {ErrorKind::kNotFound, 404, "invalid_request_error", nullptr},
      {ErrorKind::kUnsupported, 400, "invalid_request_error", nullptr},
      {ErrorKind::kContextLength, 400, "invalid_request_error", "context_length_exceeded"},
      {ErrorKind::kOverloaded, 429, "rate_limit_error", "queue_full"},
      {ErrorKind::kRateLimited, 429, "rate_limit_error", "rate_limit_exceeded"},
      {ErrorKind::kBusy, 503, "server_error", nullptr},
      {ErrorKind::kOutOfMemory, 503, "server_error", nullptr},
      {ErrorKind::kIo, 500, "server_error", nullptr},
      {ErrorKind::kCancelled, 503, "server_error", nullptr},
      {ErrorKind::kInternal, 500, "server_error", nullptr},
  };
  for (const KindWords& expected : kinds) {
    const HttpResponse response = error_response({expected.kind, "why"});
    const auto error = nlohmann::json::parse(response.body)["error"];
    EXPECT_EQ(response.status, expected.status);
    EXPECT_EQ(error["message"], "why");
    EXPECT_EQ(error["type"], expected.type);
    EXPECT_TRUE(error["param"].is_null());
    EXPECT_EQ(error["code"], expected.code == nullptr ? nlohmann::json(nullptr) : nlohmann::json(expected.code));
    EXPECT_EQ(response.headers.empty(), response.status != 429 && response.status != 503) << "retry-after";
  }
}

TEST(error_response, the_field_is_the_param_and_figures_are_members) {
  const Error error{ErrorKind::kContextLength, "too long", "messages", {{"n_prompt_tokens", 600}, {"n_ctx", 512}}};
  const auto shown = nlohmann::json::parse(error_response(error).body)["error"];
  EXPECT_EQ(shown["param"], "messages");
  EXPECT_EQ(shown["n_prompt_tokens"], 600);
  EXPECT_EQ(shown["n_ctx"], 512);
  const auto missing = nlohmann::json::parse(error_response({ErrorKind::kNotFound, "none", "model"}).body)["error"];
  EXPECT_EQ(missing["code"], "model_not_found");
}

TEST(error_response, a_status_of_no_kind_brings_its_own_words) {
  const HttpResponse response =
      error_response({ErrorKind::kInvalidInput, "no"}, {.status = 403, .type = "permission_error"});
  EXPECT_EQ(response.status, 403);
  EXPECT_EQ(nlohmann::json::parse(response.body)["error"]["type"], "permission_error");
}

}  // namespace
}  // namespace candor::http
