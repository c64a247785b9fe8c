#include "sample/candidates.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "sample/exact_log.h"
#include "sample/row_passes.h"

namespace candor::sample {
namespace {

constexpr size_t kHead = 256;  // sorted at once; most draws end within it

Error broken_logit(std::span<const float> logits) {
  const auto bad = std::ranges::find_if(logits, [](float x) { return !(x < kInfinity); });
  return fail(kBrokenNumbers, "the model gave the logit " + std::to_string(*bad) + " for token " +
                                  std::to_string(bad - logits.begin()) + ": its weights are damaged or overflow");
}

}  // namespace

RowRange Candidates::scan(std::span<const float> logits) {
  const RowRange range = scan_row(logits, logits_.data(), maxima_);
  max_logit_ = range.greatest;
  is_weighed_ = false;
  head_.clear();
  return range;
}

void Candidates::begin(size_t n) {
  n_ = n;
  is_certain_ = true;
  has_rest_ = is_extract_ = false;
  if (logits_.size() >= n) return;
  shares_.resize(n);
  tokens_.resize(n);
  head_.reserve(n);
  kept_.reserve(n);
  selection_.reserve(n);
  logits_.resize(n);  // last: where memory runs out before, all is done again
}

Result<void> Candidates::load(std::span<const float> logits) {
  begin(logits.size());
  is_whole_ = true;
  offset_ = 0.0;
  if (!scan(logits).is_valid) return broken_logit(logits);
  if (max_logit_ > -kInfinity) return {};
  return fail(kBrokenNumbers, "the model gave no token of " + std::to_string(n_) + " a finite logit");
}

void Candidates::load(const backend::RowSummary& row, const backend::RowQuery& query, RestOfRow rest) {
  begin(row.best.size());
  is_whole_ = false;
  is_extract_ = true;
  has_rest_ = !row.is_whole;
  rest_ = rest;
  reached_.reset();
  offset_ = 0.0;
  max_logit_ = query.is_scaled ? 0.0f : row.greatest;
  maxima_.clear();
  by_token_.resize(n_);
  for (size_t rank = 0; rank < n_; ++rank) by_token_[rank] = static_cast<uint32_t>(rank);
  std::ranges::sort(by_token_, {}, [&](uint32_t rank) { return row.best[rank].token; });
  head_.resize(n_);
  for (size_t i = 0; i < n_; ++i) {
    const backend::BestLogit& best = row.best[by_token_[i]];
    tokens_[i] = best.token;
    logits_[i] = best.logit;
    head_[by_token_[i]] = {best.logit, static_cast<uint32_t>(i)};
  }
  is_weighed_ = query.is_weighed;
  if (!is_weighed_) return;
  kernels_->exp_weights(logits_.data(), max_logit_, static_cast<int64_t>(n_), shares_.data());
  total_ = row.total;
}

void Candidates::restrict(const constrain::TokenMask& mask) {
  compact([&](size_t i) { return mask.allows(token(i)); });
}

float* Candidates::find(TokenId wanted) {
  if (is_whole_) {
    const bool is_here = wanted >= 0 && static_cast<size_t>(wanted) < n_;
    return is_here ? &logits_[static_cast<size_t>(wanted)] : nullptr;
  }
  const auto end = tokens_.begin() + static_cast<std::ptrdiff_t>(n_);
  const auto it = std::lower_bound(tokens_.begin(), end, wanted);
  return it != end && *it == wanted ? &logits_[static_cast<size_t>(it - tokens_.begin())] : nullptr;
}

float* Candidates::find_to_edit(TokenId token) {
  return misses_rest() ? nullptr : find(token);
}

void Candidates::add(TokenId token, float x) {
  if (float* logit = find_to_edit(token)) *logit += x;
}

void Candidates::repeat_less(TokenId token, float factor) {
  if (float* logit = find_to_edit(token)) *logit = *logit > 0.0f ? *logit / factor : *logit * factor;
}

void Candidates::ban(TokenId token) {
  if (float* logit = find_to_edit(token)) *logit = -kInfinity;
}

std::optional<Candidate> Candidates::look(TokenId wanted) {
  const float* logit = find(wanted);
  if (logit == nullptr || !(*logit > -kInfinity)) return std::nullopt;
  return candidate(static_cast<size_t>(logit - logits_.data()));
}

Result<void> Candidates::settle() {
  if (misses_rest()) return {};
  if (!scan(logits()).is_valid) {
    return fail(ErrorKind::kInvalidInput, "a logit overflows after penalties and biases: lower them");
  }
  if (max_logit_ > -kInfinity) return {};
  return fail(ErrorKind::kInvalidInput,
              "no token can be chosen here: constraint, bans, bias and allowed ids together leave none");
}

size_t Candidates::count() {
  if (misses_rest()) return 0;
  return static_cast<size_t>(std::ranges::count_if(logits(), [](float x) { return x > -kInfinity; }));
}

size_t Candidates::count_to(size_t most) {
  return head_.size() >= most ? most : std::min(most, count());
}

void Candidates::need_head(size_t n) {
  if (head_.size() < std::min(n, n_)) selection_.first(logits(), maxima_, n, head_);
}

Candidate Candidates::at(size_t rank) {
  if (rank >= head_.size() && misses_rest()) return {};
  if (rank >= head_.size()) need_head(std::max({rank + 1, kHead, 4 * head_.size()}));
  CANDOR_CHECK(rank < head_.size());
  return candidate(head_[rank].index);
}

template <class Keep>
void Candidates::compact(const Keep& keep) {
  size_t n = 0;
  for (size_t i = 0; i < n_; ++i) {
    const bool stays = keep(i);
    tokens_[n] = token(i);
    logits_[n] = logits_[i];
    shares_[n] = shares_[i];
    n += stays ? 1 : 0;
  }
  n_ = n;
  is_whole_ = is_extract_ = has_rest_ = false;
  head_.clear();
  maxima_.clear();
  if (!is_weighed_) return;
  total_ = 0;
  for (size_t i = 0; i < n_; ++i) total_ += weight(i);
}

// The first n of head_ become all there is.
void Candidates::keep_head(size_t n) {
  kept_.assign(head_.begin(), head_.begin() + static_cast<std::ptrdiff_t>(n));
  std::ranges::sort(kept_, {}, &Ranked::index);
  total_ = 0;
  for (size_t i = 0; i < n; ++i) {  // index >= i, so that nothing is overwritten before it was read
    const size_t from = kept_[i].index;
    tokens_[i] = token(from);
    logits_[i] = logits_[from];
    shares_[i] = shares_[from];
    total_ += weight(i);
  }
  n_ = n;
  is_whole_ = is_extract_ = has_rest_ = false;
  head_.clear();
  maxima_.clear();
}

void Candidates::keep_first(size_t n) {
  if (n > head_.size() && misses_rest()) return;
  if (is_extract_ && n <= head_.size()) return keep_head(n);
  if (n >= n_) return;
  need_head(n);
  keep_head(std::min(n, head_.size()));
}

uint64_t Candidates::weigh() {
  if (is_weighed_ || misses_rest()) return total_;
  total_ = kernels_->exp_weights(logits_.data(), max_logit_, static_cast<int64_t>(n_), shares_.data());
  is_weighed_ = true;
  return total_;
}

std::optional<size_t> Candidates::head_crossing(uint64_t target) const {
  uint64_t sum = 0;
  for (size_t rank = 0; rank < head_.size(); ++rank) {
    sum += weight(head_[rank].index);
    if (sum > target) return rank;
  }
  return std::nullopt;
}

Candidate Candidates::at_weight(uint64_t target) {
  CANDOR_DCHECK(target < weigh());
  for (const size_t n : {size_t{1}, kHead}) {  // most often it is the likeliest
    need_head(std::min(n, n_));
    if (const auto rank = head_crossing(target)) return candidate(head_[*rank].index);
  }
  if (reach_rest(target)) return {reached_->last.token, reached_->last.logit};
  if (misses_rest()) return {};
  return candidate(selection_.crossing(logits(), max_logit_, shares(), target).index);
}

// A sum of weights reaches share * total exactly when it exceeds this.
uint64_t Candidates::share_target(double share) {
  const double needed = std::ceil(share * static_cast<double>(weigh()));
  return needed < 1.0 ? 0 : std::min(static_cast<uint64_t>(needed), total_) - 1;
}

// Whether candidates behind those that are known may have that weight, or more.
bool Candidates::reaches_rest(uint64_t least) {
  return has_rest_ && weight(head_.back().index) >= least && misses_rest();
}

// Whether the device told with which candidate the weights, in order, exceed the target.
bool Candidates::reach_rest(uint64_t target) {
  if (has_rest_ && rest_.device != nullptr) reached_ = rest_.device->reach(rest_.query, target);
  return has_rest_ && reached_.has_value();
}

// Sums in lanes depend on where candidates stand in their row.
bool Candidates::misses_places() {
  if (is_extract_) is_certain_ = false;
  return is_extract_;
}

void Candidates::keep_share(double share) {
  const uint64_t target = share_target(share);
  need_head(std::min(kHead, n_));
  if (const auto rank = head_crossing(target)) return keep_head(*rank + 1);
  if (reach_rest(target)) {
    total_ = reached_->weight;  // the beginning of the order that is left is longer than what is known
    return;
  }
  if (misses_rest()) return;
  const Ranked last = selection_.crossing(logits(), max_logit_, shares(), target);
  compact([&](size_t i) { return logits_[i] > last.key || (logits_[i] == last.key && i <= last.index); });
}

void Candidates::keep_weight(double least) {
  weigh();
  const uint64_t whole = static_cast<uint64_t>(std::ceil(least));
  if (reaches_rest(whole)) return;
  compact([&](size_t i) { return weight(i) >= whole; });
  CANDOR_CHECK(n_ > 0);
}

void Candidates::drop_above(double least) {
  weigh();
  const uint64_t whole = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(least)));
  if (reaches_rest(whole)) return;
  size_t n_above = 0;
  for (size_t i = 0; i < n_; ++i) n_above += weight(i) >= whole ? 1 : 0;
  if (n_above < 2 || misses_rest()) return;
  need_head(n_above);
  const Ranked last = head_[n_above - 1];
  compact([&](size_t i) { return !precedes({logits_[i], static_cast<uint32_t>(i)}, last); });
  max_logit_ = last.key;
  is_weighed_ = false;
}

