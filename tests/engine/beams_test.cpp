// Beam search over forked sequences: against trying every text, against greedy decoding, in any company, and refused by
// name where it cannot be.

#include <atomic>
#include <cmath>
#include <future>
#include <limits>

#include "engine_fixture.h"

namespace candor {
namespace {

using testing::complete;
using testing::greedy;
using testing::token_prompt;

class Beams : public testing::TinyModelTest {
 protected:
  Beams() : options_(testing::options_for(tiny_path(tiny_options()))) {
    options_.n_ctx = 128;
    options_.costs = StepCosts{.points = {{1, 1.0}, {64, 4.0}}, .attend_ns = 0};
    engine_ = testing::open_or_fail(options_);
  }
  static Request with_beams(int32_t width, int64_t max_tokens, uint64_t seed, int32_t n = 1) {
    Request request = greedy(token_prompt(9 + static_cast<int32_t>(seed % 40), 320, seed), max_tokens);
    request.sampling.logprobs = 2;
    request.beams = BeamSearch{.width = width};
    request.n = n;
    return request;
  }
  // The model's own logprob of `token` behind the text.
  double logprob(TokenPrompt text, TokenId token) {
    Request request = greedy(std::move(text), 1);
    request.sampling.logprobs = 0;
    request.sampling.allowed_token_ids = {token};
    return static_cast<double>(complete(*engine_, request).logprobs.at(0).logprob);
  }
  void expect_nothing_is_held(Engine& engine) {
    EXPECT_EQ(engine.stats().kv_blocks_used, 0);
    EXPECT_EQ(engine.stats().n_running + engine.stats().n_waiting, 0);
  }

  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

std::vector<CompletedChoice> all_of(const Completion& completion) {
  std::vector<CompletedChoice> all = {completion};
  all.insert(all.end(), completion.more_choices.begin(), completion.more_choices.end());
  return all;
}

TEST_F(Beams, that_are_wide_enough_find_what_trying_every_text_finds) {
  const std::vector<TokenId> allowed = {40, 120, 250};
  Request request = with_beams(9, 3, 4, 5);
  request.sampling.allowed_token_ids = allowed;
  const TokenPrompt prompt = std::get<TokenPrompt>(request.prompt);
  std::vector<std::pair<double, TokenPrompt>> texts = {{0.0, {}}};
  for (int length = 0; length < 3; ++length) {
    std::vector<std::pair<double, TokenPrompt>> longer;
    for (const auto& [score, text] : texts) {
      TokenPrompt whole = prompt;
      whole.insert(whole.end(), text.begin(), text.end());
      for (const TokenId token : allowed) {
        longer.emplace_back(score + logprob(whole, token), text);
        longer.back().second.push_back(token);
      }
    }
    texts = std::move(longer);
  }
  std::ranges::stable_sort(texts, [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto found = all_of(complete(*engine_, request));
  ASSERT_EQ(found.size(), 5u);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].tokens, texts[i].second) << i;
    EXPECT_NEAR(found[i].score.value_or(0.0), texts[i].first / 3.0, 1e-12) << i;
  }
  expect_nothing_is_held(*engine_);
}

TEST_F(Beams, of_width_one_are_greedy_decoding_bit_for_bit) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Request plain = with_beams(1, 24, seed);
    if (seed % 3 == 0) plain.sampling.repetition_penalty = 1.3;
    if (seed % 4 == 1) plain.sampling.ignore_eos = true;
    if (seed == 2) plain.constraint = {GrammarKind::kRegex, "[a-h]{2,9}x"};
    if (seed == 5) plain.sampling.max_tokens.reset();
    plain.sampling.logprobs_after_chain = seed % 2 == 1;
    plain.beams.reset();
    Completion expected = complete(*engine_, plain);
    if (seed == 7) plain.sampling.stop_ids = {expected.tokens[10]};
    if (seed == 8) plain.sampling.stop = {expected.text.substr(expected.text.size() / 2, 3), "zzz"};
    if (seed == 7 || seed == 8) expected = complete(*engine_, plain);
    Request beams = plain;
    beams.beams = BeamSearch{.width = 1};
    const Completion found = complete(*engine_, beams);
    testing::expect_same(found, expected, "seed " + std::to_string(seed));
    EXPECT_EQ(found.stop_index, expected.stop_index) << seed;
    EXPECT_EQ(found.summary.usage.completion_tokens, expected.summary.usage.completion_tokens) << seed;
    EXPECT_EQ(found.summary.usage.token_layers, expected.summary.usage.token_layers) << seed;
  }
}

