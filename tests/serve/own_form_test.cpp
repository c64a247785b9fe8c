// Which form a server reads calls in: what the model's own response template says stands above its chat template.

#include <gtest/gtest.h>

#include <filesystem>

#include "candor/engine.h"
#include "serve/core/model_form.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

constexpr std::string_view kChatTemplate =
    "{% if tools %}{{ tools | tojson }}<tool_call>{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}";

std::unique_ptr<Engine> engine_with(std::string_view response_template) {
  TinyModelOptions model{.dim = 32, .n_layers = 1, .n_heads = 2, .n_kv_heads = 1, .ffn_dim = 32};
  model.vocab = 320;
  model.context_tokens = 64;
  model.extra_keys = {{"tokenizer.chat_template", kChatTemplate}};
  if (!response_template.empty()) model.extra_keys.push_back({"tokenizer.response_template", response_template});
  const std::filesystem::path path = ::testing::TempDir() + "candor_own_form.gguf";
  EXPECT_TRUE(write_model(*make_tiny_model(model), path));
  EngineOptions options;
  options.model_path = path;
  options.n_threads = 1;
  auto engine = Engine::open(options);
  std::filesystem::remove(path);
  EXPECT_TRUE(engine) << engine.error().message;
  return engine ? std::move(*engine) : nullptr;
}

TEST(own_form, a_response_template_stands_above_what_the_chat_template_shows) {
  constexpr std::string_view kOwn =
      R"({"fields": {"tool_calls": {"open": "<c>", "close": "</c>", "content": "json"}}})";
  const auto engine = engine_with(kOwn);
  ASSERT_NE(engine, nullptr);
  const serve::ModelForm form = serve::probe_model_form(*engine);
  EXPECT_EQ(text::to_string(form.output.tools), "response_template");
  EXPECT_EQ(form.own_fault, "");
  text::OutputParser parser(form.output);
  const auto pieces = parser.push(R"(<c>{"name": "f"}</c>)");
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].name, "f");
}

TEST(own_form, one_that_cannot_be_followed_is_named_and_leaves_the_chat_templates_form) {
  const auto engine = engine_with(R"({"fields": {"tool_calls": {"content": "json"}}})");
  ASSERT_NE(engine, nullptr);
  const serve::ModelForm form = serve::probe_model_form(*engine);
  EXPECT_EQ(text::to_string(form.output.tools), "hermes");
  EXPECT_EQ(form.own_fault, "response_template.fields.tool_calls.open: is missing");
}

TEST(own_form, without_one_the_chat_template_decides) {
  const auto engine = engine_with("");
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(text::to_string(serve::probe_model_form(*engine).output.tools), "hermes");
}

}  // namespace
}  // namespace candor::testing
