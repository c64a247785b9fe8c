#pragma once
// The tokens that may still be chosen, ordered by descending logit, then ascending id. Sorting is lazy: only as many
// leading candidates as a stage looks at are put in order, always the same ones as a full sort would put there.
//
// A candidate's weight is exp(logit - greatest logit) in units of 2^-40, rounded down: an integer, so that sums are
// exact in any order. Weight / total is its probability; one below 2^-40 of the best is 0.
// Reused from token to token so that nothing is allocated after the first.

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "constrain/token_mask.h"

namespace candor::sample {

struct Candidate {
  TokenId token = kNoToken;
  float logit = 0.0f;
  uint64_t weight = 0;  // valid after weigh()
};

inline constexpr double kWeightUnit = 0x1p-40;

class Candidates {
 public:
  // Every token of `logits` that the mask allows (nullptr: all). NaN and +inf, and an empty choice, are errors.
  Expected<void> load(std::span<const float> logits, const constrain::TokenMask* mask);

  size_t size() const { return items_.size(); }
  float max_logit() const { return max_logit_; }
  // The candidate at `rank` of the order. REQUIRES: rank < size().
  const Candidate& at(size_t rank);
  // Only the first n of the order stay. REQUIRES: n >= 1.
  void keep_first(size_t n);
  // Only candidates of at least this weight stay, in order. REQUIRES: weigh() was called; the best one has that weight.
  void keep_weight(double least);
  // logit = (logit - greatest) / temperature. REQUIRES: temperature > 0.
  void scale(float temperature);

  // Computes the weights, unless they stand; returns their exact sum.
  uint64_t weigh();
  uint64_t total() const { return total_; }

 private:
  void sort_first(size_t n);

  std::vector<Candidate> items_;
  size_t n_sorted_ = 0;
  float max_logit_ = 0.0f;
  uint64_t total_ = 0;
  bool is_weighed_ = false;
};

}  // namespace candor::sample
