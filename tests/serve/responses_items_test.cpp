// Items of /v1/responses beyond messages: reasoning, calls of functions, namespaces and custom tools, in answers and
// replayed in the input. Answers that no small model would write are told to the reply event by event.

#include <fstream>

#include "serve/core/reply.h"
#include "serve/responses/requests.h"
#include "serve/responses/sealed_text.h"
#include "serve/responses_client.h"

namespace candor::testing {
namespace {

using serve::responses::OfferedTool;
using serve::responses::ResponseOptions;
using Names = std::vector<std::string>;

class responses_items : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { running_ = std::make_unique<Running>(tool_model()); }
  static void TearDownTestSuite() { running_.reset(); }
  static uint16_t port() { return running_->port(); }

  // The options of a request with these fields.
  static ResponseOptions options_of(const Json& change = Json::object()) {
    const serve::ApiLimits limits{.model = "pocket", .n_ctx = 2048};
    const serve::RequestTerms terms(running_->engine(), limits);
    Json body = asks("Hi");
    body.update(change);
    const auto request = serve::responses::parse_response(body, terms);
    EXPECT_TRUE(request.has_value());
    ResponseOptions options;
    serve::Fields fields(body);
    std::vector<std::string> warnings;
    options.tools = serve::responses::read_tools(fields, warnings).offered;
    Json echoed = post_response(port(), body).json();
    for (const char* name : {"id", "object", "created_at", "completed_at", "status", "error", "incomplete_details",
                             "model", "output", "usage", "timings", "warnings", "stop_reason"}) {
      echoed.erase(name);
    }
    options.echo = echoed;
    return options;
  }

  static serve::ReplyHead head_of(bool is_stream) {
    serve::ReplyHead head;
    head.id = "resp_1";
    head.number = "1";
    head.model = "pocket";
    head.is_stream = is_stream;
    return head;
  }

  struct Told {
    std::vector<Json> events;
    Json whole;
  };
  // The reply to a model that writes these texts, streamed and whole.
  static Told told(const std::vector<std::string>& texts, const ResponseOptions& options,
                   FinishReason finish = FinishReason::kStopEos, bool only_one_call = false) {
    Told result;
    for (const bool is_stream : {true, false}) {
      serve::ReplyHead head = head_of(is_stream);
      head.only_one_call = only_one_call;
      head.form = {.tools = text::ToolForm::kHermes, .has_reasoning = true};
      const auto reply = serve::responses::make_response_reply(running_->engine(), head, options);
      const auto emit = [&](const Json& event) { result.events.push_back(event); };
      if (is_stream) reply->open(0, emit);
      for (const std::string& text : texts) {
        TokenEvent event;
        event.text = text;
        reply->on_event(0, event, emit);
      }
      TokenEvent last;
      last.finish = finish;
      last.summary.emplace();
      reply->on_event(0, last, emit);
      if (is_stream) {
        reply->close(emit);
      } else {
        result.whole = reply->whole();
      }
    }
    expect_response(result.whole);
    EXPECT_EQ(without_ids(expect_stream(result.events)), without_ids(result.whole));
    return result;
  }

  static Json function(const std::string& name) {
    const Json place = {{"type", "string"}, {"enum", {"Rome", "Oslo"}}};
    return {{"type", "function"},
            {"name", name},
            {"description", "Tells"},
            {"parameters",
             {{"type", "object"},
              {"properties", {{"place", place}}},
              {"required", {"place"}},
              {"additionalProperties", false}}},
            {"strict", true}};
  }
  static Json replay(Json items) {
    Json body = asks("", 2);
    items.insert(items.begin(), Json{{"role", "user"}, {"content", "Hi"}});
    body["input"] = std::move(items);
    return body;
  }
  static int n_tokens(const Json& items) {
    const ClientReply reply = post(port(), "/v1/responses/input_tokens", replay(items));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json().value("input_tokens", -1);
  }

