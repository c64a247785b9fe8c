// What is asked of the wrong model, or of too long a text: one typed error each.

#include <utility>

#include "encoders/golden.h"

namespace candor::testing {
namespace {

Error refused(Engine& engine, const Request& request) {
  const auto completion = engine.generate(request);
  EXPECT_FALSE(completion);
  return completion ? Error{} : completion.error();
}

TEST(encoders_refuse, to_write) {
  const auto engine = open_encoder(encoder_path("bert"));
  ASSERT_NE(engine, nullptr);
  Request request;
  request.prompt = TextPrompt{.text = "the engine"};
  EXPECT_EQ(refused(*engine, request).kind, ErrorKind::kUnsupported);
  request.sampling.prompt_logprobs = 1;
  request.sampling.max_tokens = 0;
  EXPECT_NE(refused(*engine, request).message.find("writes none"), std::string::npos);
  EXPECT_EQ(refused(*engine, reading(TextPrompt{.text = "a"}, Pooling::kNone, PromptRows::kLogits)).field, "rows");
  request = {};
  request.prompt = ChatPrompt{.messages = {{.role = "user", .content = "hello"}}};
  EXPECT_EQ(refused(*engine, request).kind, ErrorKind::kUnsupported);
}

TEST(encoders_refuse, labels_without_a_head) {
  const auto engine = open_encoder(encoder_path("bert"));
  ASSERT_NE(engine, nullptr);
  const Error error = refused(*engine, reading(TextPrompt{.text = "a"}, Pooling::kLabels));
  EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
  EXPECT_NE(error.message.find("no head"), std::string::npos);
  const auto tokens = open_encoder(encoder_path("bert_tokens"));
  ASSERT_NE(tokens, nullptr);
  EXPECT_EQ(refused(*tokens, reading(TextPrompt{.text = "a"}, Pooling::kLabels)).field, "pooling");
  const auto texts = open_encoder(encoder_path("bert_pairs"));
  ASSERT_NE(texts, nullptr);
  EXPECT_EQ(refused(*texts, reading(TextPrompt{.text = "a"}, Pooling::kNone, PromptRows::kLabels)).field, "rows");
}

TEST(encoders_refuse, texts_beyond_their_length_unless_they_may_be_cut) {
  const auto engine = open_encoder(encoder_path("bert"));
  ASSERT_NE(engine, nullptr);
  std::string text;
  for (int i = 0; i < 100; ++i) text += "engine ";
  Request request = reading(TextPrompt{.text = text}, Pooling::kModel);
  const Error error = refused(*engine, request);
  EXPECT_EQ(error.kind, ErrorKind::kContextLength);
  EXPECT_NE(error.message.find("64"), std::string::npos);
  request.max_prompt_tokens = 64;
  request.prompt_cut = PromptCut::kEnd;
  const auto cut = engine->generate(request);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_EQ(cut->summary.usage.prompt_tokens, 64);
  EXPECT_GT(cut->summary.usage.truncated_tokens, 0);
  // As if the text had ended there: the mark behind it stays.
  const auto tokens = engine->tokenize(TextPrompt{.text = text});
  ASSERT_TRUE(tokens);
  TokenPrompt kept(tokens->begin(), tokens->begin() + 63);
  kept.push_back(tokens->back());
  EXPECT_EQ(read_text(*engine, reading(kept, Pooling::kModel)), cut->embedding);
  request.max_prompt_tokens = 1;
  EXPECT_EQ(refused(*engine, request).field, "max_prompt_tokens");
}

TEST(encoders_refuse, nothing_of_an_empty_text) {
  const auto engine = open_encoder(encoder_path("bert"));
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(read_text(*engine, reading(TextPrompt{}, Pooling::kModel)).size(), 32u);  // its marks alone
  EXPECT_EQ(refused(*engine, reading(TokenPrompt{}, Pooling::kModel)).kind, ErrorKind::kInvalidInput);
}

TEST(encoders_refuse, to_draft_and_to_be_drafted_for) {
  EngineOptions options;
  options.n_threads = 1;
  options.speculation = Speculation::kDraft;
  options.model_path = project_file("models/pocket/pocket-q8_0.gguf");
  options.draft_path = encoder_path("bert");
  auto engine = Engine::open(options);
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("writes none"), std::string::npos) << engine.error().message;
  std::swap(options.model_path, options.draft_path);
  engine = Engine::open(options);
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("writes nothing"), std::string::npos) << engine.error().message;
}

TEST(encoders_refuse, pairs_without_marks_between_them) {
  EngineOptions options;
  options.model_path = project_file("models/pocket/pocket-q8_0.gguf");
  options.n_threads = 1;
  const auto engine = Engine::open(options);
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(refused(**engine, reading(PairPrompt{"a", "b"}, Pooling::kMean)).kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace candor::testing
