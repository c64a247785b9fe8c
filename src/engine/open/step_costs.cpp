#include "engine/open/step_costs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "backend/step_batch.h"
#include "base/checked.h"
#include "base/ids.h"
#include "draft/draft_length.h"
#include "draft/drafter.h"
#include "draft/head_drafter.h"
#include "model/model.h"
#include "obs/clock.h"

namespace candor::engine {
namespace {

constexpr double kMaxMs = 3.6e6;
constexpr size_t kMaxPoints = 64;
// Costs leap behind 16 and 32, where another tile of rows begins, and hardly rise between on tile registers.
constexpr int32_t kMeasuredRows[] = {1, 2, 4, 8, 12, 16, 18, 20, 24, 32, 36, 48, 64};
constexpr int32_t kFewRows = 16;         // of those, whose attention and head are measured by themselves
constexpr int32_t kFarPositions = 2048;  // how far attention looks, where the context has as much
constexpr size_t kStepsBetween = 3;  // from one time of parts to their next: they push what parts read out of caches
constexpr int kMostRepetitions = 40;
constexpr int kFewRepetitions = 3;          // are enough where they last
constexpr int64_t kEnoughNs = 300'000'000;  // of one size
constexpr int64_t kLastingNs = 8'000'000;
constexpr int32_t kTimedDrafts = 8;
constexpr int32_t kDraftText = 128;  // tokens that a draft model reads and then drafts behind

double to_ms(int64_t ns) {
  return static_cast<double>(ns) * 1e-6;
}

// Times of something that has parts, the same ones each time.
class PartTimes {
 public:
  bool is_enough() const {
    return count_ == kMostRepetitions || spent_ >= kEnoughNs || (count_ >= kFewRepetitions && spent_ >= kLastingNs);
  }
  void add(std::span<const int64_t> parts) {
    times_.resize(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      times_[i].push_back(parts[i]);
      spent_ += parts[i];
    }
    ++count_;
  }
  // The medians of all parts, summed.
  int64_t usual() {
    int64_t sum = 0;
    for (std::vector<int64_t>& of_one : times_) {
      const auto middle = of_one.begin() + (std::ssize(of_one) - 1) / 2;
      std::ranges::nth_element(of_one, middle);
      sum += *middle;
    }
    return sum;
  }

 private:
  std::vector<std::vector<int64_t>> times_;
  int64_t spent_ = 0;
  int count_ = 0;
};

// What each i below n usually takes, of several times in turns: what slows a shared machine for a while slows all, and
// seldom the same parts of one most times. run(i) returns the times of its parts.
template <class Run>
std::vector<int64_t> usual_of_each(size_t n, Run&& run) {
  std::vector<PartTimes> times(n);
  while (!std::ranges::all_of(times, &PartTimes::is_enough)) {
    for (size_t i = 0; i < n; ++i) {
      if (!times[i].is_enough()) times[i].add(run(i));
    }
  }
  std::vector<int64_t> usual;
  usual.reserve(n);
  for (PartTimes& of_one : times) usual.push_back(of_one.usual());
  return usual;
}

enum class Part : uint8_t { kAll, kAttention, kHead };

// A step of one sequence, or a part of it: n_rows rows after n_past others, the last n_out with logits.
struct StepShape {
  Part part = Part::kAll;
  int32_t n_rows = 1;
  int32_t n_past = 0;
  int32_t n_out = 1;
};

StepShape whole(int32_t n_rows) {
  return {.n_rows = n_rows};
}
StepShape attention(int32_t n_rows, int32_t n_past) {
  return {.part = Part::kAttention, .n_rows = n_rows, .n_past = n_past, .n_out = 0};
}
StepShape head(int32_t n_rows) {
  return {.part = Part::kHead, .n_rows = n_rows, .n_out = n_rows};
}

struct StepTimes {
  std::vector<int64_t> steps{};  // ns
  std::vector<int64_t> parts{};
};

// The tokens are the lowest ids.
class Trial {
 public:
  Trial(backend::Backend& backend, model::Model& model, backend::KvStore& kv)
      : backend_(backend), model_(model), kv_(kv), blocks_(static_cast<size_t>(kv.n_blocks())) {
    std::iota(blocks_.begin(), blocks_.end(), 0);
  }

