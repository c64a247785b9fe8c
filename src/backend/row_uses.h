#pragma once
// The rows of a step that use adapters, put together: those that use the same one by the same scale, as their first, as
// their second and so on. One thread.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/step_batch.h"

namespace candor::backend {

class RowUses {
 public:
  // Rows that one turn of an adapter is for. All of a turn have different rows; turns are ascending.
  struct Group {
    int32_t turn = 0;
    AdapterUse use{};
    std::span<const int32_t> rows{};  // ascending
  };

  // rows: the step's rows that an operation's rows are; empty: all of them.
  void find(const StepBatch& batch, std::span<const int32_t> rows = {});
  // Valid until find(). Rows are an operation's own.
  std::span<const Group> groups() const { return groups_; }

 private:
  struct Use {
    int32_t turn = 0;
    AdapterUse use{};
    int32_t row = 0;
  };
  std::vector<Use> uses_;
  std::vector<int32_t> rows_;
  std::vector<Group> groups_;
};

}  // namespace candor::backend
