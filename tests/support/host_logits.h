#pragma once
// Rows of logits as a device would have them (backend/device_logits.h), by sorting on the host: what devices are
// compared with, and what choices from findings are tried on.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/device_logits.h"
#include "base/exact_math.h"
#include "sample/row_passes.h"

namespace candor::testing {

class HostLogits final : public backend::DeviceLogits {
 public:
  // n_cols: of each row. most_best: of an order, known at most.
  HostLogits(std::vector<float> logits, int32_t n_cols, size_t most_best = backend::kMostBest)
      : logits_(std::move(logits)), n_cols_(static_cast<size_t>(n_cols)), most_best_(most_best) {}

  int32_t n_vocab() const override { return static_cast<int32_t>(n_cols_); }
  std::span<const float> row(int32_t i) override {
    ++n_rows_read;
    return std::span<const float>(logits_).subspan(static_cast<size_t>(i) * n_cols_, n_cols_);
  }
  void bring(int32_t, int32_t) override {}
  std::span<const backend::RowSummary> summarize(std::span<const backend::RowQuery> queries) override {
    summaries_.clear();
    orders_.assign(queries.size(), {});
    for (size_t i = 0; i < queries.size(); ++i) summaries_.push_back(summary_of(queries[i], orders_[i]));
    return summaries_;
  }

  std::optional<backend::OrderPrefix> reach(size_t query, uint64_t target) override {
    ++n_reached;
    if (!reaches) return std::nullopt;
    const bool is_scaled = orders_[query].is_scaled;
    uint64_t weight = 0;
    for (const backend::BestLogit& each : orders_[query].all) {
      weight += sample::weight_of(exp_f32(each.logit - (is_scaled ? 0.0f : summaries_[query].greatest)));
      if (weight > target) return backend::OrderPrefix{each, weight};
    }
    return std::nullopt;
  }

  bool reaches = true;
  int n_rows_read = 0;
  int n_reached = 0;

 private:
  struct Order {
    std::vector<backend::BestLogit> all{};
    bool is_scaled = false;
  };

  static float edited(const backend::RowQuery& query, float x, int32_t first) {
    for (int32_t i = first; i >= 0; i = query.edits[static_cast<size_t>(i)].next) {
      const backend::LogitEdit& edit = query.edits[static_cast<size_t>(i)];
      if (edit.kind == backend::EditKind::kAdd) x += edit.value;
      if (edit.kind == backend::EditKind::kRepeat) x = x > 0.0f ? x / edit.value : x * edit.value;
      if (edit.kind == backend::EditKind::kBan) x = -sample::kInfinity;
    }
    return x;
  }
  static bool is_valid(std::span<const float> row) {
    return std::ranges::all_of(row, [](float x) { return x < sample::kInfinity; });
  }

  backend::RowSummary summary_of(const backend::RowQuery& query, Order& order) {
    std::vector<backend::BestLogit>& best = order.all;
    order.is_scaled = query.is_scaled;
    const auto models = row(query.row).first(static_cast<size_t>(query.n_vocab));
    --n_rows_read;
    std::vector<float> row(models.begin(), models.end());
    for (size_t i = 0; i < row.size() && !query.mask.empty(); ++i) {
      if ((query.mask[i / 32] >> (i % 32) & 1u) == 0) row[i] = -sample::kInfinity;
    }
    for (const backend::EditedToken& each : query.edited) {
      float& x = row[static_cast<size_t>(each.token)];
      x = edited(query, x, each.first);
    }
    backend::RowSummary summary{.is_valid = is_valid(models) && is_valid(row)};
    summary.greatest = *std::ranges::max_element(row);
    summary.is_valid = summary.is_valid && summary.greatest > -sample::kInfinity;
    if (!summary.is_valid) return summary;
    for (size_t i = 0; i < row.size(); ++i) {
      const float x = query.is_scaled ? (row[i] - summary.greatest) / query.divisor : row[i];
      summary.total +=
          query.is_weighed ? sample::weight_of(exp_f32(x - (query.is_scaled ? 0.0f : summary.greatest))) : 0;
      if (x > -sample::kInfinity) best.push_back({static_cast<TokenId>(i), x, models[i]});
    }
    std::ranges::stable_sort(best, std::greater(), &backend::BestLogit::logit);
    const size_t n = std::min(static_cast<size_t>(query.n_best), most_best_);
    summary.is_whole = best.size() <= n && (query.n_best > 1 || query.is_scaled);
    summary.best = std::span(best).first(std::min(best.size(), n));
    return summary;
  }

  std::vector<float> logits_;
  size_t n_cols_;
  size_t most_best_;
  std::vector<Order> orders_;
  std::vector<backend::RowSummary> summaries_;
};

}  // namespace candor::testing
