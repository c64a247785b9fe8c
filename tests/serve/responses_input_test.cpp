// Everything that a client of /v1/responses can get wrong, and the field that the error names; and the scenarios by
// which Open Responses tells a server that is one.

#include "serve/responses_client.h"

namespace candor::testing {
namespace {

class responses_input : public ServerTest {};

struct WrongField {
  const char* fields;  // in place of, or beside, a good input
  const char* param;
  int status = 400;
};

constexpr WrongField kWrongFields[] = {
    {R"("model":5)", "model"},
    {R"("model":"other")", "model", 404},
    {R"("stream":"yes")", "stream"},
    {R"("previous_response_id":"resp_1")", "previous_response_id"},
    {R"("conversation":"conv_1")", "conversation"},
    {R"("conversation":{"id":"conv_1"})", "conversation"},
    {R"("background":true)", "background"},
    {R"("background":"no")", "background"},
    {R"("prompt":{"id":"pmpt_1"})", "prompt"},
    {R"("instructions":["x"])", "instructions"},
    {R"("max_output_tokens":0)", "max_output_tokens"},
    {R"("max_output_tokens":"12")", "max_output_tokens"},
    {R"("max_tool_calls":0)", "max_tool_calls"},
    {R"("temperature":3)", "temperature"},
    {R"("temperature":"hot")", "temperature"},
    {R"("top_p":1.5)", "top_p"},
    {R"("presence_penalty":9)", "presence_penalty"},
    {R"("frequency_penalty":-9)", "frequency_penalty"},
    {R"("top_logprobs":21)", "top_logprobs"},
    {R"("top_logprobs":-1)", "top_logprobs"},
    {R"("seed":"x")", "seed"},
    {R"("stop":5)", "stop"},
    {R"("store":"yes")", "store"},
    {R"("service_tier":"best")", "service_tier"},
    {R"("service_tier":1)", "service_tier"},
    {R"("truncation":"middle")", "truncation"},
    {R"("truncation":true)", "truncation"},
    {R"("user":5)", "user"},
    {R"("prompt_cache_key":5)", "prompt_cache_key"},
    {R"("safety_identifier":[])", "safety_identifier"},
    {R"("stream_options":5)", "stream_options"},
    {R"("stream_options":{"include_obfuscation":1})", "stream_options.include_obfuscation"},
    {R"("include":"all")", "include"},
    {R"("include":["everything"])", "include"},
    {R"("include":[5])", "include"},
    {R"("metadata":"x")", "metadata"},
    {R"("metadata":{"a":1})", "metadata"},
    {R"("text":"json")", "text"},
    {R"("text":{"format":"json"})", "text.format"},
    {R"("text":{"format":{}})", "text.format.type"},
    {R"("text":{"format":{"type":"yaml"}})", "text.format.type"},
    {R"("text":{"format":{"type":"json_schema","name":"x"}})", "text.format.schema"},
    {R"("text":{"format":{"type":"json_schema","name":"x","schema":5}})", "text.format.schema"},
    {R"("text":{"format":{"type":"json_schema","name":"x","schema":{"type":"objekt"}}})", "text.format"},
    {R"("text":{"verbosity":5})", "text.verbosity"},
    {R"("reasoning":"high")", "reasoning"},
    {R"("reasoning":{"effort":"huge"})", "reasoning.effort"},
    {R"("reasoning":{"summary":"long"})", "reasoning.summary"},
    {R"("chat_template_kwargs":5)", "chat_template_kwargs"},
    {R"("parallel_tool_calls":"no")", "parallel_tool_calls"},
    {R"("tools":{})", "tools"},
    {R"("tools":[5])", "tools[0]"},
    {R"("tools":[{}])", "tools[0].type"},
    {R"("tools":[{"type":"telepathy"}])", "tools[0].type"},
    {R"("tools":[{"type":"web_search\r\nx: y"}])", "tools[0].type"},
    {R"("tools":[{"type":"function"}])", "tools[0].name"},
    {R"("tools":[{"type":"function","name":5}])", "tools[0].name"},
    {R"("tools":[{"type":"function","function":{"name":"f"}}])", "tools[0].name"},
    {R"("tools":[{"type":"function","name":"f","parameters":"x"}])", "tools[0].parameters"},
    {R"("tools":[{"type":"function","name":"f","parameters":{"type":"array"}}])", "tools[0].parameters"},
    {R"("tools":[{"type":"function","name":"f","strict":"yes"}])", "tools[0].strict"},
    {R"("tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}])", "tools[1].name"},
    {R"("tools":[{"type":"custom","name":"c","format":{"type":"grammar"}}])", "tools[0].format.definition"},
    {R"("tools":[{"type":"custom","name":"c","format":{"type":"verse"}}])", "tools[0].format.type"},
    {R"("tools":[{"type":"namespace","name":"n"}])", "tools[0].tools"},
    {R"("tools":[{"type":"namespace","tools":[]}])", "tools[0].name"},
    {R"("tools":[{"type":"namespace","name":"n","tools":[{"type":"namespace"}]}])", "tools[0].tools[0].type"},
    {R"("tool_choice":"sometimes")", "tool_choice"},
    {R"("tool_choice":5)", "tool_choice"},
    {R"("tool_choice":"required")", "tool_choice"},
    {R"("tool_choice":{"type":"web_search_preview"})", "tool_choice"},
    {R"("tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"g"})", "tool_choice"},
    {R"("tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function"})", "tool_choice"},
    {R"("tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools"})", "tool_choice.tools"},
    {R"("tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","mode":"any","tools":[{"type":"function","name":"f"}]})",
     "tool_choice.mode"},
    {R"("tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]})",
     "tool_choice"},
    {R"("tools":[{"type":"function","name":"f"}],"tool_choice":"required","text":{"format":{"type":"json_object"}})",
     "tool_choice"},
};

