#pragma once
// A constraint on the output (constraint.h) together with the mask of its next token: which tokens may come. Computing
// a mask may take long, so a MaskWorker does it on another thread; meanwhile the constraint is "away" and must not be
// used. Where masks are slow, the worker also accepts the next token in advance and computes the mask behind it.
//
// A constraint and its forks are a family: they may share compiled data, so only one thread at a time uses any of them.
// Either all are "here" (the owner may use them) or the worker has them. The owner is one thread at a time; it may drop
// a constraint that is away.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/ids.h"
#include "constrain/constraint.h"
#include "constrain/token_mask.h"

namespace candor::constrain {

// A mask that took longer is slow. Those of usual schemas take a quarter of it at most.
inline constexpr int64_t kSlowMaskNs = 4'000'000;

class MaskedConstraint {
 public:
  // Takes the constraint as it begins, with its first mask: computed by this call, on the caller's thread.
  static std::shared_ptr<MaskedConstraint> start(std::unique_ptr<Constraint> constraint, int32_t n_tokens);

  // No mask of its family is being computed or about to be.
  bool is_here() const noexcept { return family_->n_away.load(std::memory_order_acquire) == 0; }
  // One of its family's last 32 masks was slow: an owner that has other sequences to serve does not wait for the mask.
  bool is_slow() const noexcept { return family_->n_until_quick.load(std::memory_order_relaxed) > 0; }

  // REQUIRES, from here on: is_here().
  bool has_mask() const noexcept { return has_mask_; }
  // The worker has accepted the token that comes next; mask() is still the one before it.
  bool is_ahead() const noexcept { return is_ahead_; }
  // The tokens that may come next, or why that could not be said. REQUIRES: has_mask(). Valid until accept().
  Result<const TokenMask*> mask() const;
  // Advances; the mask is gone then, or is the next one where the constraint was ahead. A token that is not allowed is
  // an error. REQUIRES, where it is ahead: the token that it accepted.
  Result<void> accept(TokenId token);
  // What the last accept() took.
  int64_t accept_ns() const { return accept_ns_; }
  bool must_end() const { return constraint_->must_end(); }
  // The same state and mask, in the same family. REQUIRES: it is not ahead.
  Result<std::shared_ptr<MaskedConstraint>> fork() const;

 private:
  friend class MaskWorker;

  struct Family {
    std::atomic<int32_t> n_away{0};         // members that the worker has
    std::atomic<int32_t> n_until_quick{0};  // masks that must not be slow until it counts as quick again
  };

  MaskedConstraint(std::unique_ptr<Constraint> constraint, int32_t n_tokens, std::shared_ptr<Family> family);
  // Whichever thread has it.
  void compute() noexcept;
  void compute_mask(TokenMask& mask, std::optional<Error>& error) noexcept;
  void accept_ahead() noexcept;

  std::unique_ptr<Constraint> constraint_;
  std::shared_ptr<Family> family_;
  TokenMask mask_;
  std::optional<Error> error_;  // instead of the mask
  bool has_mask_ = false;
  // Ahead: of the token, what accepting it gave, and the mask behind it.
  TokenId next_token_ = kNoToken;  // to be accepted; kNoToken: none
  TokenMask next_mask_;
  std::optional<Error> accept_error_;
  std::optional<Error> next_error_;
  bool is_ahead_ = false;
  int64_t accept_ns_ = 0;
  bool is_wanted_ = false;  // it stands in the worker's list
};

}  // namespace candor::constrain