  // What each step usually takes, in turns; each part runs once after every few steps.
  StepTimes usual_ns(std::span<const StepShape> steps, std::span<const StepShape> parts) {
    std::vector<PartTimes> part_times(parts.size());
    size_t n_runs = 0;
    StepTimes times;
    times.steps = usual_of_each(steps.size(), [&](size_t i) {
      if (n_runs++ % kStepsBetween == 0) {
        for (size_t j = 0; j < parts.size(); ++j) part_times[j].add(run(parts[j]));
      }
      return run(steps[i]);
    });
    for (PartTimes& of_one : part_times) times.parts.push_back(of_one.usual());
    return times;
  }

  // Gives positions below n_past memory of their own: until something is written to it, all may read the same zeros.
  // REQUIRES: a step of the first block has run.
  void fill(int32_t n_past) {
    for (BlockId block = 1; block < ceil_div(n_past, backend::kBlockTokens); ++block) {
      kv_.copy_block(0, block, backend::kBlockTokens);
    }
  }

  // Times: block by block; of a part, one. Valid until the next run.
  std::span<const int64_t> run(const StepShape& shape) {
    const auto [part, n_rows, n_past, n_out] = shape;
    std::vector<TokenId> tokens(static_cast<size_t>(n_rows));
    std::vector<int32_t> positions(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i) % model_.spec().vocab;
    std::iota(positions.begin(), positions.end(), n_past);
    const backend::SeqSlice slice{0, n_rows, n_past};
    const backend::StateSave save{n_rows - 1, 0};
    std::vector<int32_t> out_rows(static_cast<size_t>(n_out));
    std::iota(out_rows.begin(), out_rows.end(), n_rows - n_out);
    const int32_t n_blocks = ceil_div(n_past + n_rows, backend::kBlockTokens);
    const backend::StepBatch batch{.tokens = tokens,
                                   .positions = positions,
                                   .seqs = std::span(&slice, 1),
                                   .block_table = std::span(blocks_).first(static_cast<size_t>(n_blocks)),
                                   .max_blocks = n_blocks,
                                   .out_rows = out_rows,
                                   .saves = std::span(&save, kv_.n_states() > 0 ? 1 : 0)};
    const auto n_layers = checked_cast<int32_t>(model_.spec().blocks.size());
    ns_.clear();
    if (part == Part::kAttention) time([&] { return model_.launch_attention(batch, kv_); });
    if (part == Part::kHead) time([&] { return model_.launch_blocks(n_layers, n_layers, batch, kv_); });
    for (int32_t layer = 0; part == Part::kAll && layer < n_layers; ++layer) {
      time([&] { return model_.launch_blocks(layer, layer + 1, batch, kv_); });
    }
    return ns_;
  }

 private:
  template <class Launch>
  void time(Launch&& launch) {
    const int64_t began_ns = clock_.now_ns();
    backend_.read_logits(launch());
    ns_.push_back(clock_.now_ns() - began_ns);
  }

  backend::Backend& backend_;
  model::Model& model_;
  backend::KvStore& kv_;
  std::vector<BlockId> blocks_;
  std::vector<int64_t> ns_;  // of the parts of the last run
  obs::SteadyClock clock_;
};

// As requests pay for it: with the choice of each draft by a sampling chain.
class DraftTrial {
 public:
  explicit DraftTrial(LoadedModel& loaded)
      : drafter_(make_drafter(loaded)), width_(draft::vector_width(loaded.draft->model->spec())) {
    const int32_t n_slot = loaded.draft->slots.slot_blocks * backend::kBlockTokens - draft::kMaxDrafts;
    text_.resize(static_cast<size_t>(std::min({kDraftText, n_slot, loaded.options.max_rows})));
    std::iota(text_.begin(), text_.end(), 0);
    for (TokenId& token : text_) token %= loaded.n_vocab();
  }

  void measure(StepCosts& costs) {
    const auto reading = [&](size_t) {
      begin_anew();
      return run(1);
    };
    const int64_t reading_ns = usual_of_each(1, reading).front();
    const int64_t one_ns = usual_of_each(1, [&](size_t) { return run(1); }).front();
    const int64_t all_ns = usual_of_each(1, [&](size_t) { return run(kTimedDrafts); }).front();
    costs.draft_ms = to_ms(std::max(all_ns / kTimedDrafts, one_ns));
    costs.draft_read_ms = to_ms(std::max<int64_t>(0, reading_ns - one_ns)) / static_cast<double>(text_.size());
  }

 private:
  // Another text, of which nothing is known.
  void begin_anew() {
    text_[0] ^= 1;
    ++request_.sequence;
    if (!drafter_->watches()) return;
    const std::vector<float> vectors((text_.size() - 1) * width_, 1.0f);
    drafter_->watch({request_.sequence, 0, std::span<const TokenId>(text_).first(text_.size() - 1), vectors});
  }

