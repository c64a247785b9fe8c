#include "backend/routing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "base/exact_math.h"

namespace candor::backend {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

float rank_of(float score) {
  return std::isnan(score) ? kLowest : score;
}

}  // namespace

void Routing::begin(const MoeSpec& spec) {
  spec_ = spec;
  by_expert_.resize(std::max(by_expert_.size(), static_cast<size_t>(spec.n_experts)));
  for (std::vector<Visit>& visits : by_expert_) visits.clear();
}

float Routing::share_of(float score, float top) const {
  return spec_.share == ExpertShare::kSoftmax ? exp_f32(score - top) : 1.0f / (1.0f + exp_f32(-score));
}

float Routing::sum_of(std::span<const float> scores, std::span<const int32_t> used, float top) const {
  const bool is_softmax = spec_.share == ExpertShare::kSoftmax;
  if (!spec_.renormalise && !is_softmax) return 1.0f;
  float sum = 0.0f;
  if (spec_.renormalise) {
    for (const int32_t expert : used) sum += share_of(scores[static_cast<size_t>(expert)], top);
  } else {
    for (const float score : scores) sum += share_of(score, top);
  }
  return is_softmax ? sum : sum + 1e-20f;
}

void Routing::weigh_choices(std::span<const float> scores, const float* bias) {
  choices_.assign(scores.begin(), scores.end());
  if (spec_.share == ExpertShare::kSigmoid) {
    for (float& choice : choices_) choice = share_of(choice, 0.0f);
  } else if (bias != nullptr) {
    const float top = *std::ranges::max_element(scores);
    float sum = 0.0f;
    for (const float score : scores) sum += share_of(score, top);
    for (float& choice : choices_) choice = share_of(choice, top) / sum;
  }
  for (size_t i = 0; bias != nullptr && i < choices_.size(); ++i) choices_[i] += bias[i];
}

float Routing::group_score(int32_t group) const {
  const auto first = choices_.begin() + static_cast<std::ptrdiff_t>(group) * spec_.group_size();
  std::array<float, 2> best = {rank_of(*first), kLowest};
  for (auto at = first + 1; at != first + spec_.group_size(); ++at) {
    const float choice = rank_of(*at);
    if (choice > best[0]) {
      best = {choice, best[0]};
    } else if (choice > best[1]) {
      best[1] = choice;
    }
  }
  return spec_.n_group_best == 1 ? best[0] : rank_of(best[0] + best[1]);
}

void Routing::leave_best_groups() {
  groups_.resize(static_cast<size_t>(spec_.n_groups));
  std::iota(groups_.begin(), groups_.end(), 0);
  const auto used_end = groups_.begin() + spec_.n_groups_used;
  std::partial_sort(groups_.begin(), used_end, groups_.end(), [&](int32_t a, int32_t b) {
    const float left = group_score(a);
    const float right = group_score(b);
    return left != right ? left > right : a < b;
  });
  for (auto at = used_end; at != groups_.end(); ++at) {
    std::fill_n(choices_.begin() + static_cast<std::ptrdiff_t>(*at) * spec_.group_size(), spec_.group_size(), kLowest);
  }
}

void Routing::add_row(int32_t row, std::span<const float> scores, ByExpert by_expert) {
  const float* bias = by_expert.bias;
  weigh_choices(scores, bias);
  if (spec_.n_groups > 1) leave_best_groups();
  order_.resize(scores.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto used_end = order_.begin() + spec_.n_used;
  std::partial_sort(order_.begin(), used_end, order_.end(), [&](int32_t a, int32_t b) {
    const float left = rank_of(choices_[static_cast<size_t>(a)]);
    const float right = rank_of(choices_[static_cast<size_t>(b)]);
    return left != right ? left > right : a < b;
  });
  const float top = bias == nullptr ? scores[static_cast<size_t>(order_.front())] : *std::ranges::max_element(scores);
  const float sum = sum_of(scores, {order_.begin(), used_end}, top);
  for (auto at = order_.begin(); at != used_end; ++at) {
    const size_t expert = static_cast<size_t>(*at);
    const float weight = share_of(scores[expert], top) / sum * spec_.scale;
    by_expert_[expert].push_back({row, by_expert.scales == nullptr ? weight : weight * by_expert.scales[expert]});
  }
}

}  // namespace candor::backend
