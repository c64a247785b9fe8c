#pragma once
// The stages between logits and token, as plain functions over Candidates, in an order that is data. Probabilities are
// those of the candidates that are left: every stage renormalises.

#include <array>
#include <cstdint>
#include <span>

#include "sample/candidates.h"

namespace candor::sample {

enum class Stage : uint8_t { kTemperature, kTopK, kTopP, kMinP };

inline constexpr std::array kDefaultStages = {Stage::kTemperature, Stage::kTopK, Stage::kTopP, Stage::kMinP};

// Below this, dividing by the temperature and always taking the best are the same.
inline constexpr double kGreedyBelow = 1e-6;

struct ChainParams {
  float temperature = 1.0f;  // below kGreedyBelow: the first of the order is chosen, nothing is drawn
  int32_t top_k = 0;         // 0 = off
  double top_p = 1.0;        // 1 = off
  double min_p = 0.0;        // 0 = off
  std::array<Stage, kDefaultStages.size()> stages = kDefaultStages;

  bool is_greedy() const { return temperature < static_cast<float>(kGreedyBelow); }
};

// Exactly the k first of the order; ties go to the lower id.
void keep_top_k(Candidates& candidates, int32_t k);
// The shortest beginning of the order whose probabilities reach p; the token that crosses p is kept (Holtzman et al.,
// "The curious case of neural text degeneration", ICLR 2020).
void keep_top_p(Candidates& candidates, double p);
// Every token at least min_p as likely as the likeliest (Nguyen et al., "Turning up the heat: min-p sampling", 2024).
void keep_min_p(Candidates& candidates, double min_p);

// All stages that are on, in the order of params.stages. REQUIRES: !params.is_greedy().
void run_chain(Candidates& candidates, const ChainParams& params);

// Walks the candidates in order until their probabilities exceed unit_float(word).
TokenId draw(Candidates& candidates, uint32_t word);

}  // namespace candor::sample
