#include "sample/explainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sample/sampler.h"

namespace candor::sample {
namespace {

const kernels::KernelTable& kExplainedTable = *kernels::runnable_tables().back();

struct Explained {
  TokenExplanation explanation;
  TokenId token = kNoToken;

  const StageView& stage(std::string_view name) const {
    for (const StageView& one : explanation.stages) {
      if (one.name == name) return one;
    }
    ADD_FAILURE() << "no stage " << name;
    return explanation.stages.front();
  }
};

Explained explained(const std::vector<float>& logits, const ChainParams& chain, const std::vector<TokenId>& text = {}) {
  Explained result;
  Explainer explainer;
  Sampler sampler(kExplainedTable);
  PickRequest request{.logits = logits, .chain = chain};
  request.history = {text, text.size()};
  explainer.begin(result.explanation, request.history, chain.bans);
  request.observer = &explainer;
  Pick pick;
  EXPECT_TRUE(sampler.pick(request, pick));
  result.token = pick.token;
  request.observer = nullptr;
  Pick alone;
  EXPECT_TRUE(Sampler(kExplainedTable).pick(request, alone));
  EXPECT_EQ(alone.token, pick.token) << "who looks changes nothing";
  return result;
}

TEST(explainer, tells_what_a_stage_cut_and_how_much_of_the_probability) {
  std::vector<float> logits(300);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = -0.1f * static_cast<float>(i);
  ChainParams chain;
  chain.top_k = 20;
  const Explained one = explained(logits, chain);
  const StageView& top_k = one.stage("top_k");
  EXPECT_EQ(top_k.n_left, 20);
  ASSERT_EQ(top_k.cut.size(), 8u);
  EXPECT_EQ(top_k.cut.front().token, 20);  // the likeliest of them, though the best 8 were kept
  EXPECT_NEAR(top_k.cut_probability, std::exp(-2.0), 1e-6);
  EXPECT_TRUE(top_k.changed.empty());
}

TEST(explainer, shows_quotients_behind_temperatures) {
  ChainParams chain;
  chain.temperature = 0.25;
  chain.penalties.presence = 1.0;
  chain.stages = {Stage::kTemperature, Stage::kPenalties};
  const Explained one = explained({1.0f, -2.0f, 3.0f}, chain, {2});
  const StageView& tempered = one.stage("temperature");
  EXPECT_NEAR(tempered.best[0].logit, 12.0f, 1e-5f);
  EXPECT_NEAR(tempered.best[1].logit, 4.0f, 1e-5f);
  EXPECT_NEAR(tempered.best[2].logit, -8.0f, 1e-5f);
  EXPECT_NEAR(one.stage("penalties").best[0].logit, 11.0f, 1e-5f);
  EXPECT_NEAR(one.stage("logits").best[0].logit, 3.0f, 1e-5f);
}

TEST(explainer, tells_penalties_and_biases_by_token) {
  ChainParams chain;
  chain.penalties.frequency = 0.5;
  chain.bans.biases = {{0, 2.0f}};
  const Explained one = explained({1.0f, 2.0f, 3.0f}, chain, {1, 1, 2});
  const StageView& bans = one.stage("bans");
  ASSERT_EQ(bans.n_changed, 1);
  EXPECT_EQ(bans.changed[0].token, 0);
  EXPECT_FLOAT_EQ(bans.changed[0].after, 3.0f);
  const StageView& penalties = one.stage("penalties");
  ASSERT_EQ(penalties.n_changed, 2);
  EXPECT_EQ(penalties.changed[0].token, 2);
  EXPECT_EQ(penalties.changed[1].token, 1);
  EXPECT_EQ(penalties.changed[1].n_in_output, 2);
  EXPECT_FLOAT_EQ(penalties.changed[1].after, 1.0f);
}

TEST(explainer, weighs_what_xtc_took_out) {
  ChainParams chain;
  chain.xtc_probability = 1.0;
  chain.xtc_threshold = 0.2;
  const Explained one = explained({2.0f, 1.9f, 1.8f, -1.0f}, chain);
  const StageView& xtc = one.stage("xtc");
  EXPECT_EQ(xtc.n_left, 2);
  ASSERT_EQ(xtc.cut.size(), 2u);
  const auto& logits = one.stage("logits").best;
  EXPECT_NEAR(xtc.cut_probability, logits[0].probability + logits[1].probability, 1e-6);
}

}  // namespace
}  // namespace candor::sample
