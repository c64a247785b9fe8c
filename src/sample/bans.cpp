#include "sample/bans.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace candor::sample {
namespace {

void ban(Candidates& candidates, TokenId token) {
  if (float* logit = candidates.find(token)) *logit = -std::numeric_limits<float>::infinity();
}

bool ends_with(std::span<const TokenId> text, std::span<const TokenId> end) {
  return text.size() >= end.size() && std::ranges::equal(text.last(end.size()), end);
}

void ban_repeated(Candidates& candidates, std::span<const TokenId> text, int64_t n) {
  if (n <= 0 || static_cast<uint64_t>(n) > text.size()) return;
  const size_t length = static_cast<size_t>(n) - 1;
  const std::span<const TokenId> suffix = text.last(length);
  for (size_t begin = 0; begin + length < text.size(); ++begin) {
    if (std::ranges::equal(text.subspan(begin, length), suffix)) ban(candidates, text[begin + length]);
  }
}

}  // namespace

void apply_bans(Candidates& candidates, const History& history, const BanParams& params) {
  if (params.allowed) candidates.restrict(*params.allowed);
  for (const TokenBias& bias : params.biases) {
    if (float* logit = candidates.find(bias.token)) *logit += bias.bias;
  }
  for (const TokenId token : params.banned) ban(candidates, token);
  for (const std::vector<TokenId>& word : params.bad_words) {
    if (ends_with(history.tokens, std::span(word).first(word.size() - 1))) ban(candidates, word.back());
  }
  ban_repeated(candidates, history.tokens, params.no_repeat_ngram);
  if (static_cast<int64_t>(history.n_output) < params.min_tokens) {
    for (const TokenId token : params.ends) ban(candidates, token);
  }
}

}  // namespace candor::sample
