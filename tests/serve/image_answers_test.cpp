// What an answer to images gives besides its text: where tokens looked, and receipts.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "formats/base64.h"
#include "serve/client.h"
#include "vision/vision_golden.h"

namespace candor::testing {
namespace {

class image_answers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    RunningOptions options = Running::defaults();
    options.engine.model_path = vision_golden("smolvlm");
    options.service.limits.model = "smolvlm";
    running_ = std::make_unique<Running>(options);
  }
  static void TearDownTestSuite() { running_.reset(); }
  static ClientReply ask(const std::string& path, const Json& body) { return post(running_->port(), path, body); }

  static std::string image() {
    std::ifstream stream(vision_golden("smolvlm") / "image.png", std::ios::binary);
    return formats::to_base64(std::string{std::istreambuf_iterator<char>(stream), {}});
  }
  static Json chat(const Json& more) {
    Json body = {{"messages",
                  {{{"role", "user"},
                    {"content",
                     {{{"type", "image_url"}, {"image_url", {{"url", "data:image/png;base64," + image()}}}},
                      {{"type", "text"}, {"text", "what?"}}}}}}},
                 {"max_tokens", 4},
                 {"temperature", 0}};
    body.update(more);
    return body;
  }

  static inline std::unique_ptr<Running> running_;
};

void expect_images(const Json& explained, int64_t n_rows) {
  ASSERT_TRUE(explained.contains("images")) << explained.dump().substr(0, 300);
  ASSERT_EQ(explained["images"].size(), 1u);
  const Json& seen = explained["images"][0];
  EXPECT_EQ(seen["width"], golden_image().width);
  EXPECT_EQ(seen["height"], golden_image().height);
  double sum = 0.0;
  int64_t n_shares = 0;
  for (const Json& tile : seen["tiles"]) {
    EXPECT_EQ(tile["shares"].size(), tile["rows"].get<size_t>() * tile["cols"].get<size_t>());
    EXPECT_EQ(tile["box"].size(), 4u);
    n_shares += static_cast<int64_t>(tile["shares"].size());
    for (const Json& share : tile["shares"]) sum += share.get<double>();
  }
  EXPECT_EQ(n_shares, n_rows);
  EXPECT_NEAR(sum, seen["share"].get<double>(), 1e-6 * static_cast<double>(n_shares)) << "a millionth each";
  EXPECT_TRUE(seen["tiles"].back()["is_whole"].get<bool>());
}

TEST_F(image_answers, tell_where_each_token_looked) {
  const Json whole = ask("/v1/chat/completions", chat({{"explain", true}, {"attention", true}})).json();
  const auto n_rows = whole["usage"]["prompt_tokens_details"]["image_tokens"].get<int64_t>();
  ASSERT_EQ(whole["choices"][0]["explain"].size(), 4u) << whole.dump().substr(0, 300);
  for (const Json& explained : whole["choices"][0]["explain"]) expect_images(explained, n_rows);
  const Json plain = ask("/v1/chat/completions", chat({{"explain", true}})).json();
  EXPECT_FALSE(plain["choices"][0]["explain"][0].contains("images"));
  EXPECT_EQ(plain["choices"][0]["message"], whole["choices"][0]["message"]);
  const Json completed =
      ask("/completion",
          {{"prompt", {{"prompt_string", "<__media__> what?"}, {"multimodal_data", Json::array({image()})}}},
           {"n_predict", 2},
           {"explain", true},
           {"attention", true},
           {"stream", false}})
          .json();
  EXPECT_FALSE(completed.contains("error")) << completed;
}

TEST_F(image_answers, attention_is_refused_by_name_where_there_is_none) {
  const Json text = {{"messages", {{{"role", "user"}, {"content", "hello"}}}}, {"max_tokens", 2}, {"attention", true}};
  Json explained = text;
  explained["explain"] = true;
  for (const Json& body : {text, explained, chat({{"attention", true}}), chat({{"attention", "yes"}})}) {
    const ClientReply reply = ask("/v1/chat/completions", body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"], "attention") << reply.body;
  }
}

TEST_F(image_answers, have_receipts_that_verify_with_the_image) {
  const Json got = ask("/v1/chat/completions", chat({{"receipt", true}})).json();
  ASSERT_TRUE(got.contains("receipt")) << got;
  const Json verdict =
      ask("/v1/receipts/verify", {{"receipt", got["receipt"]}, {"images", Json::array({image()})}}).json();
  EXPECT_EQ(verdict["verified"], true) << verdict;
  EXPECT_EQ(verdict["verified_tokens"], 4);
  const ClientReply blind = ask("/v1/receipts/verify", got["receipt"]);
  EXPECT_EQ(blind.status, 400);
  EXPECT_NE(blind.json()["error"]["message"].get<std::string>().find("image 1 of the receipt"), std::string::npos)
      << blind.body;
}

TEST_F(image_answers, bad_images_beside_a_receipt_are_refused_by_name) {
  const Json receipt = ask("/v1/chat/completions", chat({{"receipt", true}})).json()["receipt"];
  const auto said = [&](const Json& images) {
    const ClientReply reply = ask("/v1/receipts/verify", {{"receipt", receipt}, {"images", images}});
    EXPECT_EQ(reply.status, 400) << reply.body;
    return reply.json()["error"]["message"].get<std::string>();
  };
  EXPECT_NE(said("no list").find("images is no list"), std::string::npos);
  EXPECT_NE(said(Json::array({5})).find("images[0]"), std::string::npos);
  EXPECT_NE(said(Json::array({image(), "*"})).find("images[1]"), std::string::npos);
  EXPECT_NE(said(Json::array({"aGVsbG8="})).find("image 1 of the receipt"), std::string::npos);
}

// The tokens that stand for rows have logprobs, too.
TEST_F(image_answers, have_prompt_logprobs) {
  const Json got = ask("/v1/chat/completions", chat({{"prompt_logprobs", 1}})).json();
  ASSERT_TRUE(got.contains("prompt_logprobs")) << got;
  EXPECT_EQ(got["prompt_logprobs"].size(), got["usage"]["prompt_tokens"].get<size_t>());
}

}  // namespace
}  // namespace candor::testing
