#pragma once
// What the choices of a step ask of the device that has its logits, all at once. The asking comes before the step is
// computed, so that masks and penalties are worked out meanwhile. Engine thread only; memory is kept from step to step.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/device_logits.h"
#include "sample/row_plan.h"
#include "sample/sampler.h"

namespace candor::sample {

class RowAsks {
 public:
  void begin() {
    n_asks_ = 0;
    first_of_row_.clear();
  }
  // The plan of a choice from a row of the step. What was added last may be dropped again.
  RowPlan& add(int32_t row, int32_t choice);
  void drop_last() { --n_asks_; }
  // What is asked of a prompt's row.
  void add_prompt_row(const backend::RowQuery& query);
  // Waits until the step is computed.
  void send(backend::DeviceLogits& logits);
  // Of a choice that was added, behind send(). Valid until begin().
  std::optional<RowFindings> find(int32_t row, int32_t choice) const;
  // Of a row that was added so; else nullptr.
  const backend::RowSummary* find_prompt_row(int32_t row) const;

 private:
  static constexpr int32_t kPromptRow = -1;  // in place of a choice
  struct Ask {
    int32_t row = 0;
    int32_t choice = 0;
    size_t at = 0;  // of the summaries
    RowPlan plan{};
  };

  const Ask* find_ask(int32_t row, int32_t choice) const;

  std::vector<Ask> asks_;  // the first n_asks_ are in use; those of a row stand together
  std::vector<size_t> first_of_row_;
  size_t n_asks_ = 0;
  std::vector<backend::RowQuery> queries_;
  std::span<const backend::RowSummary> summaries_{};
  backend::DeviceLogits* device_ = nullptr;
};

}  // namespace candor::sample
