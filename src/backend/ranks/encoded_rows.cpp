#include "backend/ranks/encoded_rows.h"

#include <algorithm>
#include <cstring>

namespace candor::backend {
namespace {

using kernels::Encoding;

// Of consecutive columns: how many share a sum, and a scale, and how many at least travel, so that their bytes fill
// floats.
struct Groups {
  int32_t of_sum = 0;
  int32_t of_scale = 0;
  int32_t least = 0;
};

Groups groups_of(Encoding encoding) {
  if (encoding == Encoding::kQ8x256) return {.of_sum = 16, .of_scale = 256, .least = 256};
  if (encoding == Encoding::kQ8x32) return {.of_sum = 32, .of_scale = 32, .least = 64};
  return {};
}

// Floats that n columns fill.
int32_t packed_floats(const Groups& groups, int32_t n) {
  return (n + n / groups.of_sum * 2 + n / groups.of_scale * 4) / 4;
}

std::byte* copy_to(std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
  return to + from.size();
}

const std::byte* copy_from(const std::byte* from, std::span<std::byte> to) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
  return from + to.size();
}

}  // namespace

bool EncodedRows::can_send(Encoding encoding, std::span<const int32_t> bounds) {
  const int32_t least = groups_of(encoding).least;
  return least > 0 && std::ranges::all_of(bounds, [least](int32_t bound) { return bound % least == 0; });
}

EncodedRows::Parts EncodedRows::parts_of(std::byte* row, int32_t n_in, int32_t begin, int32_t n) const {
  const Groups groups = groups_of(encoding_);
  const auto some = [row](size_t at, int32_t first, int32_t count, size_t size) {
    return std::span(row + at + static_cast<size_t>(first) * size, static_cast<size_t>(count) * size);
  };
  return {some(0, begin, n, 1),
          some(kernels::encoded_sums_offset(encoding_, n_in), begin / groups.of_sum, n / groups.of_sum, 2),
          some(kernels::encoded_scales_offset(encoding_, n_in), begin / groups.of_scale, n / groups.of_scale, 4)};
}

std::byte* EncodedRows::row_of(std::vector<AlignedLine>& lines, size_t row, size_t row_bytes) {
  return lines[row * row_bytes / sizeof(AlignedLine)].bytes.data();
}

void EncodedRows::encode(Encoding encoding, std::span<const int32_t> bounds, const float* own, int32_t n_rows,
                         int32_t rank) {
  encoding_ = encoding;
  n_rows_ = n_rows;
  bounds_.assign(bounds.begin(), bounds.end());
  const Groups groups = groups_of(encoding);
  packed_bounds_.clear();
  for (const int32_t bound : bounds) packed_bounds_.push_back(packed_floats(groups, bound));
  packed_.resize(static_cast<size_t>(n_rows) * static_cast<size_t>(packed_bounds_.back()));
  const auto at = static_cast<size_t>(rank);
  const int32_t width = bounds_[at + 1] - bounds_[at];
  if (width == 0) return;
  own_.resize(kernels::encoded_row_bytes(encoding, width) / sizeof(AlignedLine));
  auto* to = reinterpret_cast<std::byte*>(packed_.data());
  for (int32_t i = 0; i < n_rows; ++i) {
    table_.encode(encoding, own + static_cast<size_t>(i) * static_cast<size_t>(width), width, row_of(own_, 0, 0));
    const Parts parts = parts_of(row_of(own_, 0, 0), width, 0, width);
    to = copy_to(copy_to(copy_to(to, parts.codes), parts.sums), parts.scales);
  }
}

const std::byte* EncodedRows::put_together() {
  const int32_t n_in = bounds_.back();
  const size_t row_bytes = kernels::encoded_row_bytes(encoding_, n_in);
  whole_.resize(std::max(whole_.size(), static_cast<size_t>(n_rows_) * row_bytes / sizeof(AlignedLine)));
  const auto* from = reinterpret_cast<const std::byte*>(packed_.data());
  for (int32_t i = 0; i < n_rows_; ++i) {
    std::byte* row = row_of(whole_, static_cast<size_t>(i), row_bytes);
    for (size_t rank = 0; rank + 1 < bounds_.size(); ++rank) {
      const Parts parts = parts_of(row, n_in, bounds_[rank], bounds_[rank + 1] - bounds_[rank]);
      from = copy_from(copy_from(copy_from(from, parts.codes), parts.sums), parts.scales);
    }
  }
  return whole_.front().bytes.data();
}

}  // namespace candor::backend
