#pragma once
// Which of several drafters drafts for a text in a step, and how much: the one with the most tokens for the time, by
// its own costs and by how many of its drafts were accepted lately. A drafter whose turn it is to be tried takes the
// place of a better one only where it would gain more if all its drafts were accepted. Engine thread only.

#include <cstdint>
#include <span>

#include "candor/drafts.h"
#include "draft/draft_ledger.h"
#include "draft/draft_length.h"
#include "draft/drafter.h"

namespace candor::draft {

// A drafter that may draft for the text, and what its drafts cost there. All are borrowed.
struct Candidate {
  DraftSource source = DraftSource::kNgram;
  Drafter* drafter = nullptr;
  const DraftCosts* costs = nullptr;
};

struct DrafterPick {
  const Candidate* candidate = nullptr;  // nullptr: nobody drafts
  int32_t n_drafts = 0;
};

// At most `most` drafts. The request has all but n_drafts and drafts; afterwards the drafter that was picked has begun
// it. Free drafters that were not picked leave their guesses in the ledger.
DrafterPick pick_drafter(std::span<const Candidate> candidates, int32_t most, DraftLedger& ledger,
                         DraftRequest& request);

}  // namespace candor::draft
