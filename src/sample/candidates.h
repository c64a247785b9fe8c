#pragma once
// The tokens that may still be chosen, with their logits. Their order is by descending logit, then ascending id, and
// only as much of it is worked out as is asked for: always what a full sort would give.
//
// A candidate's weight is exp(logit - greatest logit) in units of 2^-40, rounded: an integer, so that sums are exact in
// any order. Weight / total is its probability; one below 2^-41 of the best is 0. A logit of -inf is no candidate.
// Reused from token to token so that nothing is allocated after the first.
//
// Of a row that a device has, only the first of the order may be known, and the sum of all weights. What they say is
// then what the whole row would say, as long as is_certain(); after that nothing they say counts. Where a sum of
// weights ends behind those that are known, the device is asked.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/device_logits.h"
#include "base/error.h"
#include "base/ids.h"
#include "constrain/token_mask.h"
#include "kernels/kernels.h"
#include "sample/row_passes.h"
#include "sample/selection.h"

namespace candor::sample {

struct Candidate {
  TokenId token = kNoToken;
  float logit = 0.0f;
  uint64_t weight = 0;  // 0 before weigh()
};

// The error of logits that are no numbers: as where a disk fails, what the model's file holds is to blame.
inline constexpr ErrorKind kBrokenNumbers = ErrorKind::kIo;

// Where a row that is elsewhere has what is not known of it.
struct RestOfRow {
  backend::DeviceLogits* device = nullptr;
  size_t query = 0;
};

class Candidates {
 public:
  // The kernels are borrowed; all tables give the same bits.
  explicit Candidates(const kernels::KernelTable& table) : kernels_(&table) {}

  // Every token of `logits`. NaN and +inf are an error of kind kBrokenNumbers.
  Result<void> load(std::span<const float> logits);
  // The first of the order of a row that is elsewhere. REQUIRES: a valid summary with at least one.
  void load(const backend::RowSummary& row, const backend::RowQuery& query, RestOfRow rest);
  // What was asked of the rest last.
  const std::optional<backend::OrderPrefix>& reached() const { return reached_; }
  bool is_certain() const { return is_certain_; }
  // Only tokens that the mask allows stay.
  void restrict(const constrain::TokenMask& mask);

  // Edits: find() gives a token's logit to be changed (-inf takes it out), nullptr for one that is no candidate. After
  // the last edit, settle(): an error when nothing that can be chosen is left.
  float* find(TokenId token);
  void add(TokenId token, float x);
  // A positive logit is divided by the factor, another multiplied.
  void repeat_less(TokenId token, float factor);
  void ban(TokenId token);
  Result<void> settle();

  // One of them as it is; nothing for a token that is no candidate.
  std::optional<Candidate> look(TokenId token);
  // How many there are; a pass over all of them.
  size_t count();
  // The same where that is less than `most`, else `most`.
  size_t count_to(size_t most);
  float max_logit() const { return max_logit_; }
  // The candidate at `rank` of the order. REQUIRES: rank < count().
  Candidate at(size_t rank);

  // Only the first n of the order stay. REQUIRES: n >= 1.
  void keep_first(size_t n);
  // Only the shortest beginning of the order stays whose weights reach share * total, but at least one.
  void keep_share(double share);
  // Only candidates of at least this weight stay. REQUIRES: the best one has that weight.
  void keep_weight(double least);
  // Keeps only the last, in order, of the candidates whose weight reaches `least`; nothing changes where there is one
  // or none.
  void drop_above(double least);
  // As keep_share(), in the order of the distance |-log p - entropy|, the nearest first.
  void keep_typical(double share);
  // logit = (logit - greatest) / temperature. REQUIRES: temperature > 0.
  void scale(float temperature);
  // What scale() took off: with it a logit is what it would be, had it only been divided. For those who look.
  double offset() const { return offset_; }

  // Computes the weights, unless they are computed already; returns their exact sum.
  uint64_t weigh();
  // The entropy of the distribution, in nats.
  double entropy();
  // The candidate with which the sum of weights, in order, first exceeds `target`. REQUIRES: target < weigh().
  Candidate at_weight(uint64_t target);

 private:
  TokenId token(size_t i) const { return is_whole_ ? static_cast<TokenId>(i) : tokens_[i]; }
  std::span<const float> logits() const { return std::span<const float>(logits_).first(n_); }
  std::span<const float> shares() const { return std::span<const float>(shares_).first(n_); }
  uint64_t weight(size_t i) const { return weight_of(shares_[i]); }
  Candidate candidate(size_t i) const { return {token(i), logits_[i], is_weighed_ ? weight(i) : 0}; }
  // Scans the logits, which become the candidates' own.
  RowRange scan(std::span<const float> logits);
  void begin(size_t n);
  void need_head(size_t n);
  std::optional<size_t> head_crossing(uint64_t target) const;
  uint64_t share_target(double share);
  void keep_head(size_t n);
  float* find_to_edit(TokenId token);
  // What is wanted has to do with candidates that are not known, where there are any.
  bool misses_rest() {
    if (has_rest_) is_certain_ = false;
    return has_rest_;
  }
  bool reaches_rest(uint64_t least);
  bool reach_rest(uint64_t target);
  bool misses_places();
  template <class Keep>
  void compact(const Keep& keep);

  const kernels::KernelTable* kernels_;
  // By ascending token id; vectors may be longer than n_.
  size_t n_ = 0;
  bool is_whole_ = false;  // candidate i is token i
  bool is_certain_ = true;
  bool has_rest_ = false;    // there are more, behind these
  bool is_extract_ = false;  // others may stand between these
  std::vector<TokenId> tokens_;
  std::vector<float> logits_;
  std::vector<float> shares_;  // e^(logit - max_logit_), where is_weighed_
  std::vector<float> maxima_;  // of chunks of logits_; empty where not known
  float max_logit_ = 0.0f;
  double offset_ = 0.0;
  uint64_t total_ = 0;
  bool is_weighed_ = false;
  std::vector<Ranked> head_;  // the beginning of the order, as far as it is known
  std::vector<Ranked> kept_;
  std::vector<float> keys_;
  RestOfRow rest_{};
  std::optional<backend::OrderPrefix> reached_{};
  std::vector<uint32_t> by_token_;  // ranks of a row that is elsewhere
  Selection selection_;
};

}  // namespace candor::sample
