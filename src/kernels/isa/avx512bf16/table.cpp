// The table of functions for AVX-512 with BF16: products of BF16, FP8 and FP4 weights with more than a few rows, and
// those of attention, by VDPBF16PS; the rest as AVX-512 with VNNI does it.
#include "kernels/isa/avx512vnni/undefined_operands.h"
#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "platform/cpu_features.h"
#include "platform/float_mode.h"

#if defined(__x86_64__) && !defined(CANDOR_LEAVE_OUT_TABLE)

#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::avx512bf16 {
namespace {
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/avx512vnni/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
#include "kernels/generic/probes.inl.h"
#include "kernels/generic/attend_pages.inl.h"
#include "kernels/generic/attend.inl.h"
#include "kernels/generic/float_codes.inl.h"
#include "kernels/isa/avx512bf16/products.inl.h"
#include "kernels/isa/avx512bf16/attend.inl.h"
#include "kernels/isa/avx512bf16/order.inl.h"
// clang-format on

void matmul(const MatmulArgs& a) {
  const bool has_rows = a.n_rows >= kLeastPairRows;
  const bool is_whole = a.shape.n_in % kPairStep == 0;
  if (has_rows && a.shape.dtype == DType::kFP8) return multiply<PairProduct<Fp8Codes>>(a);
  if (has_rows && a.shape.dtype == DType::kFP4) return multiply<PairProduct<Fp4Codes>>(a);
  if (has_rows && is_whole && a.shape.dtype == DType::kBF16) return multiply<PairProduct<void>>(a);
  avx512vnni_table()->matmul(a);
}

void attend(const AttendArgs& a, std::byte* scratch) {
  if (a.pages.format != KvFormat::kBf16) return avx512vnni_table()->attend(a, scratch);
  attend_pages<PairProducts>(a, scratch);
}

void attend_split(const AttendArgs& a, int32_t split, std::byte* partial, std::byte* scratch) {
  if (a.pages.format != KvFormat::kBf16) return avx512vnni_table()->attend_split(a, split, partial, scratch);
  attend_split_pages<PairProducts>(a, split, partial, scratch);
}

// For kernels/limits.h.
struct PairStep {
  static constexpr int64_t kOps = 64;
  static CANDOR_INLINE F32 next(F32 sum) {
    const I32 ones = splat_i(0x3f803f80);
    return dot_pairs(sum, ones, ones);
  }
};

}  // namespace
}  // namespace candor::kernels::avx512bf16
#include "kernels/isa/avx512vnni/end.h"

namespace candor::kernels {

const KernelTable* avx512bf16_table() {
  static const bool runs = [] {
    const platform::ScopedFloatMode mode;
    return platform::detect_cpu_features().avx512_bf16 && avx512vnni_table() != nullptr && avx512bf16::adds_in_order();
  }();
  if (!runs) return nullptr;
  static const KernelTable table = [] {
    KernelTable made = *avx512vnni_table();
    made.name = "avx512bf16";
    made.description = "AVX-512 with VNNI, BF16";
    made.matmul = avx512bf16::matmul;
    made.attend = avx512bf16::attend;
    made.attend_split = avx512bf16::attend_split;
    made.bf16_probe = avx512bf16::float_probe<avx512bf16::PairStep>;
    return made;
  }();
  return &table;
}

}  // namespace candor::kernels

#else

namespace candor::kernels {

const KernelTable* avx512bf16_table() {
  return nullptr;
}

}  // namespace candor::kernels

#endif
