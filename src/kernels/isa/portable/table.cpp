#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"

namespace candor::kernels {

namespace portable {
namespace {
#include "kernels/generic/table.inl.h"
#include "kernels/isa/portable/vocabulary.inl.h"
}  // namespace
}  // namespace portable

const KernelTable* portable_table() {
  static const KernelTable table = portable::make_table("portable", "plain C++");
  return &table;
}

}  // namespace candor::kernels
