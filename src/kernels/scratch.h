#pragma once
// Sizes of the scratch memory that callers give to products and attention; shared by the functions that say the size
// and the kernels that use it.

#include <cstddef>
#include <cstdint>

namespace candor::kernels {

// matmul: unpacked units of a few panels, sums of 16 panels x rows x 16 outputs, prepared rows.
inline constexpr size_t kScratchUnitBytes = 32768;
inline constexpr size_t kScratchRows = 264;  // 256 and what the last tile has more
inline constexpr size_t kScratchSumBytes = size_t{16} * kScratchRows * 16 * 4;
inline constexpr size_t kScratchRowBytes = 512;
inline constexpr int64_t kScratchDepth = 128;    // least k of a unit
inline constexpr size_t kScratchSmallRows = 24;  // chunks up to these prepare their tiles for every unit at once
inline constexpr size_t kScratchTileBytes = size_t{320} << 10;     // on tile registers, besides what rows bring
inline constexpr size_t kScratchTileUnitBytes = size_t{36} << 10;  // what rows bring to 256 k

// attend: queries that walk the keys together, and what a query's record holds besides its output.
inline constexpr int32_t kAttendQueries = 32;
inline constexpr int32_t kRecordExtra = 32;

}  // namespace candor::kernels
