#include "draft/ngram.h"

#include <algorithm>
#include <cstddef>

namespace candor::draft {
namespace {

// The end, behind `first`, of the newest occurrence of the token that ends at most at `end`; `first`: there is none.
// Sixteen tokens at a time: most of a text is something else.
size_t newest_end(std::span<const TokenId> text, size_t first, size_t end, TokenId token) {
  constexpr size_t kBlock = 16;
  while (end >= first + kBlock) {
    bool is_inside = false;
    for (const TokenId one : text.subspan(end - kBlock, kBlock)) is_inside |= one == token;
    if (is_inside) break;
    end -= kBlock;
  }
  while (end > first && text[end - 1] != token) --end;
  return end;
}

// How many tokens before `end` equal those before the text's end, at most `most`.
int32_t agreement(std::span<const TokenId> text, size_t end, int32_t most) {
  int32_t n = 0;
  while (n < most && static_cast<size_t>(n) < end &&
         text[end - 1 - static_cast<size_t>(n)] == text[text.size() - 1 - static_cast<size_t>(n)]) {
    ++n;
  }
  return n;
}

}  // namespace

void draft_by_ngram(std::span<const TokenId> text, int32_t most, const NgramOptions& options,
                    std::vector<TokenId>& drafts) {
  if (most <= 0 || text.size() < 2) return;
  const size_t lookback = static_cast<size_t>(options.lookback);
  const size_t first = text.size() - std::min(text.size(), lookback);
  int32_t best = options.shortest - 1;
  size_t best_end = 0;
  for (size_t end = text.size() - 1; best < options.longest; --end) {
    end = newest_end(text, first, end, text.back());
    if (end <= first) break;
    const int32_t n = agreement(text, end, options.longest);
    if (n <= best) continue;
    best = n;
    best_end = end;
  }
  if (best_end == 0) return;
  const size_t n_drafts = std::min(static_cast<size_t>(most), text.size() - best_end);
  const auto begin = text.begin() + static_cast<std::ptrdiff_t>(best_end);
  drafts.insert(drafts.end(), begin, begin + static_cast<std::ptrdiff_t>(n_drafts));
}

}  // namespace candor::draft
