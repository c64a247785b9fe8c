// POST /v1/responses: what a whole response says, what a stream says and in which order, and that both are one answer.

#include <thread>

#include "serve/responses_client.h"

namespace candor::testing {
namespace {

class responses : public ServerTest {};

using Names = std::vector<std::string>;

TEST_F(responses, a_whole_response_has_every_member_with_the_values_in_effect) {
  Json body = asks("Tell me a story");
  body.update({{"instructions", "Be kind"},
               {"metadata", {{"who", "me"}}},
               {"top_p", 0.5},
               {"user", "u"},
               {"store", true},
               {"prompt_cache_key", "k"},
               {"reasoning", {{"effort", "low"}}},
               {"text", {{"format", {{"type", "text"}}}}}});
  const Json response = post_response(port(), body).json();
  expect_response(response);
  EXPECT_EQ(response["object"], "response");
  EXPECT_TRUE(response["id"].get<std::string>().starts_with("resp_"));
  EXPECT_EQ(response["instructions"], "Be kind");
  EXPECT_EQ(response["metadata"], Json({{"who", "me"}}));
  EXPECT_EQ(response["temperature"], 0);
  EXPECT_EQ(response["top_p"], 0.5);
  EXPECT_EQ(response["max_output_tokens"], 12);
  EXPECT_EQ(response["store"], false);
  EXPECT_EQ(response["truncation"], "disabled");
  EXPECT_EQ(response["tool_choice"], "auto");
  EXPECT_EQ(response["reasoning"]["effort"], "low");
  EXPECT_EQ(response["prompt_cache_key"], "k");
  EXPECT_NE(response["warnings"].dump().find("store has no effect"), std::string::npos);
  const Json& usage = response["usage"];
  EXPECT_EQ(usage["total_tokens"], usage["input_tokens"].get<int>() + usage["output_tokens"].get<int>());
  const Json& item = response["output"][0];
  EXPECT_EQ(item["type"], "message");
  EXPECT_EQ(item["role"], "assistant");
  EXPECT_TRUE(item["content"][0]["annotations"].is_array() && item["content"][0]["logprobs"].is_array());
}

TEST_F(responses, a_cut_answer_is_incomplete_and_says_why) {
  Json body = asks("Tell me a story", 3);
  body["ignore_eos"] = true;
  const Json response = post_response(port(), body).json();
  expect_response(response);
  EXPECT_EQ(response["status"], "incomplete");
  EXPECT_EQ(response["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(response["output"][0]["status"], "incomplete");
  EXPECT_TRUE(response["completed_at"].is_null());
  EXPECT_EQ(outline(stream_response(port(), body)).back(), "incomplete");
}

TEST_F(responses, a_stream_tells_its_item_in_order) {
  const std::vector<Json> events = stream_response(port(), asks("Tell me a story"));
  expect_stream(events);
  Names names = outline(events);
  ASSERT_EQ(names.size(), 9u);
  names.pop_back();  // completed or incomplete
  EXPECT_EQ(names, Names({"created", "in_progress", "output_item.added", "content_part.added", "output_text.delta",
                          "output_text.done", "content_part.done", "output_item.done"}));
}

TEST_F(responses, events_are_named_by_their_type) {
  Json body = asks("Hi", 2);
  body["stream"] = true;
  const std::string text = post(port(), "/v1/responses", body).body;
  EXPECT_NE(text.find("event: response.created\ndata: {\"type\":\"response.created\""), std::string::npos) << text;
}

TEST_F(responses, the_end_of_a_stream_is_the_whole_response) {
  for (const Json& change : Json{{{"seed", 1}},
                                 {{"seed", 2}, {"max_output_tokens", 200}},
                                 {{"seed", 3}, {"stop", Json::array({"a"})}},
                                 {{"seed", 4}, {"include", {"message.output_text.logprobs"}}, {"top_logprobs", 2}}}) {
    Json body = asks("Tell me about a cat", 20);
    body["temperature"] = 1;
    body.update(change);
    const Json streamed = expect_stream(stream_response(port(), body));
    const Json plain = post_response(port(), body).json();
    expect_response(plain);
    EXPECT_EQ(without_ids(streamed), without_ids(plain)) << change;
  }
}

TEST_F(responses, the_tokens_are_those_of_a_chat_bit_for_bit) {
  for (int seed = 1; seed <= 4; ++seed) {
    Json body = asks("Tell me about a dog", 16);
    body.update({{"instructions", "Be brief"}, {"temperature", 1}, {"seed", seed}, {"top_logprobs", 2}});
    body["include"] = {"message.output_text.logprobs"};
    const Json response = post_response(port(), body).json();
    const Json chat =
        post(port(), "/v1/chat/completions",
             {{"messages",
               {{{"role", "system"}, {"content", "Be brief"}}, {{"role", "user"}, {"content", "Tell me about a dog"}}}},
              {"max_tokens", 16},
              {"temperature", 1},
              {"seed", seed},
              {"logprobs", true},
              {"top_logprobs", 2}})
            .json();
    const Json& part = response["output"][0]["content"][0];
    EXPECT_EQ(part["text"], chat["choices"][0]["message"]["content"]);
    EXPECT_EQ(part["logprobs"], chat["choices"][0]["logprobs"]["content"]);
    EXPECT_EQ(response["usage"]["input_tokens"], chat["usage"]["prompt_tokens"]);
    EXPECT_EQ(response["usage"]["output_tokens"], chat["usage"]["completion_tokens"]);
    EXPECT_EQ(response["timings"]["seed"], chat["timings"]["seed"]);
  }
}

TEST_F(responses, input_tokens_are_those_that_the_response_reports) {
  const Json turn = Json::array({{{"role", "user"}, {"content", "Hi"}},
                                 {{"role", "assistant"}, {"content", "Hello"}},
                                 {{"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "A story"}}}}}});
  for (const Json& input : {Json("Tell me a story"), turn}) {
    Json body = asks("", 1);
    body["input"] = input;
    body["instructions"] = "Be kind";
    const Json counted = post(port(), "/v1/responses/input_tokens", body).json();
    EXPECT_EQ(counted["object"], "response.input_tokens");
    EXPECT_EQ(counted["input_tokens"], post_response(port(), body).json()["usage"]["input_tokens"]);
  }
}

TEST_F(responses, items_with_and_without_type_id_and_status_are_the_same) {
  const Json full = {
      {{"type", "message"}, {"id", "msg_1"}, {"status", "completed"}, {"role", "user"}, {"content", "Hi"}},
      {{"type", "message"},
       {"id", "msg_2"},
       {"status", "completed"},
       {"role", "assistant"},
       {"content", {{{"type", "output_text"}, {"text", "Hello"}, {"annotations", Json::array()}}}}},
      {{"type", "message"}, {"id", nullptr}, {"role", "user"}, {"content", "More"}}};
  const Json bare = {{{"role", "user"}, {"content", "Hi"}},
                     {{"role", "assistant"}, {"content", "Hello"}},
                     {{"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "More"}}}}}};
  Json first = asks("");
  first["input"] = full;
  Json second = asks("");
  second["input"] = bare;
  EXPECT_EQ(without_ids(post_response(port(), first).json()), without_ids(post_response(port(), second).json()));
}

TEST_F(responses, an_answer_in_a_form_obeys_it) {
  const Json schema = {{"type", "object"},
                       {"properties", {{"ok", {{"type", "boolean"}}}}},
                       {"required", {"ok"}},
                       {"additionalProperties", false}};
  Json body = asks("Say yes", 60);
  body["text"] = {{"format", {{"type", "json_schema"}, {"name", "x"}, {"schema", schema}, {"strict", true}}}};
  const Json response = whole_response(port(), body);
  EXPECT_TRUE(Json::parse(response["output"][0]["content"][0]["text"].get<std::string>())["ok"].is_boolean());
  EXPECT_EQ(response["text"]["format"]["schema"], schema);
}

TEST_F(responses, logprobs_stand_in_the_deltas_and_in_the_part) {
  Json body = asks("Tell me a story", 8);
  body.update({{"include", {"message.output_text.logprobs"}}, {"top_logprobs", 3}});
  Json joined = Json::array();
  Json whole;
  for (const Json& event : stream_response(port(), body)) {
    if (event["type"] == "response.output_text.delta") {
      for (const Json& one : event["logprobs"]) joined.push_back(one);
    }
    if (event["type"] == "response.output_text.done") whole = event["logprobs"];
  }
  ASSERT_FALSE(joined.empty());
  EXPECT_EQ(joined, whole);
  EXPECT_EQ(joined[0]["top_logprobs"].size(), 3u);
}

TEST_F(responses, tools_that_would_run_at_a_provider_are_named) {
  Json body = asks("Hi", 2);
  body["tools"] = {{{"type", "web_search"}, {"external_web_access", false}}, {{"type", "code_interpreter"}}};
  const ClientReply reply = post_response(port(), body);
  EXPECT_EQ(reply.json()["metadata"]["tools_not_offered"], "web_search, code_interpreter");
  EXPECT_NE(
      reply.head.find("x-candor-warnings: [\"tools of these types are not offered: web_search, code_interpreter\"]"),
      std::string::npos);
  EXPECT_EQ(reply.json()["tools"], Json::array());
  EXPECT_EQ(expect_stream(stream_response(port(), body))["metadata"]["tools_not_offered"],
            "web_search, code_interpreter");
}

TEST_F(responses, an_input_that_is_too_long_is_refused_as_clients_know_it_or_cut_where_asked) {
  Json body = asks(repeated("a long story ", 2000), 4);
  for (const bool is_stream : {false, true}) {
    body["stream"] = is_stream;
    const ClientReply refused = post(port(), "/v1/responses", body);
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(refused.json()["error"]["code"], "context_length_exceeded") << refused.body;
    EXPECT_EQ(refused.json()["error"]["param"], "input");
  }
  body["truncation"] = "auto";
  const Json cut = post_response(port(), body).json();
  expect_response(cut);
  EXPECT_GT(cut["usage"]["input_tokens_details"]["truncated_tokens"], 0);
  EXPECT_EQ(post(port(), "/v1/responses/input_tokens", body).json()["input_tokens"], cut["usage"]["input_tokens"]);
}

TEST_F(responses, a_client_that_leaves_frees_its_work) {
  {
    RawClient client(port());
    Json body = asks("Tell me a story", 400);
    body.update({{"stream", true}, {"ignore_eos", true}});
    const std::string text = body.dump();
    client.send("POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(text.size()) +
                "\r\n\r\n" + text);
    EXPECT_NE(client.read_until("output_text.delta").find("200 OK"), std::string::npos);
  }
  EXPECT_TRUE(running().becomes_idle());
}

TEST(responses_wait, a_stream_that_waits_says_so_again_and_again) {
  RunningOptions options = Running::defaults();
  options.engine.max_running = 1;
  options.service.quiet = std::chrono::milliseconds(4);
  Running server(options);
  RawClient stories[3] = {RawClient(server.port()), RawClient(server.port()), RawClient(server.port())};
  begin_story(stories[0], 400);
  for (RawClient* story : {&stories[1], &stories[2]}) {
    Json body = user_says("Tell me a story", 400);
    body["ignore_eos"] = true;
    story->send(streaming_request(body));
  }
  const std::vector<Json> events = stream_response(server.port(), asks("Hi", 3));
  expect_stream(events);
  EXPECT_EQ(outline(events)[2], "in_progress");
}

}  // namespace
}  // namespace candor::testing
