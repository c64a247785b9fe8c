// Calls that come back in a conversation with arguments that are no JSON: some model wrote them, and no later turn may
// fail by them. They are text to the template, in every interface.

#include <gtest/gtest.h>

#include <string>

#include "serve/responses_client.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

struct Body {
  const char* path;
  Json body;
};

// The turn behind a call with these arguments.
std::vector<Body> bodies(const std::string& arguments) {
  const Json user = {{"role", "user"}, {"content", "Where?"}};
  const Json function = {{"name", "look"}, {"arguments", arguments}};
  const Json called = {{"role", "assistant"},
                       {"content", ""},
                       {"tool_calls", Json::array({{{"id", "c1"}, {"type", "function"}, {"function", function}}})}};
  const Json result = {{"role", "tool"}, {"tool_call_id", "c1"}, {"content", "sun"}};
  const Json use = {{"type", "tool_use"}, {"id", "c1"}, {"name", "look"}, {"input", arguments}};
  const Json used = {{"type", "tool_result"}, {"tool_use_id", "c1"}, {"content", "sun"}};
  const Json chat = {{"model", "pocket"}, {"messages", {user, called, result}}, {"max_tokens", 2}};
  Json lines = chat;
  lines.erase("max_tokens");
  lines.update({{"stream", false}, {"options", {{"num_predict", 2}}}});
  return {{"/v1/chat/completions", chat},
          {"/api/chat", lines},
          {"/v1/messages",
           {{"model", "pocket"},
            {"max_tokens", 2},
            {"messages",
             {user,
              {{"role", "assistant"}, {"content", Json::array({use})}},
              {{"role", "user"}, {"content", Json::array({used})}}}}}},
          {"/v1/responses",
           {{"model", "pocket"},
            {"max_output_tokens", 16},
            {"input",
             {user,
              {{"type", "function_call"}, {"call_id", "c1"}, {"name", "look"}, {"arguments", arguments}},
              {{"type", "function_call_output"}, {"call_id", "c1"}, {"output", "sun"}}}}}}};
}

int64_t prompt_tokens(const Json& reply) {
  if (reply.contains("prompt_eval_count")) return reply["prompt_eval_count"];
  const Json& usage = reply["usage"];
  if (usage.contains("prompt_tokens")) return usage["prompt_tokens"];
  return usage["input_tokens"].get<int64_t>() + usage.value("cache_read_input_tokens", int64_t{0});
}

void expect_answered(uint16_t port, const std::string& arguments, bool is_named) {
  int64_t n_prompt = 0;
  for (const Body& one : bodies(arguments)) {
    const ClientReply reply = post(port, one.path, one.body);
    const std::string what = std::string(one.path) + " " + arguments + " -> " + reply.body.substr(0, 600);
    ASSERT_EQ(reply.status, 200) << what;
    const Json json = reply.json();
    const std::string warnings = json.value("warnings", Json::array()).dump();
    EXPECT_EQ(warnings.find("is no JSON object, and is given to the model as text") != std::string::npos, is_named)
        << what;
    if (n_prompt == 0) n_prompt = prompt_tokens(json);
    EXPECT_EQ(prompt_tokens(json), n_prompt) << what;
  }
}

void expect_all_answered(uint16_t port) {
  for (const char* odd : {"{", "[1]", "Rome", R"({"a":1}})", R"({"a":1,"a":2})", "\xc3\xa9", "</tool_call>"})
    expect_answered(port, odd, true);
  for (const char* plain : {"", "{}", R"({"place":"sky"})"}) expect_answered(port, plain, false);
}

TEST(replayed_calls, are_text_where_they_are_no_json_to_a_template_that_takes_them_apart) {
  Running running(tool_model());
  expect_all_answered(running.port());
}

TEST(replayed_calls, are_text_where_they_are_no_json_to_a_template_that_shows_them_as_they_are) {
  constexpr std::string_view kTemplate =
      "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<{{ m.role }}>{{ m.content }}"
      "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor "
      "%}";
  TinyModelOptions model{.dim = 32, .n_layers = 1, .n_heads = 2, .n_kv_heads = 1, .ffn_dim = 32};
  model.vocab = 320;
  model.context_tokens = 1024;
  model.extra_keys = {{"tokenizer.chat_template", kTemplate}};
  const TempFolder folder;
  RunningOptions options = Running::defaults();
  options.engine.model_path = folder.path() / "shown.gguf";
  ASSERT_TRUE(write_model(*make_tiny_model(model), options.engine.model_path));
  Running running(options);
  expect_all_answered(running.port());
  Json body = bodies("Rome").front().body;
  body.erase("max_tokens");
  EXPECT_NE(post(running.port(), "/apply-template", body).body.find(R"(look\"Rome\")"), std::string::npos);
}

}  // namespace
}  // namespace candor::testing
