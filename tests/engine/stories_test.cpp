// End to end on a small real model: what a user of the library gets.

#include <algorithm>

#include "engine_fixture.h"

namespace candor {
namespace {

using testing::complete;
using testing::greedy;
using testing::sampled;

constexpr const char* kOnce = "Once upon a time";

class Stories : public ::testing::Test {
 protected:
  void SetUp() override {
    CANDOR_REQUIRE_DATA(testing::stories_path());
    options_ = testing::options_for(testing::stories_path());
  }
  Engine& engine() {
    if (!engine_) engine_ = testing::open_or_fail(options_);
    return *engine_;
  }

  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(Stories, greedy_tells_the_same_sensible_story_twice) {
  const Completion first = complete(engine(), greedy(TextPrompt{kOnce}, 60));
  testing::expect_same(first, complete(engine(), greedy(TextPrompt{kOnce}, 60)), "again");
  EXPECT_EQ(first.tokens.size(), 60u);
  EXPECT_EQ(first.finish, FinishReason::kLength);
  EXPECT_TRUE(first.text.starts_with(", there was a little")) << first.text;
}

TEST_F(Stories, a_bias_on_a_word_with_a_space_before_it_is_one_on_the_word) {
  for (const char* word : {"the", " the"}) {
    Request request = greedy(TextPrompt{kOnce}, 3);
    request.sampling.logit_bias = {{.text = word, .bias = 100.0}};
    EXPECT_EQ(complete(engine(), request).text, " the the the") << '"' << word << '"';
  }
}

TEST_F(Stories, both_backends_tell_the_same_story) {
  const Completion cpu = complete(engine(), greedy(TextPrompt{kOnce}, 64));
  options_.backend = "reference";
  const auto reference = testing::open_or_fail(options_);
  EXPECT_EQ(complete(*reference, greedy(TextPrompt{kOnce}, 64)).text, cpu.text);
}

TEST_F(Stories, the_stream_is_the_text_and_the_last_event_carries_the_summary) {
  std::string streamed;
  int n_last = 0;
  const auto completion = engine().generate(greedy(TextPrompt{kOnce}, 30), [&](const TokenEvent& event) {
    streamed += event.text;
    EXPECT_EQ(event.finish.has_value(), event.summary.has_value());
    n_last += event.finish ? 1 : 0;
  });
  ASSERT_TRUE(completion.has_value());
  EXPECT_EQ(streamed, completion->text);
  EXPECT_EQ(n_last, 1);
  const RequestSummary& summary = completion->summary;
  EXPECT_EQ(summary.usage.completion_tokens, 30);
  EXPECT_GT(summary.usage.prompt_tokens, 4);
  EXPECT_GT(summary.timings.ttft_ms, 0.0);
  EXPECT_GE(summary.timings.e2e_ms, summary.timings.ttft_ms);
  EXPECT_GT(summary.timings.decode_tokens_per_s, 0.0);
  EXPECT_GE(summary.timings.itl_max_ms, summary.timings.itl_mean_ms);
}

TEST_F(Stories, a_stop_string_ends_the_text_before_it_wherever_token_borders_lie) {
  const std::string full = complete(engine(), greedy(TextPrompt{kOnce}, 40)).text;
  for (size_t begin = 3; begin + 6 < full.size(); begin += 5) {
    const std::string stop = full.substr(begin, 6);
    Request request = greedy(TextPrompt{kOnce}, 40);
    request.sampling.stop = {"never said", stop};
    std::string streamed;
    const auto completion = engine().generate(request, [&](const TokenEvent& event) { streamed += event.text; });
    ASSERT_TRUE(completion.has_value());
    EXPECT_EQ(completion->text, full.substr(0, full.find(stop)));
    EXPECT_EQ(streamed, completion->text);
    EXPECT_EQ(completion->finish, FinishReason::kStopString);
    EXPECT_EQ(completion->stop_index, 1u);
  }
}

TEST_F(Stories, a_stop_id_ends_the_text) {
  const Completion full = complete(engine(), greedy(TextPrompt{kOnce}, 20));
  Request request = greedy(TextPrompt{kOnce}, 20);
  request.sampling.stop_ids = {full.tokens[7]};
  const Completion stopped = complete(engine(), request);
  EXPECT_EQ(stopped.finish, FinishReason::kStopId);
  EXPECT_EQ(stopped.tokens.back(), full.tokens[7]);
  EXPECT_LE(stopped.tokens.size(), 8u);
}

TEST_F(Stories, a_full_context_stops_and_says_so) {
  options_.n_ctx = 32;
  Request request = greedy(TextPrompt{kOnce}, 500);
  const Completion completion = complete(engine(), request);
  EXPECT_EQ(completion.finish, FinishReason::kContextFull);
  EXPECT_EQ(completion.summary.usage.prompt_tokens + completion.summary.usage.completion_tokens, 32);
  ASSERT_EQ(completion.summary.warnings.size(), 1u);
  EXPECT_NE(completion.summary.warnings[0].find("500"), std::string::npos);
}

TEST_F(Stories, a_cropped_context_is_exactly_the_newest_tokens) {
  options_.n_ctx = 32;
  const auto prompt = engine().tokenize(TextPrompt{kOnce});
  ASSERT_TRUE(prompt.has_value());
  Request request = greedy(*prompt, 60);
  request.on_context_full = OnContextFull::kCrop;
  request.sampling.ignore_eos = true;
  const Completion completion = complete(engine(), request);
  ASSERT_EQ(completion.tokens.size(), 60u);
  std::vector<TokenId> text = *prompt;
  for (const TokenId expected : completion.tokens) {
    if (text.size() > 32) text.erase(text.begin(), text.end() - 32);
    Request next = greedy(text, 1);
    next.on_context_full = OnContextFull::kCrop;
    next.sampling.ignore_eos = true;
    ASSERT_EQ(complete(engine(), next).tokens.front(), expected);
    text.push_back(expected);
  }
  EXPECT_EQ(completion.summary.usage.cropped_tokens, static_cast<int64_t>(prompt->size()) + 59 - 32);
}

TEST_F(Stories, without_the_kv_cache_the_tokens_are_the_same_and_the_work_is_not) {
  const Completion cached = complete(engine(), sampled(TextPrompt{kOnce}, 50, 7));
  options_.use_kv_cache = false;
  const auto plain = testing::open_or_fail(options_);
  const Completion recomputed = complete(*plain, sampled(TextPrompt{kOnce}, 50, 7));
  testing::expect_same(cached, recomputed, "without K/V cache");
  const int64_t n_layers = engine().info().n_layers;
  const int64_t n_prompt = cached.summary.usage.prompt_tokens;
  int64_t n_rows = 0;
  for (int64_t n = n_prompt; n < n_prompt + 50; ++n) n_rows += n;
  EXPECT_EQ(cached.summary.usage.token_layers, (n_prompt + 49) * n_layers);
  EXPECT_EQ(recomputed.summary.usage.token_layers, n_rows * n_layers);
}

TEST_F(Stories, a_seed_repeats_and_is_reported) {
  const Completion first = complete(engine(), sampled(TextPrompt{kOnce}, 40, 3));
  testing::expect_same(first, complete(engine(), sampled(TextPrompt{kOnce}, 40, 3)), "same seed");
  EXPECT_NE(first.tokens, complete(engine(), sampled(TextPrompt{kOnce}, 40, 4)).tokens);
  Request unseeded = sampled(TextPrompt{kOnce}, 40, 0);
  unseeded.sampling.seed.reset();
  const Completion made = complete(engine(), unseeded);
  testing::expect_same(made, complete(engine(), sampled(TextPrompt{kOnce}, 40, made.summary.usage.seed)), "its seed");
}

TEST_F(Stories, a_constraint_holds) {
  Request request = sampled(TextPrompt{kOnce}, 50, 1);
  request.constraint = ConstraintSpec{GrammarKind::kChoice, R"(["the cat", "the dog"])"};
  const std::string text = complete(engine(), request).text;
  EXPECT_TRUE(text == "the cat" || text == "the dog") << text;
  request.constraint = ConstraintSpec{GrammarKind::kRegex, "[0-9]{3}-[a-f]{2}"};
  const std::string code = complete(engine(), request).text;
  ASSERT_EQ(code.size(), 6u);
  EXPECT_TRUE(std::all_of(code.begin(), code.begin() + 3, [](char c) { return c >= '0' && c <= '9'; })) << code;
  request.constraint = ConstraintSpec{GrammarKind::kJsonSchema, R"({"type": 5})"};
  EXPECT_EQ(engine().submit(request, {}).error().field, "constraint");
}

TEST_F(Stories, tokens_and_text_go_both_ways) {
  const auto tokens = engine().tokenize(TextPrompt{"Lily and Tom went out."});
  ASSERT_TRUE(tokens.has_value());
  EXPECT_EQ(*engine().detokenize(*tokens), "Lily and Tom went out.");
  EXPECT_FALSE(engine().detokenize(std::vector<TokenId>{-1}).has_value());
  EXPECT_FALSE(engine().tokenize(TextPrompt{"\xff"}).has_value());
  EXPECT_EQ(engine().piece(-1), "");
  EXPECT_EQ(engine().piece(1), "<s>");
  EXPECT_EQ(engine().info().family, "llama");
  EXPECT_EQ(engine().info().n_vocab, 512);
  EXPECT_FALSE(engine().info().has_chat_template);
  ChatPrompt chat;
  chat.messages.push_back({"user", "hi"});
  EXPECT_EQ(engine().apply_template(chat).error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(engine().submit(greedy(chat, 1), {}).error().field, "messages");
}

}  // namespace
}  // namespace candor
