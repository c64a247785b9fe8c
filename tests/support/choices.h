#pragma once
// Choices of every kind over one row of logits, each by Sampler::pick() on the host and by Sampler::finish() from what
// was found of the row: the same tokens and logprobs, bit for bit.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backend/device_logits.h"
#include "kernels/kernels.h"
#include "sample/row_plan.h"
#include "sample/sampler.h"

namespace candor::testing {

struct ChoiceCase {
  std::string name{};
  sample::ChainParams chain{};
  bool has_mask = false;
  int32_t n_logprobs = -1;
  sample::LogprobsOf logprobs_of = sample::LogprobsOf::kModel;
};

inline std::vector<ChoiceCase> choice_cases(int32_t n_vocab) {
  using sample::ChainParams;
  using sample::Stage;
  std::vector<ChoiceCase> cases;
  const auto add = [&](std::string name, ChainParams chain) {
    for (const int32_t n_logprobs : {-1, 0, 5}) cases.push_back({name, chain, false, n_logprobs});
    cases.push_back({name + ", logprobs of the chain", chain, false, 3, sample::LogprobsOf::kChain});
    cases.push_back({name + ", masked", chain, true, 4});
  };
  add("plain", {});
  add("greedy", {.temperature = 0.0});
  add("cool", {.temperature = 0.7});
  add("hot", {.temperature = 3.0});
  add("top_k", {.temperature = 0.8, .top_k = 40});
  add("top_k 1", {.temperature = 1.2, .top_k = 1});
  add("top_p", {.temperature = 0.9, .top_p = 0.9});
  add("top_p, flat", {.temperature = 2.0, .top_p = 0.98});
  add("min_p", {.temperature = 1.1, .min_p = 0.05});
  add("all cuts", {.temperature = 0.6, .top_k = 50, .typical_p = 0.9, .top_p = 0.95, .min_p = 0.02});
  add("typical alone", {.typical_p = 0.5});
  add("a temperature that varies", {.temperature = 1.0, .temperature_range = 0.5});
  add("xtc", {.xtc_probability = 0.5, .xtc_threshold = 0.02});
  add("temperature last", {.temperature = 0.5,
                           .top_k = 20,
                           .top_p = 0.9,
                           .stages = {Stage::kPenalties, Stage::kTopK, Stage::kTopP, Stage::kTemperature}});
  ChainParams penalties{.temperature = 0.9, .top_k = 30};
  penalties.penalties = {1.3, 0.4, 0.2, sample::kWholeWindow};
  add("penalties", penalties);
  penalties.stages = {Stage::kTemperature, Stage::kTopK, Stage::kPenalties};
  add("penalties last", penalties);
  penalties.temperature = 0.0;
  penalties.dry = {.multiplier = 0.8, .base = 1.5, .allowed_length = 2};
  penalties.stages = {Stage::kDry, Stage::kPenalties};
  add("greedy with penalties and DRY", penalties);
  ChainParams bans{.temperature = 0.0};
  const auto token = [&](int32_t i) { return static_cast<TokenId>((int64_t{i} * 7919) % n_vocab); };
  for (int32_t i = 0; i < 30; ++i) bans.bans.biases.push_back({token(i % 20), i % 3 == 0 ? 6.0f : -3.0f});
  for (int32_t i = 0; i < 12; ++i) bans.bans.banned.push_back(token(i + 15));
  bans.bans.no_repeat_ngram = 2;
  add("greedy with biases and bans", bans);
  bans.temperature = 0.8;
  bans.top_p = 0.9;
  bans.penalties = {1.1, 0.0, 0.5, 16};
  bans.bans.allowed.emplace(n_vocab);
  for (TokenId i = 0; i < n_vocab; i += 3) bans.bans.allowed->allow(i);
  add("allowed ids, biases, bans, penalties, top_p", bans);
  ChainParams nothing{};
  for (TokenId i = 0; i < n_vocab; ++i) nothing.bans.banned.push_back(i);
  cases.push_back({"everything banned", nothing, false, 2});
  ChainParams overflows{};
  overflows.bans.biases = {{token(1), 3e38f}, {token(1), 3e38f}};
  cases.push_back({"a bias that overflows", overflows, false, 2});
  return cases;
}

// Chooses by every case from rows of a device. Counts how often the row itself had to be asked for.
class ChoiceComparison {
 public:
  explicit ChoiceComparison(int32_t n_vocab) : n_vocab_(n_vocab), cases_(choice_cases(n_vocab)), mask_(n_vocab) {
    std::mt19937 random(static_cast<uint32_t>(n_vocab));
    for (TokenId i = 0; i < n_vocab; ++i) {
      if (random() % 4 != 0) mask_.allow(i);
    }
    for (int i = 0; i < 40; ++i) text_.push_back(static_cast<TokenId>(random() % static_cast<uint32_t>(n_vocab)));
    text_.insert(text_.end(), text_.end() - 6, text_.end() - 2);
  }