TEST_F(Beams, answers_come_best_first_and_their_scores_are_those_of_their_tokens) {
  for (const double penalty : {0.0, 1.0, 2.0}) {
    Request request = with_beams(6, 12, 3, 6);
    request.beams->length_penalty = penalty;
    const auto found = all_of(complete(*engine_, request));
    double before = std::numeric_limits<double>::infinity();
    for (const CompletedChoice& answer : found) {
      double sum = 0.0;
      for (const TokenLogprob& logprob : answer.logprobs) sum += static_cast<double>(logprob.logprob);
      ASSERT_TRUE(answer.score.has_value());
      EXPECT_NEAR(*answer.score, sum / std::pow(static_cast<double>(answer.tokens.size()), penalty), 1e-9);
      EXPECT_LE(*answer.score, before);
      before = *answer.score;
    }
  }
}

TEST_F(Beams, logprobs_after_the_chain_are_shares_of_what_the_stages_leave) {
  Request request = with_beams(4, 6, 9, 4);
  request.sampling.allowed_token_ids = {40, 120, 250, 300};
  request.sampling.logprobs = 4;
  const auto of_model = all_of(complete(*engine_, request));
  request.sampling.logprobs_after_chain = true;
  const auto of_chain = all_of(complete(*engine_, request));
  for (size_t i = 0; i < of_chain.size(); ++i) {
    ASSERT_EQ(of_chain[i].tokens, of_model[i].tokens);
    EXPECT_EQ(of_chain[i].score, of_model[i].score);
    for (size_t at = 0; at < of_chain[i].tokens.size(); ++at) {
      double sum = 0.0;
      for (const TokenLogprob& top : of_chain[i].top_logprobs[at]) sum += std::exp(static_cast<double>(top.logprob));
      EXPECT_NEAR(sum, 1.0, 1e-6);
      const auto& top = of_chain[i].top_logprobs[at];
      EXPECT_NE(std::ranges::find(top, of_chain[i].logprobs[at]), top.end());
      EXPECT_GT(of_chain[i].logprobs[at].logprob, of_model[i].logprobs[at].logprob);
    }
  }
}

// Every step of an answer goes on from the text that the step before kept for it, and its score grows by what is
// reported.
void expect_true_trace(const std::vector<TokenEvent>& answer, const CompletedChoice& plain, int32_t width) {
  double score = 0.0;
  std::int64_t place = 0;
  ASSERT_EQ(answer.size(), plain.tokens.size());
  for (size_t at = 0; at < answer.size(); ++at) {
    ASSERT_TRUE(answer[at].explanation && answer[at].explanation->beam_option);
    const TokenExplanation& explanation = *answer[at].explanation;
    const auto& options = explanation.beam_options;
    const BeamOption& mine = options.at(*explanation.beam_option);
    EXPECT_EQ(mine.token, plain.tokens[at]);
    EXPECT_EQ(mine.parent, place) << at;
    score += static_cast<double>(plain.logprobs[at].logprob);
    EXPECT_NEAR(mine.score, score, 1e-12) << at;
    EXPECT_TRUE(std::ranges::is_sorted(options, std::greater(), &BeamOption::score));
    EXPECT_LE(std::ranges::count(options, BeamFate::kKept, &BeamOption::fate), width);
    EXPECT_LE(std::ranges::count(options, BeamFate::kDropped, &BeamOption::fate), 8);
    EXPECT_EQ(explanation.stages.front().name, "logits");
    const auto before_mine = options.begin() + static_cast<std::ptrdiff_t>(*explanation.beam_option);
    place = std::count_if(options.begin(), before_mine, [](const auto& o) { return o.fate == BeamFate::kKept; });
    const bool is_last = at + 1 == answer.size();
    EXPECT_EQ(mine.fate, is_last && plain.finish != FinishReason::kLength ? BeamFate::kComplete : BeamFate::kKept);
  }
}

TEST_F(Beams, explained_name_the_parent_of_every_token_of_every_answer) {
  bool is_any_complete = false;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Request request = with_beams(5, 12, seed, 5);
    if (seed % 2 == 1) request.constraint = {GrammarKind::kRegex, "(ab?|cd){2,5}"};
    if (seed == 2) request.sampling.stop = {"a", "e", "o"};
    const auto plain = all_of(complete(*engine_, request));
    request.sampling.explain = true;
    std::vector<std::vector<TokenEvent>> answers(5);
    const auto keep = [&](const TokenEvent& event) { answers[static_cast<size_t>(event.choice)].push_back(event); };
    ASSERT_TRUE(engine_->generate(request, keep));
    for (size_t i = 0; i < plain.size(); ++i) {
      if (plain[i].tokens.empty()) continue;
      expect_true_trace(answers[i], plain[i], 5);
      is_any_complete |= plain[i].finish == FinishReason::kStopEos || plain[i].finish == FinishReason::kStopString;
    }
  }
  EXPECT_TRUE(is_any_complete);
}

