// Any bytes as a segment of the prefix cache, behind a byte that says how many of the first are an index of it: blocks
// that are found have their sums, and nothing else happens.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_budget.h"
#include "fuzz/fuzz_folder.h"
#include "prefix_store/store.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const candor::testing::FuzzFolder folder("candor_prefixes");
  const candor::testing::FuzzBudget budget(size);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.empty()) return 0;
  const size_t n_index = std::min<size_t>(bytes.size() - 1, static_cast<size_t>(data[0]) * 8);
  folder.write("0000000000000001.index", bytes.substr(1, n_index));
  folder.write("0000000000000001.blocks", bytes.substr(1 + n_index));
  const auto store = candor::prefix_store::Store::open({.folder = folder.path(), .max_bytes = 1 << 20});
  if (!store) std::abort();
  std::vector<std::byte> payload;
  for (const auto& place : (*store)->blocks()) {
    const auto& header = place.header;
    const bool is_read = (*store)->read(header.digest, header.parent, header.block_tokens(), payload);
    if (is_read && !candor::prefix_store::fits(header, payload)) std::abort();
  }
  return 0;
}