  std::span<const int64_t> run(int32_t n_drafts) {
    request_.text = text_;
    request_.n_output = text_.size() / 2;
    request_.chain = &chain_;
    request_.n_drafts = n_drafts;
    const int64_t began_ns = clock_.now_ns();
    drafter_->propose(std::span(&request_, 1), nullptr);
    ns_ = clock_.now_ns() - began_ns;
    return {&ns_, 1};
  }

  std::unique_ptr<draft::Drafter> drafter_;
  size_t width_ = 0;
  draft::DraftRequest request_;
  sample::ChainParams chain_;
  std::vector<TokenId> text_;
  int64_t ns_ = 0;  // of the last run
  obs::SteadyClock clock_;
};

std::vector<StepShape> steps_to_measure(int32_t n_most) {
  std::vector<StepShape> steps;
  for (const int32_t n_rows : kMeasuredRows) {
    if (n_rows <= n_most) steps.push_back(whole(n_rows));
  }
  return steps;
}

}  // namespace

Result<void> check_costs(const StepCosts& costs) {
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
  for (const auto& [name, ms] : {std::pair("out_row_ms", costs.out_row_ms),
                                 {"draft_ms", costs.draft_ms},
                                 {"draft_read_ms", costs.draft_read_ms}}) {
    if (ms >= 0.0 && ms <= kMaxMs) continue;
    return refuse(std::string(name) + " is " + std::to_string(ms) + ", expected 0 to " + std::to_string(kMaxMs));
  }
  for (const auto& [name, ns] : {std::pair("look_back_ns", costs.look_back_ns), {"attend_ns", costs.attend_ns}}) {
    if (ns >= 0.0 && ns <= 1e6) continue;
    return refuse(std::string(name) + " is " + std::to_string(ns) + ", expected 0 to 1e6");
  }
  return {};
}

sched::CostModel to_model(const StepCosts& costs) {
  sched::CostModel model;
  for (const StepCosts::Point& point : costs.points)
    model.points.push_back({point.n_rows, std::llround(point.ms * 1e6)});
  model.look_back_ps = std::llround(costs.look_back_ns * 1e3);
  model.attend_ps = std::llround(costs.attend_ns * 1e3);
  model.out_row_ns = std::llround(costs.out_row_ms * 1e6);
  return model;
}

StepCosts measure_costs(LoadedModel& loaded) {
  StepCosts costs;
  if (loaded.draft) DraftTrial(loaded).measure(costs);
  Trial trial(*loaded.backend, *loaded.model, *loaded.kv);
  const int32_t n_past = std::min(loaded.n_ctx() - kFewRows, kFarPositions);
  const int32_t n_most = std::min(loaded.options.max_rows, loaded.n_ctx());
  std::vector<StepShape> parts;
  if (n_most >= kFewRows) parts = {head(1), head(kFewRows)};
  const bool looks_back = n_most >= kFewRows && n_past >= kFewRows;
  if (looks_back) {
    parts.insert(parts.end(),
                 {attention(1, 0), attention(1, n_past), attention(kFewRows, 0), attention(kFewRows, n_past)});
  }
  trial.run(whole(1));
  trial.fill(n_past);
  const std::vector<StepShape> steps = steps_to_measure(n_most);
  StepTimes ns = trial.usual_ns(steps, parts);
  // What a shared machine adds it only adds: a step takes no longer than a larger one.
  for (size_t i = steps.size() - 1; i > 0; --i) ns.steps[i - 1] = std::min(ns.steps[i - 1], ns.steps[i]);
  for (size_t i = 0; i < steps.size(); ++i) costs.points.push_back({steps[i].n_rows, to_ms(ns.steps[i])});
  // Of parts by their places above.
  const auto beyond_ns = [&](size_t part, size_t base) {
    return static_cast<double>(std::max<int64_t>(0, ns.parts[part] - ns.parts[base]));
  };
  if (!parts.empty()) costs.out_row_ms = beyond_ns(1, 0) * 1e-6 / (kFewRows - 1);
  if (looks_back) {
    const double one_ns = beyond_ns(3, 2) / n_past;
    const double few_ns = beyond_ns(5, 4) / n_past;
    costs.attend_ns = std::max(0.0, few_ns - one_ns) / (kFewRows - 1);
    costs.look_back_ns = std::max(0.0, one_ns - costs.attend_ns);
  }
  return costs;
}

}  // namespace candor::engine
