// Where tokens look in images, prompts of token ids with images, and prompt logprobs of prompts with images.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <string>
#include <vector>

#include "vision_engine.h"

namespace candor::testing {
namespace {

Request looking_request(const std::string& name, int32_t n_images = 2) {
  Request request = request_of(long_talk(name, n_images));
  request.sampling.explain = true;
  request.sampling.attention = true;
  return request;
}

using Shown = std::vector<std::vector<ImageAttention>>;
Shown looks_of(Engine& engine, const Request& request) {
  Shown shown;
  const auto done = engine.generate(request, [&](const TokenEvent& event) {
    if (event.explanation) shown.push_back(event.explanation->images);
  });
  EXPECT_TRUE(done) << done.error().message;
  return shown;
}

std::vector<float> shares_of(const std::vector<ImageAttention>& images) {
  std::vector<float> shares;
  for (const ImageAttention& image : images) {
    for (const ImageAttention::Tile& tile : image.tiles)
      shares.insert(shares.end(), tile.shares.begin(), tile.shares.end());
  }
  return shares;
}

double largest_difference(const Shown& a, const Shown& b) {
  double largest = a.size() == b.size() ? 0.0 : 1.0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const std::vector<float> of_a = shares_of(a[i]), of_b = shares_of(b[i]);
    if (of_a.size() != of_b.size()) return 1.0;
    for (size_t j = 0; j < of_a.size(); ++j) {
      largest = std::max(largest, std::fabs(static_cast<double>(of_a[j]) - static_cast<double>(of_b[j])));
    }
  }
  return largest;
}

// Whose rows of an image see one another, so that each image is read in one step.
bool is_seen_whole(const std::string& name) {
  constexpr std::string_view kNames[] = {"gemma3", "gemma4_wide", "gemma4_unified"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

class Looking : public ::testing::TestWithParam<const char*> {
 protected:
  std::string name() const { return GetParam(); }
};

TEST_P(Looking, tells_a_share_of_every_patch_of_every_image) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  const Request request = looking_request(name());
  const auto done = engine->generate(request);
  ASSERT_TRUE(done) << done.error().message;
  const Shown shown = looks_of(*engine, request);
  ASSERT_EQ(shown.size(), 12u);
  for (const std::vector<ImageAttention>& images : shown) {
    ASSERT_EQ(images.size(), 2u);
    EXPECT_EQ(images[0].image_width, golden_image().width);
    EXPECT_EQ(images[0].image_height, golden_image().height);
    EXPECT_LE(std::ssize(shares_of(images)), done->summary.usage.image_tokens);
    // Rows of a resampler show the tile together, and those that end a line show nothing.
    const bool has_patch_each = name() != "idefics2" && name() != "llava_next";
    if (has_patch_each) {
      EXPECT_EQ(std::ssize(shares_of(images)), done->summary.usage.image_tokens);
    }
    double sum = 0.0;
    for (const ImageAttention& image : images) {
      EXPECT_GT(image.share, 0.0);
      for (const ImageAttention::Tile& tile : image.tiles) {
        EXPECT_EQ(std::ssize(tile.shares), tile.rows * tile.cols);
      }
      sum += image.share;
    }
    EXPECT_LT(sum, 1.0);
    for (const float share : shares_of(images)) EXPECT_GE(share, 0.0f);
  }
}

// Whatever is computed together, cached or drafted; K/V in bf16 differ a little from the reference's in f32.
TEST_P(Looking, is_the_same_under_other_conditions_and_on_the_reference) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  const Request request = looking_request(name());
  const Shown shown = looks_of(*engine, request);
  EXPECT_EQ(largest_difference(shown, looks_of(*engine, request)), 0.0) << "from the prefix cache";
  for (const Change& change :
       {Change([](EngineOptions& o) { o.prefill_rows = 7; }), Change([](EngineOptions& o) { o.n_threads = 5; }),
        Change([](EngineOptions& o) { o.speculation = Speculation::kNgram; })}) {
    const auto other = open(name(), change);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(largest_difference(shown, looks_of(*other, request)), 0.0);
  }
  const auto in_f32 = open(name(), [](EngineOptions& o) { o.kv_type = KvType::kF32; });
  const auto reference = open(name(), [](EngineOptions& o) {
    o.backend = "reference";
    o.kv_type = KvType::kF32;
  });
  ASSERT_TRUE(in_f32 != nullptr && reference != nullptr);
  Request first = request;
  first.sampling.max_tokens = 1;
  const Shown exact = looks_of(*reference, first);
  EXPECT_LE(largest_difference(looks_of(*in_f32, first), exact), 5e-3);
  const auto in_q8 = open(name(), [](EngineOptions& o) { o.kv_type = KvType::kQ8_0; });
  ASSERT_NE(in_q8, nullptr);
  EXPECT_LE(largest_difference(looks_of(*in_q8, first), exact), 5e-3);
  const auto in_q4 = open(name(), [](EngineOptions& o) { o.kv_type = KvType::kQ4; });
  ASSERT_NE(in_q4, nullptr);
  EXPECT_LE(largest_difference(looks_of(*in_q4, first), exact), 5e-2);
}

TEST_P(Looking, changes_no_bit_of_the_answer) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(answer(*engine, looking_request(name())), answer(*engine, request_of(long_talk(name(), 2))));
}

