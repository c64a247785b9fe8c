#pragma once
// A step's logits on a device (backend/device_logits.h): queries become launches of kernels/choose.cu, and what they
// find comes to the host in one copy. The engine thread calls.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/cuda/device_arena.h"
#include "backend/cuda/kernels/choose_args.h"
#include "backend/cuda/launch_list.h"
#include "backend/device_logits.h"
#include "base/error.h"

namespace candor::backend::cuda {

class CudaLogits final : public DeviceLogits {
 public:
  explicit CudaLogits(Device& device);

  // What the step has computed: [n_rows, n_cols]. part: of the step, the first that its launches did not take.
  void begin(const float* logits, int32_t n_rows, int32_t n_cols, int32_t part);

  int32_t n_vocab() const override { return n_cols_; }
  std::span<const float> row(int32_t i) override;
  void bring(int32_t first_row, int32_t n_rows) override;
  std::span<const RowSummary> summarize(std::span<const RowQuery> queries) override;
  std::optional<OrderPrefix> reach(size_t query, uint64_t target) override;

  // The first failure of this object's own: room that there was not.
  const Result<void>& status() const { return status_; }

 private:
  // Kernels run over so many queries at once, so that their room has an end.
  static constexpr size_t kMostQueries = 64;

  RowQueryArgs args_of(const RowQuery& query);
  void sort_edits(const RowQuery& query);
  bool reserve(size_t n_queries, size_t n_best);
  void launch(std::span<const RowQuery> queries, const ChooseArgs& args);
  void read(std::span<const RowQuery> queries, size_t n_best);

  Device& device_;
  StepTables tables_;
  LaunchList launches_;
  DeviceRoom between_;  // what one kernel leaves for the next
  DeviceRoom reaching_;
  DeviceRoom results_;  // heads of all queries, then the best of all
  Result<void> status_{};

  // Of this step.
  const float* logits_ = nullptr;
  int32_t n_rows_ = 0;
  int32_t n_cols_ = 0;
  int32_t part_ = 0;
  std::vector<float> host_rows_;
  std::vector<bool> is_here_;  // [n_rows]
  std::vector<RowSummary> summaries_;
  const RowQueryArgs* device_queries_ = nullptr;  // of summaries_

  // Room, kept to spare allocations.
  std::vector<RowQueryArgs> queries_;
  std::vector<EditedToken> edited_;
  std::vector<int32_t> first_edited_;
  std::vector<std::byte> host_results_;
};

}  // namespace candor::backend::cuda
