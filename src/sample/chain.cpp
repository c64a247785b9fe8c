#include "sample/chain.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/error.h"
#include "base/philox.h"
#include "sample/exact_log.h"
#include "sample/row_passes.h"

namespace candor::sample {
namespace {

Result<void> run_stage(Candidates& candidates, const ChainInput& input, ChainScratch& scratch, Stage stage) {
  const ChainParams& params = input.params;
  switch (stage) {
    case Stage::kPenalties:
      apply_penalties(candidates, input.history, params.penalties, scratch.counts);
      return candidates.settle();
    case Stage::kDry:
      apply_dry(candidates, input.history, params.dry, scratch.dry);
      return candidates.settle();
    case Stage::kTemperature:
      scale_dynamically(candidates, params);
      break;
    case Stage::kTopK:
      keep_top_k(candidates, params.top_k);
      break;
    case Stage::kTypical:
      keep_typical(candidates, params.typical_p);
      break;
    case Stage::kTopP:
      keep_top_p(candidates, params.top_p);
      break;
    case Stage::kMinP:
      keep_min_p(candidates, params.min_p);
      break;
    case Stage::kXtc:
      if (static_cast<double>(unit_float(input.word)) < params.xtc_probability) {
        exclude_top(candidates, params.xtc_threshold);
      }
      break;
  }
  return {};
}

}  // namespace

bool is_on(const ChainParams& params, Stage stage) {
  switch (stage) {
    case Stage::kPenalties:
      return params.penalties.is_on();
    case Stage::kDry:
      return params.dry.is_on();
    case Stage::kTemperature:
      return params.temperature != 1.0 || params.temperature_range > 0.0;
    case Stage::kTopK:
      return params.top_k > 0;
    case Stage::kTypical:
      return params.typical_p < 1.0;
    case Stage::kTopP:
      return params.top_p < 1.0;
    case Stage::kMinP:
      return params.min_p > 0.0;
    case Stage::kXtc:
      return params.xtc_probability > 0.0;
  }
  return false;
}

bool takes_part(const ChainParams& params, Stage stage) {
  if (params.is_greedy() && stage != Stage::kPenalties && stage != Stage::kDry) return false;
  return is_on(params, stage);
}

std::string_view to_string(Stage stage) {
  constexpr std::string_view kNames[] = {"penalties", "dry",   "temperature", "top_k",
                                         "typical_p", "top_p", "min_p",       "xtc"};
  return kNames[static_cast<size_t>(stage)];
}

void scale_dynamically(Candidates& candidates, const ChainParams& params) {
  double temperature = params.temperature;
  if (params.temperature_range > 0.0) {
    const double least = std::max(0.0, params.temperature - params.temperature_range);
    const double most = params.temperature + params.temperature_range;
    const double greatest_entropy = log_f64(static_cast<double>(std::max<size_t>(2, candidates.count())));
    const double share = std::clamp(candidates.entropy() / greatest_entropy, 0.0, 1.0);
    temperature = least + (most - least) * pow_f64(share, params.temperature_exponent);
  }
  candidates.scale(divisor_of(temperature));
}

void keep_top_k(Candidates& candidates, int32_t k) {
  if (k > 0) candidates.keep_first(static_cast<size_t>(k));
}

void keep_typical(Candidates& candidates, double p) {
  if (p < 1.0) candidates.keep_typical(p);
}

void keep_top_p(Candidates& candidates, double p) {
  if (p < 1.0) candidates.keep_share(p);
}

void keep_min_p(Candidates& candidates, double min_p) {
  if (min_p > 0.0) candidates.keep_weight(min_p / kWeightUnit);  // the likeliest has the weight 1 / kWeightUnit
}

void exclude_top(Candidates& candidates, double threshold) {
  candidates.drop_above(threshold * static_cast<double>(candidates.weigh()));
}

Result<void> run_chain(Candidates& candidates, const ChainInput& input, ChainScratch& scratch) {
  for (const Stage stage : std::span(input.params.stages).subspan(input.n_done)) {
    if (!takes_part(input.params, stage)) continue;
    if (!candidates.is_certain()) return {};
    CANDOR_TRY(run_stage(candidates, input, scratch, stage));
    if (input.observer != nullptr) input.observer->on_stage(to_string(stage), candidates);
  }
  return {};
}

TokenId draw(Candidates& candidates, uint32_t word) {
  const unsigned __int128 product = static_cast<unsigned __int128>(word >> 8) * candidates.weigh();
  return candidates.at_weight(static_cast<uint64_t>(product >> 24)).token;  // floor(unit_float(word) * total), exactly
}

}  // namespace candor::sample
