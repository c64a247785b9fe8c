// Images through the engine: prompts and logits of the `transformers` library, and one answer under all conditions.

#include "candor/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "vision_engine.h"

namespace candor::testing {
namespace {

class Images : public ::testing::TestWithParam<const char*> {
 protected:
  std::string name() const { return GetParam(); }
};

TEST_P(Images, make_the_librarys_prompt) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  const auto tokens = engine->tokenize(question_of(name()));
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(*tokens, expected_of(name()).at("ids").get<std::vector<TokenId>>());
}

// As Idefics2Processor: of two tokens around images that meet one is left.
TEST(AdjacentImages, of_idefics_2_have_one_token_between_them) {
  const auto engine = open("idefics2");
  ASSERT_NE(engine, nullptr);
  ChatPrompt prompt = question_of("idefics2");
  Message& message = prompt.messages[0];
  auto parts = nlohmann::json::parse(message.extra_json);
  const nlohmann::json image_part = parts["content"].front();
  parts["content"].insert(parts["content"].begin(), image_part);
  message.extra_json = parts.dump();
  message.images.push_back(message.images[0]);
  const auto tokens = engine->tokenize(prompt);
  ASSERT_TRUE(tokens) << tokens.error().message;
  const nlohmann::json one = expected_of("idefics2");
  auto expected = one.at("ids").get<std::vector<TokenId>>();
  const auto row = std::ranges::find(expected, one.at("row_token").get<TokenId>());
  const TokenId around = *std::prev(row);
  const auto last = std::find(expected.rbegin(), expected.rend(), around).base();
  const std::vector<TokenId> image(row, last);
  expected.insert(last, image.begin(), image.end());
  EXPECT_EQ(*tokens, expected);
}

// In f32: 1e-4 of the largest logit.
TEST_P(Images, give_the_librarys_logits) {
  const auto engine = open(name(), [](EngineOptions& o) {
    o.backend = "reference";
    o.kv_type = KvType::kF32;
  });
  ASSERT_NE(engine, nullptr);
  std::vector<float> seen;
  Request request = request_of(question_of(name()));
  request.sampling.max_tokens = 1;
  request.on_logits = [&](const LogitsRow& row) {
    seen.assign(row.logits.begin(), row.logits.end());
    return true;
  };
  const auto done = engine->generate(request);
  ASSERT_TRUE(done) << done.error().message;
  std::vector<float> expected = read_floats(vision_golden(name()) / "last_logits.f32");
  ASSERT_LE(seen.size(), expected.size());
  expected.resize(seen.size());
  float largest = 0.0f;
  float difference = 0.0f;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    difference = std::max(difference, std::fabs(expected[i] - seen[i]));
  }
  EXPECT_GT(largest, 0.1f);
  EXPECT_LE(difference, 1e-4f * largest);
  EXPECT_EQ(done->summary.usage.image_tokens, expected_of(name()).at("n_rows").get<int64_t>());
  const RequestTimings& times = done->summary.timings;
  EXPECT_GT(times.images_ms, 0.0);
  EXPECT_LE(times.images_ms + times.template_ms + times.tokenize_ms, times.queue_ms + 1e-6);
}

TEST_P(Images, change_the_answer) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  Request other = request_of(question_of(name()), 0.0);
  std::get<ChatPrompt>(other.prompt).messages[0].images[0] = other_image(3);
  const Answer first = answer(*engine, request_of(question_of(name()), 0.0));
  const Answer second = answer(*engine, other);
  EXPECT_NE(std::get<1>(first), std::get<1>(second));
  EXPECT_EQ(first, answer(*engine, request_of(question_of(name()), 0.0)));
}

struct Condition {
  const char* name;
  Change change;
};
const Condition kConditions[] = {
    {"one row", [](EngineOptions& o) { o.prefill_rows = 1; }},
    {"chunks of 7", [](EngineOptions& o) { o.prefill_rows = 7; }},
    {"chunks of 40", [](EngineOptions& o) { o.prefill_rows = 40; }},
    {"wide steps", [](EngineOptions& o) { o.max_rows = 512; }},
    {"1 thread", [](EngineOptions& o) { o.n_threads = 1; }},
    {"5 threads", [](EngineOptions& o) { o.n_threads = 5; }},
    {"no prefix cache", [](EngineOptions& o) { o.prefix_cache = false; }},
    {"few blocks", [](EngineOptions& o) { o.kv_blocks = 18; }},
    {"drafts by n-grams", [](EngineOptions& o) { o.speculation = Speculation::kNgram; }},
    {"no image cache", [](EngineOptions& o) { o.image_cache_bytes = 0; }},
};