constexpr WrongField kWrongItems[] = {
    {"null", "input"},
    {"5", "input"},
    {"[]", "input"},
    {"[5]", "input[0]"},
    {"[{}]", "input[0].type"},
    {R"([{"type":5}])", "input[0].type"},
    {R"([{"type":"dream"}])", "input[0].type"},
    {R"([{"type":"compaction","encrypted_content":"x"}])", "input[0].type"},
    {R"([{"type":"item_reference","id":"msg_1"}])", "input[0].type"},
    {R"([{"id":"msg_1"}])", "input[0].type"},
    {R"([{"role":"user","content":"x","id":5}])", "input[0].id"},
    {R"([{"role":"user","content":"x","status":5}])", "input[0].status"},
    {R"([{"role":"alien","content":"x"}])", "input[0].role"},
    {R"([{"role":"tool","content":"x"}])", "input[0].role"},
    {R"([{"type":"message","content":"x"}])", "input[0].role"},
    {R"([{"role":"user"}])", "input[0].content"},
    {R"([{"role":"user","content":5}])", "input[0].content"},
    {R"([{"role":"user","content":["x"]}])", "input[0].content[0]"},
    {R"([{"role":"user","content":[{"text":"x"}]}])", "input[0].content[0]"},
    {R"([{"role":"user","content":[{"type":"input_text"}]}])", "input[0].content[0].text"},
    {R"([{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA"}]}])",
     "input[0].content[0].image_url"},
    {R"([{"role":"user","content":[{"type":"input_text","text":"x"},{"type":"input_file","file_url":"http://x"}]}])",
     "input[0].content[1].type"},
    {R"([{"role":"user","content":"x"},{"type":"function_call_output","call_id":"c","output":"x"}])",
     "input[1].call_id"},
    {R"([{"type":"function_call_output","output":"x"}])", "input[0].call_id"},
    {R"([{"type":"function_call","call_id":"c","arguments":"{}"}])", "input[0].name"},
    {R"([{"type":"function_call","call_id":"c","name":"f"}])", "input[0].arguments"},
    {R"([{"type":"function_call","call_id":"c","name":"f","arguments":{}}])", "input[0].arguments"},
    {R"([{"type":"function_call","name":"f","arguments":"{}"}])", "input[0].call_id"},
    {R"([{"type":"function_call","call_id":"","name":"f","arguments":"{}"}])", "input[0].call_id"},
    {R"([{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}])",
     "input[1].call_id"},
    {R"([{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c"}])",
     "input[1].output"},
    {R"([{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image"}]}])",
     "input[1].output[0].image_url"},
    {R"([{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"},{"type":"function_call_output","call_id":"c","output":"x"}])",
     "input[2].call_id"},
    {R"([{"type":"custom_tool_call","call_id":"c","name":"f"}])", "input[0].input"},
    {R"([{"type":"reasoning","content":"x"}])", "input[0].content"},
    {R"([{"type":"reasoning","summary":"x"}])", "input[0].summary"},
    {R"([{"type":"reasoning","encrypted_content":5}])", "input[0].encrypted_content"},
    {R"([{"type":"reasoning","summary":[]}])", "input"},
};

void expect_refused(uint16_t port, const std::string& body, const WrongField& wrong) {
  for (const char* route : {"/v1/responses", "/v1/responses/input_tokens"}) {
    const ClientReply reply = ask(port, "POST", route, body);
    const bool counts_only = std::string_view(route).ends_with("tokens");
    if (counts_only && reply.status == 200) continue;  // what only an answer needs
    EXPECT_EQ(reply.status, wrong.status) << body << reply.body;
    const Json json = reply.json();
    ASSERT_TRUE(json.is_object() && json.contains("error")) << body << reply.body;
    const Json& error = json["error"];
    EXPECT_EQ(error["param"], wrong.param) << body << reply.body;
    EXPECT_EQ(error["type"], "invalid_request_error") << reply.body;
    EXPECT_FALSE(error["message"].get<std::string>().empty());
    EXPECT_EQ(error["message"].get<std::string>().find('\n'), std::string::npos) << reply.body;
  }
}

TEST_F(responses_input, every_wrong_field_is_refused_by_its_name) {
  for (const WrongField& wrong : kWrongFields) {
    expect_refused(port(), std::string(R"({"input":"hi",)") + wrong.fields + "}", wrong);
  }
}

