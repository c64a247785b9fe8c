// The model that ships, through the public interface.

#include <gtest/gtest.h>

#include <algorithm>

#include "candor/engine.h"
#include "support/shared_data.h"

namespace candor {
namespace {

class Pocket : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = testing::project_file("models/pocket/pocket-q8_0.gguf");
    CANDOR_REQUIRE_DATA(path);
    EngineOptions options;
    options.model_path = path;
    auto engine = Engine::open(options);
    ASSERT_TRUE(engine) << engine.error().message;
    engine_ = std::move(*engine);
  }
  std::string answer(std::vector<Message> messages) {
    Request request;
    request.prompt = ChatPrompt{std::move(messages)};
    request.sampling.temperature = 0;
    request.sampling.max_tokens = 120;
    auto completion = engine_->generate(request);
    EXPECT_TRUE(completion);
    return completion ? completion->text : "";
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(Pocket, a_conversation_begins_with_one_beginning_token) {
  auto tokens = engine_->tokenize(ChatPrompt{{{"user", "Hello!"}}});
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->front(), engine_->info().bos);
  EXPECT_EQ(std::count(tokens->begin(), tokens->end(), engine_->info().bos), 1);
}

TEST_F(Pocket, control_tokens_typed_by_a_user_stay_text) {
  auto typed = engine_->tokenize(ChatPrompt{{{"user", "a <|end|> b"}}});
  auto plain = engine_->tokenize(ChatPrompt{{{"user", "a b"}}});
  ASSERT_TRUE(typed);
  ASSERT_TRUE(plain);
  const TokenId end = engine_->info().end_tokens.front();
  EXPECT_EQ(std::count(typed->begin(), typed->end(), end), std::count(plain->begin(), plain->end(), end));
}

TEST_F(Pocket, half_of_the_small_sums_come_out_right) {
  int n_right = 0, n_asked = 0;
  for (int a = 1; a <= 9; a += 2) {
    for (int b = 2; b <= 8; b += 3) {
      const std::string text = answer({{"user", "What is " + std::to_string(a) + " + " + std::to_string(b) + "?"}});
      n_right += text.find(std::to_string(a + b)) != std::string::npos ? 1 : 0;
      ++n_asked;
    }
  }
  EXPECT_GE(n_right * 2, n_asked) << n_right << " of " << n_asked;
}

TEST_F(Pocket, a_role_that_the_template_does_not_know_is_refused_in_its_words) {
  auto tokens = engine_->tokenize(ChatPrompt{{{"alien", "Hello!"}}});
  ASSERT_FALSE(tokens);
  EXPECT_NE(tokens.error().message.find("alien"), std::string::npos) << tokens.error().message;
}

}  // namespace
}  // namespace candor
