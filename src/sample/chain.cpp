#include "sample/chain.h"

namespace candor::sample {
namespace {

void run_stage(Candidates& candidates, const ChainParams& params, Stage stage) {
  switch (stage) {
    case Stage::kTemperature:
      return candidates.scale(params.temperature);
    case Stage::kTopK:
      return keep_top_k(candidates, params.top_k);
    case Stage::kTopP:
      return keep_top_p(candidates, params.top_p);
    case Stage::kMinP:
      return keep_min_p(candidates, params.min_p);
  }
}

}  // namespace

void keep_top_k(Candidates& candidates, int32_t k) {
  if (k > 0) candidates.keep_first(static_cast<size_t>(k));
}

void keep_top_p(Candidates& candidates, double p) {
  if (p >= 1.0) return;
  const double needed = p * static_cast<double>(candidates.weigh());
  uint64_t sum = 0;
  for (size_t rank = 0; rank < candidates.size(); ++rank) {
    sum += candidates.at(rank).weight;
    if (static_cast<double>(sum) >= needed) return candidates.keep_first(rank + 1);
  }
}

void keep_min_p(Candidates& candidates, double min_p) {
  if (min_p <= 0.0) return;
  candidates.weigh();
  candidates.keep_weight(min_p / kWeightUnit);  // the likeliest has the weight 1 / kWeightUnit
}

void run_chain(Candidates& candidates, const ChainParams& params) {
  for (const Stage stage : params.stages) run_stage(candidates, params, stage);
  candidates.weigh();
}

TokenId draw(Candidates& candidates, uint32_t word) {
  const unsigned __int128 product = static_cast<unsigned __int128>(word >> 8) * candidates.weigh();
  const uint64_t target = static_cast<uint64_t>(product >> 24);  // floor(unit_float(word) * total), exactly
  uint64_t sum = 0;
  for (size_t rank = 0;; ++rank) {
    const Candidate& candidate = candidates.at(rank);
    sum += candidate.weight;
    if (sum > target) return candidate.token;
  }
}

}  // namespace candor::sample
