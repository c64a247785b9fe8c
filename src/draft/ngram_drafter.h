#pragma once
// Draft tokens from the text itself (ngram.h): nothing is read, kept or computed for them.

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "constrain/mask_worker.h"
#include "draft/drafter.h"
#include "draft/ngram.h"

namespace candor::draft {

class NgramDrafter final : public Drafter {
 public:
  bool needs_masks() const override { return false; }
  bool is_free() const override { return true; }
  size_t n_behind(SequenceId, size_t) const override { return 1; }
  // They are made here: how many there are is known at once.
  int32_t begin(DraftRequest& request) override {
    draft_by_ngram(request.text, request.n_drafts, {}, request.drafts);
    return static_cast<int32_t>(request.drafts.size());
  }
  void propose(std::span<DraftRequest>, constrain::MaskWorker*) override {}
  void forget() noexcept override {}
};

}  // namespace candor::draft