TEST_F(responses_input, every_wrong_item_is_refused_by_its_place) {
  for (const WrongField& wrong : kWrongItems) {
    expect_refused(port(), std::string(R"({"max_output_tokens":2,"input":)") + wrong.fields + "}", wrong);
  }
  expect_refused(port(), "{}", {"", "input"});
}

TEST_F(responses_input, crowds_of_tools_and_pairs_are_refused) {
  Json body = asks("Hi", 2);
  for (int i = 0; i < 200; ++i) body["tools"].push_back({{"type", "web_search_" + std::to_string(i)}});
  expect_refused(port(), body.dump(), {"", "tools"});
  body = asks("Hi", 2);
  for (int i = 0; i < 17; ++i) body["metadata"]["k" + std::to_string(i)] = "v";
  expect_refused(port(), body.dump(), {"", "metadata"});
}

TEST_F(responses_input, what_is_unknown_is_named_in_the_warnings) {
  Json body = asks("Hi", 2);
  body.update({{"nope", 1}, {"include", {"file_search_call.results"}}, {"top_logprobs", 2}, {"max_tool_calls", 3}});
  const Json response = post_response(port(), body).json();
  expect_response(response);
  for (const char* word : {"nope", "include[0]", "top_logprobs", "max_tool_calls"}) {
    EXPECT_NE(response["warnings"].dump().find(word), std::string::npos) << word;
  }
}

TEST_F(responses_input, null_is_absent) {
  Json body = asks("Hi", 2);
  for (const char* name :
       {"previous_response_id", "conversation", "background", "prompt", "instructions", "tools", "tool_choice", "text",
        "reasoning", "metadata", "include", "truncation", "stream", "top_p", "store", "user"}) {
    body[name] = nullptr;
  }
  const Json response = post_response(port(), body).json();
  expect_response(response);
}

// The scenarios of the compliance test of Open Responses, in this project's words.
class open_responses : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { running_ = std::make_unique<Running>(tool_model()); }
  static void TearDownTestSuite() { running_.reset(); }
  static Json body(Json input) {
    return {{"model", "pocket"}, {"input", std::move(input)}, {"max_output_tokens", 16}, {"seed", 1}};
  }
  static Json says(const char* role, Json content) {
    return {{"type", "message"}, {"role", role}, {"content", std::move(content)}};
  }
  static Json tool() {
    return {{"type", "function"},
            {"name", "get_weather"},
            {"description", "Tells the weather"},
            {"parameters",
             {{"type", "object"},
              {"properties", {{"place", {{"type", "string"}, {"enum", {"Oslo"}}}}}},
              {"required", {"place"}},
              {"additionalProperties", false}}}};
  }
  static Json answered(const Json& request) {
    const ClientReply reply = post_response(running_->port(), request);
    EXPECT_EQ(reply.status, 200) << reply.body;
    expect_response(reply.json());
    EXPECT_FALSE(reply.json()["output"].empty());
    return reply.json();
  }
  static inline std::unique_ptr<Running> running_;
};

TEST_F(open_responses, basic_response) {
  answered(body(Json::array({says("user", "Say hello")})));
}

TEST_F(open_responses, streaming_response) {
  expect_stream(stream_response(running_->port(), body(Json::array({says("user", "Count")}))));
}

TEST_F(open_responses, system_prompt) {
  answered(body(Json::array({says("system", "You are a pirate"), says("user", "Say hello")})));
}

TEST_F(open_responses, tool_calling) {
  Json request = body(Json::array({says("user", "What is the weather?")}));
  request.update({{"tools", Json::array({tool()})}, {"tool_choice", "required"}, {"max_output_tokens", 200}});
  EXPECT_EQ(whole_response(running_->port(), request)["output"][0]["type"], "function_call");
}

TEST_F(open_responses, tool_calling_streaming) {
  Json request = body(Json::array({says("user", "What is the weather?")}));
  request.update({{"tools", Json::array({tool()})}, {"tool_choice", "required"}, {"max_output_tokens", 200}});
  whole_response(running_->port(), request);
  const std::vector<Json> events = stream_response(running_->port(), request);
  EXPECT_EQ(expect_stream(events)["status"], "completed");
  EXPECT_EQ(outline(events),
            std::vector<std::string>({"created", "in_progress", "output_item.added", "function_call_arguments.delta",
                                      "function_call_arguments.done", "output_item.done", "completed"}));
}

TEST_F(open_responses, image_input_is_refused_in_clear_words) {
  const Json image = {{"type", "input_image"}, {"image_url", "data:image/png;base64,AAAA"}};
  const ClientReply reply = post_response(running_->port(), body(Json::array({says("user", Json::array({image}))})));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.json()["error"]["message"].get<std::string>().find("this is a text model"), std::string::npos);
}

TEST_F(open_responses, multi_turn) {
  answered(body(Json::array({says("user", "I am Ann"), says("assistant", "Hello Ann"), says("user", "Who am I?")})));
}

}  // namespace
}  // namespace candor::testing
