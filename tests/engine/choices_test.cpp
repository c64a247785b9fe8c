// Several answers to one prompt, turns, deadlines and scopes: on a generated model.

#include <algorithm>
#include <atomic>
#include <future>
#include <limits>

#include "engine_fixture.h"

namespace candor {
namespace {

using testing::complete;
using testing::greedy;
using testing::sampled;
using testing::token_prompt;
using Kind = ErrorKind;

class Choices : public testing::TinyModelTest {
 protected:
  Choices() : options_(testing::options_for(tiny_path(tiny_options()))) {
    options_.n_ctx = 128;
    options_.costs = StepCosts{.points = {{1, 1.0}, {64, 4.0}}, .attend_ns = 0};
  }
  Engine& engine() {
    if (!engine_) engine_ = testing::open_or_fail(options_);
    return *engine_;
  }
  void expect_nothing_is_held() {
    const EngineStats stats = engine().stats();
    EXPECT_EQ(stats.n_running, 0);
    EXPECT_EQ(stats.n_waiting, 0);
    EXPECT_EQ(stats.kv_blocks_used, 0);
    EXPECT_EQ(stats.n_submitted, stats.n_finished);
  }
  static Request choices(int32_t n, int32_t n_prompt, int64_t max_tokens, uint64_t seed) {
    Request request = sampled(token_prompt(n_prompt, 320, 5), max_tokens, seed);
    request.n = n;
    return request;
  }

  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

bool is_same(const CompletedChoice& a, const CompletedChoice& b) {
  return a.tokens == b.tokens && a.text == b.text && a.logprobs == b.logprobs && a.finish == b.finish;
}

TEST_F(Choices, of_one_prompt_read_it_once_and_differ) {
  const Completion all = complete(engine(), choices(4, 70, 20, 3));
  ASSERT_EQ(all.more_choices.size(), 3u);
  std::vector<std::vector<TokenId>> texts = {all.tokens};
  for (const CompletedChoice& choice : all.more_choices) texts.push_back(choice.tokens);
  std::ranges::sort(texts);
  EXPECT_TRUE(std::ranges::adjacent_find(texts) == texts.end());
  EXPECT_EQ(all.summary.usage.prompt_tokens, 70);
  size_t n_tokens = 0;
  for (const auto& text : texts) n_tokens += text.size();
  EXPECT_EQ(all.summary.usage.completion_tokens, static_cast<int64_t>(n_tokens));
  EXPECT_EQ(all.summary.usage.token_layers, static_cast<int64_t>(2 * (70 + n_tokens - 4)));
  expect_nothing_is_held();
}

TEST_F(Choices, the_first_is_the_answer_without_others_and_each_is_the_same_in_any_company) {
  const Completion four = complete(engine(), choices(4, 40, 30, 8));
  EXPECT_TRUE(is_same(four, complete(engine(), choices(1, 40, 30, 8))));
  const Completion two = complete(engine(), choices(2, 40, 30, 8));
  EXPECT_TRUE(is_same(two.more_choices[0], four.more_choices[0]));
  options_.max_running = 2;  // two of four wait
  options_.kv_blocks = 5;    // and preempt each other
  options_.prefix_cache = false;
  engine_ = testing::open_or_fail(options_);
  const Completion crowded = complete(engine(), choices(4, 40, 30, 8));
  EXPECT_TRUE(is_same(crowded, four));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(is_same(crowded.more_choices[i], four.more_choices[i])) << i;
  expect_nothing_is_held();
}

TEST_F(Choices, that_end_with_their_first_token_get_their_events) {
  std::atomic<int> n_finished = 0;
  std::atomic<int> n_summaries = 0;
  const auto completion = engine().generate(choices(5, 10, 1, 1), [&](const TokenEvent& event) {
    if (event.finish) ++n_finished;
    if (event.summary) ++n_summaries;
  });
  ASSERT_TRUE(completion.has_value());
  EXPECT_EQ(n_finished, 5);
  EXPECT_EQ(n_summaries, 1);
  EXPECT_EQ(completion->summary.usage.completion_tokens, 5);
  expect_nothing_is_held();
}

TEST_F(Choices, obey_a_constraint_each_for_itself) {
  Request request = choices(3, 4, 40, 2);
  request.constraint = ConstraintSpec{GrammarKind::kRegex, "[ab]{6}"};
  const Completion completion = complete(engine(), request);
  std::vector<std::string> texts = {completion.text};
  for (const CompletedChoice& choice : completion.more_choices) texts.push_back(choice.text);
  for (const std::string& text : texts) EXPECT_EQ(text.find_first_not_of("ab"), std::string::npos) << text;
  EXPECT_FALSE(texts[0] == texts[1] && texts[1] == texts[2]);
}

TEST_F(Choices, are_told_which_words_of_a_schema_have_no_effect) {
  Request request = choices(2, 4, 40, 2);
  request.constraint = ConstraintSpec{GrammarKind::kJsonSchema, R"({"type": "boolean", "nullable": true})"};
  const Completion completion = complete(engine(), request);
  EXPECT_TRUE(completion.text == "true" || completion.text == "false") << completion.text;
  ASSERT_EQ(completion.summary.warnings.size(), 1u);
  EXPECT_NE(completion.summary.warnings.front().find("/nullable"), std::string::npos);
  request.constraint->is_strict = true;
  const auto refused = engine().generate(request);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "constraint");
  EXPECT_NE(refused.error().message.find("/nullable"), std::string::npos);
}

TEST_F(Choices, are_all_cancelled_together) {
  Request request = choices(3, 10, 100, 1);
  request.sampling.ignore_eos = true;
  std::promise<RequestId> promised;
  const auto known = promised.get_future().share();
  std::atomic<int> n_tokens = 0;
  std::atomic<int> n_cancelled = 0;
  std::promise<void> ended;
  const auto submitted = engine().submit(request, [&](const TokenEvent& event) {
    if (event.finish == FinishReason::kCancelled) ++n_cancelled;
    if (event.summary) return ended.set_value();
    if (++n_tokens != 9) return;
    EXPECT_TRUE(engine().cancel(known.get()).has_value());
  });
  ASSERT_TRUE(submitted.has_value());
  promised.set_value(*submitted);
  ended.get_future().wait();
  EXPECT_EQ(n_cancelled, 3);
  complete(engine(), greedy(token_prompt(3, 320, 1), 1));
  expect_nothing_is_held();
}

TEST_F(Choices, and_turns_out_of_range_are_refused_by_name) {
  const auto param_of = [&](auto&& change) {
    Request request = greedy(TokenPrompt{1, 5}, 4);
    change(request);
    const auto id = engine().submit(request, {});
    EXPECT_FALSE(id.has_value());
    return id ? std::string() : id.error().field;
  };
  for (const int32_t n : {0, -1, 129, std::numeric_limits<int32_t>::max()}) {
    EXPECT_EQ(param_of([n](Request& r) { r.n = n; }), "n");
  }
  for (const double ms : {-1.0, std::numeric_limits<double>::quiet_NaN(), 1e308}) {
    EXPECT_EQ(param_of([ms](Request& r) { r.scheduling.deadline_ms = ms; }), "deadline_ms");
    EXPECT_EQ(param_of([ms](Request& r) { r.scheduling.prompt_deadline_ms = ms; }), "prompt_deadline_ms");
  }
  EXPECT_EQ(param_of([](Request& r) { r.scheduling.priority = 1001; }), "priority");
  EXPECT_EQ(param_of([](Request& r) { r.scheduling.fair_key.assign(1000, 'x'); }), "fair_key");
  EXPECT_EQ(param_of([](Request& r) { r.scheduling.cache_scope.assign(1000, 'x'); }), "cache_scope");
  EXPECT_EQ(engine().metrics().n_refused, 13u);
  EXPECT_EQ(engine().stats().n_submitted, 0);
}

TEST_F(Choices, count_against_the_queue_one_by_one) {
  options_.max_running = 2;
  options_.max_queued = 2;
  EXPECT_EQ(engine().submit(choices(5, 3, 3, 1), {}).error().field, "n");
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::promise<void> ended;
  ASSERT_TRUE(engine()
                  .submit(choices(3, 3, 3, 1),
                          [&, released](const TokenEvent& event) {
                            released.wait();
                            if (event.summary) ended.set_value();
                          })
                  .has_value());
  EXPECT_EQ(engine().submit(choices(2, 3, 3, 1), {}).error().kind, Kind::kOverloaded);
  EXPECT_EQ(engine().metrics().n_overloaded, 1u);
  release.set_value();
  ended.get_future().wait();
}

TEST_F(Choices, a_deadline_ends_a_request_that_runs_and_one_that_waits) {
  options_.max_running = 1;
  std::vector<std::future<FinishReason>> endings;
  for (int i = 0; i < 2; ++i) {
    auto promise = std::make_shared<std::promise<FinishReason>>();
    endings.push_back(promise->get_future());
    Request request = greedy(token_prompt(5, 320, 1), 1000000);
    request.on_context_full = OnContextFull::kCrop;
    request.sampling.ignore_eos = true;
    request.scheduling.deadline_ms = 30;
    ASSERT_TRUE(engine()
                    .submit(request,
                            [promise](const TokenEvent& event) {
                              if (event.finish) promise->set_value(*event.finish);
                            })
                    .has_value());
  }
  for (auto& ending : endings) EXPECT_EQ(ending.get(), FinishReason::kDeadline);
  complete(engine(), greedy(token_prompt(3, 320, 1), 1));
  expect_nothing_is_held();
}

TEST_F(Choices, a_deadline_for_the_prompt_ends_what_has_no_token_yet) {
  Request request = greedy(token_prompt(60, 320, 1), 5);
  request.sampling.ignore_eos = true;
  request.scheduling.prompt_deadline_ms = 1e-6;
  const Completion late = complete(engine(), request);
  EXPECT_EQ(late.finish, FinishReason::kDeadline);
  EXPECT_TRUE(late.tokens.empty());
  request.scheduling.prompt_deadline_ms = 1e11;
  EXPECT_EQ(complete(engine(), request).finish, FinishReason::kLength);
  expect_nothing_is_held();
}

TEST_F(Choices, a_prompt_tells_how_much_of_it_is_read) {
  constexpr int64_t kPrompt = 70;
  constexpr int64_t kCached = 64;  // whole blocks
  options_.prefill_rows = 16;
  RequestId id = 1;  // the engine's first
  std::vector<PromptProgress> seen;
  engine().on_step([&](const StepReport&) {
    if (const auto progress = engine().prompt_progress(id)) seen.push_back(*progress);
  });
  const Request request = greedy(token_prompt(kPrompt, 320, 1), 3);
  complete(engine(), request);
  ASSERT_GE(seen.size(), 5u);
  EXPECT_EQ(seen.front().n_read, 0);
  EXPECT_GT(seen[1].n_read, 0);
  EXPECT_LT(seen[1].n_read, kPrompt);
  EXPECT_EQ(seen.back().n_read, kPrompt);
  EXPECT_TRUE(std::ranges::is_sorted(seen, {}, &PromptProgress::n_read));
  EXPECT_TRUE(std::ranges::all_of(seen, [](const PromptProgress& one) { return one.n_prompt == kPrompt; }));
  EXPECT_FALSE(engine().prompt_progress(id).has_value());
  seen.clear();
  ++id;
  complete(engine(), request);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front().n_cached, kCached);
  EXPECT_EQ(seen.front().n_read, kCached);
  engine().on_step({});
}

TEST_F(Choices, a_beginning_is_shared_within_its_scope_only) {
  Request request = greedy(token_prompt(100, 320, 4), 2);
  const auto cached = [&](const std::string& scope) {
    request.scheduling.cache_scope = scope;
    return complete(engine(), request).summary.usage.cached_tokens;
  };
  EXPECT_EQ(cached("one"), 0);
  EXPECT_EQ(cached("two"), 0);
  EXPECT_EQ(cached("one"), 96);
  EXPECT_EQ(cached(""), 0);
}

TEST_F(Choices, what_was_measured_adds_up) {
  for (int i = 0; i < 3; ++i) complete(engine(), choices(2, 20, 10, 4));
  const EngineMetrics metrics = engine().metrics();
  EXPECT_EQ(metrics.e2e_ms.count, 3u);
  EXPECT_EQ(metrics.ttft_ms.count, 3u);
  EXPECT_EQ(metrics.prompt_tokens.sum, 60.0);
  uint64_t n_finished = 0;
  for (const uint64_t n : metrics.n_finished) n_finished += n;
  EXPECT_EQ(n_finished, 6u);
  EXPECT_EQ(metrics.itl_ms.count + n_finished, static_cast<uint64_t>(metrics.completion_tokens.sum));
  uint64_t in_buckets = 0;
  for (const Distribution::Bucket& bucket : metrics.step_ms.buckets) in_buckets += bucket.count;
  EXPECT_EQ(in_buckets, metrics.step_ms.count);
  EXPECT_LE(metrics.ttft_ms.p50, metrics.ttft_ms.max);
}

TEST_F(Choices, costs_are_taken_as_given_or_measured_and_refused_where_they_make_no_sense) {
  EXPECT_EQ(engine().info().costs.points.size(), 2u);
  options_.costs.reset();
  const auto measured = testing::open_or_fail(options_);
  ASSERT_EQ(measured->info().costs.points.size(), 13u);
  EXPECT_GT(measured->info().costs.points[0].ms, 0.0);
  EXPECT_TRUE(std::ranges::is_sorted(measured->info().costs.points, {}, &StepCosts::Point::ms));
  const auto refused = [&](StepCosts costs, double step_ms = 0.0) {
    options_.costs = std::move(costs);
    options_.step_ms = step_ms;
    const auto opened = Engine::open(options_);
    return opened ? std::string() : opened.error().message;
  };
  EXPECT_NE(refused({}).find("0 points"), std::string::npos);
  EXPECT_NE(refused({.points = {{4, 1.0}, {4, 2.0}}}).find("more rows"), std::string::npos);
  EXPECT_NE(refused({.points = {{4, 2.0}, {8, 1.0}}}).find("no less time"), std::string::npos);
  EXPECT_NE(refused({.points = {{0, 2.0}}}).find("0 rows"), std::string::npos);
  EXPECT_NE(refused({.points = {{1, 2.0}}, .attend_ns = -1}).find("attend_ns"), std::string::npos);
  EXPECT_NE(refused({.points = {{1, 2.0}}, .look_back_ns = -1}).find("look_back_ns"), std::string::npos);
  EXPECT_NE(refused({.points = {{1, 2.0}}, .out_row_ms = -1}).find("out_row_ms"), std::string::npos);
  EXPECT_NE(refused({.points = {{1, 2.0}}}, std::numeric_limits<double>::quiet_NaN()).find("step_ms"),
            std::string::npos);
}

}  // namespace
}  // namespace candor
