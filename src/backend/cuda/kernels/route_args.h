#pragma once
// What the kernels take that choose each row's experts (backend/routing.h) and put the rows of an expert together, and
// what they leave for the products of experts. A visit is a row at one of its experts; its place is where the visits
// lie, ordered by expert and then by row. Plain data: it is copied as bytes.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/product_args.h"

namespace candor::backend::cuda {

// experts, weights: [n_rows, n_used], of a row in ascending order of the expert. Members below `weights` as MoeSpec has
// them.
struct RouteRowsArgs {
  const float* scores = nullptr;  // [n_rows, n_experts]
  const float* bias = nullptr;    // [n_experts] or nullptr
  const float* scales = nullptr;  // [n_experts] or nullptr
  int32_t* experts = nullptr;
  float* weights = nullptr;
  float scale = 1.0f;
  int32_t n_experts = 0;
  int32_t n_used = 0;
  int32_t n_groups = 1;
  int32_t n_groups_used = 1;
  int32_t n_group_best = 1;
  bool is_softmax = true;
  bool renormalise = true;
};

// A block of threads takes a row: a thread an expert, in turns where there are more.
inline constexpr int32_t kMostRouteThreads = 512;
// Scores, shares, what experts are chosen by, what groups are, and the chosen ones.
constexpr size_t route_shared_bytes(int32_t n_experts, int32_t n_groups, int32_t n_used) {
  return sizeof(float) * (3 * static_cast<size_t>(n_experts) + static_cast<size_t>(n_groups)) +
         sizeof(int32_t) * static_cast<size_t>(n_used);
}

// How an expert's visits are divided into runs of run_rows rows or fewer. Runs have fixed numbers, so that as many
// blocks of threads are launched for any routing; those of a number that is no run's have no rows. Few visits: the
// number of a run is its first place. Else each expert has numbers of its own.
struct RunNumbers {
  int32_t run_rows = 0;
  bool is_by_place = false;

  constexpr RunNumbers(int32_t n_visits, int32_t n_experts, int32_t rows)
      : run_rows(rows), is_by_place(n_visits < n_experts + n_visits / rows) {}

  // The first of an expert whose visits begin at `place`; of the expert behind the last, how many there are.
  constexpr int32_t first(int32_t expert, int32_t place) const {
    return is_by_place ? place : expert + place / run_rows;
  }
  // Rows before a run, the i-th number of its expert.
  constexpr int32_t row(int32_t i) const { return is_by_place ? i : i * run_rows; }
};

struct SortVisitsArgs {
  const int32_t* experts = nullptr;  // [n_visits], as weights
  const float* weights = nullptr;
  int32_t* places = nullptr;          // [n_visits]
  int32_t* rows_by_place = nullptr;   // [n_visits]
  float* weights_by_place = nullptr;  // [n_visits]
  RowRun* runs = nullptr;
  int32_t n_visits = 0;
  int32_t n_experts = 0;
  int32_t n_used = 0;
  int32_t run_rows = 0;
};

// A block of threads takes an expert, a thread some visits in a row.
inline constexpr int32_t kMostSortThreads = 256;
constexpr size_t sort_shared_bytes(int32_t n_threads) {
  return 2 * sizeof(int32_t) * static_cast<size_t>(n_threads);
}

}  // namespace candor::backend::cuda
