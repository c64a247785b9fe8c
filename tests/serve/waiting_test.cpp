// Streams that have nothing to say yet: while a prompt is read, and while what the model writes is held back.

#include <string>
#include <vector>

#include "serve/client.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

struct Case {
  const char* path;
  Json body;
  std::string sign;  // that the work goes on
  const char* word;  // the first of the answer itself
};

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Each with a text of its own, so that no other's is found in the prefix cache.
std::vector<Case> cases() {
  const auto text = [](const char* words) { return repeated(words, 60); };
  const auto says = [&](const char* words) { return Json::array({{{"role", "user"}, {"content", text(words)}}}); };
  const Json greedy = {{"temperature", 0}, {"num_predict", 2}};
  return {
      {"/v1/chat/completions", {{"messages", says("a cat and a dog ")}}, "\"delta\":{\"content\":\"\"}", "[DONE]"},
      {"/v1/completions", {{"prompt", text("a dog and a cat ")}}, "\"text\":\"\"", "[DONE]"},
      {"/v1/messages", {{"messages", says("an ant and a bee ")}}, "event: ping", "content_block_start"},
      {"/v1/responses", {{"input", text("a bee and a cow ")}}, "event: response.in_progress", "output_item.added"},
      {"/api/chat",
       {{"model", "pocket"}, {"messages", says("one owl and a hen ")}, {"options", greedy}},
       "\"content\":\"\"},\"done\":false",
       "\"done\":true"},
      {"/api/generate",
       {{"model", "pocket"}, {"prompt", text("two hens and a ram ")}, {"options", greedy}},
       "\"response\":\"\",\"done\":false",
       "\"done\":true"},
      {"/completion", {{"prompt", text("the fox and a hen ")}}, "\"content\":\"\"", "\"stop\":true"},
  };
}

TEST(waiting, while_a_prompt_is_read_every_stream_says_so_again_and_again) {
  RunningOptions options = Running::defaults();
  options.service.quiet = std::chrono::milliseconds(4);
  options.engine.prefill_rows = 1;
  Running running(options);
  for (Case& one : cases()) {
    SCOPED_TRACE(one.path);
    one.body["stream"] = true;
    if (!one.body.contains("options")) one.body[one.body.contains("input") ? "max_output_tokens" : "max_tokens"] = 4;
    const std::string body = post(running.port(), one.path, one.body).body;
    const std::string before = body.substr(0, body.find(one.word));
    EXPECT_GE(count(before, one.sign), 2u) << body.substr(0, 2000);
  }
}

// Blanks are held back where a call may stand behind them, and a call until it is whole.
constexpr std::string_view kHermes =
    "{% if tools %}{% for t in tools %}{{ t.function.name }} {% endfor %}<tool_call>\n"
    "{\"name\": ..., \"arguments\": ...}\n</tool_call>{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
constexpr int kManyTokens = 400;
// A token takes long enough that many of them outlast the quiet time; sanitizers slow kernels down.
#ifdef CANDOR_SANITIZED
constexpr int kHeldDim = 128;
#else
constexpr int kHeldDim = 512;
#endif

std::vector<Case> held_cases() {
  const Json schema = {{"type", "object"}, {"properties", {{"place", {{"type", "string"}}}}}, {"required", {"place"}}};
  const Json function = {{"name", "look"}, {"parameters", schema}};
  const Json tools = Json::array({{{"type", "function"}, {"function", function}}});
  const Json messages = user_says("Look")["messages"];
  return {
      {"/v1/chat/completions",
       {{"messages", messages}, {"max_tokens", kManyTokens}, {"tools", tools}},
       "\"delta\":{\"content\":\"\"}",
       "\"finish_reason\":\"length\""},
      {"/v1/messages",
       {{"messages", messages},
        {"max_tokens", kManyTokens},
        {"tools", Json::array({{{"name", "look"}, {"input_schema", schema}}})}},
       "event: ping",
       "content_block_start"},
      {"/v1/responses",
       {{"input", "Look"},
        {"max_output_tokens", kManyTokens},
        {"tools", Json::array({{{"type", "function"}, {"name", "look"}, {"parameters", schema}}})}},
       "event: response.in_progress",
       "output_item.added"},
      {"/api/chat",
       {{"model", "pocket"}, {"messages", messages}, {"tools", tools}, {"options", {{"num_predict", kManyTokens}}}},
       "\"content\":\"\"},\"done\":false",
       "\"done\":true"},
  };
}

TEST(waiting, while_words_are_held_back_every_stream_says_so_again_and_again) {
  TinyModelOptions model{.dim = kHeldDim, .n_layers = 8, .n_heads = 8, .n_kv_heads = 4, .ffn_dim = 2 * kHeldDim};
  model.vocab = 320;
  model.context_tokens = 1024;
  model.extra_keys = {{"tokenizer.chat_template", kHermes}};
  const TempFolder folder;
  RunningOptions options = Running::defaults();
  options.service.quiet = std::chrono::milliseconds(4);
  options.engine.model_path = folder.path() / "hermes.gguf";
  ASSERT_TRUE(write_model(*make_tiny_model(model), options.engine.model_path));
  Running running(options);
  const Json blank = post(running.port(), "/tokenize", {{"content", " "}}).json()["tokens"];
  for (Case& one : held_cases()) {
    SCOPED_TRACE(one.path);
    one.body["stream"] = true;
    (one.body.contains("options") ? one.body["options"] : one.body)["allowed_token_ids"] = blank;
    const std::string body = post(running.port(), one.path, one.body).body;
    const std::string before = body.substr(0, body.find(one.word));
    EXPECT_GE(count(before, one.sign), 2u) << body.substr(0, 2000);
  }
  for (Case& one : held_cases()) {
    if (one.body.contains("options")) continue;  // Ollama's clients force no call
    SCOPED_TRACE(one.path);
    one.body["stream"] = true;
    const bool is_anthropic = std::string_view(one.path) == "/v1/messages";
    one.body["tool_choice"] = is_anthropic ? Json{{"type", "any"}} : Json("required");
    const std::string body = post(running.port(), one.path, one.body).body;
    EXPECT_GE(count(body, one.sign), 2u) << body.substr(0, 2000);
  }
}

}  // namespace
}  // namespace candor::testing
