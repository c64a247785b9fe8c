#pragma once
// The drafts of one request in the making: each is chosen as the model's own token will be, by the request's own chain,
// with the random words of its position, under a copy of its constraint. So whoever agrees with the model on the
// distribution agrees on the token. Engine thread only.

#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "constrain/mask_worker.h"
#include "constrain/masked_constraint.h"
#include "draft/drafter.h"
#include "sample/sampler.h"

namespace candor::draft {

class DraftChoice {
 public:
  // Borrows the request, without drafts from now on. Over at once where its constraint cannot be copied.
  void begin(DraftRequest& request);
  // One more, by these logits; over with the last one, and where none can be chosen: no mask in time, a constraint that
  // refuses. The mask of the next one is asked for, not sent for.
  void draft(std::span<const float> logits, sample::Sampler& sampler, constrain::MaskWorker* masks);
  void end() { is_over_ = true; }
  // After an exception.
  void drop_constraint() noexcept { constraint_.reset(); }

  bool is_over() const { return is_over_; }
  DraftRequest& request() const { return *request_; }

 private:
  Result<TokenId> choose(std::span<const float> logits, sample::Sampler& sampler);

  DraftRequest* request_ = nullptr;
  std::shared_ptr<constrain::MaskedConstraint> constraint_{};
  std::vector<TokenId> text_{};  // with the drafts so far
  sample::Pick pick_{};
  bool is_over_ = false;
};

}  // namespace candor::draft
