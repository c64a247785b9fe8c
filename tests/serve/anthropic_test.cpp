// Anthropic's interface: what its clients accumulate from a stream is the plain reply, the same conversation gives the
// same text as a chat, and what is counted is what is then reported.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "serve/client.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

constexpr const char* kPath = "/v1/messages";

Json asked(const std::string& text, int max_tokens = 24) {
  return {{"model", "pocket"},
          {"max_tokens", max_tokens},
          {"messages", Json::array({{{"role", "user"}, {"content", text}}})}};
}

// As an SDK does it; whatever is out of order is a failure.
class Accumulator {
 public:
  explicit Accumulator(const ClientReply& reply) {
    const std::vector<Json> events = reply.events();
    for (const Json& event : events) {
      EXPECT_NE(reply.body.find("event: " + event["type"].get<std::string>() + "\ndata: "), std::string::npos);
      take(event);
    }
    EXPECT_TRUE(is_over_) << reply.body;
  }
  const Json& message() const { return message_; }

 private:
  void take(const Json& event) {
    const std::string type = event["type"];
    EXPECT_FALSE(is_over_) << event;
    EXPECT_EQ(message_.is_null(), type == "message_start") << event;
    if (type == "message_start") {
      message_ = event["message"];
      EXPECT_TRUE(message_["usage"]["input_tokens"].is_number()) << event;
    } else if (type == "content_block_start") {
      EXPECT_FALSE(is_block_open_) << event;
      EXPECT_EQ(event["index"], message_["content"].size());
      message_["content"].push_back(event["content_block"]);
      is_block_open_ = true;
      arguments_.clear();
    } else if (type == "content_block_delta") {
      add(event["delta"]);
    } else if (type == "content_block_stop") {
      EXPECT_TRUE(is_block_open_) << event;
      is_block_open_ = false;
      Json& block = message_["content"].back();
      if (block["type"] == "tool_use") block["input"] = Json::parse(arguments_, nullptr, false);
    } else if (type == "message_delta") {
      EXPECT_FALSE(is_block_open_) << event;
      message_.update(event["delta"]);
      message_["usage"] = event["usage"];
      if (event.contains("warnings")) message_["warnings"] = event["warnings"];
    } else {
      EXPECT_TRUE(type == "ping" || type == "message_stop") << event;
      is_over_ = type == "message_stop";
    }
  }

  void add(const Json& delta) {
    EXPECT_TRUE(is_block_open_) << delta;
    Json& block = message_["content"].back();
    const auto join = [&](const char* key) {
      block[key] = block[key].get<std::string>() + delta[key].get<std::string>();
    };
    if (delta["type"] == "text_delta") return join("text");
    if (delta["type"] == "thinking_delta") return join("thinking");
    if (delta["type"] == "signature_delta") return join("signature");
    EXPECT_EQ(delta["type"], "input_json_delta");
    arguments_ += delta["partial_json"].get<std::string>();
  }

  Json message_;
  std::string arguments_;
  bool is_block_open_ = false;
  bool is_over_ = false;
};

// The plain reply, which is the streamed one but for its id. The second comes from the prefix cache where the first
// left something there, so that input and cached tokens are compared as a sum.
Json same_both_ways(uint16_t port, Json body) {
  const ClientReply plain_reply = post(port, kPath, body);
  Json plain = plain_reply.json();
  EXPECT_EQ(plain_reply.status, 200) << plain_reply.body;
  body["stream"] = true;
  const ClientReply reply = post(port, kPath, body);
  EXPECT_NE(reply.head.find("text/event-stream"), std::string::npos) << reply.body;
  Json streamed = Accumulator(reply).message();
  const auto without_what_differs = [](Json json) {
    for (Json& block : json["content"]) block.erase("id");
    json.erase("id");
    json["usage"]["input_tokens"] =
        json["usage"]["input_tokens"].get<int>() + json["usage"]["cache_read_input_tokens"].get<int>();
    json["usage"].erase("cache_read_input_tokens");
    return json;
  };
  EXPECT_EQ(without_what_differs(plain), without_what_differs(streamed));
  return plain;
}

Json weather_tool(const char* name = "weather") {
  const Json place = {{"type", "string"}, {"enum", {"Rome", "Oslo"}}};
  return {{"name", name},
          {"description", "What it is like outside"},
          {"input_schema",
           {{"type", "object"},
            {"properties", {{"place", place}}},
            {"required", {"place"}},
            {"additionalProperties", false}}}};
}

