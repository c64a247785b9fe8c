// What a prompt itself gives: echo with logprobs, vLLM's prompt_logprobs, embeddings; and how tokens came about.

#include <cmath>
#include <cstring>

#include "serve/client.h"

namespace candor::testing {
namespace {

class scoring : public ServerTest {
 protected:
  static constexpr const char* kText = "Once upon a time there was a cat";
  static Json scored(const Json& prompt, int max_tokens = 0) {
    return {{"prompt", prompt}, {"echo", true}, {"logprobs", 1}, {"max_tokens", max_tokens}, {"temperature", 0}};
  }
  static Json completion(const Json& body) {
    const ClientReply reply = post(port(), "/v1/completions", body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }
  static std::vector<float> from_base64(const std::string& text) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    uint32_t word = 0;
    int n_bits = 0;
    for (const char c : text) {
      if (c == '=') break;
      word = word << 6 | static_cast<uint32_t>(digits.find(c));
      n_bits += 6;
      if (n_bits < 8) continue;
      n_bits -= 8;
      bytes += static_cast<char>(word >> n_bits & 0xff);
    }
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }
};

TEST_F(scoring, a_prompt_is_scored_without_a_token_being_made) {
  const Json reply = completion(scored(kText));
  const Json& choice = reply["choices"][0];
  EXPECT_EQ(choice["text"], kText);
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(reply["usage"]["completion_tokens"], 0);
  const Json& logprobs = choice["logprobs"];
  const size_t n = reply["usage"]["prompt_tokens"].get<size_t>();
  for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    ASSERT_EQ(logprobs[name].size(), n) << name;
  }
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  std::string joined;
  for (size_t i = 1; i < n; ++i) {
    EXPECT_LT(logprobs["token_logprobs"][i].get<double>(), 0.0);
    const std::string token = logprobs["tokens"][i];
    EXPECT_EQ(logprobs["top_logprobs"][i][token], logprobs["token_logprobs"][i]);
  }
}

TEST_F(scoring, scores_are_the_engines_own) {
  Request request;
  request.prompt = TextPrompt{.text = kText};
  request.sampling.max_tokens = 0;
  request.sampling.prompt_logprobs = 1;
  const auto expected = running().engine().generate(request);
  ASSERT_TRUE(expected);
  const Json scores = completion(scored(kText))["choices"][0]["logprobs"]["token_logprobs"];
  ASSERT_EQ(scores.size(), expected->prompt_logprobs.size() + 1);
  for (size_t i = 1; i < scores.size(); ++i) {
    EXPECT_EQ(scores[i].get<float>(), expected->prompt_logprobs[i - 1].logprob.logprob);
  }
}

TEST_F(scoring, several_prompts_of_ids_are_scored_each_by_itself) {
  const Json ids = post(port(), "/tokenize", {{"content", kText}, {"add_special", true}}).json()["tokens"];
  const Json one = completion(scored(ids))["choices"][0]["logprobs"];
  const Json three = completion(scored({ids, {ids[0], ids[1]}, ids}));
  ASSERT_EQ(three["choices"].size(), 3u);
  EXPECT_EQ(three["choices"][0]["logprobs"], one);
  EXPECT_EQ(three["choices"][2]["logprobs"], one);
  EXPECT_EQ(three["choices"][1]["logprobs"]["tokens"].size(), 2u);
}

TEST_F(scoring, echo_goes_on_where_the_prompt_ends_streamed_and_plain) {
  Json body = scored(kText, 6);
  const Json plain = completion(body)["choices"][0];
  Json without = body;
  without.erase("echo");
  const Json rest = completion(without)["choices"][0];
  EXPECT_EQ(plain["text"], kText + rest["text"].get<std::string>());
  EXPECT_EQ(plain["logprobs"]["tokens"].back(), rest["logprobs"]["tokens"].back());
  body["stream"] = true;
  std::string text;
  Json tokens = Json::array();
  for (const Json& event : post(port(), "/v1/completions", body).events()) {
    const Json& choice = event["choices"][0];
    text += choice["text"];
    if (choice["logprobs"].is_object()) {
      tokens.insert(tokens.end(), choice["logprobs"]["tokens"].begin(), choice["logprobs"]["tokens"].end());
    }
  }
  EXPECT_EQ(text, plain["text"]);
  EXPECT_EQ(tokens, plain["logprobs"]["tokens"]);
}

TEST_F(scoring, each_of_several_answers_begins_with_the_prompt) {
  Json body = scored(kText, 3);
  body["n"] = 2;
  body["temperature"] = 1;
  const Json reply = completion(body);
  ASSERT_EQ(reply["choices"].size(), 2u);
  for (const Json& choice : reply["choices"]) {
    EXPECT_TRUE(choice["text"].get<std::string>().starts_with(kText));
    EXPECT_EQ(choice["logprobs"]["tokens"].size(), reply["usage"]["prompt_tokens"].get<size_t>() + 3);
  }
}

TEST_F(scoring, no_token_is_a_wish_only_with_echo) {
  Json body = scored(kText);
  body.erase("echo");
  EXPECT_EQ(post(port(), "/v1/completions", body).status, 400);
}

TEST_F(scoring, prompt_logprobs_come_as_vllm_has_them) {
  Json body = user_says("hi", 2);
  body["prompt_logprobs"] = 1;
  const Json reply = post(port(), "/v1/chat/completions", body).json();
  const Json& list = reply["prompt_logprobs"];
  ASSERT_EQ(list.size(), reply["usage"]["prompt_tokens"].get<size_t>());
  EXPECT_TRUE(list[0].is_null());
  for (size_t i = 1; i < list.size(); ++i) {
    for (const auto& [id, shown] : list[i].items()) EXPECT_LE(shown["logprob"].get<double>(), 0.0) << id;
  }
  body["stream"] = true;
  EXPECT_EQ(post(port(), "/v1/chat/completions", body).status, 400);
}

TEST_F(scoring, embeddings_come_as_floats_and_as_base64) {
  const Json input = {"a cat", "a dog", "a cat"};
  const Json reply = post(port(), "/v1/embeddings", {{"input", input}, {"model", "pocket"}}).json();
  ASSERT_EQ(reply["data"].size(), 3u) << reply;
  EXPECT_EQ(reply["object"], "list");
  EXPECT_EQ(reply["usage"]["prompt_tokens"], reply["usage"]["total_tokens"]);
  EXPECT_EQ(reply["data"][0]["embedding"], reply["data"][2]["embedding"]);
  EXPECT_NE(reply["data"][0]["embedding"], reply["data"][1]["embedding"]);
  EXPECT_EQ(reply["data"][1]["index"], 1);
  const auto floats = reply["data"][0]["embedding"].get<std::vector<float>>();
  EXPECT_EQ(floats.size(), static_cast<size_t>(running().engine().info().dim));
  const Json coded = post(port(), "/v1/embeddings", {{"input", "a cat"}, {"encoding_format", "base64"}}).json();
  EXPECT_EQ(from_base64(coded["data"][0]["embedding"]), floats);
}

TEST_F(scoring, embeddings_are_cut_and_have_length_one) {
  for (const char* pooling : {"mean", "last"}) {
    const Json reply =
        post(port(), "/v1/embeddings", {{"input", "a cat"}, {"dimensions", 8}, {"pooling", pooling}}).json();
    double square = 0;
    for (const Json& x : reply["data"][0]["embedding"]) square += x.get<double>() * x.get<double>();
    EXPECT_EQ(reply["data"][0]["embedding"].size(), 8u);
    EXPECT_NEAR(square, 1.0, 1e-5);
  }
}

TEST_F(scoring, many_inputs_wait_for_their_turn) {
  Json input = Json::array();
  for (int i = 0; i < 300; ++i) input.push_back("number " + std::to_string(i % 7));
  const Json reply = post(port(), "/v1/embeddings", {{"input", input}}).json();
  ASSERT_EQ(reply["data"].size(), 300u);
  EXPECT_EQ(reply["data"][299]["embedding"], reply["data"][299 - 7]["embedding"]);
  EXPECT_TRUE(running().becomes_idle());
}

TEST_F(scoring, what_cannot_be_embedded_is_refused) {
  const auto status = [](const Json& change) {
    Json body = {{"input", "a"}};
    body.update(change);
    return post(port(), "/v1/embeddings", body).status;
  };
  EXPECT_EQ(status({{"input", nullptr}}), 400);
  EXPECT_EQ(status({{"input", 5}}), 400);
  EXPECT_EQ(status({{"input", Json::array({-1})}}), 400);
  EXPECT_EQ(status({{"input", std::vector<std::string>(2049, "a")}}), 400);
  EXPECT_EQ(status({{"input", std::string(200'000, 'a')}}), 400);
  EXPECT_EQ(status({{"encoding_format", "hex"}}), 400);
  EXPECT_EQ(status({{"dimensions", 0}}), 400);
  EXPECT_EQ(status({{"dimensions", 1 << 20}}), 400);
  EXPECT_EQ(status({{"pooling", "max"}}), 400);
  EXPECT_EQ(status({{"model", "other"}}), 404);
}

TEST_F(scoring, a_token_is_explained_where_that_is_asked_for) {
  Json body = user_says("hi", 3);
  body["explain"] = true;
  body["temperature"] = 1;
  body["top_k"] = 4;
  const Json plain = post(port(), "/v1/chat/completions", body).json()["choices"][0];
  ASSERT_FALSE(plain["explain"].empty());
  const Json& stages = plain["explain"][0]["stages"];
  EXPECT_EQ(stages.front()["name"], "logits");
  EXPECT_EQ(stages.back()["n_left"], 4);
  body["stream"] = true;
  Json streamed = Json::array();
  for (const Json& event : post(port(), "/v1/chat/completions", body).events()) {
    const Json explained = event["choices"][0].value("explain", Json::array());
    streamed.insert(streamed.end(), explained.begin(), explained.end());
  }
  EXPECT_EQ(streamed.size(), plain["explain"].size());
}

}  // namespace
}  // namespace candor::testing
