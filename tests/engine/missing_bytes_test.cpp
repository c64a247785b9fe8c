// A vocabulary without tokens for some bytes: the model opens and answers, and a text that needs one of them is refused
// with the field that holds it.

#include "engine/engine_fixture.h"

namespace candor::testing {
namespace {

// Byte 0xBF is an ordinary piece here, and nothing is unknown.
std::unique_ptr<Engine> open_model(const TempFolder& folder) {
  TinyModelOptions options;
  options.vocab = 320;
  options.extra_keys = {{"tokenizer.chat_template",
                         std::string_view("{% for m in messages %}{{ m.content }}{% endfor %}")}};
  const auto file = make_tiny_model(options);
  auto types = std::get<std::vector<int64_t>>(std::get<formats::MetaArray>(*file->meta("tokenizer.ggml.token_type")));
  constexpr int64_t kNormalType = 1, kUnknownType = 2, kControlType = 3;
  for (int64_t& type : types) type = type == kUnknownType ? kControlType : type;
  types[3 + 0xBF] = kNormalType;
  file->set_ints("tokenizer.ggml.token_type", types);
  const auto path = folder.path() / "holes.gguf";
  EXPECT_TRUE(write_model(*file, path));
  return open_or_fail(options_for(path));
}

void expect_missing(const Error& error, const std::string& field) {
  EXPECT_EQ(error.kind, ErrorKind::kInvalidInput);
  EXPECT_EQ(error.field, field);
  EXPECT_NE(error.message.find("the byte 0xBF of U+00FF"), std::string::npos) << error.message;
}

TEST(missing_bytes, are_reported_with_the_field_that_holds_them) {
  const TempFolder folder;
  const auto engine = open_model(folder);
  ASSERT_NE(engine, nullptr);
  EXPECT_TRUE(engine->generate(greedy(TextPrompt{.text = "caf\u00e9"}, 4)));

  const auto text = engine->tokenize(TextPrompt{.text = "x\u00ff"});
  ASSERT_FALSE(text);
  expect_missing(text.error(), "prompt");
  const auto generated = engine->generate(greedy(TextPrompt{.text = "x\u00ff"}, 4));
  ASSERT_FALSE(generated);
  expect_missing(generated.error(), "prompt");
  const auto chat = engine->tokenize(ChatPrompt{.messages = {{.role = "user", .content = "x\u00ff"}}});
  ASSERT_FALSE(chat);
  expect_missing(chat.error(), "messages");

  Request banned = greedy(TextPrompt{.text = "x"}, 4);
  banned.sampling.bad_words = {"\u00ff"};
  const auto refused = engine->generate(banned);
  ASSERT_FALSE(refused);
  expect_missing(refused.error(), "bad_words");
}

}  // namespace
}  // namespace candor::testing
