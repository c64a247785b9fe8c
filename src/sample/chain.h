#pragma once
// The stages of sampling (penalties, temperature, top-k and so on) between a row of logits and a token, as plain
// functions over Candidates, in an order that is data. Probabilities are those of the candidates that are left: every
// stage renormalises. Temperature leaves logits relative to the greatest one, which penalties behind it see.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "sample/bans.h"
#include "sample/candidates.h"
#include "sample/history.h"
#include "sample/penalties.h"

namespace candor::sample {

enum class Stage : uint8_t { kPenalties, kDry, kTemperature, kTopK, kTypical, kTopP, kMinP, kXtc };

inline constexpr Stage kDefaultStages[] = {Stage::kPenalties, Stage::kDry,  Stage::kTemperature, Stage::kTopK,
                                           Stage::kTypical,   Stage::kTopP, Stage::kMinP,        Stage::kXtc};

// "penalties", "dry", "temperature", "top_k", "typical_p", "top_p", "min_p", "xtc".
std::string_view to_string(Stage stage);

// Below this, dividing by the temperature and always taking the best are the same.
inline constexpr double kGreedyBelow = 1e-6;

struct ChainParams {
  BanParams bans{};
  PenaltyParams penalties{};
  DryParams dry{};
  double temperature = 1.0;        // below kGreedyBelow: the best is taken after penalties and DRY, nothing is drawn
  double temperature_range = 0.0;  // 0 = off; see scale_dynamically()
  double temperature_exponent = 1.0;
  int32_t top_k = 0;             // 0 = off
  double typical_p = 1.0;        // 1 = off
  double top_p = 1.0;            // 1 = off
  double min_p = 0.0;            // 0 = off
  double xtc_probability = 0.0;  // 0 = off
  double xtc_threshold = 0.1;
  std::vector<Stage> stages{std::begin(kDefaultStages), std::end(kDefaultStages)};

  bool is_greedy() const { return temperature < kGreedyBelow; }
};

// False where the parameters make a stage do nothing.
bool is_on(const ChainParams& params, Stage stage);
// Whether it is on and a choice by these parameters has it: greedy ones have only penalties and DRY.
bool takes_part(const ChainParams& params, Stage stage);

// What logits are divided by.
inline float divisor_of(double temperature) {
  return static_cast<float>(std::max(temperature, kGreedyBelow));
}

// Divides by a temperature between temperature - range and temperature + range: the lower, the more certain the model
// is. Its place between them is (entropy / greatest possible entropy)^exponent (EDT, Zhang et al., 2024, as in use).
void scale_dynamically(Candidates& candidates, const ChainParams& params);
// Exactly the k first of the order; ties go to the lower id.
void keep_top_k(Candidates& candidates, int32_t k);
// The tokens whose surprise is nearest to the entropy, until their probabilities reach p (Meister et al., "Locally
// typical sampling", TACL 2023).
void keep_typical(Candidates& candidates, double p);
// The shortest beginning of the order whose probabilities reach p; the token that crosses p is kept (Holtzman et al.,
// "The curious case of neural text degeneration", ICLR 2020).
void keep_top_p(Candidates& candidates, double p);
// Every token at least min_p as likely as the likeliest (Nguyen et al., "Turning up the heat: min-p sampling", 2024).
void keep_min_p(Candidates& candidates, double min_p);
// "Exclude top choices" (p-e-w, 2024): all tokens of at least this probability but the least likely of them go.
void exclude_top(Candidates& candidates, double threshold);

// What a stage left, for those who want to see it.
class ChainObserver {
 public:
  virtual ~ChainObserver() = default;
  // Stages that are off are not reported; "logits" comes first, then "mask" and "bans" where there are any.
  virtual void on_stage(std::string_view name, Candidates& candidates) = 0;
};

// Scratch memory of the stages that look back.
struct ChainScratch {
  TokenCounts counts{};
  DryScratch dry{};
};

struct ChainInput {
  const ChainParams& params;
  const History& history;
  uint32_t word = 0;                  // decides whether XTC happens: word 1 of the position
  ChainObserver* observer = nullptr;  // may be nullptr
  size_t n_done = 0;                  // of the stages: the first so many were applied before
};

// All stages that are on, in the order of the parameters; the greedy ones only penalties and DRY. The bans are the
// caller's. An error when nothing is left to choose. Ends early where candidates are no longer certain.
Result<void> run_chain(Candidates& candidates, const ChainInput& input, ChainScratch& scratch);

// Walks the candidates in order until their probabilities exceed unit_float(word).
TokenId draw(Candidates& candidates, uint32_t word);

}  // namespace candor::sample
