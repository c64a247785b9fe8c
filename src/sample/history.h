#pragma once
// The tokens before the one to be chosen, as the stages that look back see them. Borrowed for the duration of a call.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace candor::sample {

struct History {
  std::span<const TokenId> tokens{};  // prompt, then output; without what was cropped from the front
  size_t n_output = 0;                // of them, the newest

  std::span<const TokenId> output() const { return tokens.last(std::min(n_output, tokens.size())); }
};

inline constexpr int64_t kWholeWindow = -1;

// The newest `window` tokens; kWholeWindow = all.
inline std::span<const TokenId> newest(std::span<const TokenId> tokens, int64_t window) {
  if (window < 0 || static_cast<uint64_t>(window) >= tokens.size()) return tokens;
  return tokens.last(static_cast<size_t>(window));
}

// How often each token occurs. Reused; cleared in time linear in what it counted.
class TokenCounts {
 public:
  // Replaces what was counted before.
  void count(std::span<const TokenId> tokens);
  // Those that occur, in the order of their first occurrence.
  std::span<const TokenId> tokens() const { return seen_; }
  int32_t of(TokenId token) const { return counts_[static_cast<size_t>(token)]; }

 private:
  std::vector<int32_t> counts_;
  std::vector<TokenId> seen_;
};

inline void TokenCounts::count(std::span<const TokenId> tokens) {
  for (const TokenId token : seen_) counts_[static_cast<size_t>(token)] = 0;
  seen_.clear();
  for (const TokenId token : tokens) {
    const size_t i = static_cast<size_t>(token);
    if (i >= counts_.size()) counts_.resize(i + 1);
    if (counts_[i] == 0) seen_.push_back(token);  // first: what is not in it would stay counted
    ++counts_[i];
  }
}

}  // namespace candor::sample
