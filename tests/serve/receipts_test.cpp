// Receipts over every interface, whole and streamed, and the route that checks them.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "candor/verify.h"
#include "serve/client.h"

namespace candor::testing::served_receipts {
namespace {

class ServedReceipts : public ServerTest {
 protected:
  static Json checked(const Json& receipt, int status = 200) {
    const ClientReply reply = post(port(), "/v1/receipts/verify", receipt);
    EXPECT_EQ(reply.status, status) << reply.body;
    return reply.json();
  }
  static void expect_verified(const Json& receipt) {
    ASSERT_TRUE(receipt.is_object()) << receipt;
    const Json verdict = checked(receipt);
    EXPECT_EQ(verdict["verified"], true) << verdict;
    EXPECT_EQ(verdict["tokens"], verdict["verified_tokens"]);
    const auto parsed = parse_receipt(receipt.dump());
    ASSERT_TRUE(parsed) << parsed.error().message;
    const auto here = verify(running().engine(), *parsed);
    ASSERT_TRUE(here) << here.error().message;
    EXPECT_FALSE(here->difference);
  }
};

struct Way {
  std::string path;
  Json body;
};

std::vector<Way> ways() {
  const Json messages = Json::array({{{"role", "user"}, {"content", "A story about a cat"}}});
  return {{"/v1/chat/completions", {{"messages", messages}, {"max_tokens", 20}, {"temperature", 0.8}}},
          {"/v1/chat/completions", {{"messages", messages}, {"max_tokens", 12}, {"n", 3}, {"logprobs", true}}},
          {"/v1/chat/completions",
           {{"messages", messages},
            {"max_tokens", 60},
            {"response_format",
             {{"type", "json_schema"},
              {"json_schema",
               {{"name", "x"}, {"schema", {{"type", "object"}, {"properties", {{"a", {{"enum", {1, 2}}}}}}}}}}}}}},
          {"/v1/completions", {{"prompt", "Once upon"}, {"max_tokens", 20}, {"stop", {"."}}, {"temperature", 0.7}}},
          {"/v1/completions",
           {{"prompt", "Once"}, {"max_tokens", 8}, {"use_beam_search", true}, {"n", 2}, {"temperature", 0}}},
          {"/completion", {{"prompt", "Once upon"}, {"n_predict", 16}, {"repeat_penalty", 1.3}}},
          {"/v1/messages", {{"messages", messages}, {"max_tokens", 16}, {"model", "pocket"}}},
          {"/v1/responses", {{"input", "A story"}, {"max_output_tokens", 16}}},
          {"/api/generate", {{"model", "pocket"}, {"prompt", "A story"}, {"options", {{"num_predict", 16}}}}},
          {"/api/chat", {{"model", "pocket"}, {"messages", messages}, {"options", {{"num_predict", 16}}}}}};
}

// SSE, or a JSON object a line.
Json last_chunk(const std::string& path, const ClientReply& reply) {
  if (!path.starts_with("/api")) return reply.events().back();
  const std::string lines = reply.body.substr(0, reply.body.find_last_not_of('\n') + 1);
  return Json::parse(lines.substr(lines.rfind('\n') + 1), nullptr, false);
}

TEST_F(ServedReceipts, every_interface_gives_them_and_they_verify) {
  for (Way way : ways()) {
    way.body["stream"] = false;
    way.body["receipt"] = true;
    const ClientReply reply = post(port(), way.path, way.body);
    ASSERT_EQ(reply.status, 200) << way.path << reply.body;
    EXPECT_FALSE(reply.json().contains("warnings")) << way.path << reply.json()["warnings"];
    expect_verified(reply.json()["receipt"]);
    way.body["receipt"] = false;
    EXPECT_FALSE(post(port(), way.path, way.body).json().contains("receipt")) << way.path;
  }
}

TEST_F(ServedReceipts, the_last_chunk_of_a_stream_has_it) {
  for (Way way : ways()) {
    if (way.body.contains("use_beam_search")) continue;
    way.body["stream"] = true;
    way.body["receipt"] = true;
    const ClientReply reply = post(port(), way.path, way.body);
    ASSERT_EQ(reply.status, 200) << way.path << reply.body;
    expect_verified(last_chunk(way.path, reply)["receipt"]);
    EXPECT_EQ(reply.body.find("\"receipt\":"), reply.body.rfind("\"receipt\":{")) << way.path;
  }
}

TEST_F(ServedReceipts, of_several_prompts_there_is_a_list) {
  const ClientReply reply =
      post(port(), "/v1/completions",
           {{"prompt", {"Once", "A cat", "The"}}, {"max_tokens", 6}, {"n", 2}, {"receipt", true}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json receipts = reply.json()["receipt"];
  ASSERT_EQ(receipts.size(), 3u);
  for (const Json& receipt : receipts) {
    EXPECT_EQ(receipt["answers"].size(), 2u);
    expect_verified(receipt);
  }
}

TEST_F(ServedReceipts, logprobs_are_shown_only_where_they_were_asked_for) {
  Json body = user_says("A story");
  body["receipt"] = true;
  EXPECT_TRUE(post(port(), "/v1/chat/completions", body).json()["choices"][0]["logprobs"].is_null());
  body["logprobs"] = true;
  EXPECT_EQ(post(port(), "/v1/chat/completions", body).json()["choices"][0]["logprobs"]["content"].size(), 8u);
}

TEST_F(ServedReceipts, what_is_wrong_is_told_and_what_is_no_receipt_is_refused) {
  Json body = user_says("A story");
  body["receipt"] = true;
  const Json receipt = post(port(), "/v1/chat/completions", body).json()["receipt"];
  EXPECT_EQ(checked({{"model", "pocket"}, {"receipt", receipt}})["verified"], true);
  Json forged = receipt;
  forged["answers"][0]["tokens"][3] = 77;
  const Json verdict = checked(forged);
  EXPECT_EQ(verdict["verified"], false);
  EXPECT_EQ(verdict["verified_tokens"], 3);
  EXPECT_EQ(verdict["difference"]["field"], "tokens");
  EXPECT_EQ(verdict["difference"]["position"], 3);
  EXPECT_EQ(verdict["difference"]["claimed"], 77);
  forged = receipt;
  forged["model"]["fingerprint"] = "0123456789abcdef";
  const Json refused = checked(forged, 400);
  EXPECT_NE(refused["error"]["message"].get<std::string>().find("another model"), std::string::npos) << refused;
  EXPECT_EQ(refused["error"]["param"], "receipt");
  forged = receipt;
  forged["prompt"] = Json::array({5, 1'000'000});
  checked(forged, 400);
  forged = receipt;
  forged["surprise"] = 1;
  checked(forged, 400);
  forged["receipt"] = 2;
  checked(forged, 400);
  checked(Json::object(), 400);
  checked({{"receipt", Json::object()}}, 400);
  EXPECT_EQ(post(port(), "/v1/receipts/verify", {{"model", "other"}, {"receipt", receipt}}).status, 404);
  body["receipt"] = "yes";
  EXPECT_EQ(post(port(), "/v1/chat/completions", body).status, 400);
}

}  // namespace
}  // namespace candor::testing::served_receipts
