// Requests that are wrong, withdrawn, too many, or share an engine: on a generated model.

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

class Requests : public testing::TinyModelTest {
 protected:
  Requests() : options_(testing::options_for(tiny_path(tiny_options()))) { options_.n_ctx = 128; }
  Engine& engine() {
    if (!engine_) engine_ = testing::open_or_fail(options_);
    return *engine_;
  }
  void expect_refused(const Request& request, Kind kind, const std::string& param) {
    const auto id = engine().submit(request, [](const TokenEvent&) { ADD_FAILURE() << "an event came"; });
    ASSERT_FALSE(id.has_value()) << param;
    EXPECT_EQ(id.error().kind, kind) << id.error().message;
    EXPECT_EQ(id.error().field, param) << id.error().message;
    EXPECT_FALSE(id.error().message.empty());
    EXPECT_EQ(id.error().message.find('\n'), std::string::npos);
  }
  void expect_nothing_is_held() {
    const EngineStats stats = engine().stats();
    EXPECT_EQ(stats.n_running, 0);
    EXPECT_EQ(stats.n_waiting, 0);
    EXPECT_EQ(stats.kv_blocks_used, 0);
    EXPECT_EQ(stats.n_submitted, stats.n_finished);
  }

  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(Requests, parameters_out_of_range_are_refused_by_name) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto with = [](auto&& change) {
    Request request = greedy(TokenPrompt{1, 5}, 4);
    change(request.sampling);
    return request;
  };
  for (const double value : {-1.0, 1e308, kNan}) {
    expect_refused(with([&](SamplingParams& p) { p.temperature = value; }), Kind::kInvalidInput, "temperature");
  }
  expect_refused(with([](SamplingParams& p) { p.top_k = -2147483648LL; }), Kind::kInvalidInput, "top_k");
  expect_refused(with([](SamplingParams& p) { p.top_p = 1.5; }), Kind::kInvalidInput, "top_p");
  expect_refused(with([](SamplingParams& p) { p.min_p = -1; }), Kind::kInvalidInput, "min_p");
  for (const int64_t value : {int64_t{0}, int64_t{-5}}) {
    expect_refused(with([&](SamplingParams& p) { p.max_tokens = value; }), Kind::kInvalidInput, "max_tokens");
  }
  expect_refused(with([](SamplingParams& p) { p.logprobs = 1000000000; }), Kind::kInvalidInput, "logprobs");
  expect_refused(with([](SamplingParams& p) { p.stop = {""}; }), Kind::kInvalidInput, "stop");
  expect_refused(with([](SamplingParams& p) { p.stop = {std::string(1 << 20, 'x')}; }), Kind::kInvalidInput, "stop");
  expect_refused(with([](SamplingParams& p) { p.stop.assign(1000, "x"); }), Kind::kInvalidInput, "stop");
  expect_refused(with([](SamplingParams& p) { p.stop_ids = {99999999}; }), Kind::kInvalidInput, "stop_ids");
  for (const int64_t value : {int64_t{-2}, int64_t{1} << 31, std::numeric_limits<int64_t>::max()}) {
    expect_refused(with([&](SamplingParams& p) { p.top_k = value; }), Kind::kInvalidInput, "top_k");
    expect_refused(with([&](SamplingParams& p) { p.repeat_last_n = value; }), Kind::kInvalidInput, "repeat_last_n");
    expect_refused(with([&](SamplingParams& p) { p.min_tokens = value; }), Kind::kInvalidInput, "min_tokens");
  }
  expect_refused(with([](SamplingParams& p) { p.min_tokens = 5; }), Kind::kInvalidInput, "min_tokens");
  expect_refused(with([](SamplingParams& p) { p.samplers = {"top_k", "hot"}; }), Kind::kInvalidInput, "samplers");
  expect_refused(with([](SamplingParams& p) { p.logit_bias = {{.token = 999999999, .bias = 5}}; }), Kind::kInvalidInput,
                 "logit_bias");
  expect_refused(with([](SamplingParams& p) { p.logit_bias = {{.token = -7, .bias = 1}}; }), Kind::kInvalidInput,
                 "logit_bias");
  for (const double value : {-101.0, 1e308, kNan}) {
    expect_refused(with([&](SamplingParams& p) { p.logit_bias = {{.token = 5, .bias = value}}; }), Kind::kInvalidInput,
                   "logit_bias");
  }
  expect_refused(with([](SamplingParams& p) { p.logit_bias.resize(2000); }), Kind::kInvalidInput, "logit_bias");
  expect_refused(with([](SamplingParams& p) { p.allowed_token_ids = {-1}; }), Kind::kInvalidInput, "allowed_token_ids");
  expect_refused(with([](SamplingParams& p) { p.bad_words = {""}; }), Kind::kInvalidInput, "bad_words");
  expect_refused(with([](SamplingParams& p) { p.dry_sequence_breakers = {""}; }), Kind::kInvalidInput,
                 "dry_sequence_breakers");
  expect_nothing_is_held();
}