  static inline std::unique_ptr<Running> running_;
};

TEST_F(responses_items, reasoning_comes_before_the_message_as_an_item_of_its_own) {
  const Told reply = told({"<thi", "nk>I pon", "der", "</think>", "Yes", "."}, options_of());
  ASSERT_EQ(reply.whole["output"].size(), 2u);
  const Json& reasoning = reply.whole["output"][0];
  EXPECT_EQ(reasoning["type"], "reasoning");
  EXPECT_EQ(reasoning["summary"], Json::array());
  EXPECT_EQ(reasoning["content"], Json::parse(R"([{"type":"reasoning_text","text":"I ponder"}])"));
  EXPECT_FALSE(reasoning.contains("encrypted_content"));
  EXPECT_EQ(reply.whole["output"][1]["content"][0]["text"], "Yes.");
  EXPECT_EQ(
      outline(reply.events),
      Names({"created", "in_progress", "output_item.added", "content_part.added", "reasoning_text.delta",
             "reasoning_text.done", "content_part.done", "output_item.done", "output_item.added", "content_part.added",
             "output_text.delta", "output_text.done", "content_part.done", "output_item.done", "completed"}));
}

TEST_F(responses_items, sealed_reasoning_can_be_opened_again) {
  ResponseOptions options = options_of();
  options.seals_reasoning = true;
  const Told reply = told({"<think>I pond\xc3\xa9r</think>Yes"}, options);
  const std::string copy = reply.whole["output"][0]["encrypted_content"];
  EXPECT_EQ(serve::responses::unsealed(copy), "I pond\xc3\xa9r");
  for (const char* text : {"", "a", "ab", "abc", "abcd"}) {
    EXPECT_EQ(serve::responses::unsealed(serve::responses::sealed(text)), text);
  }
  for (const char* other :
       {"", "gAAAAB", "candor1.a", "candor1.a===", "candor1.====", "candor1./w==", "candor1.\xff\xff\xff\xff"}) {
    EXPECT_FALSE(serve::responses::unsealed(other).has_value()) << other;
  }
}

TEST_F(responses_items, a_call_is_an_item_whose_arguments_are_told_and_then_repeated) {
  const Told reply = told({"<tool_call>{\"name\": \"weather\", \"arguments\": {\"place\": \"Rome\"}}</tool_call>"},
                          options_of({{"tools", Json::array({function("weather")})}}));
  ASSERT_EQ(reply.whole["output"].size(), 1u);
  const Json& call = reply.whole["output"][0];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "weather");
  EXPECT_EQ(Json::parse(call["arguments"].get<std::string>()), Json({{"place", "Rome"}}));
  EXPECT_EQ(outline(reply.events),
            Names({"created", "in_progress", "output_item.added", "function_call_arguments.delta",
                   "function_call_arguments.done", "output_item.done", "completed"}));
  EXPECT_EQ(reply.events[2]["item"]["arguments"], "");
  EXPECT_EQ(reply.events[4]["name"], "weather");
}

TEST_F(responses_items, calls_stand_one_after_the_other_unless_only_one_is_wanted) {
  const std::string call = "<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>";
  const ResponseOptions options = options_of({{"tools", Json::array({function("weather")})}});
  const Json two = told({"Well ", call, call}, options).whole["output"];
  ASSERT_EQ(two.size(), 3u);
  EXPECT_EQ(two[0]["type"], "message");
  EXPECT_NE(two[1]["call_id"], two[2]["call_id"]);
  EXPECT_NE(two[1]["id"], two[2]["id"]);
  const Json one = told({"Well ", call, call}, options, FinishReason::kStopEos, true).whole;
  EXPECT_EQ(one["output"].size(), 2u);
  EXPECT_NE(one["warnings"].dump().find("a further call, of weather, is left out"), std::string::npos) << one;
}