TEST_P(Images, have_one_answer_under_all_conditions) {
  std::vector<Request> requests;
  for (int32_t n = 1; n <= 3; ++n) requests.push_back(request_of(long_talk(name(), n), n == 2 ? 0.0 : 0.8));
  requests.push_back(request_of(question_of(name())));
  std::vector<Answer> alone;
  for (const Request& request : requests) {
    const auto engine = open(name());
    ASSERT_NE(engine, nullptr);
    alone.push_back(answer(*engine, request));
  }
  for (const Condition& condition : kConditions) {
    const auto engine = open(name(), condition.change);
    ASSERT_NE(engine, nullptr);
    // Together, then one after another, with what the cache has of those before.
    std::vector<std::future<Answer>> together;
    for (const Request& request : requests) {
      together.push_back(std::async(std::launch::async, [&] { return answer(*engine, request); }));
    }
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(together[i].get(), alone[i]) << condition.name << " " << i;
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(answer(*engine, requests[i]), alone[i]) << condition.name << ", cached " << i;
    }
  }
}

TEST_P(Images, that_were_seen_come_from_the_caches) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  const Request request = request_of(long_talk(name(), 2));
  ASSERT_TRUE(engine->generate(request));
  const auto again = engine->generate(request);
  ASSERT_TRUE(again);
  EXPECT_GT(again->summary.usage.cached_tokens, again->summary.usage.prompt_tokens - 33);
  EXPECT_EQ(engine->image_stats().n_encoded, 2);
  EXPECT_EQ(engine->image_stats().n_reused, 2);
}

TEST_P(Images, that_are_none_are_refused_by_their_number) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  const std::string png = read_bytes(vision_golden(name()) / "image.png");
  const std::string bad[] = {"", "no image", png.substr(0, png.size() / 2), "%PDF-1.7 ...",
                             "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"};
  for (const std::string& file : bad) {
    Request request = request_of(question_of(name()));
    std::get<ChatPrompt>(request.prompt).messages[0].images[0] = file;
    const auto done = engine->generate(request);
    ASSERT_FALSE(done) << file;
    EXPECT_TRUE(done.error().message.starts_with("image 1: ")) << done.error().message;
    EXPECT_EQ(done.error().field, "messages");
  }
  Request two = request_of(question_of(name()));
  std::get<ChatPrompt>(two.prompt).messages[0].images.push_back(png);
  const auto done = engine->generate(two);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("places for 1 images"), std::string::npos) << done.error().message;
  EXPECT_TRUE(engine->generate(request_of(question_of(name()))));
}

TEST_P(Images, beyond_the_context_are_refused) {
  const auto engine = open(name(), [](EngineOptions& o) { o.n_ctx = 64; });
  ASSERT_NE(engine, nullptr);
  const auto done = engine->generate(request_of(long_talk(name(), 6)));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::kContextLength) << done.error().message;
}

// What would cut an image, or looks at tokens alone, is refused by its name, and the next request goes on.
TEST_P(Images, that_cannot_be_cut_are_refused) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  const Request whole = request_of(question_of(name()));
  Request cropped = whole, cut = whole, rows = whole, pooled = whole;
  cropped.on_context_full = OnContextFull::kCrop;
  cut.max_prompt_tokens = 8;
  rows.rows = PromptRows::kHidden;
  pooled.pooling = Pooling::kMean;
  const std::pair<const Request*, const char*> refused[] = {
      {&cropped, "on_context_full"}, {&cut, "max_prompt_tokens"}, {&rows, "rows"}, {&pooled, "rows"}};
  for (const auto& [request, field] : refused) {
    const auto done = engine->generate(*request);
    ASSERT_FALSE(done) << field;
    EXPECT_EQ(done.error().field, field) << done.error().message;
  }
  EXPECT_TRUE(engine->generate(whole));
}

// A mark in a client's words is words.
TEST_P(Images, marks_that_a_client_writes_are_text) {
  const auto engine = open(name());
  ASSERT_NE(engine, nullptr);
  ChatPrompt chat{.messages = {{.role = "user", .content = "<image> <start_of_image> <image_soft_token>"}}};
  EXPECT_TRUE(engine->generate(request_of(chat)));
  Request both = request_of(question_of(name()));
  Message& message = std::get<ChatPrompt>(both.prompt).messages[0];
  message.extra_json = R"({"content":[{"type":"text","text":"<image><start_of_image>"},{"type":"image"}]})";
  const auto done = engine->generate(both);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->summary.usage.image_tokens, expected_of(name()).at("n_rows").get<int64_t>());
}

INSTANTIATE_TEST_SUITE_P(all, Images, ::testing::ValuesIn(kVisionGoldens),
                         [](const auto& one) { return std::string(one.param); });

TEST(NoImages, of_a_text_model_are_refused) {
  EngineOptions options;
  options.model_path = goldens() / "llama";
  options.n_threads = 1;
  const auto engine = Engine::open(options);
  ASSERT_TRUE(engine) << engine.error().message;
  const auto done = (*engine)->generate(request_of(question_of("smolvlm")));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("takes no images"), std::string::npos) << done.error().message;
}

TEST(NoImages, of_a_tower_of_another_model_are_refused_at_once) {
  EngineOptions options;
  options.model_path = vision_golden("smolvlm");
  options.mmproj_path = vision_golden("gemma3") / "config.json";
  const auto engine = Engine::open(options);
  EXPECT_FALSE(engine);
}

}  // namespace
}  // namespace candor::testing
