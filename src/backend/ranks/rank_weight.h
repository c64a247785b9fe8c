#pragma once
// A weight as one rank of several holds it: this rank's share of the outputs, or, where the weight is not divided, all
// of it. Constant after upload.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/split.h"
#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::backend {

// Consecutive outputs of each rank. Where ranks have the same ones, bounds are empty: nobody puts them together.
struct OutputShare {
  int32_t begin = 0;
  int32_t end = 0;
  std::vector<int32_t> bounds{};  // [size + 1]
  int32_t width() const { return end - begin; }
  bool operator==(const OutputShare&) const = default;
};

class RankWeight final : public Weight {
 public:
  int64_t n_rows() const override { return n_rows_; }
  int64_t n_cols() const override { return n_cols_; }
  // Of all ranks of this computer.
  size_t n_bytes() const override { return n_bytes_; }

  // nullptr: every rank has all of it.
  const OutputShare* share() const { return is_split_ ? &share_ : nullptr; }
  DType dtype() const { return dtype_; }
  // The rank's outputs; nullptr where it has none.
  const Weight* part() const { return part_.get(); }
  // What rows are looked up in; rank 0 alone has it.
  const Weight* rows() const { return rows_.get(); }
  // WeightSplit::goes_along
  bool goes_along() const { return goes_along_; }
  // Of a vector that decides where rows go.
  const std::vector<float>& values() const { return values_; }

 private:
  friend class RankUpload;
  int64_t n_rows_ = 0;
  int64_t n_cols_ = 0;
  size_t n_bytes_ = 0;
  DType dtype_ = DType::kF32;
  bool is_split_ = false;
  bool goes_along_ = false;
  OutputShare share_;
  std::unique_ptr<Weight> part_;
  std::unique_ptr<Weight> rows_;
  std::vector<float> values_;
};

// REQUIRES: a weight that a backend of ranks made.
inline const RankWeight& rank_weight(const Weight& weight) {
  return static_cast<const RankWeight&>(weight);
}

// The rank's part of it; nullptr where there is none.
inline const Weight* part_of(const Weight* weight) {
  return weight == nullptr ? nullptr : rank_weight(*weight).part();
}

// Uploads the parts of one rank of `size`.
class RankUpload {
 public:
  // here: the ranks of this computer; borrowed, like inner.
  RankUpload(const Backend& inner, int32_t rank, int32_t size, const std::vector<int32_t>& here)
      : inner_(inner), rank_(rank), size_(size), here_(here) {}

  Result<std::unique_ptr<RankWeight>> upload(Backend& inner, const TensorView& tensor, WeightRole role,
                                             const WeightSplit& split) const;
  // Of all ranks of this computer.
  Result<uint64_t> n_bytes(const TensorView& tensor, WeightRole role, const WeightSplit& split) const;

 private:
  OutputShare share_of(int64_t n_outputs, const WeightSplit& split, int32_t rank) const;

  const Backend& inner_;
  int32_t rank_;
  int32_t size_;
  const std::vector<int32_t>& here_;
};

}  // namespace candor::backend
