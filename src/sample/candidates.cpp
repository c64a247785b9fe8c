#include "sample/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/exact_math.h"

namespace candor::sample {
namespace {

constexpr size_t kSortAtLeast = 64;

bool precedes(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

}  // namespace

Expected<void> Candidates::load(std::span<const float> logits, const constrain::TokenMask* mask) {
  items_.clear();
  items_.reserve(logits.size());
  n_sorted_ = 0;
  is_weighed_ = false;
  max_logit_ = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (!(logit < std::numeric_limits<float>::infinity())) {
      return fail(ErrorKind::kInternal, "the model gave the logit " + std::to_string(logit) + " for token " +
                                            std::to_string(i) + ": its weights are damaged or overflow");
    }
    const TokenId token = static_cast<TokenId>(i);
    if (mask != nullptr && !mask->allows(token)) continue;
    items_.push_back({token, logit, 0});
    max_logit_ = std::max(max_logit_, logit);
  }
  if (items_.empty() || max_logit_ == -std::numeric_limits<float>::infinity()) {
    return fail(ErrorKind::kInternal, "no token of " + std::to_string(logits.size()) + " can be chosen");
  }
  return {};
}

const Candidate& Candidates::at(size_t rank) {
  CANDOR_DCHECK(rank < items_.size());
  if (rank >= n_sorted_) sort_first(std::max({rank + 1, kSortAtLeast, 4 * n_sorted_}));
  return items_[rank];
}

void Candidates::sort_first(size_t n) {
  n = std::min(n, items_.size());
  if (n <= n_sorted_) return;
  const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(n_sorted_);
  const auto middle = items_.begin() + static_cast<std::ptrdiff_t>(n);
  if (middle != items_.end()) std::nth_element(begin, middle, items_.end(), precedes);
  std::sort(begin, middle, precedes);
  n_sorted_ = n;
}

void Candidates::keep_first(size_t n) {
  if (n >= items_.size()) return;
  sort_first(n);
  items_.resize(n);
  n_sorted_ = n;
  if (!is_weighed_) return;
  total_ = 0;
  for (const Candidate& item : items_) total_ += item.weight;
}

void Candidates::keep_weight(double least) {
  size_t n_kept = 0;
  size_t n_kept_sorted = 0;
  total_ = 0;
  for (size_t i = 0; i < items_.size(); ++i) {
    if (static_cast<double>(items_[i].weight) < least) continue;
    if (i < n_sorted_) ++n_kept_sorted;
    total_ += items_[i].weight;
    items_[n_kept++] = items_[i];
  }
  CANDOR_CHECK(n_kept > 0);
  items_.resize(n_kept);
  n_sorted_ = n_kept_sorted;
}

void Candidates::scale(float temperature) {
  for (Candidate& item : items_) item.logit = (item.logit - max_logit_) / temperature;
  max_logit_ = 0.0f;
  n_sorted_ = 0;  // rounding may have made equal what was not
  is_weighed_ = false;
}

uint64_t Candidates::weigh() {
  if (is_weighed_) return total_;
  total_ = 0;
  for (Candidate& item : items_) {
    item.weight = static_cast<uint64_t>(static_cast<double>(exp_f32(item.logit - max_logit_)) / kWeightUnit);
    total_ += item.weight;
  }
  is_weighed_ = true;
  return total_;
}

}  // namespace candor::sample
