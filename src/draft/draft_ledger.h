#pragma once
// What drafts of one text have cost and gained, over all of its drafters, and how good each of them is.
//
// Every draft is paid for beforehand, out of what earlier ones have gained, of a hundredth of the time that plain
// decoding would have taken so far, and of the time of one step: by the costs given, no text takes more than 1 % and
// one step longer than without drafts, at no moment, whoever drafts and whichever drafts are accepted. What texts have
// gained beyond their own needs they may lend to later ones (lend()): then that holds for all of them together. One for
// each sequence; engine thread only.

#include <array>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "candor/drafts.h"
#include "draft/draft_length.h"

namespace candor::draft {

// What a step of the text drafts.
struct DraftedStep {
  DraftSource source = DraftSource::kNgram;
  int32_t n_drafts = 0;  // 0: nobody drafts
  double plain = 0.0;    // what the step takes without drafts
  double extra = 0.0;    // what its drafts add
};

class DraftLedger {
 public:
  DraftLength& of(DraftSource source) { return lengths_[static_cast<size_t>(source)]; }
  const DraftLength& of(DraftSource source) const { return lengths_[static_cast<size_t>(source)]; }

  // What it may spend besides; and what it has gained beyond `needed`, which it gives away.
  void lend(double time) { budget_ += time; }
  double give(double needed);
  // DraftLength::choose() and trial(), within what there is to spend.
  DraftOffer offer(DraftSource source, int32_t most, const DraftCosts& costs) const;
  DraftOffer trial(DraftSource source, int32_t most, const DraftCosts& costs) const;
  // Before every step.
  void pay(const DraftedStep& step);
  // After it: n_drafted were verified (0: none were), the first n_accepted of them accepted. What was paid for; then
  // nothing is, until the next pay().
  DraftedStep record(int32_t n_drafted, int32_t n_accepted);
  // The text, of which n_made tokens are output, has gone on: guesses of drafters that nobody verified are judged.
  void judge(std::span<const TokenId> text, int64_t n_made);

 private:
  std::array<DraftLength, kDraftSources> lengths_{};
  double budget_ = 0.0;   // what drafts may cost from here on
  DraftedStep step_{};    // in the making
  int64_t n_judged_ = 0;  // tokens of output
};

}  // namespace candor::draft
