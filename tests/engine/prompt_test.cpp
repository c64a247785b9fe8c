// What a prompt itself shows: its logprobs, and one vector for all of it. The same bits however it was read.

#include <cmath>

#include "backend/all/make_backend.h"
#include "engine/engine_fixture.h"
#include "formats/model_file.h"
#include "model/score.h"

namespace candor::testing {
namespace {

std::filesystem::path pocket_path() {
  return project_file("models/pocket/pocket-q8_0.gguf");
}

constexpr const char* kText =
    "Once upon a time there was a small cat. It liked to sit in the sun, and every day it went to see its friend the "
    "dog. One day the dog was not there, and the cat was sad.";

Request scored(Prompt prompt, int32_t n_top = 2) {
  Request request = greedy(std::move(prompt), 0);
  request.sampling.prompt_logprobs = n_top;
  return request;
}

Request pooled(Prompt prompt, Pooling pooling) {
  Request request;
  request.prompt = std::move(prompt);
  request.pooling = pooling;
  return request;
}

std::vector<double> logprobs_as_eval_has_them(const std::vector<TokenId>& tokens) {
  auto file = formats::open_model_file(pocket_path());
  auto backend = backend::make_backend("cpu", {.n_threads = 1});
  auto model = model::Model::load(**file, **backend, {});
  auto scorer = model::Scorer::make(
      **model, **backend,
      {.max_tokens = static_cast<int32_t>(tokens.size()), .kv_type = (*backend)->info().default_kv});
  return *(*scorer)->logprobs(tokens);
}

TEST(prompt_logprobs, are_those_of_eval) {
  const auto engine = open_or_fail(options_for(pocket_path()));
  const auto tokens = engine->tokenize(TextPrompt{.text = kText});
  ASSERT_TRUE(tokens);
  const Completion completion = complete(*engine, scored(*tokens, 0));
  const std::vector<double> expected = logprobs_as_eval_has_them(*tokens);
  ASSERT_EQ(completion.prompt_logprobs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(completion.prompt_logprobs[i].logprob.token, (*tokens)[i + 1]);
    // The same logits; a logprob is a float, and its sum of weights has 2^-32 of the greatest as unit.
    EXPECT_NEAR(static_cast<double>(completion.prompt_logprobs[i].logprob.logprob), expected[i],
                1e-6 * (1.0 + std::abs(expected[i])))
        << i;
  }
}

TEST(prompt_logprobs, from_a_token_on_take_what_stands_before_out_of_the_cache_and_have_the_same_bits) {
  const auto engine = open_or_fail(options_for(pocket_path()));
  const auto tokens = engine->tokenize(TextPrompt{.text = std::string(kText) + kText});
  ASSERT_TRUE(tokens);
  const Completion whole = complete(*engine, scored(*tokens));
  const auto n = static_cast<int32_t>(tokens->size());
  for (const int32_t first : {1, 2, 40, n - 1, n}) {
    Request request = scored(*tokens);
    request.first_scored = first;
    const Completion part = complete(*engine, std::move(request));
    ASSERT_EQ(part.prompt_logprobs.size(), static_cast<size_t>(n - first)) << first;
    for (size_t i = 0; i < part.prompt_logprobs.size(); ++i)
      EXPECT_EQ(part.prompt_logprobs[i], whole.prompt_logprobs[i + static_cast<size_t>(first) - 1]);
    EXPECT_EQ(part.summary.usage.cached_tokens > 0, first > backend::kBlockTokens) << first;
  }
  for (const int32_t bad : {0, -1, n + 1}) {
    Request request = scored(*tokens);
    request.first_scored = bad;
    const auto refused = engine->generate(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "first_scored");
  }
  Request without = greedy(*tokens, 1);
  without.first_scored = 3;
  EXPECT_FALSE(engine->generate(without));
}

TEST(prompt_logprobs, come_without_a_token_where_none_is_asked_for) {
  const auto engine = open_or_fail(options_for(pocket_path()));
  const Completion completion = complete(*engine, scored(TextPrompt{.text = kText}));
  EXPECT_TRUE(completion.tokens.empty());
  EXPECT_EQ(completion.text, "");
  EXPECT_EQ(completion.finish, FinishReason::kLength);
  EXPECT_EQ(completion.summary.usage.completion_tokens, 0);
  EXPECT_EQ(static_cast<int64_t>(completion.prompt_logprobs.size()), completion.summary.usage.prompt_tokens - 1);
  for (const PromptLogprob& shown : completion.prompt_logprobs) {
    ASSERT_EQ(shown.top.size(), 2u);
    EXPECT_GE(shown.top[0].logprob, shown.top[1].logprob);
    EXPECT_GE(shown.top[0].logprob, shown.logprob.logprob);
  }
}

TEST(prompt_logprobs, have_the_same_bits_with_a_warm_cache_small_chunks_and_scarce_blocks) {
  const auto alone = open_or_fail(options_for(pocket_path()));
  const Completion expected = complete(*alone, scored(TextPrompt{.text = kText}));
  ASSERT_FALSE(expected.prompt_logprobs.empty());
  complete(*alone, greedy(TextPrompt{.text = kText}, 4));  // everything is in the prefix index now
  EXPECT_EQ(complete(*alone, scored(TextPrompt{.text = kText})).prompt_logprobs, expected.prompt_logprobs);

  EngineOptions small = options_for(pocket_path());
  small.n_ctx = 128;
  small.max_rows = 24;
  small.max_running = 4;
  small.kv_blocks = 12;
  const auto crowded = open_or_fail(small);
  std::vector<std::vector<PromptLogprob>> seen(12);
  std::mutex mutex;
  std::condition_variable changed;
  size_t n_ended = 0;
  const auto send = [&](size_t i) {
    Request request = scored(TextPrompt{.text = kText});
    request.sampling.max_tokens = i % 3 == 0 ? 20 : 0;
    request.n = i % 4 == 1 ? 2 : 1;
    request.scheduling.priority = static_cast<int32_t>(i);  // those that come later take the blocks of the first
    const auto id = crowded->submit(request, [&, i](const TokenEvent& event) {
      const std::lock_guard lock(mutex);
      if (!event.prompt_logprobs.empty()) seen[i] = event.prompt_logprobs;
      n_ended += event.summary ? 1 : 0;
      changed.notify_one();
    });
    EXPECT_TRUE(id) << id.error().message;
  };
  size_t next = 3;  // engine thread only: one more in the middle of each step's prompts
  crowded->on_step([&](const StepReport& report) {
    if (report.n_rows > 0 && next < seen.size()) send(next++);
  });
  for (size_t i = 0; i < 3; ++i) send(i);
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return n_ended == seen.size(); });
  crowded->on_step({});
  for (const auto& logprobs : seen) EXPECT_EQ(logprobs, expected.prompt_logprobs);
  EXPECT_GT(crowded->stats().n_preemptions, 0);
}

