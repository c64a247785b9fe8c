#pragma once
// A weight on one of two sides; a vector on both. Constant after upload.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "backend/op_terms.h"
#include "backend/placement.h"
#include "base/error.h"

namespace candor::backend::mixed {

class MixedWeight final : public Weight {
 public:
  using OnSides = std::array<std::unique_ptr<Weight>, kSides>;
  // REQUIRES: one side has it, or both have it alike.
  explicit MixedWeight(OnSides sides) : sides_(std::move(sides)) {
    CANDOR_CHECK(has(Side::kDevice) || has(Side::kHost));
  }

  int64_t n_rows() const override { return on(side()).n_rows(); }
  int64_t n_cols() const override { return on(side()).n_cols(); }
  // Of both sides.
  size_t n_bytes() const override {
    size_t total = 0;
    for (const auto& weight : sides_) total += weight ? weight->n_bytes() : 0;
    return total;
  }

  bool has(Side side) const { return sides_[static_cast<size_t>(side)] != nullptr; }
  // Where it is; the device of both.
  Side side() const { return has(Side::kDevice) ? Side::kDevice : Side::kHost; }
  // REQUIRES: has(side).
  const Weight& on(Side side) const {
    CANDOR_CHECK(has(side));
    return *sides_[static_cast<size_t>(side)];
  }

 private:
  OnSides sides_;
};

// REQUIRES: a weight that MixedBackend made.
inline const MixedWeight& mixed_weight(const Weight& weight) {
  return static_cast<const MixedWeight&>(weight);
}
inline const Weight* weight_on(Side side, const Weight* weight) {
  return weight == nullptr ? nullptr : &mixed_weight(*weight).on(side);
}

}  // namespace candor::backend::mixed
