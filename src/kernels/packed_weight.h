#pragma once
// The packed form of a weight matrix [n_out, n_in], made once at load and read by every matmul kernel.
// A panel is 16 output rows interleaved (a SIMD lane is an output row; missing rows are zeros). A panel is one
// contiguous piece of memory, panels follow one another: decode is one sequential stream of bytes. Inside a panel,
// k runs in units of 256 (the last of a 32-block format may be shorter), each [scales][bit planes of the codes]
// for the integer formats; floats lie as [k][16] (F32, F16) or [k / 2][16][2] (BF16, the order of an AMX B tile).
// Rows with one scale: [scales][codes of all k]; FP8: units of 128 k. Packing is exact: codes and scales are the
// file's, and so is the size, plus the padding to 16 rows; of TQ1_0, Q1_0 and Q2_0 it is up to a third more, of IQ1 and
// IQ2 up to 8 % (packed_format.h, packed_grid.h). Q4_K_FAST has the file's codes under scales of its own, 148 bytes for
// 144.
// Functions here are pure and may run on any thread; different panels may be packed by different threads.

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace candor::kernels {

inline constexpr int32_t kPanelRows = 16;
inline constexpr int32_t kUnit = 256;  // k per unit of a panel
inline constexpr size_t kPackedAlignment = 64;

// How matmul wants its activation rows (numerics.md, "Activations").
enum class Encoding : uint8_t {
  kF32,     // as they are: F32, F16 weights
  kBf16,    // rounded to bf16, kept as f32: BF16, FP8 weights
  kQ8x256,  // int8, one f32 scale per 256, sums per 16: Q2_K..Q6_K, IQ1_S..IQ4_XS, TQ
  kQ8x32,   // int8, one f32 scale per 32, sums per 32: Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q1_0, Q2_0, IQ4_NL, MXFP4
  kQ8Row,   // int8, one f32 scale and one sum for the row: W8A8
};
inline constexpr Encoding kEncodings[] = {Encoding::kF32, Encoding::kBf16, Encoding::kQ8x256, Encoding::kQ8x32,
                                          Encoding::kQ8Row};

struct WeightShape {
  DType dtype = DType::kF32;
  int64_t n_out = 0;  // rows of the file's tensor
  int64_t n_in = 0;   // elements of a row
};

// Whether matmul kernels exist: a weight dtype of the list above, n_out > 0, n_in > 0 a multiple of its block.
bool can_pack(const WeightShape& shape);

// The functions below REQUIRE can_pack(shape).
int64_t n_panels(const WeightShape& shape);
size_t panel_bytes(const WeightShape& shape);   // a multiple of kPackedAlignment
size_t packed_bytes(const WeightShape& shape);  // n_panels * panel_bytes
Encoding encoding_of(DType dtype);

// dst: the whole packed matrix, aligned to kPackedAlignment; panels [panel_begin, panel_end) are written.
// src: row 0 of the file's tensor, rows contiguous.
void pack_panels(const WeightShape& shape, const std::byte* src, int64_t panel_begin, int64_t panel_end,
                 std::byte* dst);

// dst: [n_in] f32, the file's decoded values of one row, from the packed form. REQUIRES: 0 <= row < n_out.
void decode_packed_row(const WeightShape& shape, const std::byte* packed, int64_t row, float* dst);

// The encoded form of one activation row of n_in elements; a multiple of 64 bytes.
// kF32: [n_in] f32 and a line unused. kBf16: the same, with the rounded values again as bf16 before the line, 64-byte
// aligned. kQ8x256, kQ8x32: [n_in] int8, then int16 sums, then f32 scales, each 64-byte aligned. kQ8Row: int8 of n_in
// up to the next multiple of 64, zeros at the end, then a line that begins with the int32 sum and the
// f32 scale.
size_t encoded_row_bytes(Encoding encoding, int64_t n_in);
size_t encoded_sums_offset(Encoding encoding, int64_t n_in);
size_t encoded_scales_offset(Encoding encoding, int64_t n_in);
size_t encoded_halves_offset(int64_t n_in);  // of kBf16

}  // namespace candor::kernels
