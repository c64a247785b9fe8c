// The experts of each row, by the rules of backend/routing.cpp, and the rows of each expert. Orders: docs/numerics.md,
// "Rows".

#include "backend/cuda/kernels/elementary.h"
#include "backend/cuda/kernels/language.h"
#include "backend/cuda/kernels/route_args.h"

namespace candor::backend::cuda {

namespace {

constexpr uint32_t kMinusInfinity = 0xff800000u;

// What a block of threads knows of its row. Every thread adds and compares all by itself, in the stated order.
struct RouteRow {
  const RouteRowsArgs& args;
  Shared<float> scores;   // [n_experts]
  Shared<float> shares;   // [n_experts]
  Shared<float> choices;  // [n_experts]
  Shared<float> groups;   // [n_groups]
  Shared<int32_t> used;   // [n_used], the best first

  CANDOR_DEVICE explicit RouteRow(const RouteRowsArgs& the_args)
      : args(the_args),
        scores(shared<float>(0)),
        shares(shared<float>(n_bytes(1))),
        choices(shared<float>(n_bytes(2))),
        groups(shared<float>(n_bytes(3))),
        used(shared<int32_t>(n_bytes(3) + sizeof(float) * static_cast<size_t>(args.n_groups))) {}
  CANDOR_DEVICE size_t n_bytes(size_t n_lists) const {
    return n_lists * sizeof(float) * static_cast<size_t>(args.n_experts);
  }

  CANDOR_DEVICE float share_of(float score, float top) const {
    return args.is_softmax ? exp_of(sub_rn(score, top)) : sigmoid_of(score);
  }
  // The first where it is NaN, else NaN is passed over.
  CANDOR_DEVICE float highest_score() const {
    float top = scores[0];
    for (int32_t e = 1; e < args.n_experts; ++e) {
      const float score = scores[at(e)];
      if (top < score) top = score;
    }
    return top;
  }
  CANDOR_DEVICE float sum_of_shares() const {
    float sum = 0.0f;
    for (int32_t e = 0; e < args.n_experts; ++e) sum = add_rn(sum, shares[at(e)]);
    return sum;
  }
  CANDOR_DEVICE float sum_of_used() const {
    float sum = 0.0f;
    for (int32_t j = 0; j < args.n_used; ++j) sum = add_rn(sum, shares[at(used[at(j)])]);
    return sum;
  }
  // What the shares are divided by.
  CANDOR_DEVICE float divisor() const {
    if (!args.renormalise && !args.is_softmax) return 1.0f;
    const float sum = args.renormalise ? sum_of_used() : sum_of_shares();
    return args.is_softmax ? sum : add_rn(sum, 1e-20f);
  }
  CANDOR_DEVICE float group_score(int32_t group) const {
    const int32_t size = args.n_experts / args.n_groups;
    float best = choices[at(group * size)];
    float next = float_of(kMinusInfinity);
    for (int32_t e = group * size + 1; e < (group + 1) * size; ++e) {
      const float choice = choices[at(e)];
      if (choice > best) {
        next = best;
        best = choice;
      } else if (choice > next) {
        next = choice;
      }
    }
    return args.n_group_best == 1 ? best : without_nan(add_rn(best, next));
  }