TEST_F(responses_items, a_tool_of_a_namespace_is_called_by_its_own_name) {
  const Json space = {{"type", "namespace"},
                      {"name", "agents"},
                      {"description", "Others"},
                      {"tools", Json::array({function("spawn"), function("wait")})}};
  const ResponseOptions options = options_of({{"tools", Json::array({function("spawn"), space})}});
  ASSERT_EQ(options.tools.size(), 3u);
  EXPECT_EQ(options.echo["tools"][1]["namespace"], "agents");
  const auto called = [&](const std::string& name) {
    return told({"<tool_call>{\"name\": \"" + name + "\", \"arguments\": {}}</tool_call>"}, options).whole["output"][0];
  };
  EXPECT_EQ(called("agents__spawn")["namespace"], "agents");
  EXPECT_EQ(called("agents__spawn")["name"], "spawn");
  EXPECT_FALSE(called("spawn").contains("namespace"));
  EXPECT_EQ(called("wait")["namespace"], "agents");
}

TEST_F(responses_items, a_custom_tool_gets_free_text) {
  const Json patch = {{"type", "custom"}, {"name", "patch"}, {"description", "Changes files"}};
  const Told reply = told({"<tool_call>{\"name\": \"patch\", \"arguments\": {\"input\": \"a\\nb\"}}</tool_call>"},
                          options_of({{"tools", Json::array({patch})}}));
  EXPECT_EQ(reply.whole["output"][0]["type"], "custom_tool_call");
  EXPECT_EQ(reply.whole["output"][0]["input"], "a\nb");
  EXPECT_EQ(outline(reply.events)[3], "custom_tool_call_input.delta");
}

TEST_F(responses_items, a_call_that_cannot_be_read_is_text_with_a_warning) {
  const Json whole = told({"<tool_call>{\"name\": oops}</tool_call>"}, options_of()).whole;
  EXPECT_EQ(whole["output"][0]["type"], "message");
  EXPECT_NE(whole["warnings"].dump().find("could not be read"), std::string::npos);
}

TEST_F(responses_items, an_empty_answer_is_a_message_and_a_cut_one_what_there_is) {
  EXPECT_EQ(told({}, options_of()).whole["output"][0]["content"][0]["text"], "");
  const Json cut = told({"<think>I"}, options_of(), FinishReason::kLength).whole;
  EXPECT_EQ(cut["status"], "incomplete");
  ASSERT_EQ(cut["output"].size(), 1u);
  EXPECT_EQ(cut["output"][0]["status"], "incomplete");
}

TEST_F(responses_items, a_stream_that_breaks_fails_with_the_whole_response) {
  const auto reply = serve::responses::make_response_reply(running_->engine(), head_of(true), options_of());
  std::vector<Json> events;
  const auto emit = [&](const Json& event) { events.push_back(event); };
  reply->open(0, emit);
  reply->on_wait({.ms = 5000}, emit);
  EXPECT_TRUE(reply->on_error({.kind = ErrorKind::kContextLength, .message = "too long"}, emit));
  const Json failed = expect_stream(events);
  EXPECT_EQ(failed["error"], Json({{"code", "context_length_exceeded"}, {"message", "too long"}}));
  EXPECT_EQ(outline(events), Names({"created", "in_progress", "in_progress", "failed"}));
}

TEST_F(responses_items, a_choice_that_must_be_a_call_is_one_streamed_and_whole) {
  for (const Json& choice : {Json("required"), Json{{"type", "function"}, {"name", "weather"}},
                             Json{{"type", "allowed_tools"},
                                  {"mode", "required"},
                                  {"tools", Json::array({{{"type", "function"}, {"name", "weather"}}})}}}) {
    Json body = asks("What is the weather?", 200);
    body.update({{"tools", Json::array({function("weather")})}, {"tool_choice", choice}});
    const Json plain = whole_response(port(), body);
    EXPECT_EQ(without_ids(expect_stream(stream_response(port(), body))), without_ids(plain));
    EXPECT_EQ(plain["output"][0]["name"], "weather");
    const Json arguments = Json::parse(plain["output"][0]["arguments"].get<std::string>());
    EXPECT_TRUE(arguments["place"] == "Rome" || arguments["place"] == "Oslo");
    EXPECT_EQ(plain["tool_choice"], choice);
  }
}

