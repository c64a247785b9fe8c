#include "accuracy/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backend/all/make_backend.h"
#include "base/philox.h"
#include "support/model_runner.h"

namespace candor::testing {
namespace {

constexpr float kClearGap = 0.1f;

size_t top_of(std::span<const float> logits) {
  return static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
}

float gap_of(std::span<const float> logits) {
  std::vector<float> copy(logits.begin(), logits.end());
  std::ranges::partial_sort(copy, copy.begin() + 2, std::greater{});
  return copy[0] - copy[1];
}

// Inverse of the cumulative distribution of softmax(logits) at u.
TokenId draw(std::span<const float> logits, double u) {
  const double largest = static_cast<double>(*std::ranges::max_element(logits));
  double total = 0.0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - largest);
  double left = u * total;
  for (size_t i = 0; i < logits.size(); ++i) {
    left -= std::exp(static_cast<double>(logits[i]) - largest);
    if (left < 0.0) return static_cast<TokenId>(i);
  }
  return static_cast<TokenId>(logits.size() - 1);
}

// Sums over positions, before they become means.
struct Tally {
  Comparison counts;
  std::vector<double> truth_logprobs;
  std::vector<double> other_logprobs;

  void add(std::span<const float> truth, std::span<const float> other) {
    ++counts.n_positions;
    counts.mean_kl += model::kl_divergence(truth, other);
    for (size_t i = 0; i < truth.size(); ++i) {
      counts.worst_logit =
          std::max(counts.worst_logit, std::abs(static_cast<double>(truth[i]) - static_cast<double>(other[i])));
    }
    if (gap_of(truth) <= kClearGap) return;
    ++counts.n_clear;
    counts.same_top += top_of(truth) == top_of(other) ? 1.0 : 0.0;
  }
  Comparison means() const {
    Comparison result = counts;
    result.mean_kl /= static_cast<double>(counts.n_positions);
    result.same_top /= static_cast<double>(counts.n_clear);
    result.truth_perplexity = model::perplexity(truth_logprobs);
    result.other_perplexity = model::perplexity(other_logprobs);
    return result;
  }
};

}  // namespace

Subject open_subject(const formats::ModelFile& file, const std::string& backend, int32_t max_tokens) {
  Subject subject;
  auto made = backend::make_backend(backend, {.n_threads = 2});
  EXPECT_TRUE(made) << made.error().message;
  if (!made) return {};
  subject.backend = std::move(*made);
  auto loaded = model::Model::load(file, *subject.backend, {});
  EXPECT_TRUE(loaded) << loaded.error().message;
  if (!loaded) return {};
  subject.model = std::move(*loaded);
  auto scorer =
      model::Scorer::make(*subject.model, *subject.backend,
                          {.max_tokens = max_tokens, .chunk_rows = 64, .kv_type = subject.backend->info().default_kv});
  EXPECT_TRUE(scorer) << scorer.error().message;
  if (!scorer) return {};
  subject.scorer = std::move(*scorer);
  return subject;
}

Comparison compare(Subject& truth, Subject& other, std::span<const Text> texts) {
  Tally tally;
  tally.counts.same_top = 0.0;
  for (const Text& text : texts) {
    std::vector<Logits> rows;
    EXPECT_TRUE(truth.scorer->visit_logits(
        text, [&](size_t, std::span<const float> logits) { rows.emplace_back(logits.begin(), logits.end()); }));
    EXPECT_TRUE(other.scorer->visit_logits(text, [&](size_t i, std::span<const float> logits) {
      tally.add(rows[i], logits);
      if (i + 1 == text.size()) return;
      tally.truth_logprobs.push_back(model::logprob_of(rows[i], text[i + 1]));
      tally.other_logprobs.push_back(model::logprob_of(logits, text[i + 1]));
    }));
  }
  return tally.means();
}

void expect_within_contract(const std::string& name, const Comparison& comparison, double slack) {
  std::printf(
      "  %-16s KL %.2e, same top token %.2f %% of %lld clear positions, largest difference of a logit %.3f, "
      "perplexity %.4f -> %.4f (%+.3f %%)\n",
      name.c_str(), comparison.mean_kl, 100.0 * comparison.same_top, static_cast<long long>(comparison.n_clear),
      comparison.worst_logit, comparison.truth_perplexity, comparison.other_perplexity,
      100.0 * comparison.perplexity_change());
  EXPECT_LE(comparison.mean_kl, slack * 1e-3) << name;
  EXPECT_GE(comparison.same_top, 1.0 - slack * 0.01) << name;
  EXPECT_LE(std::abs(comparison.perplexity_change()), slack * 0.005) << name;
  EXPECT_GT(comparison.n_clear, 0) << name;
}

Text sample_text(Subject& subject, TokenId first, int32_t n_tokens, uint64_t seed) {
  // Whole prefixes again and again would cost n^2: a runner of its own would hide the scorer's K/V, so steps of one
  // row.
  Text text = {first};
  const auto blocks = static_cast<size_t>(n_tokens / backend::kBlockTokens + 1);
  auto kv = subject.backend->make_kv(subject.model->kv_layout(subject.backend->info().default_kv),
                                     {static_cast<int32_t>(blocks), 2});
  EXPECT_TRUE(kv);
  std::vector<BlockId> table(blocks);
  for (size_t i = 0; i < blocks; ++i) table[i] = static_cast<BlockId>(i);
  const int32_t out_row = 0;
  while (static_cast<int32_t>(text.size()) < n_tokens) {
    const int32_t position = static_cast<int32_t>(text.size()) - 1;
    const backend::SeqSlice slice{0, 1, position, position == 0 ? kNoState : position % 2};
    const backend::StateSave save{0, (position + 1) % 2};
    const backend::StepBatch batch{std::span(&text.back(), 1),   std::span(&position, 1), std::span(&slice, 1), table,
                                   static_cast<int32_t>(blocks), std::span(&out_row, 1), std::span(&save, 1)};
    const backend::LogitsView logits = subject.backend->read_logits(subject.model->launch(batch, **kv));
    const uint32_t word = random_words(seed, 0, static_cast<uint64_t>(position))[0];
    text.push_back(draw(logits.row(0), static_cast<double>(unit_float(word))));
  }
  return text;
}

double perplexity_of(Subject& subject, std::span<const Text> texts) {
  std::vector<double> all;
  for (const Text& text : texts) {
    const auto logprobs = subject.scorer->logprobs(text);
    EXPECT_TRUE(logprobs) << logprobs.error().message;
    if (logprobs) all.insert(all.end(), logprobs->begin(), logprobs->end());
  }
  return model::perplexity(all);
}

}  // namespace candor::testing