TEST_F(Requests, a_request_may_say_which_tokens_are_chosen) {
  Request request = sampled(token_prompt(5, 320, 2), 12, 3);
  request.sampling.ignore_eos = true;
  request.sampling.allowed_token_ids = {50, 60, 70};
  request.sampling.logit_bias = {{.token = 60, .ban = true}};
  for (const TokenId token : complete(engine(), request).tokens) EXPECT_TRUE(token == 50 || token == 70) << token;
  request.sampling.no_repeat_ngram_size = 1;  // after one of each, none is left
  const auto completion = engine().generate(request);
  ASSERT_FALSE(completion.has_value());
  EXPECT_EQ(completion.error().kind, Kind::kInvalidInput);
  request = greedy(token_prompt(5, 320, 2), 12);
  const Completion plain = complete(engine(), request);
  request.sampling.stop_ids = {plain.tokens.front()};
  request.sampling.min_tokens = 12;
  const Completion held = complete(engine(), request);
  EXPECT_EQ(held.tokens.size(), 12u);
  EXPECT_EQ(std::ranges::count(held.tokens, plain.tokens.front()), 0);
  expect_nothing_is_held();
}

TEST_F(Requests, prompts_that_cannot_be_read_are_refused) {
  expect_refused(greedy(TokenPrompt{}, 4), Kind::kInvalidInput, "prompt");
  expect_refused(greedy(TokenPrompt{1, 99999999, -5}, 4), Kind::kInvalidInput, "prompt");
  expect_refused(greedy(TextPrompt{"a\xC3(b"}, 4), Kind::kInvalidInput, "prompt");
  expect_refused(greedy(token_prompt(128, 320, 1), 4), Kind::kContextLength, "prompt");
  const auto refused = engine().submit(greedy(token_prompt(500, 320, 1), 4), {});
  EXPECT_NE(refused.error().message.find("500"), std::string::npos);
  EXPECT_NE(refused.error().message.find("128"), std::string::npos);
  EXPECT_EQ(complete(engine(), greedy(token_prompt(127, 320, 1), 4)).tokens.size(), 1u);
}

TEST_F(Requests, the_largest_numbers_are_taken_as_they_are_meant) {
  Request request = sampled(token_prompt(5, 320, 2), std::numeric_limits<int64_t>::max(), ~0ull);
  request.sampling.top_k = std::numeric_limits<int32_t>::max();
  request.sampling.ignore_eos = true;
  const Completion completion = complete(engine(), request);
  EXPECT_EQ(completion.finish, FinishReason::kContextFull);
  EXPECT_EQ(completion.summary.usage.seed, ~0ull);
}

TEST_F(Requests, many_at_once_get_the_answers_that_each_gets_alone) {
  options_.prefill_rows = 7;
  options_.max_rows = 16;
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 12; ++i) {
    requests.push_back(sampled(token_prompt(static_cast<int32_t>(3 + 9 * i % 100), 320, i), 25, i));
  }
  const auto together = testing::Crowd(engine()).run(requests);
  options_.prefix_cache = false;
  const auto alone = testing::open_or_fail(options_);
  for (size_t i = 0; i < requests.size(); ++i) {
    testing::expect_same(together[i], complete(*alone, requests[i]), "request " + std::to_string(i));
  }
  expect_nothing_is_held();
}

TEST_F(Requests, a_pool_too_small_for_all_preempts_and_changes_no_answer) {
  std::vector<Request> requests;
  for (uint64_t i = 0; i < 8; ++i) {
    requests.push_back(sampled(token_prompt(20, 320, i), 70, i));
    requests.back().sampling.ignore_eos = true;
  }
  std::vector<Completion> alone;
  for (const Request& request : requests) alone.push_back(complete(engine(), request));
  options_.kv_blocks = 6;
  options_.prefix_cache = false;
  engine_ = testing::open_or_fail(options_);
  const auto together = testing::Crowd(engine()).run(requests);
  for (size_t i = 0; i < requests.size(); ++i) testing::expect_same(together[i], alone[i], std::to_string(i));
  EXPECT_GT(engine().stats().n_preemptions, 0);
  expect_nothing_is_held();
}

TEST_F(Requests, a_beginning_that_was_read_before_is_not_computed_again) {
  const Request request = sampled(token_prompt(100, 320, 4), 20, 9);
  const Completion cold = complete(engine(), request);
  const Completion warm = complete(engine(), request);
  testing::expect_same(cold, warm, "from the prefix cache");
  EXPECT_EQ(cold.summary.usage.cached_tokens, 0);
  EXPECT_EQ(warm.summary.usage.cached_tokens, 96);
  EXPECT_LT(warm.summary.usage.token_layers, cold.summary.usage.token_layers);
}