  static CANDOR_DEVICE size_t at(int32_t i) { return static_cast<size_t>(i); }
  // NaN counts as lowest.
  static CANDOR_DEVICE float without_nan(float x) { return x == x ? x : float_of(kMinusInfinity); }
};

// How many of n values come before value i: higher ones, and equal ones of a lower number.
CANDOR_DEVICE int32_t rank_among(Shared<float> values, int32_t n, int32_t i) {
  const float own = values[static_cast<size_t>(i)];
  int32_t rank = 0;
  for (int32_t other = 0; other < n; ++other) {
    const float value = values[static_cast<size_t>(other)];
    rank += value > own || (value == own && other < i) ? 1 : 0;
  }
  return rank;
}

// fn(i) for each i < n, by some thread.
template <class Fn>
CANDOR_DEVICE void for_each(int32_t n, const Fn& fn) {
  for (auto i = static_cast<int32_t>(thread()); i < n; i += static_cast<int32_t>(n_threads())) fn(i);
}

// Into choices: what experts are chosen by.
CANDOR_DEVICE void weigh_choices(const RouteRow& row) {
  const RouteRowsArgs& args = row.args;
  const bool is_by_share = !args.is_softmax || args.bias != nullptr;
  float sum = 1.0f;
  if (is_by_share) {
    const float top = args.is_softmax ? row.highest_score() : 0.0f;
    for_each(args.n_experts, [&](int32_t e) { row.shares[row.at(e)] = row.share_of(row.scores[row.at(e)], top); });
    sync_block();
    if (args.is_softmax) sum = row.sum_of_shares();
  }
  for_each(args.n_experts, [&](int32_t e) {
    float choice = is_by_share ? row.shares[row.at(e)] : row.scores[row.at(e)];
    if (is_by_share && args.is_softmax) choice = div_rn(choice, sum);
    if (args.bias != nullptr) choice = add_rn(choice, args.bias[e]);
    row.choices[row.at(e)] = row.without_nan(choice);
  });
  sync_block();
}

// Experts of other groups than the best ones lose.
CANDOR_DEVICE void leave_best_groups(const RouteRow& row) {
  const RouteRowsArgs& args = row.args;
  for_each(args.n_groups, [&](int32_t group) { row.groups[row.at(group)] = row.group_score(group); });
  sync_block();
  const int32_t size = args.n_experts / args.n_groups;
  for_each(args.n_experts, [&](int32_t e) {
    if (rank_among(row.groups, args.n_groups, e / size) < args.n_groups_used) return;
    row.choices[row.at(e)] = float_of(kMinusInfinity);
  });
  sync_block();
}

}  // namespace

CANDOR_KERNEL(route_rows, RouteRowsArgs) {
  const RouteRow row(args);
  const int64_t number = block_x();
  for_each(args.n_experts, [&](int32_t e) { row.scores[row.at(e)] = args.scores[number * args.n_experts + e]; });
  sync_block();
  weigh_choices(row);
  if (args.n_groups > 1) leave_best_groups(row);
  for_each(args.n_experts, [&](int32_t e) {
    const int32_t rank = rank_among(row.choices, args.n_experts, e);
    if (rank < args.n_used) row.used[row.at(rank)] = e;
  });
  sync_block();
  const float top = args.bias == nullptr ? row.scores[row.at(row.used[0])] : row.highest_score();
  for_each(args.n_experts, [&](int32_t e) { row.shares[row.at(e)] = row.share_of(row.scores[row.at(e)], top); });
  sync_block();
  const float divisor = row.divisor();
  for_each(args.n_used, [&](int32_t j) {
    const int32_t expert = row.used[row.at(j)];
    int64_t at = number * args.n_used;
    for (int32_t i = 0; i < args.n_used; ++i) at += row.used[row.at(i)] < expert ? 1 : 0;
    const float weight = mul_rn(div_rn(row.shares[row.at(expert)], divisor), args.scale);
    args.experts[at] = expert;
    args.weights[at] = args.scales == nullptr ? weight : mul_rn(weight, args.scales[expert]);
  });
}

// A thread counts its visits, and those of threads before it, and then has a place for each of its own.
CANDOR_KERNEL(sort_visits, SortVisitsArgs) {
  const auto expert = static_cast<int32_t>(block_x());
  const auto n = static_cast<int32_t>(n_threads());
  const auto own = static_cast<int32_t>(thread());
  const auto less = shared<int32_t>(0);
  const auto equal = shared<int32_t>(sizeof(int32_t) * n_threads());
  const int32_t of_thread = (args.n_visits + n - 1) / n;
  const int32_t begin = own * of_thread < args.n_visits ? own * of_thread : args.n_visits;
  const int32_t end = begin + of_thread < args.n_visits ? begin + of_thread : args.n_visits;
  int32_t n_less = 0;
  int32_t n_equal = 0;
  for (int32_t i = begin; i < end; ++i) {
    n_less += args.experts[i] < expert ? 1 : 0;
    n_equal += args.experts[i] == expert ? 1 : 0;
  }
  less[thread()] = n_less;
  equal[thread()] = n_equal;
  sync_block();
  int32_t first = 0;
  int32_t n_before = 0;
  int32_t n_rows = 0;
  for (int32_t i = 0; i < n; ++i) {
    first += less[static_cast<size_t>(i)];
    const int32_t of_other = equal[static_cast<size_t>(i)];
    n_before += i < own ? of_other : 0;
    n_rows += of_other;
  }
  int32_t place = first + n_before;
  for (int32_t i = begin; i < end; ++i) {
    if (args.experts[i] != expert) continue;
    args.places[i] = place;
    args.rows_by_place[place] = i / args.n_used;
    args.weights_by_place[place] = args.weights[i];
    ++place;
  }
  const RunNumbers numbers(args.n_visits, args.n_experts, args.run_rows);
  const int32_t first_run = numbers.first(expert, first);
  for_each(numbers.first(expert + 1, first + n_rows) - first_run, [&](int32_t i) {
    const int32_t row = numbers.row(i);
    const int32_t n_left = row % args.run_rows == 0 ? n_rows - row : 0;
    args.runs[first_run + i] = {expert, first + row, n_left < 0 ? 0 : n_left < args.run_rows ? n_left : args.run_rows};
  });
}

}  // namespace candor::backend::cuda
