// NEON with the products of int8 matrices of Armv8.6-A, where they do more in the same time: in products whose sums run
// over whole rows (W8A8), of two rows or more. With blocks of 32 the scales of each block take half of the time, and the
// rearrangement of its weights most of what is gained: these are done as with dot products, and so is the rest.
#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "platform/cpu_features.h"

#if defined(__aarch64__) && !defined(CANDOR_LEAVE_OUT_TABLE)

namespace candor::kernels {
namespace neoni8mm {

void multiply_scaled_rows(const MatmulArgs& a);

static void multiply(const MatmulArgs& a) {
  const bool is_worth_it = family_of(a.shape.dtype) == KernelFamily::kScaledRows && a.n_rows > 1;
  return is_worth_it ? multiply_scaled_rows(a) : neondot_table()->matmul(a);
}

}  // namespace neoni8mm

const KernelTable* neoni8mm_table() {
  static const bool runs = platform::detect_cpu_features().neon_i8mm && neondot_table() != nullptr;
  if (!runs) return nullptr;
  static const KernelTable table = [] {
    KernelTable made = *neondot_table();
    made.name = "neoni8mm";
    made.description = "NEON with dot products and int8 matrix products";
    made.matmul = neoni8mm::multiply;
    return made;
  }();
  return &table;
}

}  // namespace candor::kernels

#else

namespace candor::kernels {

const KernelTable* neoni8mm_table() {
  return nullptr;
}

}  // namespace candor::kernels

#endif