TEST(prompt_logprobs, do_not_change_the_answer) {
  const auto engine = open_or_fail(options_for(pocket_path()));
  Request request = sampled(TextPrompt{.text = kText}, 12, 5);
  const Completion plain = complete(*engine, request);
  request.sampling.prompt_logprobs = 1;
  const Completion shown = complete(*engine, request);
  EXPECT_EQ(shown.tokens, plain.tokens);
  EXPECT_EQ(shown.logprobs, plain.logprobs);
}

TEST(prompt_logprobs, fill_the_whole_context) {
  EngineOptions options = options_for(pocket_path());
  options.n_ctx = 32;
  const auto engine = open_or_fail(options);
  EXPECT_EQ(complete(*engine, scored(TokenPrompt(32, 5))).prompt_logprobs.size(), 31u);
  EXPECT_FALSE(engine->generate(scored(TokenPrompt(33, 5))));
  EXPECT_TRUE(complete(*engine, scored(TokenPrompt(1, 5))).prompt_logprobs.empty());
}

TEST(prompt_logprobs, wrong_wishes_are_refused_by_name) {
  const auto engine = open_or_fail(options_for(pocket_path()));
  Request request = greedy(TextPrompt{.text = "a"}, 0);
  EXPECT_EQ(engine->generate(request).error().field, "max_tokens");
  request.sampling.prompt_logprobs = 21;
  EXPECT_EQ(engine->generate(request).error().field, "prompt_logprobs");
  request.sampling.prompt_logprobs = 1;
  request.on_context_full = OnContextFull::kCrop;
  EXPECT_EQ(engine->generate(request).error().field, "on_context_full");
  request = pooled(TextPrompt{.text = "a"}, Pooling::kMean);
  request.n = 2;
  EXPECT_EQ(engine->generate(request).error().field, "pooling");
}

