// The chain against an independent implementation: scripts/make_sampler_cases.py computed the cases with NumPy, in
// doubles and by full sorts.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "sample/chain.h"
#include "sample/params.h"
#include "support/shared_data.h"

namespace candor::sample {
namespace {

using Json = nlohmann::json;

constexpr double kBound = 1e-6;  // logits are f32: a probability carries about 2e-7

uint64_t splitmix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

std::vector<float> logits_of(const Json& c) {
  std::vector<float> logits;
  for (uint64_t i = 0; i < c["vocab"].get<uint64_t>(); ++i) {
    const int64_t thousandths = static_cast<int64_t>(splitmix(c["seed"].get<uint64_t>() + i) % 16001) - 8000;
    logits.push_back(static_cast<float>(static_cast<double>(thousandths) / 1000.0));
  }
  return logits;
}

std::vector<TokenId> text_of(const Json& c) {
  std::vector<TokenId> tokens;
  const uint64_t seed = c["seed"];
  for (uint64_t i = 0; i < c["n_text"].get<uint64_t>(); ++i) {
    const uint64_t from = i % 7 == 0 ? i : i % c["period"].get<uint64_t>();
    tokens.push_back(static_cast<TokenId>(splitmix(seed + 100000 + from) % c["vocab"].get<uint64_t>()));
  }
  return tokens;
}

SamplingParams params_in(const Json& p) {
  SamplingParams sampling;
  sampling.temperature = p.value("temperature", sampling.temperature);
  sampling.dynatemp_range = p.value("dynatemp_range", sampling.dynatemp_range);
  sampling.dynatemp_exponent = p.value("dynatemp_exponent", sampling.dynatemp_exponent);
  sampling.top_k = p.value("top_k", sampling.top_k);
  sampling.typical_p = p.value("typical_p", sampling.typical_p);
  sampling.top_p = p.value("top_p", sampling.top_p);
  sampling.min_p = p.value("min_p", sampling.min_p);
  sampling.xtc_probability = p.value("xtc_probability", sampling.xtc_probability);
  sampling.xtc_threshold = p.value("xtc_threshold", sampling.xtc_threshold);
  sampling.repetition_penalty = p.value("repetition_penalty", sampling.repetition_penalty);
  sampling.frequency_penalty = p.value("frequency_penalty", sampling.frequency_penalty);
  sampling.presence_penalty = p.value("presence_penalty", sampling.presence_penalty);
  sampling.repeat_last_n = p.value("repeat_last_n", sampling.repeat_last_n);
  sampling.dry_multiplier = p.value("dry_multiplier", sampling.dry_multiplier);
  sampling.dry_base = p.value("dry_base", sampling.dry_base);
  sampling.dry_allowed_length = p.value("dry_allowed_length", sampling.dry_allowed_length);
  sampling.dry_penalty_last_n = p.value("dry_penalty_last_n", sampling.dry_penalty_last_n);
  sampling.no_repeat_ngram_size = p.value("no_repeat_ngram_size", sampling.no_repeat_ngram_size);
  sampling.min_tokens = p.value("min_tokens", sampling.min_tokens);
  sampling.samplers = p.value("samplers", sampling.samplers);
  return sampling;
}

ChainParams params_of(const Json& p, int32_t n_vocab) {
  auto made = make_chain_params(params_in(p));
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  ChainParams params = made ? *made : ChainParams{};
  params.dry.breakers = p.value("breakers", params.dry.breakers);
  params.bans.banned = p.value("banned", params.bans.banned);
  params.bans.bad_words = p.value("bad_words", params.bans.bad_words);
  params.bans.ends = p.value("ends", params.bans.ends);
  for (const Json& bias : p.value("logit_bias", Json::array())) params.bans.biases.push_back({bias[0], bias[1]});
  if (!p.contains("allowed")) return params;
  params.bans.allowed.emplace(n_vocab);
  for (const Json& token : p["allowed"]) params.bans.allowed->allow(token);
  return params;
}

TEST(sampler_cases, the_chain_leaves_and_draws_what_numpy_leaves_and_draws) {
  std::ifstream file(testing::project_file("tests/sampler/cases.json"));
  const Json cases = Json::parse(file);
  ASSERT_GE(cases.size(), 1000u);
  Candidates candidates(*kernels::runnable_tables().back());
  ChainScratch scratch;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json& c = cases[i];
    const std::vector<TokenId> text = text_of(c);
    const History history{text, c["n_output"].get<size_t>()};
    const ChainParams params = params_of(c["params"], c["vocab"]);
    ASSERT_TRUE(candidates.load(logits_of(c)).has_value()) << i;
    apply_bans(candidates, history, params.bans);
    ASSERT_TRUE(candidates.settle().has_value()) << i;
    ASSERT_TRUE(run_chain(candidates, {params, history, c["words"][1]}, scratch).has_value()) << i;
    ASSERT_EQ(candidates.count(), c["n_left"].get<size_t>()) << "case " << i << " " << c.dump();
    const double total = static_cast<double>(candidates.weigh());
    for (size_t rank = 0; rank < c["best"].size(); ++rank) {
      const Candidate candidate = candidates.at(rank);
      ASSERT_NEAR(static_cast<double>(candidate.weight) / total, c["best"][rank][1].get<double>(), kBound) << i;
    }
    ASSERT_EQ(draw(candidates, c["words"][0]), c["token"].get<TokenId>()) << i;
  }
}

}  // namespace
}  // namespace candor::sample
