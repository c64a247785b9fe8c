#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"

namespace candor::kernels {

namespace portable {
#include "kernels/generic/families.inl.h"
namespace {
// The bodies use the vocabulary.
// clang-format off
#include "kernels/isa/portable/vocabulary.inl.h"
#include "kernels/generic/table.inl.h"
// clang-format on
}  // namespace
}  // namespace portable

const KernelTable* portable_table() {
  static const KernelTable table = portable::make_table("portable", "plain C++");
  return &table;
}

}  // namespace candor::kernels