TEST_P(Looking, is_told_of_beams_and_of_constrained_answers) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  Request beams = looking_request(name(), 1);
  beams.beams = BeamSearch{.width = 2};
  beams.sampling.max_tokens = 4;
  beams.sampling.logprobs = 0;
  Request bound = looking_request(name(), 1);
  bound.constraint = ConstraintSpec{.kind = GrammarKind::kRegex, .source = "[a-z]{6}"};
  for (const Request& request : {beams, bound}) {
    const Shown shown = looks_of(*engine, request);
    ASSERT_GE(shown.size(), 2u);
    for (const std::vector<ImageAttention>& images : shown) EXPECT_EQ(images.size(), 1u);
  }
}

TEST_P(Looking, is_refused_without_images_and_without_explanations) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  Request request = looking_request(name());
  request.sampling.explain = false;
  const auto unexplained = engine->generate(request);
  ASSERT_FALSE(unexplained);
  EXPECT_EQ(unexplained.error().field, "attention");
  Request text = request_of({.messages = {{.role = "user", .content = "hello"}}});
  text.sampling.explain = text.sampling.attention = true;
  const auto blind = engine->generate(text);
  ASSERT_FALSE(blind);
  EXPECT_NE(blind.error().message.find("the prompt has none"), std::string::npos) << blind.error().message;
}

// The tokens of a prompt and its images give what the messages give.
TEST_P(Looking, token_ids_with_images_are_the_same_prompt) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  const ChatPrompt chat = long_talk(name(), 2);
  const auto tokens = engine->tokenize(chat);
  ASSERT_TRUE(tokens) << tokens.error().message;
  Request by_ids = request_of(chat);
  by_ids.prompt = *tokens;
  for (const Message& message : chat.messages) {
    by_ids.images.insert(by_ids.images.end(), message.images.begin(), message.images.end());
  }
  EXPECT_EQ(answer(*engine, by_ids), answer(*engine, request_of(chat)));
  Request fewer = by_ids;
  fewer.images.pop_back();
  const auto refused = engine->generate(fewer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "images");
  Request beside = request_of(chat);
  beside.images = by_ids.images;
  const auto twice = engine->generate(beside);
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("token ids"), std::string::npos) << twice.error().message;
}

