#include "backend/routing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/exact_math.h"

namespace candor::backend {
namespace {

float rank_of(float score) {
  return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
}

}  // namespace

void Routing::begin(const MoeSpec& spec) {
  spec_ = spec;
  by_expert_.resize(std::max(by_expert_.size(), static_cast<size_t>(spec.n_experts)));
  for (std::vector<Visit>& visits : by_expert_) visits.clear();
}

void Routing::add_row(int32_t row, std::span<const float> scores) {
  order_.resize(scores.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto used_end = order_.begin() + spec_.n_used;
  std::partial_sort(order_.begin(), used_end, order_.end(), [&](int32_t a, int32_t b) {
    const float left = rank_of(scores[static_cast<size_t>(a)]);
    const float right = rank_of(scores[static_cast<size_t>(b)]);
    return left != right ? left > right : a < b;
  });
  const float top = scores[static_cast<size_t>(order_.front())];
  float sum = 0.0f;
  if (spec_.renormalise) {
    for (auto at = order_.begin(); at != used_end; ++at) sum += exp_f32(scores[static_cast<size_t>(*at)] - top);
  } else {
    for (const float score : scores) sum += exp_f32(score - top);
  }
  for (auto at = order_.begin(); at != used_end; ++at) {
    const size_t expert = static_cast<size_t>(*at);
    by_expert_[expert].push_back({row, exp_f32(scores[expert] - top) / sum});
  }
}

}  // namespace candor::backend
