#pragma once
// Which rows go to which expert of a mixture, decided once for every backend (Shazeer et al., 2017; Jiang et al.,
// "Mixtral of experts", 2024; with groups and a bias: DeepSeek-AI, "DeepSeek-V3 technical report", 2024). A row's
// choice and weights depend on its own scores alone: the n_used highest scores, the lower id first among equals (NaN
// counts as lowest), out of the best groups where there are any, and f32 weights by base/exact_math.h.
// Reused from step to step, so that a warm step allocates nothing. One thread.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/op_specs.h"

namespace candor::backend {

class Routing {
 public:
  struct Visit {
    int32_t row = 0;
    float weight = 0.0f;
  };

  // Forgets what was routed. REQUIRES: 1 <= spec.n_used <= spec.n_experts.
  void begin(const MoeSpec& spec);
  // [E] each, where the spec has them, else nullptr.
  struct ByExpert {
    const float* bias = nullptr;
    const float* scales = nullptr;
  };
  // scores: [E], finite.
  void add_row(int32_t row, std::span<const float> scores, ByExpert by_expert);
  void add_row(int32_t row, std::span<const float> scores) { add_row(row, scores, {}); }

  int32_t n_experts() const { return spec_.n_experts; }
  // Rows of one expert, ascending.
  std::span<const Visit> visits(int32_t expert) const { return by_expert_[static_cast<size_t>(expert)]; }

 private:
  // Into choices_: what experts are chosen by.
  void weigh_choices(std::span<const float> scores, const float* bias);
  // Experts of other groups than the best ones lose.
  void leave_best_groups();
  float group_score(int32_t group) const;
  // What the shares of `used` are divided by.
  float sum_of(std::span<const float> scores, std::span<const int32_t> used, float top) const;
  float share_of(float score, float top) const;

  MoeSpec spec_;
  std::vector<std::vector<Visit>> by_expert_;
  // Scratch.
  std::vector<int32_t> order_;   // [E]
  std::vector<float> choices_;   // [E]
  std::vector<int32_t> groups_;  // [n_groups]
};

}  // namespace candor::backend