TEST_F(Requests, a_cancelled_request_ends_and_frees_its_blocks) {
  Request request = greedy(token_prompt(10, 320, 1), 100);
  request.sampling.ignore_eos = true;
  std::atomic<int> n_tokens = 0;
  std::promise<FinishReason> ended;
  std::promise<RequestId> promised;
  const auto known = promised.get_future().share();
  const auto submitted = engine().submit(request, [&](const TokenEvent& event) {
    if (event.finish) return ended.set_value(*event.finish);
    if (++n_tokens < 5) return;
    EXPECT_TRUE(engine().cancel(known.get()).has_value());
  });
  ASSERT_TRUE(submitted.has_value());
  promised.set_value(*submitted);
  EXPECT_EQ(ended.get_future().get(), FinishReason::kCancelled);
  EXPECT_LE(n_tokens, 6);
  complete(engine(), greedy(token_prompt(3, 320, 1), 1));
  expect_nothing_is_held();
  EXPECT_EQ(engine().cancel(*submitted).error().kind, Kind::kNotFound);
  EXPECT_EQ(engine().cancel(-7).error().kind, Kind::kNotFound);
}

TEST_F(Requests, a_full_engine_says_so_at_once) {
  options_.max_running = 1;
  options_.max_queued = 2;
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::atomic<int> n_ended = 0;
  std::promise<void> all_ended;
  const auto callback = [&, released](const TokenEvent& event) {
    released.wait();
    if (event.finish && ++n_ended == 3) all_ended.set_value();
  };
  for (int n_coming = 0; n_coming < 3; ++n_coming) EXPECT_TRUE(engine().check_room(n_coming).has_value());
  EXPECT_EQ(engine().check_room(3).error().kind, Kind::kOverloaded);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(engine().submit(greedy(TokenPrompt{1}, 3), callback).has_value());
  EXPECT_EQ(engine().check_room().error().kind, Kind::kOverloaded);
  EXPECT_EQ(engine().submit(greedy(TokenPrompt{1}, 3), callback).error().kind, Kind::kOverloaded);
  release.set_value();
  all_ended.get_future().wait();
  EXPECT_TRUE(engine().generate(greedy(TokenPrompt{1}, 3)).has_value());
}

TEST_F(Requests, closing_the_engine_ends_what_runs) {
  std::vector<FinishReason> reasons;
  for (int i = 0; i < 5; ++i) {
    Request request = greedy(token_prompt(20, 320, 1), 100);
    request.sampling.ignore_eos = true;
    ASSERT_TRUE(engine()
                    .submit(request,
                            [&](const TokenEvent& event) {
                              if (event.finish) reasons.push_back(*event.finish);
                            })
                    .has_value());
  }
  engine_.reset();
  EXPECT_EQ(reasons.size(), 5u);
}

TEST_F(Requests, a_callback_may_submit_but_not_wait) {
  std::promise<std::string> done;
  const auto submitted = engine().submit(greedy(TokenPrompt{1}, 1), [&](const TokenEvent&) {
    EXPECT_FALSE(engine().generate(greedy(TokenPrompt{1}, 1)).has_value());
    const auto next = engine().submit(greedy(TokenPrompt{1}, 1), [&](const TokenEvent&) { done.set_value("done"); });
    EXPECT_TRUE(next.has_value());
  });
  ASSERT_TRUE(submitted.has_value());
  EXPECT_EQ(done.get_future().get(), "done");
}

TEST_F(Requests, steps_are_reported) {
  std::atomic<int64_t> n_rows = 0;
  std::atomic<int64_t> n_sampled = 0;
  engine().on_step([&](const StepReport& report) {
    n_rows += report.n_rows;
    n_sampled += report.n_sampled;
  });
  complete(engine(), greedy(token_prompt(10, 320, 1), 5));
  engine().on_step({});
  EXPECT_EQ(n_sampled, engine().stats().n_sampled);
  EXPECT_EQ(n_rows, engine().stats().n_rows);
}

TEST_F(Requests, options_out_of_range_and_impossible_budgets_are_refused) {
  const auto refused = [&](auto&& change) {
    EngineOptions options = options_;
    change(options);
    const auto engine = Engine::open(options);
    EXPECT_FALSE(engine.has_value());
    return engine ? std::string() : engine.error().message;
  };
  EXPECT_NE(refused([](EngineOptions& o) { o.n_threads = -1; }).find("n_threads is -1"), std::string::npos);
  EXPECT_NE(refused([](EngineOptions& o) { o.n_threads = 100000; }).find("n_threads"), std::string::npos);
  EXPECT_NE(refused([](EngineOptions& o) { o.n_ctx = -1; }).find("n_ctx"), std::string::npos);
  EXPECT_NE(refused([](EngineOptions& o) { o.n_ctx = 513; }).find("512"), std::string::npos);
  EXPECT_NE(refused([](EngineOptions& o) { o.max_running = 0; }).find("max_running"), std::string::npos);
  EXPECT_NE(refused([](EngineOptions& o) { o.max_rows = 3; }).find("max_rows"), std::string::npos);
  EXPECT_NE(refused([](EngineOptions& o) { o.kv_blocks = 3; }).find("96 tokens"), std::string::npos);
  EXPECT_NE(refused([](EngineOptions& o) { o.kv_bytes = 1; }).find("budget"), std::string::npos);
  EXPECT_NE(refused([](EngineOptions& o) { o.backend = "gpu"; }).find("reference"), std::string::npos);
  EXPECT_FALSE(refused([](EngineOptions& o) { o.model_path = "/nowhere/x.gguf"; }).empty());
}

}  // namespace
}  // namespace candor
