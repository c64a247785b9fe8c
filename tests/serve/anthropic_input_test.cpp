// Everything that a client of Anthropic's interface can get wrong in a body: the right status in its own shape of an
// error, with words that name the place; nothing enters the queue.

#include "serve/client.h"

namespace candor::testing {
namespace {

struct Wrong {
  const char* change;  // merged into a good body; null takes a field out
  const char* words;   // of the message
};

constexpr Wrong kWrong[] = {
    {R"({"max_tokens":null})", "max_tokens is missing"},
    {R"({"max_tokens":0})", "max_tokens is 0"},
    {R"({"max_tokens":-1})", "max_tokens is -1"},
    {R"({"max_tokens":"8"})", "max_tokens is \"8\""},
    {R"({"max_tokens":1.5})", "max_tokens is 1.5"},
    {R"({"model":5})", "model is 5"},
    {R"({"stream":"yes"})", "stream is \"yes\""},
    {R"({"temperature":-1})", "temperature is -1"},
    {R"({"temperature":"hot"})", "temperature is \"hot\""},
    {R"({"top_p":2})", "top_p is 2"},
    {R"({"top_k":"x"})", "top_k is \"x\""},
    {R"({"stop_sequences":"a"})", "stop_sequences is \"a\""},
    {R"({"stop_sequences":[5]})", "stop_sequences[0] is 5"},
    {R"({"stop_sequences":["a",""]})", "stop_sequences[1] is \"\""},
    {R"({"stop_sequences":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"]})", "has 17 elements"},
    {R"({"metadata":"me"})", "metadata is \"me\""},
    {R"({"service_tier":5})", "service_tier is 5"},
    {R"({"cache_control":5})", "cache_control is 5"},
    {R"({"context_management":5})", "context_management is 5"},
    {R"({"mcp_servers":5})", "mcp_servers is 5"},
    {R"({"thinking":"on"})", "thinking is \"on\""},
    {R"({"thinking":{}})", "thinking.type is \"\""},
    {R"({"thinking":{"type":"often"}})", "thinking.type is \"often\""},
    {R"({"thinking":{"type":"enabled","budget_tokens":"many"}})", "thinking.budget_tokens is \"many\""},
    {R"({"thinking":{"type":"enabled","budget_tokens":0}})", "thinking.budget_tokens is 0"},
    {R"({"output_config":5})", "output_config is 5"},
    {R"({"output_config":{"effort":"huge"}})", "output_config.effort is \"huge\""},
    {R"({"output_config":{"format":{"type":"xml"}}})", "output_config.format.type is \"xml\""},
    {R"({"output_config":{"format":{"type":"json_schema"}}})", "output_config.format.schema is missing"},
    {R"({"output_config":{"format":{"type":"json_schema","schema":{"type":"objekt"}}}})", "objekt"},
    {R"({"system":5})", "system is 5"},
    {R"({"system":[5]})", "system[0] is 5"},
    {R"({"system":[{"type":"text"}]})", "system[0].text is missing"},
    {R"({"system":[{"type":"image","source":{}}]})", "system[0].type is \"image\", expected text"},
    {R"({"messages":null})", "messages is missing"},
    {R"({"messages":[]})", "messages is an array of 0"},
    {R"({"messages":"hi"})", "messages is \"hi\""},
    {R"({"messages":[5]})", "messages[0] is 5"},
    {R"({"messages":[{"content":"a"}]})", "messages[0].role is \"\""},
    {R"({"messages":[{"role":"tool","content":"a"}]})", "messages[0].role is \"tool\""},
    {R"({"messages":[{"role":7,"content":"a"}]})", "messages[0].role is 7"},
    {R"({"messages":[{"role":"user"}]})", "messages[0].content is missing"},
    {R"({"messages":[{"role":"user","content":5}]})", "messages[0].content is 5"},
    {R"({"messages":[{"role":"user","content":[]}]})", "messages[0].content is an array of 0"},
    {R"({"messages":[{"role":"user","content":["a"]}]})", "messages[0].content[0] is \"a\""},
    {R"({"messages":[{"role":"user","content":[{}]}]})", "messages[0].content[0].type is missing"},
    {R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", "messages[0].content[0].text is missing"},
    {R"({"messages":[{"role":"user","content":[{"type":"text","text":5}]}]})", "messages[0].content[0].text is 5"},
    {R"({"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":"x"}]}]})",
     "messages[0].content[0].cache_control is \"x\""},
    {R"({"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64"}}]}]})",
     "messages[0].content[0].source has no data"},
    {R"({"messages":[{"role":"user","content":[{"type":"document","source":{}}]}]})", "no documents are read here"},
    {R"({"messages":[{"role":"user","content":[{"type":"thinking","thinking":"a"}]}]})",
     "messages[0].content[0].type is \"thinking\", expected text, image or tool_result"},
    {R"({"messages":[{"role":"user","content":[{"type":"video"}]}]})", "messages[0].content[0].type is \"video\""},
    {R"({"messages":[{"role":"user","content":[{"type":"tool_result","content":"a"}]}]})",
     "messages[0].content[0].tool_use_id is missing"},
    {R"({"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"}]}]})",
     "tool_use_id \"t\" belongs to no tool_use"},
    {R"({"messages":[{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"t"}]}]})",
     "messages[0].content[0].type is \"tool_result\", expected text, thinking or tool_use"},
    {R"({"messages":[{"role":"assistant","content":[{"type":"thinking"}]}]})", "content[0].thinking is missing"},
    {R"({"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":5}]}]})",
     "content[0].signature is 5"},
    {R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"f"}]}]})", "content[0].id is missing"},
    {R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t"}]}]})", "content[0].name is missing"},
    {R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f"},
                                                    {"type":"tool_use","id":"t","name":"f"}]}]})",
     "content[1].id \"t\" is that of an earlier tool_use"},
    {R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f"}]},
                     {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image"}]}]}]})",
     "messages[1].content[0].content[0].source is missing"},
    {R"({"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f"}]},
                     {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":"no"}]}]})",
     "is_error is \"no\""},
    {R"({"tools":5})", "tools is 5"},
    {R"({"tools":[5]})", "tools[0] is 5"},
    {R"({"tools":[{}]})", "tools[0].name is missing"},
    {R"({"tools":[{"name":"f"}]})", "tools[0].input_schema is missing"},
    {R"({"tools":[{"name":"f","input_schema":"x"}]})", "tools[0].input_schema is \"x\""},
    {R"({"tools":[{"name":"f","input_schema":{"type":"string"}}]})", "tools[0].input_schema.type is \"string\""},
    {R"({"tools":[{"name":"f","input_schema":{}},{"name":"f","input_schema":{}}]})", "tools[1].name \"f\""},
    {R"({"tools":[{"name":"f","description":5,"input_schema":{}}]})", "tools[0].description is 5"},
    {R"({"tool_choice":"any"})", "tool_choice is \"any\""},
    {R"({"tool_choice":{"type":"sometimes"}})", "tool_choice.type is \"sometimes\""},
    {R"({"tool_choice":{"type":"any"}})", "there are no tools"},
    {R"({"tool_choice":{"type":"tool"}})", "tool_choice.name is missing"},
    {R"({"tool_choice":{"type":"auto","disable_parallel_tool_use":1}})", "tool_choice.disable_parallel_tool_use is 1"},
    {R"({"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"g"}})",
     "tool_choice.name is \"g\""},
    {R"({"tools":[{"name":"w","type":"web_search_20250305"}],"tool_choice":{"type":"tool","name":"w"}})",
     "a tool that does not run here"},
};

