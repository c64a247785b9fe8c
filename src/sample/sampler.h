#pragma once
// Chooses one token from one row of logits. A pure function of its request: the random words come from (seed, choice,
// position), so that neither the batch nor what was drawn before matters. The object holds scratch memory only and may
// serve any number of requests, one after another, on a thread in the float mode of numerics.md.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/device_logits.h"
#include "base/error.h"
#include "candor/event.h"
#include "constrain/token_mask.h"
#include "kernels/kernels.h"
#include "sample/candidates.h"
#include "sample/chain.h"
#include "sample/history.h"

namespace candor::sample {

// Least logprob that is ever reported.
inline constexpr float kNoLogprob = -9999.0f;

struct DrawKey {
  uint64_t seed = 0;
  uint32_t choice = 0;    // index of the choice within its request
  uint64_t position = 0;  // of the token to choose, counted from the beginning of the whole text
};

// The number in [0, 1) at which the token is looked up.
float draw_of(const DrawKey& key);

// Of which distribution logprobs are reported.
enum class LogprobsOf : uint8_t {
  kModel,  // the logits as they came
  kChain,  // what was drawn from, or what a search chose from: 0 for a greedy choice
};

struct PickRequest {
  std::span<const float> logits{};  // [V]
  const ChainParams& chain;
  const constrain::TokenMask* mask = nullptr;  // of the constraint, from TokenPicker; nullptr: every token is allowed
  History history{};
  DrawKey key{};
  int32_t n_logprobs = -1;  // -1: none are computed; else how many of the likeliest besides the chosen one
  LogprobsOf logprobs_of = LogprobsOf::kModel;
  ChainObserver* observer = nullptr;  // may be nullptr
};

struct Pick {
  TokenId token = kNoToken;
  float logprob = 0.0f;             // of the token
  std::vector<TokenLogprob> top{};  // the likeliest, in order
};

struct RowPlan;
// What a device found; borrowed.
struct RowFindings {
  const RowPlan* plan = nullptr;
  const backend::RowSummary* choice = nullptr;
  const backend::RowSummary* model = nullptr;  // the same one, where the plan asks once
  RestOfRow rest{};
};

class Sampler {
 public:
  // The kernels are borrowed; all tables give the same bits.
  explicit Sampler(const kernels::KernelTable& table) : candidates_(table) {}

  // Overwrites `pick`. Broken logits (NaN), and a request that leaves nothing to choose, are errors.
  Result<void> pick(const PickRequest& request, Pick& pick);
  // The same of a row that is elsewhere, from what was found of it by a plan (row_plan.h); request.logits and mask are
  // not read. False where that is not enough: pick() has to do it, which also has the words for what is wrong.
  bool finish(const PickRequest& request, const RowFindings& row, Pick& pick);
  // For a search: the best tokens that mask, bans, penalties and DRY leave, in order, as many as `wants_more` asks for;
  // it is called with the token taken last. Each with what it adds to the logarithm of its text's probability, as the
  // model and the penalties see it. Appends to `best`; pick.top is filled as by pick().
  template <class WantsMore>
  Result<void> rank(const PickRequest& request, std::vector<TokenLogprob>& best, Pick& pick, WantsMore&& wants_more) {
    CANDOR_TRY(prepare(request, pick));
    const size_t n = candidates_.count();
    for (size_t i = 0; i < n; ++i) {
      best.push_back(scored(i));
      if (!wants_more(best.back().token)) break;
    }
    return {};
  }
  // After rank(), for LogprobsOf::kChain: pick.top becomes that of the first n of the order, and logprob_of() as well.
  void narrow(const PickRequest& request, size_t n, Pick& pick);
  // Of a token of the row that was ranked last.
  float logprob_of(const PickRequest& request, TokenId token);
  // As pick() with LogprobsOf::kModel would report them, of a token that is known. REQUIRES: token < V.
  Result<void> score(std::span<const float> logits, TokenId token, int32_t n_logprobs, Pick& pick);
  // The same of what was found by score_query(); false where that is not enough.
  bool score(const backend::RowSummary& row, TokenId token, int32_t n_logprobs, Pick& pick);

 private:
  Result<void> prepare(const PickRequest& request, Pick& pick);
  Result<void> edit(const PickRequest& request);
  TokenLogprob scored(size_t rank);
  Result<void> choose(const PickRequest& request, Pick& pick);
  void measure(int32_t n_logprobs, Pick& pick);
  bool measure_model(const backend::RowSummary& row, int32_t n_logprobs, Pick& pick);

  Candidates candidates_;
  ChainScratch scratch_;
  double log_total_ = 0.0;  // greatest logit + log of the sum of exp(logit - greatest)
};

}  // namespace candor::sample
