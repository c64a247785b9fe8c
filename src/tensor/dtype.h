#pragma once
// The table of element types that a file may use (F32, BF16, Q4_K and so on), by their numbers in the GGUF format: a
// block is `block_elements` consecutive elements of a row in `block_bytes` bytes. Those of weights: weight_formats.h.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace candor {

enum class DType : uint8_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
  kW8A8 = 120,      // our own: int8 rows with one scale (quant/w8a8.h)
  kFP8 = 121,       // our own: E4M3 under an f32 scale for 128 of them (quant/fp8.h)
  kF8_E4M3 = 122,   // codes alone, as safetensors have them
  kFP4 = 123,       // our own: E2M1 under E4M3 scales for 16 and an f32 scale for 128 (quant/fp4.h)
  kQ4_KFast = 128,  // in memory only, never a file's: Q4_K's blocks read as rebased values (quant/q4_k_fast.h)
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as users write it: "Q4_K", "BF16"
  int32_t block_elements;
  int32_t block_bytes;
  bool is_weight;  // decode_row() handles it, so a model's weights may be stored in it
  int32_t row_header_bytes = 0;  // before the blocks of each row: its scale, where it has one for all of them
};

// Bytes of a row of n elements. REQUIRES: whole blocks.
size_t row_bytes(const DTypeInfo& info, int64_t n);

// All types that a file may name, ascending by number.
std::span<const DTypeInfo> dtype_table();

// nullptr for a number or name that a file can't mean.
const DTypeInfo* find_dtype(uint32_t number);
const DTypeInfo* find_dtype(std::string_view name);

// REQUIRES: a value of the enum.
const DTypeInfo& dtype_info(DType dtype);

// What products with weights of a type are computed in (docs/numerics.md).
enum class Arithmetic : uint8_t { kInt8, kBf16, kF32 };
inline constexpr Arithmetic kArithmetics[] = {Arithmetic::kInt8, Arithmetic::kBf16, Arithmetic::kF32};
std::string_view name_of(Arithmetic arithmetic);  // "int8"
// f32 of a type that weights can't have.
Arithmetic arithmetic_of(DType weights);

// "F32, F16, Q4_0, ...": the types that weights may have, for error messages.
std::string_view weight_dtype_names();

}  // namespace candor
