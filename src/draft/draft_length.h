#pragma once
// How many tokens of one drafter are worth verifying in a step of one text: the number with the most tokens for the
// time, from the share of its drafts that were accepted lately and from what drafts cost. 0 where drafting does not
// pay; then a few single drafts are tried now and again, ever more rarely. A drafter whose drafts cost nothing to make
// needs no trials: what it would have drafted is compared with what the text then said. One for each drafter of each
// sequence (draft_ledger.h). Nothing here changes an answer: it only decides how many tokens one step gives.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/ids.h"

namespace candor::draft {

inline constexpr int32_t kMaxDrafts = 15;
inline constexpr double kUsualShare = 0.7;  // of drafts that are accepted, where nothing is known

// In any one unit of time.
struct DraftCosts {
  double plain = 0.0;                             // a step without drafts
  std::array<double, kMaxDrafts + 1> extra = {};  // what n drafts add to it, making them included; does not fall
  double once = 0.0;  // of `extra`, what only the first step takes of several that draft: reading the text
};

// So many drafts, and the tokens for the time that they are expected to give, as a ratio to those without.
struct DraftOffer {
  int32_t n_drafts = 0;
  double gain = 0.0;
};

class DraftLength {
 public:
  static constexpr size_t kMostGuesses = 4;

  // Before the first step: the share of its drafts that is accepted of other texts.
  void expect(double share) { n_accepted_ = share * n_tried_; }
  // At most `most`, whose cost is affordable; no drafts where none pay.
  DraftOffer choose(int32_t most, const DraftCosts& costs, double affordable) const;
  // One draft where it is time to try one, with the gain that up to `most` would have if all were accepted; else none.
  DraftOffer trial(int32_t most, const DraftCosts& costs, double affordable) const;
  // After every step: n_drafted of its drafts were verified (0: none were), the first n_accepted of them accepted.
  void record(int32_t n_drafted, int32_t n_accepted);

  // What it would draft, if it is not going to be verified; the first kMostGuesses are kept.
  void guess(std::span<const TokenId> drafts);
  // What the text then said: compared once.
  void judge(std::span<const TokenId> said);

  double acceptance() const { return n_accepted_ / n_tried_; }
  // Whether that has changed since the last call.
  bool take_news() { return std::exchange(has_news_, false); }

 private:
  void count(int32_t n_tried, int32_t n_accepted);

  // Decaying counts; the start is an assumption that two or three steps correct.
  double n_accepted_ = 2.0 * kUsualShare;
  double n_tried_ = 2.0;
  int32_t n_idle_ = 0;     // steps since the last draft
  int32_t patience_ = 32;  // steps until the next trial
  int32_t n_trial_ = 0;    // drafts that are left of one
  std::array<TokenId, kMostGuesses> guesses_ = {};
  size_t n_guesses_ = 0;
  bool has_news_ = false;
};

}  // namespace candor::draft
