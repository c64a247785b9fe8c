#include "kernels/kernels.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/checked.h"
#include "kernels/isa/tables.h"
#include "kernels/scratch.h"

namespace candor::kernels {

size_t matmul_scratch_bytes(int64_t n_in) {
  const auto n_units = static_cast<size_t>(ceil_div<int64_t>(n_in, kScratchDepth));
  const size_t n_prepared = std::max<size_t>(kScratchRows, n_units * kScratchSmallRows);
  const auto n_deep = static_cast<size_t>(ceil_div<int64_t>(n_in, kUnit));
  const size_t tile_bytes = kScratchTileBytes + n_deep * kScratchTileUnitBytes;
  return std::max(tile_bytes, kScratchUnitBytes + kScratchSumBytes + n_prepared * kScratchRowBytes);
}

size_t attend_partial_bytes(int32_t n_queries, int32_t head_dim) {
  const auto record = static_cast<size_t>(round_up(head_dim, 16) + kRecordExtra) * sizeof(float);
  return static_cast<size_t>(n_queries) * record;
}

size_t attend_scratch_bytes(int32_t head_dim) {
  const auto queries = static_cast<size_t>(round_up(head_dim, 16)) * kAttendQueries * sizeof(float);
  const size_t rows = queries + size_t{kKeyTile} * kAttendQueries * sizeof(float);
  const size_t expanded = 2 * (kKeyTile / kPageTokens) * kv_page_bytes(head_dim);
  return queries + rows + rows / 2 + 2 * attend_partial_bytes(kAttendQueries, head_dim) + expanded;
}

std::vector<const KernelTable*> runnable_tables() {
  std::vector<const KernelTable*> tables;
  for (const KernelTable* table : {portable_table(), avx2_table(), avxvnni_table(), avx512vnni_table(),
                                   avx512bf16_table(), amx_table(), neon_table(), neondot_table(), neoni8mm_table()}) {
    if (table != nullptr) tables.push_back(table);
  }
  return tables;
}

Result<const KernelTable*> select_table(std::string_view name) {
  const std::vector<const KernelTable*> tables = runnable_tables();
  if (name.empty()) return tables.back();
  std::string names;
  for (const KernelTable* table : tables) {
    if (table->name == name) return table;
    names += names.empty() ? "" : ", ";
    names += table->name;
  }
  std::string shown(name.substr(0, 40));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return fail(ErrorKind::kUnsupported, "CANDOR_ISA: '" + shown +
                                           "' is not an instruction set that can run here; use one of: " + names +
                                           ", or leave it unset");
}

Result<const KernelTable*> select_table_from_environment() {
  const char* name = std::getenv("CANDOR_ISA");
  return select_table(name == nullptr ? "" : name);
}

}  // namespace candor::kernels
