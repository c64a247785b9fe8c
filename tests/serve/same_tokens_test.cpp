// One conversation, asked through every interface, whole and streamed: the same prompt, the same tokens, the same
// logprobs, bit for bit.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/responses_client.h"

namespace candor::testing {
namespace {

// What a reply told, whatever its words.
struct Told {
  std::string text;
  std::string reasoning;
  Json logprobs = Json::array();  // of interfaces that have them
  int64_t n_prompt = 0;
  int64_t n_answer = 0;

  void add_logprobs(const Json& list) {
    for (const Json& one : list) logprobs.push_back({one["token"], one["bytes"], one["logprob"]});
  }
};

// Text that may be left out, or null.
std::string word(const Json& json, const char* name) {
  return json.contains(name) && json[name].is_string() ? json[name].get<std::string>() : std::string();
}

Told from_chat(const std::vector<Json>& parts, const char* message) {
  Told told;
  for (const Json& part : parts) {
    for (const Json& choice : part["choices"]) {
      told.text += word(choice[message], "content");
      told.reasoning += word(choice[message], "reasoning_content");
      if (choice.contains("logprobs") && choice["logprobs"].is_object())
        told.add_logprobs(choice["logprobs"]["content"]);
    }
    if (!part.contains("usage") || part["usage"].is_null()) continue;
    told.n_prompt = part["usage"]["prompt_tokens"];
    told.n_answer = part["usage"]["completion_tokens"];
  }
  return told;
}

Told from_message(const Json& message) {
  Told told;
  for (const Json& block : message["content"]) {
    told.text += word(block, "text");
    told.reasoning += word(block, "thinking");
  }
  const Json& usage = message["usage"];
  told.n_prompt = usage["input_tokens"].get<int64_t>() + usage["cache_read_input_tokens"].get<int64_t>();
  told.n_answer = usage["output_tokens"];
  return told;
}

Told from_message_events(const std::vector<Json>& events) {
  Json message = {{"content", Json::array({Json::object()})}};
  Told told;
  for (const Json& event : events) {
    if (event.contains("delta")) told.text += word(event["delta"], "text");
    if (event.contains("delta")) told.reasoning += word(event["delta"], "thinking");
    if (event["type"] == "message_delta") message["usage"] = event["usage"];
  }
  const Told counted = from_message(message);
  told.n_prompt = counted.n_prompt;
  told.n_answer = counted.n_answer;
  return told;
}

Told from_response(const Json& response) {
  Told told;
  for (const Json& item : response["output"]) {
    for (const Json& part : item["content"]) {
      (item["type"] == "reasoning" ? told.reasoning : told.text) += word(part, "text");
      if (part.contains("logprobs")) told.add_logprobs(part["logprobs"]);
    }
  }
  told.n_prompt = response["usage"]["input_tokens"];
  told.n_answer = response["usage"]["output_tokens"];
  return told;
}

Told from_lines(const std::string& body) {
  Told told;
  for (size_t at = 0; at < body.size();) {
    const size_t end = std::min(body.find('\n', at), body.size());
    const Json line = Json::parse(body.substr(at, end - at));
    told.text += word(line["message"], "content");
    told.reasoning += word(line["message"], "thinking");
    if (line.contains("logprobs")) told.add_logprobs(line["logprobs"]);
    if (line["done"] == true) told.n_prompt = line["prompt_eval_count"];
    if (line["done"] == true) told.n_answer = line["eval_count"];
    at = end + 1;
  }
  return told;
}

// The same words in each interface's form: a call and its result behind them, tools, reasoning.
class Asked {
 public:
  explicit Asked(double temperature) {
    numbers_ = {{"temperature", temperature}, {"top_k", 40}, {"top_p", 0.9}, {"repeat_penalty", 1.1}, {"seed", 11}};
    schema_ = {{"type", "object"}, {"properties", {{"place", {{"type", "string"}}}}}, {"required", {"place"}}};
  }

  Json chat() const {
    const Json call = {{"id", "c1"}, {"type", "function"}, {"function", {{"name", "look"}, {"arguments", kArguments}}}};
    Json body = {{"model", "pocket"},
                 {"max_tokens", kMost},
                 {"logprobs", true},
                 {"tools", Json::array({{{"type", "function"}, {"function", function()}}})},
                 {"messages",
                  {{{"role", "system"}, {"content", "Be kind"}},
                   {{"role", "user"}, {"content", "Where?"}},
                   {{"role", "assistant"},
                    {"content", "There"},
                    {"reasoning_content", "hm"},
                    {"tool_calls", Json::array({call})}},
                   {{"role", "tool"}, {"tool_call_id", "c1"}, {"content", "sun"}},
                   {{"role", "user"}, {"content", "And then?"}}}}};
    body.update(numbers_);
    return body;
  }

