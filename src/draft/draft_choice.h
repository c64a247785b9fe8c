#pragma once
// The drafts of one request in the making: each is chosen as the model's own token will be, by the request's own chain,
// with the random words of its position, under a copy of its constraint. So whoever agrees with the model on the
// distribution agrees on the token. Engine thread only.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/device_logits.h"
#include "base/error.h"
#include "base/ids.h"
#include "constrain/mask_worker.h"
#include "constrain/masked_constraint.h"
#include "draft/drafter.h"
#include "sample/row_plan.h"
#include "sample/sampler.h"

namespace candor::draft {

class DraftChoice {
 public:
  // Borrows the request, without drafts from now on. Over at once where its constraint cannot be copied.
  void begin(DraftRequest& request);
  // What a device that has the row does of the choice; false: it needs the logits.
  bool plan(sample::RowPlanner& planner, int32_t row, int32_t n_vocab, sample::RowPlan& plan,
            constrain::MaskWorker* masks);
  // One more, by these logits, or by what was found of them; over with the last one, and where none can be chosen: no
  // mask in time, a constraint that refuses. The mask of the next one is asked for, not sent for.
  void draft(const backend::LogitRow& logits, const std::optional<sample::RowFindings>& found, sample::Sampler& sampler,
             constrain::MaskWorker* masks);
  void end() { is_over_ = true; }
  // After an exception.
  void drop_constraint() noexcept { constraint_.reset(); }

  bool is_over() const { return is_over_; }
  DraftRequest& request() const { return *request_; }

 private:
  Result<TokenId> choose(const backend::LogitRow& logits, const std::optional<sample::RowFindings>& found,
                         sample::Sampler& sampler);
  sample::PickRequest next_pick() const;

  DraftRequest* request_ = nullptr;
  std::shared_ptr<constrain::MaskedConstraint> constraint_{};
  std::vector<TokenId> text_{};  // with the drafts so far
  sample::Pick pick_{};
  bool is_over_ = false;
};

}  // namespace candor::draft
