#include "draft/drafter_pick.h"

namespace candor::draft {
namespace {

int32_t begin(const Candidate& candidate, int32_t n_drafts, DraftRequest& request) {
  request.n_drafts = n_drafts;
  request.drafts.clear();
  return candidate.drafter->begin(request);
}

// A free drafter tells how many it has before it is picked.
int32_t most_of(const Candidate& candidate, int32_t most, DraftLedger& ledger, DraftRequest& request) {
  if (!candidate.drafter->is_free()) return most;
  const int32_t n_drafts = begin(candidate, most, request);
  ledger.of(candidate.source).guess(request.drafts);
  return n_drafts;
}

}  // namespace

DrafterPick pick_drafter(std::span<const Candidate> candidates, int32_t most, DraftLedger& ledger,
                         DraftRequest& request) {
  DrafterPick pick;
  DraftOffer best;
  const auto take_better = [&](const Candidate& candidate, const DraftOffer& offer) {
    if (offer.n_drafts == 0 || offer.gain <= best.gain) return;
    best = offer;
    pick.candidate = &candidate;
  };
  request.drafts.clear();
  if (most <= 0) return pick;
  for (const Candidate& candidate : candidates) {
    const int32_t n_most = most_of(candidate, most, ledger, request);
    take_better(candidate, ledger.offer(candidate.source, n_most, *candidate.costs));
  }
  for (const Candidate& candidate : candidates) {
    if (!candidate.drafter->is_free()) take_better(candidate, ledger.trial(candidate.source, most, *candidate.costs));
  }
  request.drafts.clear();
  if (pick.candidate != nullptr) pick.n_drafts = begin(*pick.candidate, best.n_drafts, request);
  return pick;
}

}  // namespace candor::draft
