#include "tensor/dtype.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace candor {
namespace {

// Ascending by number. Types with is_weight == false are known by size only.
constexpr std::array kTable = {
    DTypeInfo{DType::kF32, "F32", 1, 4, true},
    DTypeInfo{DType::kF16, "F16", 1, 2, true},
    DTypeInfo{DType::kQ4_0, "Q4_0", 32, 18, true},
    DTypeInfo{DType::kQ4_1, "Q4_1", 32, 20, true},
    DTypeInfo{DType::kQ5_0, "Q5_0", 32, 22, true},
    DTypeInfo{DType::kQ5_1, "Q5_1", 32, 24, true},
    DTypeInfo{DType::kQ8_0, "Q8_0", 32, 34, true},
    DTypeInfo{DType::kQ8_1, "Q8_1", 32, 36, false},
    DTypeInfo{DType::kQ2_K, "Q2_K", 256, 84, true},
    DTypeInfo{DType::kQ3_K, "Q3_K", 256, 110, true},
    DTypeInfo{DType::kQ4_K, "Q4_K", 256, 144, true},
    DTypeInfo{DType::kQ5_K, "Q5_K", 256, 176, true},
    DTypeInfo{DType::kQ6_K, "Q6_K", 256, 210, true},
    DTypeInfo{DType::kQ8_K, "Q8_K", 256, 292, false},
    DTypeInfo{DType::kIQ2_XXS, "IQ2_XXS", 256, 66, false},
    DTypeInfo{DType::kIQ2_XS, "IQ2_XS", 256, 74, false},
    DTypeInfo{DType::kIQ3_XXS, "IQ3_XXS", 256, 98, false},
    DTypeInfo{DType::kIQ1_S, "IQ1_S", 256, 50, false},
    DTypeInfo{DType::kIQ4_NL, "IQ4_NL", 32, 18, true},
    DTypeInfo{DType::kIQ3_S, "IQ3_S", 256, 110, false},
    DTypeInfo{DType::kIQ2_S, "IQ2_S", 256, 82, false},
    DTypeInfo{DType::kIQ4_XS, "IQ4_XS", 256, 136, true},
    DTypeInfo{DType::kI8, "I8", 1, 1, false},
    DTypeInfo{DType::kI16, "I16", 1, 2, false},
    DTypeInfo{DType::kI32, "I32", 1, 4, false},
    DTypeInfo{DType::kI64, "I64", 1, 8, false},
    DTypeInfo{DType::kF64, "F64", 1, 8, false},
    DTypeInfo{DType::kIQ1_M, "IQ1_M", 256, 56, false},
    DTypeInfo{DType::kBF16, "BF16", 1, 2, true},
    DTypeInfo{DType::kTQ1_0, "TQ1_0", 256, 54, false},
    DTypeInfo{DType::kTQ2_0, "TQ2_0", 256, 66, false},
    DTypeInfo{DType::kMXFP4, "MXFP4", 32, 17, true},
    DTypeInfo{DType::kNVFP4, "NVFP4", 64, 36, false},
    DTypeInfo{DType::kQ1_0, "Q1_0", 128, 18, false},
    DTypeInfo{DType::kQ2_0, "Q2_0", 64, 18, false},
};

constexpr DTypeInfo kFast{DType::kQ4_KFast, "Q4_K_FAST", 256, 144, true};

constexpr bool ascending() {
  for (size_t i = 1; i < kTable.size(); ++i) {
    if (kTable[i - 1].dtype >= kTable[i].dtype) return false;
  }
  return true;
}
static_assert(ascending());

}  // namespace

std::span<const DTypeInfo> dtype_table() {
  return kTable;
}

const DTypeInfo* find_dtype(uint32_t number) {
  const auto at = std::lower_bound(kTable.begin(), kTable.end(), number, [](const DTypeInfo& info, uint32_t wanted) {
    return static_cast<uint32_t>(info.dtype) < wanted;
  });
  if (at == kTable.end() || static_cast<uint32_t>(at->dtype) != number) return nullptr;
  return &*at;
}

const DTypeInfo* find_dtype(std::string_view name) {
  const auto at =
      std::find_if(kTable.begin(), kTable.end(), [name](const DTypeInfo& info) { return info.name == name; });
  return at == kTable.end() ? nullptr : &*at;
}

const DTypeInfo& dtype_info(DType dtype) {
  if (dtype == kFast.dtype) return kFast;
  const DTypeInfo* info = find_dtype(static_cast<uint32_t>(dtype));
  CANDOR_CHECK(info != nullptr);
  return *info;
}

std::string_view weight_dtype_names() {
  return "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL, IQ4_XS, MXFP4";
}

}  // namespace candor
