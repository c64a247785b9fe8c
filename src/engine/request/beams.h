#pragma once
// A beam search as the engine runs it: the search (scores alone), and what each of its unfinished texts needs beside a
// score: a sequence with K/V, its text so far, its constraint. Live text i of the search is live[i] here. Engine thread
// only.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "candor/event.h"
#include "constrain/masked_constraint.h"
#include "engine/request/kept_row.h"
#include "engine/request/output_text.h"
#include "sample/beam_scorer.h"

namespace candor::engine {

struct Beam {
  SequenceId sequence = 0;
  OutputText text;
  std::shared_ptr<constrain::MaskedConstraint> constraint{};  // nullptr: none
  KeptRow kept{};
};

// One step, for those who want to see it.
struct BeamTrace {
  std::vector<TokenExplanation> rows{};  // of live text i
  std::vector<BeamOption> options{};
};

struct Beams {
  explicit Beams(const sample::BeamParams& with) : params(with), search(with) {}

  int32_t width() const { return params.asked.width; }
  // REQUIRES: the sequence carries a live text.
  int32_t live_of(SequenceId sequence) const {
    int32_t i = 0;
    while (live[static_cast<size_t>(i)].sequence != sequence) ++i;
    return i;
  }

  sample::BeamParams params;
  sample::BeamScorer search;
  std::vector<Beam> live{};
  std::vector<SequenceId> free_sequences{};
  std::vector<BeamTrace> traces{};  // of every step, the one in the making last; empty where nobody wants to see it
  std::optional<Error> error{};     // of the last text that came to a dead end
  int64_t last_token_ns = -1;
};

}  // namespace candor::engine
