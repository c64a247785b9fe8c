#include "sample/penalties.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "sample/edit_list.h"

namespace candor::sample {
namespace {

// lengths[i]: how many tokens of `text`, read backwards from its end, equal those read backwards from i tokens before
// the end (Gusfield's Z algorithm on the reversed text), at most `most`.
void match_suffix(std::span<const TokenId> text, int32_t most, std::vector<int32_t>& lengths) {
  const int32_t n = static_cast<int32_t>(text.size());
  const auto at = [&](int32_t i) { return text[static_cast<size_t>(n - 1 - i)]; };
  lengths.assign(text.size(), 0);
  int32_t left = 0;
  int32_t right = 0;  // [left, right) equals the beginning
  for (int32_t i = 1; i < n; ++i) {
    int32_t length = i < right ? std::min(right - i, lengths[static_cast<size_t>(i - left)]) : 0;
    while (length < most && i + length < n && at(length) == at(i + length)) ++length;
    lengths[static_cast<size_t>(i)] = length;
    if (i + length > right) {
      left = i;
      right = i + length;
    }
  }
}

float dry_penalty(const DryParams& params, int64_t excess) {
  constexpr double kMost = 1e30;
  double penalty = params.multiplier;
  for (int64_t i = 0; i < excess && penalty < kMost; ++i) {
    const double next = penalty * params.base;
    if (next == penalty) break;
    penalty = next;
  }
  return static_cast<float>(std::min(penalty, kMost));
}

}  // namespace

template <class Row>
void apply_penalties(Row& row, const History& history, const PenaltyParams& params, TokenCounts& counts) {
  if (params.repetition != 1.0) {
    counts.count(newest(history.tokens, params.window));
    for (const TokenId token : counts.tokens()) row.repeat_less(token, static_cast<float>(params.repetition));
  }
  if (params.frequency != 0.0 || params.presence != 0.0) {
    counts.count(newest(history.output(), params.window));
    for (const TokenId token : counts.tokens()) {
      row.add(token, -static_cast<float>(counts.of(token) * params.frequency + params.presence));
    }
  }
}

template void apply_penalties(Candidates& row, const History& history, const PenaltyParams& params,
                              TokenCounts& counts);
template void apply_penalties(EditList& row, const History& history, const PenaltyParams& params, TokenCounts& counts);

template <class Row>
void apply_dry(Row& row, const History& history, const DryParams& params, DryScratch& scratch) {
  const std::span<const TokenId> text = newest(history.tokens, params.window);
  const auto is_breaker = [&](TokenId token) { return std::ranges::binary_search(params.breakers, token); };
  const auto last_breaker = std::find_if(text.rbegin(), text.rend(), is_breaker);
  const int32_t most = static_cast<int32_t>(last_breaker - text.rbegin());
  const int32_t needed = static_cast<int32_t>(std::clamp<int64_t>(params.allowed_length, 1, INT32_MAX));
  if (most < needed) return;
  match_suffix(text, most, scratch.lengths);
  const size_t n_ids = static_cast<size_t>(*std::ranges::max_element(text)) + 1;
  if (scratch.longest.size() < n_ids) scratch.longest.resize(n_ids);  // from here on nothing takes memory
  for (size_t i = 1; i < text.size(); ++i) {
    const size_t next = static_cast<size_t>(text[text.size() - i]);
    if (scratch.lengths[i] < needed) continue;
    scratch.longest[next] = std::max(scratch.longest[next], scratch.lengths[i]);
  }
  for (size_t i = 1; i < text.size(); ++i) {
    const TokenId next = text[text.size() - i];
    if (scratch.lengths[i] < needed) continue;
    const int32_t length = std::exchange(scratch.longest[static_cast<size_t>(next)], 0);
    if (length == 0 || is_breaker(next)) continue;
    row.add(next, -dry_penalty(params, length - params.allowed_length));
  }
}

template void apply_dry(Candidates& row, const History& history, const DryParams& params, DryScratch& scratch);
template void apply_dry(EditList& row, const History& history, const DryParams& params, DryScratch& scratch);

}  // namespace candor::sample