class anthropic_messages : public ServerTest {
 protected:
  // One seed after the other, until the call is whole.
  static Json called(Json body) {
    body["temperature"] = 0.7;
    for (int seed = 1; seed <= 30; ++seed) {
      body["seed"] = seed;
      if (post(port(), kPath, body).json()["stop_reason"] == "tool_use") break;
    }
    return same_both_ways(port(), body);
  }
  static int counted(const Json& body) {
    const ClientReply reply = post(port(), "/v1/messages/count_tokens", body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json().value("input_tokens", -1);
  }
  static int reported(const Json& body) {
    const Json usage = post(port(), kPath, body).json()["usage"];
    return usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>();
  }
};

TEST_F(anthropic_messages, a_message_has_every_field_plain_and_accumulated) {
  Json body = asked("Tell me a story about a cat");
  body["seed"] = 7;
  const Json message = same_both_ways(port(), body);
  EXPECT_TRUE(message["id"].get<std::string>().starts_with("msg_"));
  EXPECT_EQ(message["type"], "message");
  EXPECT_EQ(message["role"], "assistant");
  EXPECT_EQ(message["model"], "pocket");
  ASSERT_EQ(message["content"].size(), 1u) << message;
  EXPECT_EQ(message["content"][0]["type"], "text");
  EXPECT_EQ(message["stop_reason"], "max_tokens");
  EXPECT_TRUE(message["stop_sequence"].is_null());
  EXPECT_EQ(message["usage"]["output_tokens"], 24);
  EXPECT_EQ(message["usage"]["cache_creation_input_tokens"], 0);
}

TEST_F(anthropic_messages, the_same_conversation_gives_the_text_of_a_chat) {
  Json chat = user_says("Tell me a story about a cat", 40);
  chat["messages"] = Json::array({{{"role", "system"}, {"content", "Be kind"}},
                                  {{"role", "user"}, {"content", "Hi"}},
                                  {{"role", "assistant"}, {"content", "Hello"}},
                                  {{"role", "user"}, {"content", "Tell me a story about a cat"}}});
  Json message = chat;
  message["system"] =
      Json::array({{{"type", "text"}, {"text", "Be kind"}, {"cache_control", {{"type", "ephemeral"}}}}});
  message["messages"].erase(message["messages"].begin());
  message["messages"][0]["content"] = Json::array({{{"type", "text"}, {"text", "Hi"}}});
  for (const double temperature : {0.0, 1.0}) {
    for (Json* body : {&chat, &message}) body->update({{"temperature", temperature}, {"seed", 11}});
    const Json from_chat = post(port(), "/v1/chat/completions", chat).json();
    const Json got = same_both_ways(port(), message);
    EXPECT_EQ(got["content"][0]["text"], from_chat["choices"][0]["message"]["content"]);
    EXPECT_EQ(got["usage"]["output_tokens"], from_chat["usage"]["completion_tokens"]);
    EXPECT_EQ(reported(message), from_chat["usage"]["prompt_tokens"].get<int>());
  }
}

TEST_F(anthropic_messages, what_is_counted_is_what_is_then_reported) {
  Json body = asked(repeated("Tell me a story about a cat. ", 12), 2);
  Json counted_body = body;
  counted_body.erase("max_tokens");
  const int n_tokens = counted(counted_body);
  EXPECT_GT(n_tokens, 50);
  for (int turn = 0; turn < 2; ++turn) EXPECT_EQ(reported(body), n_tokens);
  EXPECT_GT(post(port(), kPath, body).json()["usage"]["cache_read_input_tokens"], 0);
  body["system"] = "Be kind";
  body["tools"] = Json::array({weather_tool()});
  body["thinking"] = {{"type", "adaptive"}};
  EXPECT_EQ(reported(body), counted(body));
  body["stream"] = true;
  EXPECT_EQ(post(port(), kPath, body).events().front()["message"]["usage"]["input_tokens"], counted(body));
}

TEST_F(anthropic_messages, a_choice_that_asks_for_a_call_gets_one) {
  Json body = asked("What is the weather?", 120);
  body["tools"] = {weather_tool("time"), weather_tool()};
  body["tool_choice"] = {{"type", "tool"}, {"name", "weather"}};
  const Json named = called(body);
  ASSERT_EQ(named["content"].size(), 1u) << named;
  const Json& call = named["content"][0];
  EXPECT_EQ(named["stop_reason"], "tool_use");
  EXPECT_EQ(call["name"], "weather");
  EXPECT_TRUE(call["id"].get<std::string>().starts_with("toolu_"));
  EXPECT_TRUE(call["input"]["place"] == "Rome" || call["input"]["place"] == "Oslo") << call;
  body["tool_choice"] = {{"type", "any"}, {"disable_parallel_tool_use", true}};
  EXPECT_EQ(called(body)["content"][0]["type"], "tool_use");
  body["tool_choice"] = {{"type", "none"}};
  EXPECT_NE(post(port(), kPath, body).json()["stop_reason"], "tool_use");
}

TEST_F(anthropic_messages, the_sequence_that_ended_a_text_is_told) {
  Json body = asked("Tell me a story about a cat", 60);
  body["temperature"] = 0;
  body["stop_sequences"] = {"#never#", "a"};
  const Json message = same_both_ways(port(), body);
  EXPECT_EQ(message["stop_reason"], "stop_sequence");
  EXPECT_EQ(message["stop_sequence"], "a");
  EXPECT_EQ(message.dump().find("#never#"), std::string::npos);
}

TEST_F(anthropic_messages, a_text_that_fills_the_context_and_a_prompt_that_exceeds_it_say_so) {
  Json body = asked("Tell me a story", 100'000);
  body.update({{"ignore_eos", true}, {"temperature", 0}});
  const Json filled = same_both_ways(port(), body);
  EXPECT_EQ(filled["stop_reason"], "model_context_window_exceeded");
  EXPECT_FALSE(filled["warnings"].empty());
  const ClientReply refused = post(port(), kPath, asked(repeated("word ", 2000)));
  EXPECT_EQ(refused.status, 400);
  const int n_prompt = counted(asked(repeated("word ", 2000)));
  EXPECT_EQ(refused.json()["error"]["message"],
            "prompt is too long: " + std::to_string(n_prompt) + " tokens > 512 maximum");
  EXPECT_EQ(refused.json()["error"]["type"], "invalid_request_error");
}

TEST_F(anthropic_messages, what_is_left_out_is_named_in_a_header) {
  Json body = asked("hi", 2);
  const int n_tokens = counted(body);
  body["system"] = Json::array({{{"type", "text"}, {"text", "x-anthropic-billing-header: cc_version=2; cch=1;"}}});
  body["tools"] = Json::array({{{"type", "web_search_20250305"}, {"name", "web_search"}, {"max_uses", 5}}});
  const ClientReply reply = post(port(), kPath, body, {"anthropic-version: 2023-06-01"});
  EXPECT_EQ(reply.status, 200) << reply.body;
  for (const char* words : {"x-candor-warnings: [", "system[0].text", "web_search_20250305", "request-id: "})
    EXPECT_NE(reply.head.find(words), std::string::npos) << reply.head;
  EXPECT_EQ(reply.json()["warnings"].size(), 2u) << reply.body;
  EXPECT_EQ(counted(body), n_tokens);
}

TEST_F(anthropic_messages, a_schema_of_the_output_is_obeyed) {
  Json body = asked("Is it so?", 60);
  const Json schema = {{"type", "object"},
                       {"properties", {{"ok", {{"type", "boolean"}}}}},
                       {"required", {"ok"}},
                       {"additionalProperties", false}};
  body["output_config"] = {{"format", {{"type", "json_schema"}, {"schema", schema}}}, {"effort", "low"}};
  Json formed;
  for (int seed = 1; seed <= 30 && !formed.is_object(); ++seed) {
    body["seed"] = seed;
    const Json message = post(port(), kPath, body).json();
    if (message["stop_reason"] == "end_turn")
      formed = Json::parse(message["content"][0]["text"].get<std::string>(), nullptr, false);
  }
  EXPECT_TRUE(formed.is_object() && formed["ok"].is_boolean()) << formed;
}

TEST_F(anthropic_messages, models_are_listed_in_both_shapes_at_once) {
  const Json list = ask(port(), "GET", "/v1/models", "", {"anthropic-version: 2023-06-01"}).json();
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["first_id"], "pocket");
  EXPECT_EQ(list["last_id"], "pocket");
  EXPECT_EQ(list["has_more"], false);
  const Json& model = list["data"][0];
  EXPECT_EQ(model["type"], "model");
  EXPECT_EQ(model["display_name"], "pocket");
  EXPECT_EQ(model["created_at"].get<std::string>().size(), std::string_view("2026-01-01T00:00:00Z").size());
}

TEST_F(anthropic_messages, a_stream_whose_client_leaves_is_given_up) {
  RawClient client(port());
  Json body = asked("Tell me a story", 400);
  body.update({{"stream", true}, {"ignore_eos", true}});
  const std::string text = body.dump();
  client.send("POST /v1/messages?beta=true HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
              std::to_string(text.size()) + "\r\n\r\n" + text);
  EXPECT_NE(client.read_until("content_block_delta").find("message_start"), std::string::npos);
  client.reset();
  EXPECT_TRUE(running().becomes_idle());
}

TEST(anthropic_server, a_stream_that_waits_pings_behind_its_first_event) {
  RunningOptions options = Running::defaults();
  options.engine.max_running = 1;
  options.service.quiet = std::chrono::milliseconds(20);
  Running running(options);
  RawClient story(running.port());
  begin_story(story, 450);
  RawClient client(running.port());
  Json body = asked("hi", 4);
  body["stream"] = true;
  const std::string text = body.dump();
  client.send("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
              std::to_string(text.size()) + "\r\n\r\n" + text);
  std::string bytes = client.read_until("event: ping");
  EXPECT_LT(bytes.find("event: message_start"), bytes.find("event: ping")) << bytes;
  bytes += client.read_all();
  EXPECT_EQ(Accumulator(parse_reply(bytes)).message()["usage"]["output_tokens"], 4);
}

TEST(anthropic_server, a_key_that_is_wrong_and_a_server_that_ends_are_told_in_its_shape) {
  RunningOptions options = Running::defaults();
  options.service.access.keys = {http::make_key("one", "secret")};
  Running running(options);
  const auto expect_error = [&](const Headers& headers, int status, const char* type) {
    const ClientReply reply = post(running.port(), kPath, asked("hi"), headers);
    EXPECT_EQ(reply.status, status) << reply.body;
    EXPECT_EQ(reply.json()["type"], "error");
    EXPECT_EQ(reply.json()["error"]["type"], type);
    EXPECT_NE(reply.head.find("request-id: " + reply.json()["request_id"].get<std::string>()), std::string::npos);
  };
  expect_error({"Authorization: Bearer other"}, 401, "authentication_error");
  expect_error({"Authorization: Bearer secret", "Origin: http://evil.example"}, 403, "permission_error");
  running.service().begin_drain();
  expect_error({"Authorization: Bearer secret"}, 529, "overloaded_error");
}

// A template that opens reasoning and wants its turns to alternate.
constexpr std::string_view kStrict =
    "{% for m in messages %}{% if m.role == 'system' and loop.index0 > 0 %}"
    "{{ raise_exception('the system speaks first') }}{% endif %}<{{ m.role }}>{{ m.content }}"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}\n"
    "{% endfor %}{% if add_generation_prompt %}<assistant>"
    "{% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif %}{% endif %}";