TEST(embeddings, have_length_one_and_the_same_bits_on_every_path) {
  const auto engine = open_or_fail(options_for(pocket_path()));
  EngineOptions small = options_for(pocket_path());
  small.max_rows = 17;
  const auto other = open_or_fail(small);
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    const Completion first = complete(*engine, pooled(TextPrompt{.text = kText}, pooling));
    ASSERT_EQ(first.embedding.size(), static_cast<size_t>(engine->info().dim));
    double square = 0;
    for (const float x : first.embedding) square += static_cast<double>(x) * static_cast<double>(x);
    EXPECT_NEAR(square, 1.0, 1e-5);
    EXPECT_EQ(complete(*engine, pooled(TextPrompt{.text = kText}, pooling)).embedding, first.embedding);
    EXPECT_EQ(complete(*other, pooled(TextPrompt{.text = kText}, pooling)).embedding, first.embedding);
    EXPECT_EQ(first.summary.usage.completion_tokens, 0);
  }
}

TEST(embeddings, of_one_token_are_the_same_by_mean_and_by_last) {
  const auto engine = open_or_fail(options_for(pocket_path()));
  const auto mean = complete(*engine, pooled(TokenPrompt{7}, Pooling::kMean)).embedding;
  EXPECT_EQ(complete(*engine, pooled(TokenPrompt{7}, Pooling::kLast)).embedding, mean);
  EXPECT_NE(complete(*engine, pooled(TokenPrompt{8}, Pooling::kLast)).embedding, mean);
}

TEST(prompt_chunks, are_the_steps_that_read_the_prompt_and_neighbours_are_joined_where_they_are_many) {
  constexpr int32_t kTokens = 300;
  for (const int32_t prefill_rows : {64, 4}) {
    EngineOptions options = options_for(pocket_path());
    options.prefill_rows = prefill_rows;
    const auto engine = open_or_fail(options);
    ASSERT_TRUE(engine);
    const Completion completion = complete(*engine, greedy(TokenPrompt(kTokens, 300), 3));
    const RequestTimings& timings = completion.summary.timings;
    const auto chunks = timings.prompt_chunks.list();
    int64_t n_tokens = 0;
    double end_ms = timings.queue_ms;
    for (const PromptChunk& chunk : chunks) {
      EXPECT_GE(chunk.begin_ms, end_ms);
      EXPECT_GT(chunk.end_ms, chunk.begin_ms);
      end_ms = chunk.end_ms;
      n_tokens += chunk.n_tokens;
    }
    EXPECT_EQ(n_tokens, kTokens);
    EXPECT_LE(end_ms, timings.queue_ms + timings.prefill_ms + 1e-6);
    const bool are_few = prefill_rows == 64;
    EXPECT_GE(chunks.size(), are_few ? 5u : PromptChunks::kMost / 2);
    EXPECT_LE(chunks.size(), are_few ? 5u : PromptChunks::kMost);
  }
}

}  // namespace
}  // namespace candor::testing