TEST_F(responses_items, a_call_and_its_output_are_replayed_as_a_chat_replays_them) {
  const std::string arguments = R"({"place":"Rome"})";
  Json body = asks("", 8);
  body["tools"] = Json::array({function("weather")});
  body["input"] = Json::array(
      {{{"role", "user"}, {"content", "Weather?"}},
       {{"type", "reasoning"}, {"summary", Json::array()}, {"content", {{{"type", "reasoning_text"}, {"text", "Hm"}}}}},
       {{"role", "assistant"}, {"content", "I look"}},
       {{"type", "function_call"},
        {"id", "fc_1"},
        {"status", "completed"},
        {"call_id", "c1"},
        {"name", "weather"},
        {"arguments", arguments}},
       {{"type", "function_call_output"}, {"call_id", "c1"}, {"output", {{{"type", "input_text"}, {"text", "sun"}}}}}});
  Json tool = function("weather");
  tool.erase("type");
  const Json call = {{"id", "c1"}, {"type", "function"}, {"function", {{"name", "weather"}, {"arguments", arguments}}}};
  const Json chat = {{"tools", Json::array({{{"type", "function"}, {"function", tool}}})},
                     {"messages",
                      {{{"role", "user"}, {"content", "Weather?"}},
                       {{"role", "assistant"},
                        {"content", "I look"},
                        {"reasoning_content", "Hm"},
                        {"tool_calls", Json::array({call})}},
                       {{"role", "tool"}, {"tool_call_id", "c1"}, {"content", "sun"}}}},
                     {"max_tokens", 8},
                     {"temperature", 0}};
  const Json response = post_response(port(), body).json();
  const Json completion = post(port(), "/v1/chat/completions", chat).json();
  EXPECT_EQ(response["usage"]["input_tokens"], completion["usage"]["prompt_tokens"]) << response << completion;
  EXPECT_EQ(response["output"].back()["content"][0]["text"], completion["choices"][0]["message"]["content"]);
}

TEST_F(responses_items, arguments_that_are_no_json_are_taken_as_the_text_that_they_are) {
  for (const char* arguments : {"", "{", "[1]", "Rome", R"({"a":1}})", R"({"a":1,"a":2})"}) {
    const Json call = {{"type", "function_call"}, {"call_id", "c"}, {"name", "f"}, {"arguments", arguments}};
    const Json output = {{"type", "function_call_output"}, {"call_id", "c"}, {"output", "x"}};
    EXPECT_EQ(post_response(port(), replay(Json::array({call, output}))).status, 200) << arguments;
  }
}

TEST_F(responses_items, sealed_reasoning_alone_gives_the_prompt_of_its_text) {
  const Json answer = {{"role", "assistant"}, {"content", "Yes"}};
  const Json text = {{"type", "reasoning"},
                     {"summary", Json::array()},
                     {"content", {{{"type", "reasoning_text"}, {"text", "I ponder"}}}}};
  const Json copy = {{"type", "reasoning"},
                     {"id", "rs_1"},
                     {"summary", Json::array()},
                     {"content", nullptr},
                     {"encrypted_content", serve::responses::sealed("I ponder")}};
  Json foreign = copy;
  foreign["encrypted_content"] = "gAAAA";
  EXPECT_EQ(n_tokens(Json::array({text, answer})), n_tokens(Json::array({copy, answer})));
  EXPECT_EQ(n_tokens(Json::array({foreign, answer})), n_tokens(Json::array({answer})));
  EXPECT_LT(n_tokens(Json::array({answer})), n_tokens(Json::array({copy, answer})));
  const Json warned = post_response(port(), replay(Json::array({foreign, answer}))).json();
  EXPECT_NE(warned["warnings"].dump().find("input[1].encrypted_content"), std::string::npos) << warned;
}

