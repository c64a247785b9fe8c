#include "constrain/masked_constraint.h"

#include <chrono>
#include <utility>

#include "base/fault.h"

namespace candor::constrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int32_t kQuickInARow = 32;  // masks, after a slow one

int64_t ns_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

}  // namespace

MaskedConstraint::MaskedConstraint(std::unique_ptr<Constraint> constraint, int32_t n_tokens,
                                   std::shared_ptr<Family> family)
    : constraint_(std::move(constraint)), family_(std::move(family)), mask_(n_tokens) {}

std::shared_ptr<MaskedConstraint> MaskedConstraint::start(std::unique_ptr<Constraint> constraint, int32_t n_tokens) {
  std::shared_ptr<MaskedConstraint> started(
      new MaskedConstraint(std::move(constraint), n_tokens, std::make_shared<Family>()));
  started->compute();
  return started;
}

Result<const TokenMask*> MaskedConstraint::mask() const {
  CANDOR_CHECK(has_mask_);
  if (error_) return *error_;
  return &mask_;
}

Result<void> MaskedConstraint::accept(TokenId token) {
  accept_ns_ = 0;
  if (std::exchange(is_ahead_, false)) {
    if (token != std::exchange(next_token_, kNoToken)) {
      return fail(ErrorKind::kInternal, "constraint: one row gave two tokens");
    }
    if (accept_error_) return *accept_error_;
    std::swap(mask_, next_mask_);
    std::swap(error_, next_error_);
    return {};
  }
  next_token_ = kNoToken;  // the worker did not come to accept it ahead
  const auto begin = Clock::now();
  CANDOR_TRY(constraint_->accept(token));
  accept_ns_ = ns_since(begin);
  has_mask_ = false;
  return {};
}

Result<std::shared_ptr<MaskedConstraint>> MaskedConstraint::fork() const {
  CANDOR_DCHECK(!is_ahead_);
  CANDOR_ASSIGN(auto copy, constraint_->fork());
  std::shared_ptr<MaskedConstraint> forked(new MaskedConstraint(std::move(copy), mask_.n_tokens(), family_));
  forked->mask_ = mask_;
  forked->error_ = error_;
  forked->has_mask_ = has_mask_;
  return forked;
}

void MaskedConstraint::compute_mask(TokenMask& mask, std::optional<Error>& error) noexcept {
  error.reset();
  try {
    if (auto computed = constraint_->mask(mask); !computed) error = std::move(computed).error();
  } catch (...) {
    error = error_of_exception();
  }
}

void MaskedConstraint::accept_ahead() noexcept {
  accept_error_.reset();
  is_ahead_ = true;
  try {
    if (next_mask_.n_tokens() != mask_.n_tokens()) next_mask_ = TokenMask(mask_.n_tokens());
    if (auto accepted = constraint_->accept(next_token_); !accepted) accept_error_ = std::move(accepted).error();
  } catch (...) {
    accept_error_ = error_of_exception();
  }
  if (!accept_error_) compute_mask(next_mask_, next_error_);
}

void MaskedConstraint::compute() noexcept {
  const auto begin = Clock::now();
  if (next_token_ == kNoToken) {
    compute_mask(mask_, error_);
    has_mask_ = true;
  } else {
    accept_ahead();
  }
  std::atomic<int32_t>& n_left = family_->n_until_quick;
  if (ns_since(begin) > kSlowMaskNs) {
    n_left.store(kQuickInARow, std::memory_order_relaxed);
  } else if (n_left.load(std::memory_order_relaxed) > 0) {
    n_left.fetch_sub(1, std::memory_order_relaxed);
  }
}

}  // namespace candor::constrain
