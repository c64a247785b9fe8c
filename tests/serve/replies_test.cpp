// What a well-formed request gets: OpenAI's shapes, plain and streamed, and the same text on every path.

#include <algorithm>
#include <thread>

#include "serve/client.h"

namespace candor::testing {
namespace {

class replies : public ServerTest {
 protected:
  static std::string streamed_text(const ClientReply& reply) {
    std::string text;
    for (const Json& event : reply.events()) {
      for (const Json& choice : event["choices"]) {
        text += choice.contains("delta") ? choice["delta"].value("content", "") : choice.value("text", "");
      }
    }
    return text;
  }
  static Json story(int max_tokens = 40) {
    Json body = user_says("Tell me a story about a cat", max_tokens);
    body["temperature"] = 1;
    body["seed"] = 7;
    return body;
  }
};

TEST_F(replies, a_chat_completion_has_every_field_of_the_contract) {
  Json body = user_says("hi", 5);
  body["model"] = "pocket";
  const ClientReply reply = post(port(), "/v1/chat/completions", body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json json = reply.json();
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["model"], "pocket");
  EXPECT_TRUE(json["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_TRUE(json["created"].is_number_integer());
  const Json& choice = json["choices"][0];
  EXPECT_EQ(choice["index"], 0);
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_TRUE(choice["message"]["content"].is_string());
  EXPECT_TRUE(choice["message"]["refusal"].is_null());
  const Json& usage = json["usage"];
  EXPECT_EQ(usage["total_tokens"].get<int>(),
            usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
  EXPECT_TRUE(json["timings"].contains("predicted_per_second"));
}

TEST_F(replies, the_time_of_a_token_and_tokens_a_second_agree) {
  const Json timings = post(port(), "/v1/chat/completions", story()).json()["timings"];
  ASSERT_GT(timings["predicted_per_second"].get<double>(), 0.0);
  EXPECT_NEAR(timings["predicted_per_token_ms"].get<double>() * timings["predicted_per_second"].get<double>(), 1e3,
              1e-6);
}

TEST_F(replies, a_preset_is_what_its_numbers_are_and_numbers_come_after_it) {
  Json preset = story(), numbers = story();
  preset.erase("temperature");
  preset["preset"] = "creative";
  numbers["temperature"] = 0.95;
  numbers["top_p"] = 0.95;
  const auto text = [&](const Json& body) {
    return post(port(), "/v1/chat/completions", body).json()["choices"][0]["message"]["content"];
  };
  EXPECT_EQ(text(preset), text(numbers));
  preset["temperature"] = 0;
  numbers["temperature"] = 0;
  EXPECT_EQ(text(preset), text(numbers));
  preset["preset"] = "wild";
  const ClientReply refused = post(port(), "/v1/chat/completions", preset);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["param"], "preset");
  EXPECT_NE(refused.body.find("brainstorm"), std::string::npos) << refused.body;
}

TEST_F(replies, an_explanation_tells_what_was_cut_and_changed) {
  Json body = story(4);
  body["explain"] = true;
  body["top_k"] = 10;
  body["repetition_penalty"] = 1.5;
  const Json reply = post(port(), "/v1/chat/completions", body).json();
  for (const Json& stage : reply["choices"][0]["explain"][1]["stages"]) {
    if (stage["name"] == "top_k") {
      EXPECT_GT(stage["cut_probability"].get<double>(), 0.0);
      EXPECT_FALSE(stage["cut"].empty());
    }
    if (stage["name"] == "penalties") {
      EXPECT_GT(stage["n_changed"], 0);
      EXPECT_GT(stage["changed"][0]["n_in_text"], 0);
    }
  }
}

TEST_F(replies, a_stream_has_the_text_of_the_plain_reply) {
  Json body = story();
  const Json plain = post(port(), "/v1/chat/completions", body).json();
  body["stream"] = true;
  const ClientReply reply = post(port(), "/v1/chat/completions", body);
  EXPECT_NE(reply.head.find("text/event-stream"), std::string::npos);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(streamed_text(reply), plain["choices"][0]["message"]["content"]);
  const auto events = reply.events();
  EXPECT_EQ(events.front()["choices"][0]["delta"], (Json{{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(events.back()["choices"][0]["delta"], Json::object());
  EXPECT_EQ(events.back()["choices"][0]["finish_reason"], plain["choices"][0]["finish_reason"]);
  for (const Json& event : events) {
    EXPECT_EQ(event["id"], events.front()["id"]);
    EXPECT_FALSE(event.contains("usage"));
    EXPECT_EQ(event["choices"].size(), 1u);
  }
}

TEST_F(replies, usage_comes_in_a_chunk_of_its_own_where_it_is_asked_for) {
  Json body = story(5);
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const auto events = post(port(), "/v1/chat/completions", body).events();
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 5);
  for (size_t i = 0; i + 1 < events.size(); ++i)
    EXPECT_TRUE(events[i].contains("usage") && events[i]["usage"].is_null());
}

TEST_F(replies, logprobs_are_the_same_streamed_and_plain) {
  Json body = story(6);
  body["logprobs"] = true;
  body["top_logprobs"] = 3;
  const Json plain = post(port(), "/v1/chat/completions", body).json()["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(plain.size(), 6u);
  for (const Json& token : plain) {
    EXPECT_EQ(token["top_logprobs"].size(), 3u);
    EXPECT_LE(token["logprob"].get<double>(), 0.0);
    EXPECT_TRUE(token["bytes"].is_array());
  }
  body["stream"] = true;
  Json streamed = Json::array();
  for (const Json& event : post(port(), "/v1/chat/completions", body).events()) {
    const Json logprobs = event["choices"][0].value("logprobs", Json());
    if (logprobs.is_object()) streamed.insert(streamed.end(), logprobs["content"].begin(), logprobs["content"].end());
  }
  EXPECT_EQ(streamed, plain);
}

TEST_F(replies, completions_take_a_text_several_texts_ids_and_lists_of_ids) {
  const Json ids = post(port(), "/tokenize", {{"content", "Once upon"}, {"add_special", true}}).json()["tokens"];
  const auto texts = [&](const Json& prompt) {
    Json all = Json::array();
    const Json reply =
        post(port(), "/v1/completions", {{"prompt", prompt}, {"temperature", 0}, {"max_tokens", 6}}).json();
    for (const Json& choice : reply["choices"]) {
      EXPECT_EQ(choice["index"], all.size());
      all.push_back(choice["text"]);
    }
    return all;
  };
  const Json one = texts("Once upon");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(texts(ids), one);
  EXPECT_EQ(texts({"Once upon", "The dog"})[0], one[0]);
  EXPECT_EQ(texts({ids, ids}), (Json{one[0], one[0]}));
  const Json reply = post(port(), "/v1/completions", {{"prompt", "Once"}}).json();
  EXPECT_EQ(reply["object"], "text_completion");
  EXPECT_LE(reply["usage"]["completion_tokens"].get<int>(), 16);
}

TEST_F(replies, legacy_logprobs_have_four_lists_of_one_length) {
  const Json reply =
      post(port(), "/v1/completions", {{"prompt", "Once upon"}, {"temperature", 0}, {"max_tokens", 4}, {"logprobs", 2}})
          .json();
  const Json& logprobs = reply["choices"][0]["logprobs"];
  for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    EXPECT_EQ(logprobs[name].size(), 4u) << name;
  EXPECT_EQ(logprobs["text_offset"][0], 0);
}

TEST_F(replies, a_beam_search_gives_its_answers_best_first) {
  Json body = {{"prompt", "Once upon"}, {"max_tokens", 5}, {"use_beam_search", true}, {"n", 2}, {"best_of", 4}};
  const ClientReply reply = post(port(), "/v1/completions", body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  ASSERT_EQ(reply.json()["choices"].size(), 2u);
  EXPECT_NE(reply.json()["choices"][0]["text"], reply.json()["choices"][1]["text"]);
  body["n"] = 100;
  EXPECT_EQ(post(port(), "/v1/completions", body).status, 400);
  body["n"] = 5;  // more than best_of
  EXPECT_EQ(post(port(), "/v1/completions", body).json()["error"]["param"], "best_of");
}

TEST_F(replies, a_beam_search_names_what_has_no_effect_on_it) {
  Json body = {{"prompt", "Once upon"}, {"max_tokens", 2}, {"top_k", 5}, {"early_stopping", true}};
  const auto warnings = [&] { return post(port(), "/v1/completions", body).json()["warnings"].dump(); };
  EXPECT_NE(warnings().find("early_stopping has no effect"), std::string::npos) << warnings();
  body["use_beam_search"] = true;
  EXPECT_NE(warnings().find("top_k has no effect"), std::string::npos) << warnings();
  EXPECT_EQ(warnings().find("early_stopping"), std::string::npos) << warnings();
}

TEST_F(replies, texts_are_biased_as_their_tokens_are) {
  Json body = {{"prompt", "Once upon"}, {"max_tokens", 4}, {"temperature", 0}};
  const TokenId token = running().engine().tokenize(TextPrompt{.text = " the"})->back();
  const auto text = [&](Json bias) {
    body["logit_bias"] = std::move(bias);
    return post(port(), "/v1/completions", body).json()["choices"][0]["text"].get<std::string>();
  };
  const Json by_text = Json::array({Json::array({" the", 100})});
  EXPECT_EQ(text(by_text), text(Json::object({{std::to_string(token), 100}})));
  EXPECT_EQ(text(by_text), " the the the the");
  EXPECT_NE(text(Json::array({Json::array({" the", 100}), Json::array({token, false})})), " the the the the");
}

TEST_F(replies, nothing_of_a_stop_string_is_shown) {
  const std::string whole = post(port(), "/v1/chat/completions", story()).json()["choices"][0]["message"]["content"];
  ASSERT_GT(whole.size(), 20u);
  const std::string stop = whole.substr(10, 5);
  Json body = story();
  body["stop"] = Json::array({stop});
  body["stream"] = true;
  const ClientReply reply = post(port(), "/v1/chat/completions", body);
  EXPECT_EQ(streamed_text(reply), whole.substr(0, whole.find(stop)));
  EXPECT_EQ(reply.events().back()["choices"][0]["finish_reason"], "stop");
}

TEST_F(replies, a_schema_is_obeyed) {
  Json body = user_says("Give me json", 60);
  const Json schema = {{"type", "object"},
                       {"properties", {{"ok", {{"type", "boolean"}}}}},
                       {"required", {"ok"}},
                       {"additionalProperties", false}};
  body["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}};
  const Json reply = post_until_whole(port(), body).json();
  const Json content = Json::parse(reply["choices"][0]["message"]["content"].get<std::string>(), nullptr, false);
  EXPECT_TRUE(content.is_object() && content["ok"].is_boolean()) << reply;
}

TEST_F(replies, models_health_and_text_tools_answer) {
  const Json list = ask(port(), "GET", "/v1/models").json();
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "pocket");
  EXPECT_EQ(ask(port(), "GET", "/v1/models/pocket").json(), list["data"][0]);
  EXPECT_EQ(ask(port(), "GET", "/ready").status, 200);
  const ClientReply head = ask(port(), "HEAD", "/health");
  EXPECT_EQ(head.status, 200);
  EXPECT_TRUE(head.body.empty());
  const Json tokens = post(port(), "/tokenize", {{"content", "Hello you"}}).json();
  EXPECT_EQ(tokens["count"], tokens["tokens"].size());
  EXPECT_EQ(post(port(), "/detokenize", {{"tokens", tokens["tokens"]}}).json()["content"], "Hello you");
  EXPECT_NE(
      post(port(), "/apply-template", user_says("hi")).json()["prompt"].get<std::string>().find("<|user|>\nhi<|end|>"),
      std::string::npos);
}

TEST_F(replies, a_request_id_comes_back_if_it_is_harmless) {
  EXPECT_NE(ask(port(), "GET", "/health", {}, {"X-Request-Id: abc-1"}).head.find("x-request-id: abc-1\r\n"),
            std::string::npos);
  EXPECT_EQ(ask(port(), "GET", "/health", {}, {"X-Request-Id: a b"}).head.find("a b"), std::string::npos);
}

TEST_F(replies, the_stop_that_was_met_is_named) {
  Json body = story();
  const std::string text = post(port(), "/v1/chat/completions", body).json()["choices"][0]["message"]["content"];
  ASSERT_GE(text.size(), 12u);
  const std::string stop = text.substr(6, 4);
  body["stop"] = Json::array({"never written", stop});
  const Json plain = post(port(), "/v1/chat/completions", body).json()["choices"][0];
  EXPECT_EQ(plain["finish_reason"], "stop");
  EXPECT_EQ(plain["stop_reason"], stop);
  body["stream"] = true;
  const auto events = post(port(), "/v1/chat/completions", body).events();
  EXPECT_EQ(events.back()["choices"][0]["stop_reason"], stop);
  const Json by_id = {{"prompt", "Once"}, {"max_tokens", 8}, {"temperature", 0}};
  const TokenId first = running().engine().tokenize(TextPrompt{.text = "."})->back();
  Json stopped = by_id;
  stopped["stop_token_ids"] = Json::array({first});
  stopped["logit_bias"] = {{std::to_string(first), 100}};
  EXPECT_EQ(post(port(), "/v1/completions", stopped).json()["choices"][0]["stop_reason"], first);
  EXPECT_FALSE(post(port(), "/v1/completions", by_id).json()["choices"][0].contains("stop_reason"));
}

TEST_F(replies, a_last_message_is_continued_where_that_is_asked) {
  Json body = story(6);
  body["messages"].push_back({{"role", "assistant"}, {"content", "Once there was"}});
  body["continue_final_message"] = true;
  const ClientReply chat = post(port(), "/v1/chat/completions", body);
  ASSERT_EQ(chat.status, 200) << chat.body;
  EXPECT_TRUE(chat.json()["warnings"].empty());
  const Json rendered = post(port(), "/apply-template", body).json();
  const auto prompt = rendered["prompt"].get<std::string>();
  EXPECT_TRUE(prompt.ends_with("<|assistant|>\nOnce there was")) << prompt;
  body["add_generation_prompt"] = true;
  const ClientReply both = post(port(), "/v1/chat/completions", body);
  EXPECT_EQ(both.status, 400);
  EXPECT_EQ(both.json()["error"]["param"], "continue_final_message");
}

TEST_F(replies, a_prompt_loses_its_oldest_tokens_only_where_that_is_asked) {
  Json body = {{"prompt", Json::array({5, 6, 7, 8, 9, 10})}, {"max_tokens", 8}, {"temperature", 0}};
  const Json whole = post(port(), "/v1/completions", body).json();
  EXPECT_EQ(whole["usage"]["prompt_tokens"], 6);
  EXPECT_FALSE(whole["usage"]["prompt_tokens_details"].contains("truncated_tokens"));
  body["truncate_prompt_tokens"] = 2;
  const Json cut = post(port(), "/v1/completions", body).json();
  EXPECT_EQ(cut["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(cut["usage"]["prompt_tokens_details"]["truncated_tokens"], 4);
  const Json same = {{"prompt", Json::array({9, 10})}, {"max_tokens", 8}, {"temperature", 0}};
  EXPECT_EQ(cut["choices"][0]["text"], post(port(), "/v1/completions", same).json()["choices"][0]["text"]);
  body["truncate_prompt_tokens"] = 0;
  EXPECT_EQ(post(port(), "/v1/completions", body).status, 400);
  body["truncate_prompt_tokens"] = -1;
  body["prompt"] = std::string(200'000, 'a');
  const ClientReply longest = post(port(), "/v1/completions", body);
  ASSERT_EQ(longest.status, 200) << longest.body;
  EXPECT_EQ(longest.json()["choices"][0]["finish_reason"], "length");
}

TEST_F(replies, texts_are_the_same_under_load) {
  const std::string alone = post(port(), "/v1/chat/completions", story()).json()["choices"][0]["message"]["content"];
  std::vector<std::thread> clients;
  std::vector<std::string> texts(16);
  for (size_t i = 0; i < texts.size(); ++i) {
    clients.emplace_back([&texts, i] {
      Json body = story();
      body["stream"] = true;
      texts[i] = streamed_text(post(port(), "/v1/chat/completions", body));
    });
  }
  for (std::thread& client : clients) client.join();
  for (const std::string& text : texts) EXPECT_EQ(text, alone);
}

// Short form of the abort test: clients leave at every stage; a steady one beside them is not disturbed.
TEST_F(replies, clients_that_leave_free_everything) {
  const std::string steady = post(port(), "/v1/chat/completions", story()).json()["choices"][0]["message"]["content"];
  Json body = user_says("Tell me a story", 300);
  body["ignore_eos"] = true;
  const std::string bytes = streaming_request(std::move(body));
  for (int i = 0; i < 60; ++i) {
    RawClient client(port());
    client.send(i % 5 == 0 ? bytes.substr(0, bytes.size() / 2) : bytes);
    if (i % 5 > 1) client.read_until("data: ");
    if (i % 3 == 0) client.reset();
    if (i % 3 == 1) client.half_close();
    if (i % 20 == 0) {
      EXPECT_EQ(post(port(), "/v1/chat/completions", story()).json()["choices"][0]["message"]["content"], steady);
    }
  }
  EXPECT_TRUE(running().becomes_idle());
}

TEST(draining, streams_end_and_nobody_new_is_let_in) {
  Running running;
  RawClient client(running.port());
  client.send(streaming_request(user_says("Tell me a story", 60)));
  client.read_until("data: ");
  RawClient idle(running.port());
  running.service().begin_drain();
  EXPECT_TRUE(running.server().drain(std::chrono::seconds(20)));
  EXPECT_TRUE(client.read_all().ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"));
}

TEST(draining, a_stream_that_takes_too_long_ends_with_an_error_event) {
  Running running;
  RawClient client(running.port());
  Json body = user_says("Tell me a story", 400);
  body["stream"] = true;
  body["ignore_eos"] = true;
  const std::string text = body.dump();
  client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
              std::to_string(text.size()) + "\r\n\r\n" + text);
  client.read_until("data: ");
  running.service().begin_drain();
  running.server().drain(std::chrono::milliseconds(1));
  running.service().abort_all();
  EXPECT_TRUE(running.server().drain(std::chrono::seconds(5)));
  EXPECT_NE(client.read_all().find("shutting down"), std::string::npos);
}

}  // namespace
}  // namespace candor::testing
