#pragma once
// Activations of which each rank has some columns, exchanged in the encoding of the next product: int8 codes with their
// sums and scales, some 28 % of the bytes of f32. Each rank encodes its own columns, and the whole row is put together
// by copying. A group of columns is encoded from its own numbers alone, so the bits equal those of encoding the whole
// row.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "kernels/kernels.h"
#include "kernels/packed_weight.h"

namespace candor::backend {

class EncodedRows {
 public:
  explicit EncodedRows(const kernels::KernelTable& table) : table_(table) {}

  // Whether columns with these bounds are whole groups of an encoding in fewer bytes.
  static bool can_send(kernels::Encoding encoding, std::span<const int32_t> bounds);

  // own: [n_rows, own columns] of `rank`. REQUIRES: can_send(encoding, bounds).
  void encode(kernels::Encoding encoding, std::span<const int32_t> bounds, const float* own, int32_t n_rows,
              int32_t rank);
  // What is to be gathered then; whole behind it.
  comm::RowSlices slices() { return {packed_.data(), n_rows_, packed_bounds_}; }
  // [n_rows] encoded rows of all columns, one behind the other. REQUIRES: the slices were gathered.
  const std::byte* put_together();

 private:
  using Line = std::array<std::byte, 64>;  // rows begin at one
  struct alignas(64) AlignedLine {
    Line bytes;
  };
  // Where a row's parts lie: of columns [begin, begin + n) of n_in.
  struct Parts {
    std::span<std::byte> codes, sums, scales;
  };
  Parts parts_of(std::byte* row, int32_t n_in, int32_t begin, int32_t n) const;
  std::byte* row_of(std::vector<AlignedLine>& lines, size_t row, size_t row_bytes);

  const kernels::KernelTable& table_;
  // Of the rows at hand; kept to spare allocations.
  kernels::Encoding encoding_{};
  int32_t n_rows_ = 0;
  std::vector<int32_t> bounds_;
  std::vector<int32_t> packed_bounds_;
  std::vector<float> packed_;  // [n_rows, packed_bounds.back()]: slices as bytes, which fill whole floats
  std::vector<AlignedLine> own_;    // one row
  std::vector<AlignedLine> whole_;  // [n_rows]
};

}  // namespace candor::backend
