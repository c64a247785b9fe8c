#pragma once
// The logits of a step where a device has them in its memory. The device reads the rows and gives back what a choice
// needs: the first of the order and the sum of all weights, some numbers in place of a vocabulary. Orders, weights and
// bits: docs/numerics.md, "Choosing the token". Rows come to the host where somebody asks for them.
//
// Everything is valid until the next begin_step of the backend. One engine thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backend/logit_edit.h"
#include "base/ids.h"

namespace candor::backend {

// A row of logits as a request sees it: masked, then edited, then divided. Spans are borrowed for the call.
struct RowQuery {
  int32_t row = 0;                        // of the step's logits
  int32_t n_vocab = 0;                    // its first so many
  std::span<const uint32_t> mask{};       // bit i % 32 of word i / 32: token i may be chosen; empty: all may
  std::span<const EditedToken> edited{};  // each token once
  std::span<const LogitEdit> edits{};
  bool is_scaled = false;  // logit = (logit - greatest) / divisor
  float divisor = 1.0f;
  int32_t n_best = 1;        // wanted of the order, 1 to kMostBest
  bool is_weighed = false;   // whether the total is wanted
  TokenId asked = kNoToken;  // its logit is wanted, as the model gave it
};
inline constexpr int32_t kMostBest = 1024;

struct BestLogit {
  TokenId token = kNoToken;
  float logit = 0.0f;   // as the query sees it
  float models = 0.0f;  // as the model gave it
};

// is_valid: every logit is a number below +inf, before the edits and behind them, and one is above -inf. Where it is
// false the rest says nothing.
struct RowSummary {
  bool is_valid = false;
  bool is_whole = false;  // `best` are all above -inf
  float greatest = 0.0f;  // masked and edited, not divided
  uint64_t total = 0;     // of weights
  float asked = 0.0f;
  std::span<const BestLogit> best{};  // the first of the order, n_best or fewer; perhaps none
};

// A beginning of an order.
struct OrderPrefix {
  BestLogit last{};
  uint64_t weight = 0;  // of all of it
};

class DeviceLogits {
 public:
  virtual ~DeviceLogits() = default;
  virtual int32_t n_vocab() const = 0;  // of a row
  // A row on the host.
  virtual std::span<const float> row(int32_t i) = 0;
  // The same of many rows costs less when they are brought together. REQUIRES: they exist.
  virtual void bring(int32_t first_row, int32_t n_rows) = 0;
  // Waits until the step is computed. The summaries are valid until the next call.
  virtual std::span<const RowSummary> summarize(std::span<const RowQuery> queries) = 0;
  // Of query `query` of them: the shortest beginning of its order whose weights exceed `target`. Nothing where the
  // device does not find it. REQUIRES: a valid query that is weighed, and whose total exceeds the target.
  virtual std::optional<OrderPrefix> reach(size_t query, uint64_t target) = 0;
};

// A row that comes to the host when it is asked for.
class LogitRow {
 public:
  LogitRow() = default;
  LogitRow(std::span<const float> row) : row_(row) {}
  // The first n_vocab of the row.
  LogitRow(DeviceLogits& logits, int32_t row, int32_t n_vocab) : device_(&logits), index_(row), n_vocab_(n_vocab) {}

  std::span<const float> get() const {
    return device_ == nullptr ? row_ : device_->row(index_).first(static_cast<size_t>(n_vocab_));
  }

 private:
  std::span<const float> row_{};
  DeviceLogits* device_ = nullptr;
  int32_t index_ = 0;
  int32_t n_vocab_ = 0;
};

}  // namespace candor::backend
