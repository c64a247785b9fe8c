#pragma once
// Which rows go to which expert of a mixture, decided once for every backend (Shazeer et al., 2017; Jiang et al.,
// "Mixtral of experts", 2024). A row's choice and weights depend on its own scores alone: the n_used highest scores,
// the lower id first among equals (NaN counts as lowest), and f32 softmax weights by base/exact_math.h.
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
  // scores: [E], finite.
  void add_row(int32_t row, std::span<const float> scores);

  int32_t n_experts() const { return spec_.n_experts; }
  // Rows of one expert, ascending.
  std::span<const Visit> visits(int32_t expert) const { return by_expert_[static_cast<size_t>(expert)]; }

 private:
  MoeSpec spec_;
  std::vector<std::vector<Visit>> by_expert_;
  std::vector<int32_t> order_;  // scratch: [E]
};

}  // namespace candor::backend