// Summed in four lanes over ascending ids: a fixed order.
double Candidates::entropy() {
  if (misses_places()) return 0.0;
  const double log_total = log_f64(static_cast<double>(weigh()) * kWeightUnit);
  double lanes[4] = {};
  for (size_t i = 0; i < n_; ++i) {
    if (weight(i) == 0) continue;
    lanes[i % 4] += static_cast<double>(weight(i)) * static_cast<double>(max_logit_ - logits_[i]);
  }
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) / static_cast<double>(total_) + log_total;
}

void Candidates::keep_typical(double share) {
  if (misses_places()) return;
  const double surprise_of_best = log_f64(static_cast<double>(weigh()) * kWeightUnit);
  const double offset = surprise_of_best - entropy();
  keys_.resize(std::max(keys_.size(), n_));
  float nearest = -kInfinity;
  for (size_t i = 0; i < n_; ++i) {
    const double distance = static_cast<double>(max_logit_ - logits_[i]) + offset;
    keys_[i] = -static_cast<float>(distance < 0.0 ? -distance : distance);
    nearest = std::max(nearest, keys_[i]);
  }
  const Ranked last =
      selection_.crossing(std::span<const float>(keys_).first(n_), nearest, shares(), share_target(share));
  compact([&](size_t i) { return keys_[i] > last.key || (keys_[i] == last.key && i <= last.index); });
  scan(logits());
}

void Candidates::scale(float temperature) {
  if (misses_rest()) return;
  offset_ = (offset_ + static_cast<double>(max_logit_)) / static_cast<double>(temperature);
  scale_row(logits(), max_logit_, temperature, logits_.data());
  scale_row(maxima_, max_logit_, temperature, maxima_.data());  // division keeps the order: they stay the maxima
  max_logit_ = 0.0f;
  is_weighed_ = false;
  head_.clear();
}

}  // namespace candor::sample
