#include "sched/cost_model.h"

#include <algorithm>

namespace candor::sched {
namespace {

// On the line through a and b.
int64_t along(const CostPoint& a, const CostPoint& b, int64_t n_rows) {
  return a.ns + (b.ns - a.ns) * (n_rows - a.n_rows) / (b.n_rows - a.n_rows);
}

}  // namespace

int64_t CostModel::step_ns(const StepWork& work) const {
  const int64_t n_rows = work.n_rows;
  if (points.empty() || n_rows == 0) return 0;
  const int64_t further_ns = (work.n_back * look_back_ps + work.n_pairs * attend_ps) / 1000 +
                             std::max<int64_t>(0, work.n_out_rows - 1) * out_row_ns;
  if (points.size() == 1) return points[0].ns + further_ns;
  auto end = std::ranges::find_if(points, [n_rows](const CostPoint& point) { return point.n_rows >= n_rows; });
  end = std::clamp(end, points.begin() + 1, points.end() - 1);
  return along(*(end - 1), *end, n_rows) + further_ns;
}

}  // namespace candor::sched