// A prompt that ends with the answer has the answer's logprobs at its end, however it is read.
TEST_P(Looking, prompt_logprobs_are_those_of_the_answer) {
  const ChatPrompt chat = long_talk(name(), 2);
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  auto tokens = engine->tokenize(chat);
  ASSERT_TRUE(tokens) << tokens.error().message;
  Request request = request_of(chat);
  // In a prompt it would be a row without an image.
  const TokenId row =
      *std::ranges::max_element(*tokens, {}, [&](TokenId id) { return std::ranges::count(*tokens, id); });
  request.sampling.logit_bias = {{.token = row, .ban = true}};
  const auto done = engine->generate(request);
  ASSERT_TRUE(done) << done.error().message;
  tokens->insert(tokens->end(), done->tokens.begin(), done->tokens.end());
  for (const Message& message : chat.messages) {
    request.images.insert(request.images.end(), message.images.begin(), message.images.end());
  }
  request.prompt = *tokens;
  request.sampling.max_tokens = 0;
  request.sampling.prompt_logprobs = 0;
  for (const int32_t chunk : {256, 7}) {
    const auto other = open(name(), [chunk](EngineOptions& o) { o.prefill_rows = chunk; });
    ASSERT_NE(other, nullptr);
    const auto scored = other->generate(request);
    if (is_seen_whole(name())) {
      ASSERT_FALSE(scored);
      EXPECT_EQ(scored.error().field, "prompt_logprobs");
      continue;
    }
    ASSERT_TRUE(scored) << scored.error().message;
    ASSERT_EQ(scored->prompt_logprobs.size() + 1, tokens->size());
    for (size_t i = 0; i < done->tokens.size(); ++i) {
      const size_t at = scored->prompt_logprobs.size() - done->tokens.size() + i;
      EXPECT_EQ(scored->prompt_logprobs[at].logprob, done->logprobs[i]) << chunk << ": " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(all, Looking, ::testing::ValuesIn(kVisionGoldens),
                         [](const auto& one) { return std::string(one.param); });

// So that no answer grows without bound.
TEST(LongLooking, ends_where_the_shares_are_too_many) {
  const auto engine = open("smolvlm", [](EngineOptions& o) { o.speculation = Speculation::kOff; });
  ASSERT_NE(engine, nullptr);
  Request request = looking_request("smolvlm", 3);
  request.n = 60;
  request.sampling.max_tokens = 90;
  int64_t n_shown = 0, n_hidden = 0;
  const auto done = engine->generate(request, [&](const TokenEvent& event) {
    if (event.explanation && event.choice == 7) ++(event.explanation->images.empty() ? n_hidden : n_shown);
  });
  ASSERT_TRUE(done) << done.error().message;
  const int64_t n_rows = done->summary.usage.image_tokens * request.n;
  EXPECT_EQ(n_shown, std::min<int64_t>(90, kMaxAttentionShares / n_rows));
  EXPECT_EQ(n_shown + n_hidden, 90);
  const bool is_said = std::ranges::any_of(done->summary.warnings, [](const std::string& warning) {
    return warning.starts_with("attention is told of the first");
  });
  EXPECT_EQ(is_said, n_hidden > 0);
}

// Beside an answer that shows where it looks, one that does not.
TEST(LongLooking, is_told_to_nobody_else) {
  const auto engine = open("smolvlm", [](EngineOptions& o) { o.speculation = Speculation::kOff; });
  ASSERT_NE(engine, nullptr);
  Request looking = looking_request("smolvlm", 1), other = looking;
  other.sampling.attention = false;
  std::vector<std::future<Shown>> together;
  for (int i = 0; i < 6; ++i) {
    together.push_back(
        std::async(std::launch::async, [&, i] { return looks_of(*engine, i % 2 == 0 ? looking : other); }));
  }
  for (size_t i = 0; i < together.size(); ++i) {
    for (const std::vector<ImageAttention>& images : together[i].get()) EXPECT_EQ(images.empty(), i % 2 == 1) << i;
  }
}

}  // namespace
}  // namespace candor::testing