TEST_F(Beams, give_the_same_answers_in_any_company_pool_and_chunking) {
  std::vector<Request> requests;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    requests.push_back(with_beams(2 + static_cast<int32_t>(seed % 3), 30, 30 + seed));
    if (seed % 2 == 1) requests.back().sampling.ignore_eos = true;
  }
  std::vector<Completion> expected;
  for (const Request& request : requests) expected.push_back(complete(*engine_, request));
  const auto check = [&](const char* what, auto change) {
    EngineOptions options = options_;
    change(options);
    const auto engine = testing::open_or_fail(options);
    const auto together = testing::Crowd(*engine).run(requests);
    for (size_t i = 0; i < requests.size(); ++i) testing::expect_same(together[i], expected[i], what);
    expect_nothing_is_held(*engine);
    return engine->stats().n_preemptions;
  };
  check("at once", [](EngineOptions&) {});
  check("two threads", [](EngineOptions& o) { o.n_threads = 2; });
  check("small chunks", [](EngineOptions& o) { o.max_rows = 16; });
  check("few places", [](EngineOptions& o) { o.max_running = 4; });
  check("with drafts", [](EngineOptions& o) { o.speculation = Speculation::kNgram; });
  EXPECT_GT(check("one context of blocks",
                  [](EngineOptions& o) {
                    o.kv_blocks = 4;
                    o.prefix_cache = false;
                  }),
            0);
}

TEST_F(Beams, obey_a_constraint_each_for_itself) {
  Request request = with_beams(4, 20, 11, 4);
  request.constraint = {GrammarKind::kRegex, "(ab|cd){2,3}"};
  for (const CompletedChoice& answer : all_of(complete(*engine_, request))) {
    ASSERT_EQ(answer.finish, FinishReason::kStopEos);
    ASSERT_TRUE(answer.text.size() == 4 || answer.text.size() == 6) << answer.text;
    for (size_t i = 0; i < answer.text.size(); i += 2)
      EXPECT_TRUE(answer.text.substr(i, 2) == "ab" || answer.text.substr(i, 2) == "cd") << answer.text;
  }
}

TEST_F(Beams, that_find_fewer_answers_than_asked_for_say_so) {
  Request request = with_beams(4, 1, 2, 4);
  request.sampling.allowed_token_ids = {40, 41};
  const Completion found = complete(*engine_, request);
  ASSERT_EQ(found.more_choices.size(), 3u);
  EXPECT_EQ(found.more_choices[0].tokens.size(), 1u);
  EXPECT_TRUE(found.more_choices[1].tokens.empty());
  ASSERT_EQ(found.summary.warnings.size(), 1u);
  EXPECT_NE(found.summary.warnings[0].find("found 2 different answers"), std::string::npos);
}

TEST_F(Beams, that_stop_early_are_no_better_than_those_that_go_on) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Request request = with_beams(3, 10, seed);
    const double early = complete(*engine_, request).score.value_or(0.0);
    request.beams->early_stopping = false;
    EXPECT_GE(complete(*engine_, request).score.value_or(0.0), early) << seed;
  }
}

TEST_F(Beams, a_cancelled_search_leaves_nothing_behind) {
  Request request = with_beams(8, 100, 1, 2);
  request.sampling.ignore_eos = true;
  std::atomic<int> n_ended = 0;
  std::promise<void> done;
  const auto id = engine_->submit(request, [&](const TokenEvent& event) {
    EXPECT_EQ(event.finish, FinishReason::kCancelled);
    ++n_ended;
    if (event.summary) done.set_value();
  });
  ASSERT_TRUE(id);
  while (engine_->stats().n_running < 8) std::this_thread::yield();
  ASSERT_TRUE(engine_->cancel(*id));
  done.get_future().wait();
  EXPECT_EQ(n_ended, 2);
  complete(*engine_, greedy({TokenPrompt{5}}, 1));  // a step later
  expect_nothing_is_held(*engine_);
}

TEST_F(Beams, what_they_cannot_do_is_refused_by_its_name) {
  const auto refused = [&](const char* param, auto change) {
    Request request = with_beams(2, 4, 1);
    change(request);
    const auto result = engine_->generate(request);
    ASSERT_FALSE(result) << param;
    EXPECT_EQ(result.error().field, param) << result.error().message;
  };
  for (const int32_t width : {-1, 0, 17, std::numeric_limits<int32_t>::max()})
    refused("beams", [&](Request& r) { r.beams->width = width; });
  refused("n", [](Request& r) { r.n = 3; });
  for (const double penalty : {-10.5, 11.0, 1e308, std::numeric_limits<double>::quiet_NaN()})
    refused("length_penalty", [&](Request& r) { r.beams->length_penalty = penalty; });
  const auto explained = [](Request& r, int32_t width) {
    r.sampling.explain = true;
    r.beams->width = width;
    r.sampling.ignore_eos = true;
  };
  refused("explain", [&](Request& r) {
    explained(r, 4);
    r.sampling.max_tokens = kMaxExplainedRows;
    r.on_context_full = OnContextFull::kCrop;
  });
  refused("explain", [&](Request& r) {
    explained(r, 1);
    r.sampling.max_tokens.reset();
    r.on_context_full = OnContextFull::kCrop;
  });
}

}  // namespace
}  // namespace candor
