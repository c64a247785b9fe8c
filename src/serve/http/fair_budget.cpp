#include "serve/http/fair_budget.h"

#include <algorithm>

namespace candor::http {
namespace {

size_t index_of(int32_t key) {
  return static_cast<size_t>(int64_t{key} + 1);
}

}  // namespace

FairBudget::FairBudget(int64_t limit, size_t n_keys, int64_t most_per_key)
    : limit_(limit),
      reserve_(n_keys > 1 ? limit / 4 : 0),
      most_per_key_(std::max<int64_t>(1, std::min(most_per_key > 0 ? most_per_key : limit, limit - reserve_))),
      of_key_(n_keys + 1) {}

FairBudget::Share FairBudget::share_of(int32_t key) {
  Share share;
  share.budget_ = this;
  share.key_ = index_of(key);
  return share;
}

bool FairBudget::has_room(int32_t key, int64_t more) const {
  const std::lock_guard lock(mutex_);
  return fits(index_of(key), more);
}

int64_t FairBudget::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

bool FairBudget::fits(size_t key, int64_t more) const {
  const int64_t held = of_key_[key];
  if (more > limit_ - used_ || (held > 0 && more > most_per_key_ - held)) return false;
  const int64_t guaranteed = reserve_ / std::max<int64_t>(1, static_cast<int64_t>(of_key_.size()) - 1);
  if (held == 0 || held + more <= guaranteed) return true;
  const int64_t share = std::max<int64_t>(1, limit_ / std::max<int64_t>(1, n_active_));
  return more <= limit_ - reserve_ - used_ && (n_active_ == 1 || more <= share - held);
}

void FairBudget::change(size_t key, int64_t by) {
  const bool was_active = of_key_[key] > 0;
  of_key_[key] += by;
  used_ += by;
  n_active_ += static_cast<int64_t>(of_key_[key] > 0) - static_cast<int64_t>(was_active);
}

bool FairBudget::Share::try_grow(int64_t more) {
  const std::lock_guard lock(budget_->mutex_);
  if (!budget_->fits(key_, more)) return false;
  budget_->change(key_, more);
  amount_ += more;
  return true;
}

void FairBudget::Share::resize(int64_t amount) {
  if (budget_ == nullptr || amount == amount_) return;
  const std::lock_guard lock(budget_->mutex_);
  budget_->change(key_, amount - amount_);
  amount_ = amount;
}

}  // namespace candor::http
