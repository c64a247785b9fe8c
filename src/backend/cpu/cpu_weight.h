#pragma once
// A weight in the form that the kernels read. Matrices are packed panels, 16 outputs stored together
// (kernels/packed_weight.h); a table that is only looked up row by row keeps the file's own rows; a vector is f32. A
// tied embedding needs one copy: rows are decoded from the panels. Constant after upload; readable from any thread.

#include <cstdint>
#include <memory>
#include <utility>

#include "backend/cpu/weight_memory.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "kernels/packed_weight.h"
#include "platform/thread_pool.h"
#include "tensor/tensor_view.h"

namespace candor::backend::cpu {

class CpuWeight final : public Weight {
 public:
  CpuWeight(WeightRole role, const kernels::WeightShape& shape, WeightBytes bytes)
      : role_(role), shape_(shape), bytes_(std::move(bytes)) {}

  int64_t n_rows() const override { return shape_.n_out; }
  int64_t n_cols() const override { return shape_.n_in; }
  size_t n_bytes() const override { return bytes_.size; }

  WeightRole role() const { return role_; }
  const kernels::WeightShape& shape() const { return shape_; }

  // REQUIRES: role kLinear or kEmbeddingAndLinear.
  const std::byte* panels() const;
  // [n_cols]. REQUIRES: role kVector.
  const float* values() const;
  // dst: [n_cols] f32. REQUIRES: role kEmbedding or kEmbeddingAndLinear; 0 <= row < n_rows.
  void decode_row(int64_t row, float* dst) const;

 private:
  WeightRole role_;
  kernels::WeightShape shape_;
  WeightBytes bytes_;
};

// REQUIRES: a weight that this backend made.
inline const CpuWeight& own(const Weight& weight) {
  return static_cast<const CpuWeight&>(weight);
}

// Memory that upload_weight() will take for the tensor; the same refusals by type and shape, without reading a weight.
Result<uint64_t> upload_bytes(const TensorView& tensor, WeightRole role);

// Checks, then packs on all threads. Refuses by the tensor's name: a type or shape that can't be used for the role, and
// values or scales that are not finite.
Result<std::unique_ptr<CpuWeight>> upload_weight(const TensorView& tensor, WeightRole role, WeightMemory& memory,
                                                 platform::ThreadPool& pool);

}  // namespace candor::backend::cpu