class anthropic_thinking : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    TinyModelOptions model{.dim = 32, .n_layers = 1, .n_heads = 2, .n_kv_heads = 1, .ffn_dim = 32};
    model.vocab = 320;
    model.context_tokens = 2048;
    model.extra_keys = {{"tokenizer.chat_template", kStrict}};
    path_ = std::filesystem::temp_directory_path() / ("candor_anthropic_" + std::to_string(getpid()) + ".gguf");
    ASSERT_TRUE(write_model(*make_tiny_model(model), path_).has_value());
    RunningOptions options = Running::defaults();
    options.engine.model_path = path_;
    running_ = std::make_unique<Running>(options);
  }
  static void TearDownTestSuite() {
    running_.reset();
    std::filesystem::remove(path_);
  }
  static Json conversation() {
    Json body = asked("look", 30);
    body["seed"] = 3;
    body["messages"].push_back({{"role", "system"}, {"content", "Now be short"}});
    body["messages"].push_back(
        {{"role", "assistant"},
         {"content",
          {{{"type", "thinking"}, {"thinking", "where"}, {"signature", "s"}},
           {{"type", "tool_use"}, {"id", "t1"}, {"name", "weather"}, {"input", {{"place", "Rome"}}}}}}});
    body["messages"].push_back(
        {{"role", "user"},
         {"content", Json::array({{{"type", "tool_result"}, {"tool_use_id", "t1"}, {"content", "sun"}}})}});
    return body;
  }
  static inline std::filesystem::path path_;
  static inline std::unique_ptr<Running> running_;
};