class anthropic_input : public ServerTest {
 protected:
  static void expect_refused(const std::string& path, const std::string& body, int status, const char* type,
                             const std::string& words) {
    const ClientReply reply = ask(port(), "POST", path, body);
    const std::string what = body.substr(0, 200) + "\n -> " + reply.body.substr(0, 300);
    EXPECT_EQ(reply.status, status) << what;
    const Json json = reply.json();
    ASSERT_TRUE(json.is_object() && json.contains("error")) << what;
    EXPECT_EQ(json["type"], "error") << what;
    EXPECT_EQ(json["error"]["type"], type) << what;
    EXPECT_EQ(json["error"].size(), 2u) << what;
    EXPECT_TRUE(json["request_id"].is_string()) << what;
    const std::string message = json["error"]["message"].get<std::string>();
    EXPECT_NE(message.find(words), std::string::npos) << what;
    EXPECT_EQ(message.find('\n'), std::string::npos) << what;
  }
};

TEST_F(anthropic_input, whatever_is_wrong_is_refused_with_its_place) {
  static_assert(std::size(kWrong) >= 55);
  for (const Wrong& wrong : kWrong) {
    Json body = user_says("hi", 2);
    body.erase("temperature");
    const Json change = Json::parse(wrong.change);
    for (const auto& [name, value] : change.items()) body[name] = value;
    expect_refused("/v1/messages", body.dump(), 400, "invalid_request_error", wrong.words);
    body["stream"] = body.value("stream", Json(true));
    expect_refused("/v1/messages", body.dump(), 400, "invalid_request_error", wrong.words);
  }
  EXPECT_TRUE(running().becomes_idle());
}

TEST_F(anthropic_input, what_is_wrong_is_refused_where_it_is_counted) {
  expect_refused("/v1/messages/count_tokens", R"({"messages":[]})", 400, "invalid_request_error",
                 "messages is an array");
  expect_refused("/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":"a"}],"model":"other"})", 404,
                 "not_found_error", "other");
  expect_refused("/v1/messages/count_tokens", "[1]", 400, "invalid_request_error", "not a JSON object");
}

TEST_F(anthropic_input, json_that_is_none_and_what_is_not_there_have_the_same_shape) {
  expect_refused("/v1/messages", "", 400, "invalid_request_error", "the body is empty");
  expect_refused("/v1/messages", "{\"messages\":" + repeated("[", 1000), 400, "invalid_request_error", "nested deeper");
  expect_refused("/v1/messages", R"({"model":"other","max_tokens":1,"messages":[{"role":"user","content":"a"}]})", 404,
                 "not_found_error", "other");
  const ClientReply get = ask(port(), "GET", "/v1/messages");
  EXPECT_EQ(get.status, 405) << get.body;
  EXPECT_EQ(get.json()["error"]["type"], "invalid_request_error") << get.body;
}

TEST_F(anthropic_input, an_unknown_field_is_named_or_refused) {
  Json body = user_says("hi", 2);
  body["nope"] = 1;
  EXPECT_NE(post(port(), "/v1/messages", body).json()["warnings"].dump().find("nope"), std::string::npos);
  RunningOptions options = Running::defaults();
  options.service.limits.is_strict = true;
  Running strict(options);
  const ClientReply refused = post(strict.port(), "/v1/messages", body);
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.json()["error"]["message"].get<std::string>().find("nope"), std::string::npos) << refused.body;
}

}  // namespace
}  // namespace candor::testing
