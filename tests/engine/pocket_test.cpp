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

// The card says 388 of all 462 sums and differences; every eighth or so is asked here.
TEST_F(Pocket, three_of_four_small_sums_come_out_right) {
  int n_right = 0, n_asked = 0;
  const auto ask = [&](int left, const char* sign, int right, int result) {
    const std::string sum = std::to_string(left) + " " + sign + " " + std::to_string(right);
    n_right += answer({{"user", "What is " + sum + "?"}}) == sum + " = " + std::to_string(result) + "." ? 1 : 0;
    ++n_asked;
  };
  for (int a = 0; a <= 20; a += 3) {
    for (int b = 1; b <= 20; b += 4) {
      if (a + b <= 20) ask(a, "+", b, a + b);
      if (b <= a) ask(a, "-", b, a - b);
    }
  }
  EXPECT_GE(n_right * 4, n_asked * 3) << n_right << " of " << n_asked;
}

TEST_F(Pocket, a_role_that_the_template_does_not_know_is_refused_in_its_words) {
  auto tokens = engine_->tokenize(ChatPrompt{{{"alien", "Hello!"}}});
  ASSERT_FALSE(tokens);
  EXPECT_NE(tokens.error().message.find("alien"), std::string::npos) << tokens.error().message;
}

}  // namespace
}  // namespace candor