TEST_F(anthropic_thinking, is_a_block_of_its_own_with_a_signature) {
  Json body = asked("hi", 30);
  body["seed"] = 3;
  const Json message = same_both_ways(running_->port(), body);
  ASSERT_FALSE(message["content"].empty()) << message;
  EXPECT_EQ(message["content"][0]["type"], "thinking");
  EXPECT_EQ(message["content"][0]["signature"].get<std::string>().size(), 32u);
  body["thinking"] = {{"type", "disabled"}};
  const Json plain = same_both_ways(running_->port(), body);
  EXPECT_EQ(plain["content"][0]["type"], "text") << plain;
}

TEST_F(anthropic_thinking, a_replayed_turn_is_the_prompt_that_a_chat_makes_of_it) {
  const uint16_t port = running_->port();
  const ClientReply reply = post(port, kPath, conversation());
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.head.find("messages[1] is folded into the message beside it"), std::string::npos) << reply.head;
  const Json call = {{"id", "t1"},
                     {"type", "function"},
                     {"function", {{"name", "weather"}, {"arguments", "{\"place\":\"Rome\"}"}}}};
  const Json chat = {
      {"max_tokens", 30},
      {"seed", 3},
      {"messages",
       {{{"role", "user"}, {"content", "look\n\nNow be short"}},
        {{"role", "assistant"}, {"content", ""}, {"reasoning_content", "where"}, {"tool_calls", Json::array({call})}},
        {{"role", "tool"}, {"tool_call_id", "t1"}, {"content", "sun"}}}}};
  const Json expected = post(port, "/v1/chat/completions", chat).json();
  const Json got = reply.json();
  EXPECT_EQ(got["usage"]["input_tokens"].get<int>() + got["usage"]["cache_read_input_tokens"].get<int>(),
            expected["usage"]["prompt_tokens"].get<int>());
  std::string thinking;
  for (const Json& block : got["content"]) thinking += block.value("thinking", "");
  EXPECT_EQ(thinking, expected["choices"][0]["message"].value("reasoning_content", "")) << expected;
  same_both_ways(port, conversation());
}

