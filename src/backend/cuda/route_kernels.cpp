#include "backend/cuda/route_kernels.h"

#include <algorithm>

#include "backend/cuda/kernels/kernel_list.h"
#include "backend/cuda/kernels/product_launch.h"
#include "backend/cuda/kernels/route_args.h"
#include "base/checked.h"

namespace candor::backend::cuda {
namespace {

// Experts that have few rows, by the mean, are multiplied as few rows are.
constexpr int32_t kFewVisits = kMostFewRows / 2;

int32_t threads_for(int32_t n, int32_t most) {
  return std::min(round_up(n, 32), most);
}

Visits count_visits(const MoeSpec& spec, int32_t n_rows) {
  Visits visits;
  visits.n = n_rows * spec.n_used;
  visits.n_rows = n_rows;
  visits.run_rows = int64_t{visits.n} <= int64_t{kFewVisits} * spec.n_experts ? kMostFewRows : kManyRows;
  visits.n_runs = RunNumbers(visits.n, spec.n_experts, visits.run_rows).first(spec.n_experts, visits.n);
  return visits;
}

}  // namespace

size_t visits_bytes(const MoeSpec& spec, int32_t n_rows) {
  const Visits visits = count_visits(spec, n_rows);
  return (3 * sizeof(int32_t) + 2 * sizeof(float)) * static_cast<size_t>(visits.n) +
         sizeof(RowRun) * static_cast<size_t>(visits.n_runs);
}

Visits visits_at(std::byte* memory, const MoeSpec& spec, int32_t n_rows) {
  Visits visits = count_visits(spec, n_rows);
  const auto n = static_cast<size_t>(visits.n);
  visits.experts = reinterpret_cast<int32_t*>(memory);
  visits.places = visits.experts + n;
  visits.rows_by_place = visits.places + n;
  visits.weights = reinterpret_cast<float*>(visits.rows_by_place + n);
  visits.weights_by_place = visits.weights + n;
  visits.runs = reinterpret_cast<RowRun*>(visits.weights_by_place + n);
  return visits;
}

void find_visits(Launcher& launcher, const MoeSpec& spec, const ExpertScores& scores, const Visits& visits) {
  launcher.run(kernel::route_rows,
               {.x = static_cast<uint32_t>(visits.n_rows),
                .n_threads = static_cast<uint32_t>(threads_for(spec.n_experts, kMostRouteThreads)),
                .shared_bytes = static_cast<uint32_t>(route_shared_bytes(spec.n_experts, spec.n_groups, spec.n_used))},
               RouteRowsArgs{.scores = scores.scores,
                             .bias = spec.has_choice_bias ? scores.bias : nullptr,
                             .scales = spec.has_expert_scales ? scores.scales : nullptr,
                             .experts = visits.experts,
                             .weights = visits.weights,
                             .scale = spec.scale,
                             .n_experts = spec.n_experts,
                             .n_used = spec.n_used,
                             .n_groups = spec.n_groups,
                             .n_groups_used = spec.n_groups_used,
                             .n_group_best = spec.n_group_best,
                             .is_softmax = spec.share == ExpertShare::kSoftmax,
                             .renormalise = spec.renormalise});
  const int32_t n_threads = threads_for(visits.n, kMostSortThreads);
  launcher.run(kernel::sort_visits,
               {.x = static_cast<uint32_t>(spec.n_experts),
                .n_threads = static_cast<uint32_t>(n_threads),
                .shared_bytes = static_cast<uint32_t>(sort_shared_bytes(n_threads))},
               SortVisitsArgs{.experts = visits.experts,
                              .weights = visits.weights,
                              .places = visits.places,
                              .rows_by_place = visits.rows_by_place,
                              .weights_by_place = visits.weights_by_place,
                              .runs = visits.runs,
                              .n_visits = visits.n,
                              .n_experts = spec.n_experts,
                              .n_used = spec.n_used,
                              .run_rows = visits.run_rows});
}

}  // namespace candor::backend::cuda