TEST(responses_system, messages_without_a_place_are_folded_beside_where_they_stand) {
  const std::vector<Message> said = {{.role = "developer", .content = "A"}, {.role = "system", .content = "B"},
                                     {.role = "user", .content = "u"},      {.role = "system", .content = "C"},
                                     {.role = "assistant", .content = "a"}, {.role = "developer", .content = "D"},
                                     {.role = "tool", .content = "t"},      {.role = "assistant", .content = "b"},
                                     {.role = "system", .content = "E"}};
  const auto placed = [&](bool takes_system, bool takes_late_system, std::vector<std::string>& warnings) {
    serve::ModelForm form;
    form.takes_system = takes_system;
    form.takes_late_system = takes_late_system;
    std::string text;
    for (const Message& message : serve::responses::place_system(said, form, warnings)) {
      text += message.role + ":" + message.content + "|";
    }
    return text;
  };
  std::vector<std::string> warnings;
  EXPECT_EQ(placed(true, true, warnings),
            "developer:A|system:B|user:u|system:C|assistant:a|developer:D|tool:t|assistant:b|system:E|");
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(placed(true, false, warnings), "developer:A\n\nB|user:u\n\nC|assistant:a|tool:t\n\nD|assistant:b|user:E|");
  EXPECT_EQ(placed(false, false, warnings), "user:A\n\nB\n\nu\n\nC|assistant:a|tool:t\n\nD|assistant:b|user:E|");
  EXPECT_EQ(warnings.size(), 2u);
}

TEST(responses_system, nothing_comes_between_calls_and_their_results) {
  const std::vector<Message> said = {
      {.role = "user", .content = "u"},
      {.role = "assistant", .content = "a", .extra_json = R"({"tool_calls":[{"id":"1"},{"id":"2"}]})"},
      {.role = "tool", .content = "t"},
      {.role = "system", .content = "S"},
      {.role = "tool", .content = "v"}};
  for (const bool takes_late : {true, false}) {
    serve::ModelForm form;
    form.takes_late_system = takes_late;
    std::vector<std::string> warnings;
    std::string text;
    for (const Message& message : serve::responses::place_system(said, form, warnings))
      text += message.role + ":" + message.content + "|";
    EXPECT_EQ(text,
              takes_late ? "user:u|assistant:a|tool:t|tool:v|system:S|" : "user:u|assistant:a|tool:t\n\nS|tool:v|");
  }
}

TEST_F(responses_items, what_codex_sends_behind_a_call_is_answered) {
  std::ifstream file(project_file("tests/serve/data/codex_turn.json"));
  Json body = Json::parse(file, nullptr, false);
  body.update({{"model", "pocket"}, {"max_output_tokens", 4}, {"temperature", 0}});
  const Json response = post_response(port(), body).json();
  expect_response(response);
  EXPECT_EQ(response["metadata"]["tools_not_offered"], "web_search");
  EXPECT_EQ(response["tools"].size(), 12u) << "7 functions and 5 of a namespace";
  EXPECT_EQ(without_ids(expect_stream(stream_response(port(), body))), without_ids(response));
}

TEST_F(responses_items, custom_calls_and_those_of_namespaces_can_be_replayed) {
  const Json items = {
      {{"type", "custom_tool_call"}, {"call_id", "a"}, {"name", "patch"}, {"input", "x"}},
      {{"type", "function_call"}, {"call_id", "b"}, {"name", "spawn"}, {"namespace", "agents"}, {"arguments", "{}"}},
      {{"type", "custom_tool_call_output"}, {"call_id", "a"}, {"output", "done"}},
      {{"type", "function_call_output"}, {"call_id", "b"}, {"output", "done"}}};
  EXPECT_EQ(post_response(port(), replay(items)).status, 200);
}

}  // namespace
}  // namespace candor::testing
