// Calls that a request forces, by models whose templates show a form of their own: the model writes its form, the
// arguments obey the schema, and every interface tells the call in its words.

#include <filesystem>
#include <functional>
#include <string>

#include "formats/model_file.h"
#include "serve/client.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

struct Form {
  const char* name;
  std::string_view chat_template;
  const char* sign;  // of a call of `look`, as the model writes it
};

constexpr Form kForms[] = {
    {"hermes",
     "{% if tools %}{% for t in tools %}{{ t.function.name }} {% endfor %}"
     "<tool_call>\n{\"name\": ..., \"arguments\": ...}\n</tool_call>{% endif %}"
     "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}",
     "<tool_call>"},
    {"qwen3-coder",
     "{% if tools %}{% for t in tools %}{{ t.function.name }} {% endfor %}"
     "<tool_call>\n<function=name>\n</function>{% endif %}"
     "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}",
     "<function=look>"},
};

// The same weights and words with another template.
void write_with_template(const formats::ModelFile& file, std::string_view chat_template,
                         const std::filesystem::path& path) {
  MemoryModelFile changed;
  for (const formats::MetaEntry& entry : file.metadata()) changed.set(std::string(entry.key), entry.value);
  changed.set("tokenizer.chat_template", chat_template);
  for (const TensorView& tensor : file.tensors()) {
    const auto* bytes = static_cast<const std::byte*>(tensor.data);
    changed.add_tensor(std::string(tensor.name), tensor.dtype, tensor.shape, {bytes, bytes + tensor.n_bytes});
  }
  ASSERT_TRUE(write_model(changed, path).has_value());
}

Json schema() {
  return {{"type", "object"},
          {"properties", {{"place", {{"type", "string"}, {"enum", {"sky", "sea"}}}}, {"deep", {{"type", "boolean"}}}}},
          {"required", {"place", "deep"}},
          {"additionalProperties", false}};
}

Json function(const char* name) {
  return {{"name", name}, {"description", "looks"}, {"parameters", schema()}};
}

void expect_arguments(const Json& arguments) {
  EXPECT_TRUE(arguments["place"] == "sky" || arguments["place"] == "sea") << arguments;
  EXPECT_TRUE(arguments["deep"].is_boolean()) << arguments;
}

class ToolServer {
 public:
  ToolServer(const formats::ModelFile& file, const Form& form) {
    const std::filesystem::path path = folder_.path() / "model.gguf";
    write_with_template(file, form.chat_template, path);
    RunningOptions options = Running::defaults();
    options.engine.model_path = path;
    running_ = std::make_unique<Running>(options);
  }
  // One seed after the other until the answer is whole. Small models fill a form's free places with spaces for ever:
  // what was said often is unlikely.
  Json ask_until(const char* path, Json body, const std::function<bool(const Json&)>& is_whole) {
    Json reply;
    body.update({{"temperature", 1}, {"frequency_penalty", 2}});
    for (int seed = 1; seed <= 40; ++seed) {
      body["seed"] = seed;
      reply = post(running_->port(), path, body).json();
      if (reply.is_object() && is_whole(reply)) return reply;
    }
    ADD_FAILURE() << path << " " << reply.dump().substr(0, 600);
    return reply;
  }
  uint16_t port() const { return running_->port(); }

 private:
  TempFolder folder_;
  std::unique_ptr<Running> running_;
};

Json chat_body() {
  Json body = user_says("Look", 300);
  for (const char* name : {"listen", "look"})
    body["tools"].push_back({{"type", "function"}, {"function", function(name)}});
  return body;
}

// Named, so that the call is known; required, by any name.
void expect_chat_calls(ToolServer& server, const Form& form) {
  const auto is_whole = [](const Json& reply) { return reply["choices"][0]["finish_reason"] == "tool_calls"; };
  Json body = chat_body();
  body["logprobs"] = true;
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "look"}}}};
  const Json named = server.ask_until("/v1/chat/completions", body, is_whole);
  const Json& choice = named["choices"][0];
  EXPECT_EQ(named.value("warnings", Json::array()).dump().find("forced as JSON"), std::string::npos) << named;
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "look");
  expect_arguments(Json::parse(choice["message"]["tool_calls"][0]["function"]["arguments"].get<std::string>()));
  std::string written;
  for (const Json& token : choice["logprobs"]["content"]) written += token["token"].get<std::string>();
  EXPECT_NE(written.find(form.sign), std::string::npos) << written;
  body["tool_choice"] = "required";
  const Json required = server.ask_until("/v1/chat/completions", body, is_whole);
  const Json& call = required["choices"][0]["message"]["tool_calls"][0];
  EXPECT_TRUE(call["function"]["name"] == "look" || call["function"]["name"] == "listen") << call;
  expect_arguments(Json::parse(call["function"]["arguments"].get<std::string>()));
}

