// Rows of several products by one exchange: each rank's columns of all of them one after the other, as one row.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "backend/op_terms.h"
#include "backend/ranks/rank_ops.h"
#include "backend/ranks/rank_weight.h"
#include "base/error.h"
#include "comm/communicator.h"

namespace candor::backend {
namespace {

size_t width_of(const comm::RowSlices& slices, size_t rank) {
  return static_cast<size_t>(slices.cols_of(static_cast<int32_t>(rank)));
}

// A rank's columns, which stand close together, go to where they stand in whole rows.
const float* spread(const float* from, const comm::RowSlices& slices, size_t rank) {
  const size_t width = width_of(slices, rank);
  for (size_t i = 0; width > 0 && i < static_cast<size_t>(slices.n_rows); ++i, from += width) {
    float* to = slices.rows + i * static_cast<size_t>(slices.n_cols()) + static_cast<size_t>(slices.bounds[rank]);
    std::memcpy(to, from, width * sizeof(float));
  }
  return from;
}

// [size + 1], in floats.
void bound_all(std::span<const comm::RowSlices> all, size_t n_ranks, std::vector<int32_t>& bounds) {
  int64_t end = 0;
  bounds.assign(1, 0);
  for (size_t rank = 0; rank < n_ranks; ++rank) {
    for (const comm::RowSlices& slices : all) end += static_cast<int64_t>(width_of(slices, rank)) * slices.n_rows;
    CANDOR_CHECK(end <= std::numeric_limits<int32_t>::max());
    bounds.push_back(static_cast<int32_t>(end));
  }
}

}  // namespace

void RankOps::set_product(Activation x, const RankWeight& weight) {
  if (weight.share() == nullptr) return set_whole(x);
  set_split(x, *weight.share());
  Slot& state = slot(x);
  state.goes_along = weight.goes_along() && state.is_split;
  state.n_rows = x.n_rows;
  state.n_cols = x.n_cols;
}

void RankOps::exchange_together(const comm::RowSlices& more, uint64_t tag) {
  together_.clear();
  held_.clear();
  if (more.rows != nullptr) together_.push_back(more);
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& state = slots_[i];
    if (!state.is_split || !state.goes_along) continue;
    const Activation x{static_cast<int32_t>(i), state.n_rows, state.n_cols};
    const Activation own = local(x);
    state.is_split = false;
    if (state.n_rows == 0) continue;
    held_.emplace_back(HostRows(inner_, x), x);
    together_.push_back({held_.back().first.read(own).data(), state.n_rows, state.share.bounds});
  }
  if (together_.size() == 1) {
    const comm::RowSlices& only = together_.front();
    exchange(only.rows, only.n_rows, only.bounds, comm::Receivers::kAll, tag);
  } else {
    exchange_packed(tag);
  }
  for (auto& [rows, x] : held_) rows.write(x);
}

// together_, as one row.
void RankOps::exchange_packed(uint64_t tag) {
  bound_all(together_, static_cast<size_t>(size_), packed_bounds_);
  packed_.resize(std::max(packed_.size(), static_cast<size_t>(packed_bounds_.back())));
  float* to = packed_.data();  // where what a rank sends stands before it is put in its place
  for (const comm::RowSlices& slices : together_) {
    const size_t n = width_of(slices, static_cast<size_t>(rank_)) * static_cast<size_t>(slices.n_rows);
    if (n > 0) std::memcpy(to, slices.rows, n * sizeof(float));
    to += n;
  }
  exchange(packed_.data(), 1, packed_bounds_, comm::Receivers::kAll, tag);
  const float* from = packed_.data();
  for (size_t rank = 0; rank < static_cast<size_t>(size_); ++rank) {
    for (const comm::RowSlices& slices : together_) from = spread(from, slices, rank);
  }
}

}  // namespace candor::backend