  const std::vector<ChoiceCase>& cases() const { return cases_; }
  int n_finished() const { return n_finished_; }
  int n_asked() const { return n_asked_; }

  // rows: [n_rows, n_cols] on the host, n_cols >= n_vocab, as the device has them.
  // stride: of the cases, every so many; other ones for the next row.
  void compare(std::span<const float> rows, int32_t n_rows, int32_t n_cols, backend::DeviceLogits& device,
               size_t stride = 1) {
    std::vector<sample::RowPlan> plans;
    std::vector<sample::PickRequest> requests;
    std::vector<backend::RowQuery> queries;
    std::vector<size_t> places, cases;
    plans.reserve(static_cast<size_t>(n_rows) * cases_.size());
    for (int32_t row = 0; row < n_rows; ++row) {
      for (size_t i = static_cast<size_t>(row) % stride; i < cases_.size(); i += stride) {
        requests.push_back(request_of(rows.subspan(static_cast<size_t>(row) * static_cast<size_t>(n_cols)), row, i));
        plans.emplace_back();
        places.push_back(SIZE_MAX);
        cases.push_back(i);
        ++n_asked_;
        if (!planner_.plan(requests.back(), row, n_vocab_, plans.back())) continue;
        places.back() = queries.size();
        queries.push_back(plans.back().choice);
        if (plans.back().model) queries.push_back(*plans.back().model);
      }
    }
    const auto found = device.summarize(queries);
    ASSERT_EQ(found.size(), queries.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      if (places[i] == SIZE_MAX) continue;
      const backend::RowSummary& choice = found[places[i]];
      const backend::RowSummary& model = plans[i].model ? found[places[i] + 1] : choice;
      check(requests[i], {&plans[i], &choice, &model, {&device, places[i]}}, cases_[cases[i]].name);
    }
  }

 private:
  sample::PickRequest request_of(std::span<const float> row, int32_t number, size_t i) const {
    const ChoiceCase& each = cases_[i];
    sample::PickRequest request{.logits = row.first(static_cast<size_t>(n_vocab_)), .chain = each.chain};
    request.mask = each.has_mask ? &mask_ : nullptr;
    request.history = {text_, 25};
    request.key = {77, static_cast<uint32_t>(number), 1000 + i};
    request.n_logprobs = each.n_logprobs;
    request.logprobs_of = each.logprobs_of;
    return request;
  }

  void check(sample::PickRequest request, const sample::RowFindings& found, const std::string& name) {
    sample::Pick wanted, seen;
    const bool is_chosen = sampler_.pick(request, wanted).has_value();
    request.logits = {};
    request.mask = nullptr;
    const bool is_finished = sampler_.finish(request, found, seen);
    if (!is_finished) return;
    ++n_finished_;
    EXPECT_TRUE(is_chosen) << name;
    EXPECT_EQ(seen.token, wanted.token) << name;
    EXPECT_EQ(seen.logprob, wanted.logprob) << name;
    EXPECT_EQ(seen.top, wanted.top) << name;
  }

  int32_t n_vocab_;
  std::vector<ChoiceCase> cases_;
  constrain::TokenMask mask_;
  std::vector<TokenId> text_;
  sample::RowPlanner planner_;
  sample::Sampler sampler_{*kernels::runnable_tables().back()};
  int n_finished_ = 0;
  int n_asked_ = 0;
};

// A row as models give them: the best stand out, most are far behind. n_equal: so many share the greatest.
inline std::vector<float> model_row(int32_t n, uint64_t seed, float spread = 2.5f, int32_t n_equal = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> usual(0.0f, spread);
  std::vector<float> row(static_cast<size_t>(n));
  for (float& x : row) x = usual(random);
  for (int i = 0; i < 6; ++i) row[random() % row.size()] = 4.0f * spread + usual(random);
  for (int32_t i = 0; i < n_equal && n_equal > 1; ++i) row[random() % row.size()] = 9.0f * spread;
  return row;
}

}  // namespace candor::testing