void expect_anthropic_calls(ToolServer& server) {
  Json body = user_says("Look", 300);
  body["tools"] = {{{"name", "look"}, {"input_schema", schema()}}};
  for (const Json& choice : {Json{{"type", "any"}}, Json{{"type", "tool"}, {"name", "look"}}}) {
    body["tool_choice"] = choice;
    const Json message =
        server.ask_until("/v1/messages", body, [](const Json& one) { return one["stop_reason"] == "tool_use"; });
    EXPECT_EQ(message["content"].back()["name"], "look");
    expect_arguments(message["content"].back()["input"]);
  }
}

void expect_responses_calls(ToolServer& server) {
  Json tool = function("look");
  tool["type"] = "function";
  Json body = {{"input", "Look"}, {"max_output_tokens", 300}, {"tools", Json::array({tool})}};
  for (const Json& choice : {Json("required"), Json{{"type", "function"}, {"name", "look"}}}) {
    body["tool_choice"] = choice;
    const Json response = server.ask_until("/v1/responses", body, [](const Json& one) {
      return one["status"] == "completed" && one["output"].back()["type"] == "function_call";
    });
    EXPECT_EQ(response["output"].back()["name"], "look");
    expect_arguments(Json::parse(response["output"].back()["arguments"].get<std::string>()));
  }
}

std::unique_ptr<MemoryModelFile> random_model() {
  TinyModelOptions model{.dim = 32, .n_layers = 1, .n_heads = 2, .n_kv_heads = 1, .ffn_dim = 32};
  model.vocab = 320;
  model.context_tokens = 1024;
  return make_tiny_model(model);
}

TEST(forced_calls, are_written_in_the_models_own_form_whatever_the_interface) {
  const auto file = random_model();
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.name);
    ToolServer server(*file, form);
    expect_chat_calls(server, form);
    expect_anthropic_calls(server);
    expect_responses_calls(server);
  }
}

TEST(forced_calls, of_a_trained_model_are_right_as_well) {
  const auto path = shared_data() / "models" / "stories260K.gguf";
  CANDOR_REQUIRE_DATA(path);
  const auto file = formats::open_model_file(path);
  ASSERT_TRUE(file) << file.error().message;
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.name);
    ToolServer server(**file, form);
    expect_chat_calls(server, form);
    expect_anthropic_calls(server);
    expect_responses_calls(server);
  }
}

TEST(forced_calls, a_schema_that_a_form_cannot_hold_is_forced_as_json_and_strict_says_that_it_is_idle) {
  const auto file = random_model();
  ToolServer hermes(*file, kForms[0]);
  ToolServer coder(*file, kForms[1]);
  Json body = chat_body();
  body["tools"].erase(1);
  Json& held = body["tools"][0]["function"];
  held["strict"] = true;
  body["max_tokens"] = 2;
  const auto warnings = [&](ToolServer& server) {
    return post(server.port(), "/v1/chat/completions", body).json().value("warnings", Json::array()).dump();
  };
  EXPECT_EQ(warnings(hermes).find("strict has no effect"), std::string::npos) << warnings(hermes);
  EXPECT_EQ(warnings(coder).find("strict has no effect"), std::string::npos) << warnings(coder);
  held["parameters"]["properties"]["place"] = {{"type", "string"}, {"pattern", "^s.a$"}};
  EXPECT_EQ(warnings(hermes).find("strict has no effect"), std::string::npos) << warnings(hermes);
  EXPECT_NE(warnings(coder).find("strict has no effect in the form qwen3-coder"), std::string::npos) << warnings(coder);
  body["tool_choice"] = "required";
  EXPECT_NE(warnings(coder).find("forced as JSON, not in the form qwen3-coder"), std::string::npos) << warnings(coder);
}

}  // namespace
}  // namespace candor::testing
