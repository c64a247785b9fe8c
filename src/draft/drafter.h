#pragma once
// The interface of speculative decoding: a drafter proposes tokens that may follow a text, and the model verifies them
// in its next step. Drafts never change an answer, only how many tokens a step yields. An engine may have several, of
// which one at most drafts for a sequence in a step (drafter_pick.h): each follows a text also where others draft.
// Engine thread only.

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "constrain/mask_worker.h"
#include "constrain/masked_constraint.h"
#include "sample/chain.h"
#include "sample/sampler.h"

namespace candor::draft {

struct DraftRequest {
  SequenceId sequence = 0;
  std::span<const TokenId> text{};  // prompt and output, one token or more
  size_t n_output = 0;              // of them, how many are output
  const sample::ChainParams* chain = nullptr;
  sample::DrawKey key{};  // of the first draft
  // In the state behind `text`, and with the owner (MaskedConstraint::is_here()); nullptr: none.
  const constrain::MaskedConstraint* constraint = nullptr;
  int32_t n_drafts = 0;           // wanted, one or more
  std::vector<TokenId> drafts{};  // made: as many, fewer, or none
};

// Rows of a sequence that a step of the model has computed: for each token what a head reads of it
// (Model::kept_rows()). W: its width.
struct ComputedRows {
  SequenceId sequence = 0;
  int32_t first = 0;                  // position of the first
  std::span<const TokenId> tokens{};  // [n]
  std::span<const float> vectors{};   // [n, W]
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  // Whether it drafts under constraints: then the mask of a constrained request has to be ready.
  virtual bool needs_masks() const = 0;
  // How many tokens of a text of n_text it would read before the first draft, one at least; too many rather than too
  // few.
  virtual size_t n_behind(SequenceId sequence, size_t n_text) const = 0;
  // Whether its drafts cost nothing: then begin() makes them, and may be asked again, to see what there is.
  virtual bool is_free() const { return false; }
  // For each request of a step: how many drafts it will make, at most. REQUIRES: no drafts yet.
  virtual int32_t begin(DraftRequest& request) = 0;
  // Another one drafts for the sequence in the coming step, or nobody: what is held of it is of use later.
  virtual void keep(SequenceId /*sequence*/) {}
  // Fills the drafts of all requests of a step, each of which was begun; called in every step, also with none. masks:
  // nullptr where none is constrained. REQUIRES: each sequence once.
  virtual void propose(std::span<DraftRequest> requests, constrain::MaskWorker* masks) = 0;
  // Whether it reads what the model computes: then it is told of every step, drafts that the model refused included.
  virtual bool watches() const { return false; }
  virtual void watch(const ComputedRows& /*rows*/) {}
  // After an exception out of propose(), which is then without consequence.
  virtual void forget() noexcept = 0;
};

}  // namespace candor::draft
