#include "draft/draft_choice.h"

#include <utility>

#include "sample/history.h"

namespace candor::draft {

void DraftChoice::begin(DraftRequest& request) {
  request.drafts.clear();
  request_ = &request;
  text_.assign(request.text.begin(), request.text.end());
  constraint_.reset();
  is_over_ = false;
  if (request.constraint == nullptr) return;
  if (auto copy = request.constraint->fork()) constraint_ = std::move(*copy);
  is_over_ = constraint_ == nullptr;
}

sample::PickRequest DraftChoice::next_pick() const {
  sample::PickRequest pick{.chain = *request_->chain};
  pick.history = {text_, request_->n_output + request_->drafts.size()};
  pick.key = request_->key;
  pick.key.position += request_->drafts.size();
  return pick;
}

bool DraftChoice::plan(sample::RowPlanner& planner, int32_t row, int32_t n_vocab, sample::RowPlan& plan,
                       constrain::MaskWorker* masks) {
  sample::PickRequest pick = next_pick();
  if (constraint_ != nullptr) {
    if (!masks->has(constraint_)) return false;
    const auto mask = constraint_->mask();
    if (!mask) return false;
    pick.mask = *mask;
  }
  return planner.plan(pick, row, n_vocab, plan);
}

void DraftChoice::draft(const backend::LogitRow& logits, const std::optional<sample::RowFindings>& found,
                        sample::Sampler& sampler, constrain::MaskWorker* masks) {
  is_over_ = constraint_ != nullptr && !masks->has(constraint_);
  if (is_over_) return;
  const auto token = choose(logits, found, sampler);
  is_over_ = !token;
  if (!token) return;
  request_->drafts.push_back(*token);
  is_over_ = static_cast<int32_t>(request_->drafts.size()) == request_->n_drafts;
  text_.push_back(*token);
  if (constraint_ != nullptr && !is_over_) masks->want(constraint_);
}

// An error ends the drafting and is no one's concern: the model itself will meet it, or not.
Result<TokenId> DraftChoice::choose(const backend::LogitRow& logits, const std::optional<sample::RowFindings>& found,
                                    sample::Sampler& sampler) {
  sample::PickRequest pick = next_pick();
  if (!found || !sampler.finish(pick, *found, pick_)) {
    pick.logits = logits.get();
    if (constraint_ != nullptr) {
      CANDOR_ASSIGN(pick.mask, constraint_->mask());
    }
    CANDOR_TRY(sampler.pick(pick, pick_));
  }
  if (constraint_ != nullptr) CANDOR_TRY(constraint_->accept(pick_.token));
  return pick_.token;
}

}  // namespace candor::draft