  Json message() const {
    const Json answer = {{{"type", "thinking"}, {"thinking", "hm"}, {"signature", ""}},
                         {{"type", "text"}, {"text", "There"}},
                         {{"type", "tool_use"}, {"id", "c1"}, {"name", "look"}, {"input", Json::parse(kArguments)}}};
    const Json result = {{"type", "tool_result"}, {"tool_use_id", "c1"}, {"content", "sun"}};
    Json body = {{"model", "pocket"},
                 {"max_tokens", kMost},
                 {"system", "Be kind"},
                 {"tools", Json::array({{{"name", "look"}, {"description", "looks"}, {"input_schema", schema_}}})},
                 {"messages",
                  {{{"role", "user"}, {"content", "Where?"}},
                   {{"role", "assistant"}, {"content", answer}},
                   {{"role", "user"}, {"content", {result, {{"type", "text"}, {"text", "And then?"}}}}}}}};
    body.update(numbers_);
    return body;
  }

  Json response() const {
    Json tool = {{"type", "function"}};
    tool.update(function());
    const Json thought = {{"type", "reasoning_text"}, {"text", "hm"}};
    Json body = {{"model", "pocket"},
                 {"max_output_tokens", kMost},
                 {"include", {"message.output_text.logprobs"}},
                 {"instructions", "Be kind"},
                 {"tools", Json::array({tool})},
                 {"input",
                  {{{"role", "user"}, {"content", "Where?"}},
                   {{"type", "reasoning"}, {"summary", Json::array()}, {"content", Json::array({thought})}},
                   {{"role", "assistant"}, {"content", "There"}},
                   {{"type", "function_call"}, {"call_id", "c1"}, {"name", "look"}, {"arguments", kArguments}},
                   {{"type", "function_call_output"}, {"call_id", "c1"}, {"output", "sun"}},
                   {{"role", "user"}, {"content", "And then?"}}}}};
    body.update(numbers_);
    return body;
  }

  Json ollama() const {
    Json body = {{"model", "pocket"}, {"logprobs", true}, {"tools", chat()["tools"]}, {"messages", chat()["messages"]}};
    body["messages"][2]["thinking"] = "hm";
    body["messages"][2]["tool_calls"][0]["function"]["arguments"] = Json::parse(kArguments);
    body["options"] = numbers_;
    body["options"].update({{"num_predict", kMost}, {"repeat_last_n", -1}});
    return body;
  }

 private:
  static constexpr int kMost = 60;
  static constexpr const char* kArguments = R"({"place":"sky"})";

  Json function() const { return {{"name", "look"}, {"description", "looks"}, {"parameters", schema_}}; }

  Json numbers_;
  Json schema_;
};

Json with(Json body, const char* name, Json value) {
  body[name] = std::move(value);
  return body;
}

void expect_same(const Told& told, const Told& expected, const char* what) {
  EXPECT_EQ(told.text, expected.text) << what;
  EXPECT_EQ(told.reasoning, expected.reasoning) << what;
  EXPECT_EQ(told.n_prompt, expected.n_prompt) << what;
  EXPECT_EQ(told.n_answer, expected.n_answer) << what;
}

TEST(same_tokens, in_every_interface_whole_and_streamed) {
  Running running(tool_model());
  const uint16_t port = running.port();
  for (const double temperature : {0.0, 1.3}) {
    SCOPED_TRACE(temperature);
    const Asked asked(temperature);
    const Told chat = from_chat({post(port, "/v1/chat/completions", asked.chat()).json()}, "message");
    EXPECT_GT(chat.n_prompt, 100);
    EXPECT_EQ(chat.n_answer, 60);
    EXPECT_EQ(chat.logprobs.size(), 60u);
    Json streamed = with(asked.chat(), "stream", true);
    streamed["stream_options"] = {{"include_usage", true}};
    const Told chat_stream = from_chat(post(port, "/v1/chat/completions", streamed).events(), "delta");
    const Told response = from_response(post_response(port, asked.response()).json());
    const Told response_stream = from_response(expect_stream(stream_response(port, asked.response())));
    const Told lines = from_lines(post(port, "/api/chat", asked.ollama()).body);
    const Told line = from_lines(post(port, "/api/chat", with(asked.ollama(), "stream", false)).body);
    const Told message = from_message(post(port, "/v1/messages", asked.message()).json());
    const ClientReply told = post(port, "/v1/messages", with(asked.message(), "stream", true));
    expect_same(chat_stream, chat, "chat, streamed");
    expect_same(response, chat, "responses");
    expect_same(response_stream, chat, "responses, streamed");
    expect_same(line, chat, "ollama");
    expect_same(lines, chat, "ollama, streamed");
    expect_same(message, chat, "anthropic");
    expect_same(from_message_events(told.events()), chat, "anthropic, streamed");
    for (const Told* one : {&chat_stream, &line, &lines, &response, &response_stream})
      EXPECT_EQ(one->logprobs, chat.logprobs);
  }
}

}  // namespace
}  // namespace candor::testing