// What an agent sends in its second turn, without the words of its texts: a call and its result replayed, a late
// message of the system, a billing block that differs from turn to turn.
TEST_F(anthropic_thinking, the_second_turn_of_an_agent_is_answered_and_only_what_is_new_is_read) {
  std::ifstream file(project_file("tests/serve/data/claude_code_turn.json"));
  Json second = Json::parse(file);
  second["model"] = "pocket";
  second["max_tokens"] = 4;
  second["seed"] = 3;
  Json first = second;
  first["messages"].erase(first["messages"].begin() + 2, first["messages"].end());
  std::string& billing = first["system"][0]["text"].get_ref<std::string&>();
  billing.replace(billing.find("0.000"), 5, "0.123");
  const uint16_t port = running_->port();
  const ClientReply begun = post(port, "/v1/messages?beta=true", first);
  EXPECT_EQ(Accumulator(begun).message()["stop_reason"], "max_tokens");
  for (const char* words : {"system[0].text is an x-anthropic-billing-header", "context_management", "messages[1]"})
    EXPECT_NE(begun.head.find(words), std::string::npos) << begun.head;
  const ClientReply reply = post(port, "/v1/messages?beta=true", second);
  const Json usage = Accumulator(reply).message()["usage"];
  const int n_first = Accumulator(begun).message()["usage"]["input_tokens"].get<int>();
  EXPECT_GT(usage["cache_read_input_tokens"].get<int>(), n_first / 2) << usage;
  Json counted = second;
  for (const char* name : {"max_tokens", "stream", "context_management", "metadata"}) counted.erase(name);
  EXPECT_EQ(post(port, "/v1/messages/count_tokens", counted).json()["input_tokens"],
            usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>());
}

}  // namespace
}  // namespace candor::testing
