#pragma once
// What adapters add to products, embeddings and experts on the CPU, turn by turn: the first adapter of every row, then
// the second of those that have one, and so on. The engine thread calls.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/arena.h"
#include "backend/cpu/thin_products.h"
#include "backend/op_terms.h"
#include "backend/operations.h"
#include "backend/row_uses.h"
#include "backend/step_batch.h"
#include "kernels/kernels.h"
#include "platform/thread_pool.h"

namespace candor::backend::cpu {

struct RowVisit {  // one row among an expert's
  int32_t place = 0;
  float weight = 0.0f;
};

// Where the rows of a mixture stand, sorted by the experts that they go to.
struct ExpertVisits {
  std::span<const int32_t> firsts{};  // [E + 1]: where each expert's begin
  std::span<const RowVisit> all{};    // [T, n_used]
  size_t n_used = 0;
  std::span<const RowVisit> of(int32_t row) const { return all.subspan(static_cast<size_t>(row) * n_used, n_used); }
};

class AdapterOps {
 public:
  // All are borrowed.
  AdapterOps(const kernels::KernelTable& table, platform::ThreadPool& pool, Arena& arena)
      : table_(table), arena_(arena), thin_(table, pool) {}

  void begin(const StepBatch& batch) {
    batch_ = batch;
    uses_.find(batch);
  }
  void adapt(const op::Adapt& call);
  void adapt(const op::AdaptEmbedding& call);
  // One part of the visited experts. dst and, of kDown or where inputs are weighed, src: rows by their places.
  void adapt_experts(const MoeTerm& term, ExpertPart part, const ExpertVisits& visits, Activation src, Activation dst);

 private:
  struct ExpertRows {
    const ExpertVisits& visits;
    bool is_by_row;  // src has the step's rows
    Activation src, dst;
  };
  const RowUses& uses_of(std::span<const int32_t> rows);
  float* adapt_embedding(const op::AdaptEmbedding& call, const AdapterTable& table, const RowUses::Group& group,
                         float* next);
  void add_expert_rows(const ExpertAdapter& adapter, const RowUses::Group& group, const ExpertRows& rows);

  // Constant after construction.
  const kernels::KernelTable& table_;
  Arena& arena_;

  // Of this step.
  StepBatch batch_;
  RowUses uses_;  // of all rows

  // Of the running operation, kept to spare allocations.
  ThinProducts thin_;
  RowUses row_uses_;
  std::vector<ThinProducts::Row> thin_rows_;
  std::vector<AdapterTerm> table_terms_;
  std::vector<float> table_rows_;  // of adapters' tables
};

}  // namespace candor::backend::cpu
