#pragma once
// What drafts gain by the measured costs of a model's steps, for each share of drafts that is accepted: how often a
// step with drafts gives its tokens sooner than steps without. Pure functions; any thread.

#include <cstdint>

#include "candor/options.h"

namespace candor::apps {

// So many sequences decode together, each behind so many tokens.
struct DraftCase {
  int32_t n_together = 1;
  int32_t n_past = 0;
  double acceptance = 0;  // of each draft, where those before it were accepted
};

struct DraftGain {
  int32_t n_drafts = 0;  // of each sequence, with which it is greatest; 0: drafts do not pay
  double ratio = 1.0;    // of the time without drafts
};

// The drafts of all sequences are made together.
DraftGain best_gain(const StepCosts& costs, const DraftCase& drafted);

}  // namespace candor::apps
