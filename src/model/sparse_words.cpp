#include "model/sparse_words.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rounded_math.h"

namespace candor::model {
namespace {

double activated(double logit, int32_t n_logs) {
  double value = std::isnan(logit) ? logit : std::max(logit, 0.0);
  for (int32_t i = 0; i < n_logs && value > 0.0; ++i) value = rounded_log(1.0 + value);
  return value;
}

}  // namespace

float token_weight(const SparseHead& head, std::span<const float> hidden) {
  return run_layers(head.of_token, hidden).front();
}

void add_logits(const SparseHead& head, std::span<const float> logits, std::vector<double>& words) {
  if (words.empty()) words.assign(logits.size(), head.adds ? 0.0 : -std::numeric_limits<double>::infinity());
  for (size_t word = 0; word < logits.size(); ++word) {
    const auto logit = static_cast<double>(logits[word]);
    if (head.adds) {
      words[word] += activated(logit, head.n_logs);
    } else if (!(logit <= words[word])) {
      words[word] = logit;
    }
  }
}

std::vector<WordWeight> sparse_vector(const SparseHead& head, std::span<const double> words,
                                      std::vector<WordWeight> tokens) {
  std::vector<WordWeight> result;
  for (size_t word = 0; word < words.size(); ++word) {
    const double weight = head.adds ? words[word] : activated(words[word], head.n_logs);
    if (!(weight <= 0.0)) result.push_back({static_cast<TokenId>(word), static_cast<float>(weight)});
  }
  std::ranges::stable_sort(tokens, {}, &WordWeight::token);
  for (const WordWeight& row : tokens) {
    if (row.weight <= 0.0f) continue;
    const bool is_new = result.empty() || result.back().token != row.token;
    if (is_new) {
      result.push_back(row);
    } else if (!(row.weight <= result.back().weight)) {
      result.back().weight = row.weight;
    }
  }
  return result;
}

}  // namespace candor::model
