#include "engine/step_costs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/checked.h"
#include "obs/clock.h"

namespace candor::engine {
namespace {

constexpr double kMaxMs = 3.6e6;
constexpr size_t kMaxPoints = 64;
constexpr int32_t kMeasuredRows[] = {1, 4, 16, 64};
constexpr int32_t kFarRows = 16;            // rows that look far back
constexpr int32_t kFarPositions = 2048;     // and how far, where the context has as much
constexpr int kMostRepetitions = 3;         // the least is taken
constexpr int64_t kEnoughNs = 150'000'000;  // of one size

// Steps of one sequence of n_rows rows after n_past others; the tokens are the lowest ids.
class Trial {
 public:
  Trial(backend::Backend& backend, model::Model& model, backend::KvStore& kv)
      : backend_(backend), model_(model), kv_(kv), blocks_(static_cast<size_t>(kv.n_blocks())) {
    std::iota(blocks_.begin(), blocks_.end(), 0);
  }

  int64_t least_ns(int32_t n_rows, int32_t n_past) {
    int64_t least = INT64_MAX;
    int64_t spent = 0;
    for (int i = 0; i < kMostRepetitions && spent < kEnoughNs; ++i) {
      const int64_t ns = run(n_rows, n_past);
      least = std::min(least, ns);
      spent += ns;
    }
    return least;
  }

 private:
  int64_t run(int32_t n_rows, int32_t n_past) {
    std::vector<TokenId> tokens(static_cast<size_t>(n_rows));
    std::vector<int32_t> positions(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i) % model_.spec().vocab;
    std::iota(positions.begin(), positions.end(), n_past);
    const backend::SeqSlice slice{0, n_rows, n_past};
    const int32_t out_row = n_rows - 1;
    const int32_t n_blocks = ceil_div(n_past + n_rows, backend::kBlockTokens);
    const backend::StepBatch batch{.tokens = tokens,
                                   .positions = positions,
                                   .seqs = std::span(&slice, 1),
                                   .block_table = std::span(blocks_).first(static_cast<size_t>(n_blocks)),
                                   .max_blocks = n_blocks,
                                   .out_rows = std::span(&out_row, 1)};
    const int64_t began_ns = clock_.now_ns();
    backend_.wait(model_.launch(batch, kv_));
    return clock_.now_ns() - began_ns;
  }

  backend::Backend& backend_;
  model::Model& model_;
  backend::KvStore& kv_;
  std::vector<BlockId> blocks_;
  obs::SteadyClock clock_;
};

double to_ms(int64_t ns) {
  return static_cast<double>(ns) * 1e-6;
}

}  // namespace

Expected<void> check_costs(const StepCosts& costs) {
  const auto refuse = [](const std::string& why) { return fail(ErrorKind::kInvalidInput, "costs: " + why); };
  if (costs.points.empty() || costs.points.size() > kMaxPoints) {
    return refuse(std::to_string(costs.points.size()) + " points, expected 1 to " + std::to_string(kMaxPoints));
  }
  StepCosts::Point before{.n_rows = 0, .ms = 0.0};
  for (const StepCosts::Point& point : costs.points) {
    const bool is_ascending = point.n_rows > before.n_rows && point.ms >= before.ms && point.ms <= kMaxMs;
    if (!is_ascending) {
      return refuse(std::to_string(point.n_rows) + " rows in " + std::to_string(point.ms) + " ms after " +
                    std::to_string(before.n_rows) + " rows in " + std::to_string(before.ms) +
                    " ms, expected more rows, and no less time");
    }
    before = point;
  }
  if (!(costs.draft_ms >= 0.0 && costs.draft_ms <= kMaxMs)) {
    return refuse("draft_ms is " + std::to_string(costs.draft_ms) + ", expected 0 to " + std::to_string(kMaxMs));
  }
  if (costs.attend_ns >= 0.0 && costs.attend_ns <= 1e6) return {};
  return refuse("attend_ns is " + std::to_string(costs.attend_ns) + ", expected 0 to 1e6");
}

sched::CostModel to_model(const StepCosts& costs) {
  sched::CostModel model;
  for (const StepCosts::Point& point : costs.points)
    model.points.push_back({point.n_rows, std::llround(point.ms * 1e6)});
  model.attend_ps = std::llround(costs.attend_ns * 1e3);
  return model;
}

StepCosts measure_costs(LoadedModel& loaded) {
  StepCosts costs;
  if (loaded.draft) {
    Trial trial(*loaded.backend, *loaded.draft->model, *loaded.draft->kv);
    trial.least_ns(1, 0);
    costs.draft_ms = to_ms(trial.least_ns(1, 0));
  }
  Trial trial(*loaded.backend, *loaded.model, *loaded.kv);
  const int32_t n_most = std::min(loaded.options.max_rows, loaded.n_ctx());
  trial.least_ns(1, 0);
  double before_ms = 0.0;
  for (const int32_t n_rows : kMeasuredRows) {
    if (n_rows > n_most) break;
    before_ms = std::max(before_ms, to_ms(trial.least_ns(n_rows, 0)));
    costs.points.push_back({n_rows, before_ms});
  }
  const int32_t n_past = std::min(loaded.n_ctx() - kFarRows, kFarPositions);
  if (n_most < kFarRows || n_past < kFarRows) return costs;
  const int64_t ns = trial.least_ns(kFarRows, n_past) - trial.least_ns(kFarRows, 0);
  const double n_pairs = static_cast<double>(kFarRows) * n_past;
  costs.attend_ns = std::round(std::max(0.0, static_cast<double>(ns) / n_pairs) * 1e3) / 1e3;
  return costs;
}

}  // namespace candor::engine
