#include "sample/bans.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "sample/edit_list.h"

namespace candor::sample {
namespace {

bool ends_with(std::span<const TokenId> text, std::span<const TokenId> end) {
  return text.size() >= end.size() && std::ranges::equal(text.last(end.size()), end);
}

template <class Row>
void ban_repeated(Row& row, std::span<const TokenId> text, int64_t n) {
  if (n <= 0 || static_cast<uint64_t>(n) > text.size()) return;
  const size_t length = static_cast<size_t>(n) - 1;
  const std::span<const TokenId> suffix = text.last(length);
  for (size_t begin = 0; begin + length < text.size(); ++begin) {
    if (std::ranges::equal(text.subspan(begin, length), suffix)) row.ban(text[begin + length]);
  }
}

}  // namespace

template <class Row>
void apply_bans(Row& row, const History& history, const BanParams& params) {
  if (params.allowed) row.restrict(*params.allowed);
  for (const TokenBias& bias : params.biases) row.add(bias.token, bias.bias);
  for (const TokenId token : params.banned) row.ban(token);
  for (const std::vector<TokenId>& word : params.bad_words) {
    if (ends_with(history.tokens, std::span(word).first(word.size() - 1))) row.ban(word.back());
  }
  ban_repeated(row, history.tokens, params.no_repeat_ngram);
  if (static_cast<int64_t>(history.n_output) < params.min_tokens) {
    for (const TokenId token : params.ends) row.ban(token);
  }
}

template void apply_bans(Candidates& row, const History& history, const BanParams& params);
template void apply_bans(EditList& row, const History& history, const BanParams& params);

}  // namespace candor::sample
