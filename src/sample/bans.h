#pragma once
// Biases and bans: tokens that a request makes likelier, forbids, or alone allows. Applied to a row of logits before
// any stage of sampling (temperature, top-k and so on; chain.h). Pure functions.

#include <cstdint>
#include <optional>
#include <vector>

#include "constrain/token_mask.h"
#include "sample/candidates.h"
#include "sample/history.h"

namespace candor::sample {

struct TokenBias {
  TokenId token = kNoToken;
  float bias = 0.0f;
};

struct BanParams {
  std::vector<TokenBias> biases{};                // added
  std::vector<TokenId> banned{};                  // never chosen
  std::optional<constrain::TokenMask> allowed{};  // only these are chosen
  std::vector<std::vector<TokenId>> bad_words{};  // token sequences that are never completed
  int64_t no_repeat_ngram = 0;                    // no sequence of so many tokens appears twice in the text; 0 = off
  int64_t min_tokens = 0;                         // before so many of output, no token of `ends`
  std::vector<TokenId> ends{};

  bool is_on() const {
    return !biases.empty() || !banned.empty() || allowed.has_value() || !bad_words.empty() || no_repeat_ngram > 0 ||
           min_tokens > 0;
  }
};

// Row: Candidates, whose settle() is left to the caller, or EditList.
template <class Row>
void apply_bans(Row& row, const History& history, const BanParams& params);

}  // namespace candor::sample
