#include "backend/arena_places.h"

#include <limits>
#include <string>

#include "base/checked.h"

namespace candor::backend {
namespace {

// A pair of cache lines, so that neighbours never share one.
constexpr size_t kAlignment = 128;

}  // namespace

Result<ArenaPlaces> ArenaPlaces::make(const ArenaLayout& layout) {
  CANDOR_CHECK(layout.slot_cols.size() == layout.slot_is_output.size());
  ArenaPlaces places;
  size_t total = 0;
  for (size_t i = 0; i < layout.slot_cols.size(); ++i) {
    const int32_t n_rows = layout.slot_is_output[i] ? layout.max_out_rows : layout.max_rows;
    const int32_t n_cols = layout.slot_cols[i];
    if (n_rows < 0 || n_cols < 0) {
      return fail(ErrorKind::kInvalidInput, "a step of " + std::to_string(n_rows) + " rows x " +
                                                std::to_string(n_cols) + " columns, expected at least 0 of each");
    }
    const size_t n_floats = static_cast<size_t>(n_rows) * static_cast<size_t>(n_cols);  // < 2^62
    places.slots_.push_back({total, n_floats});
    const auto sum = checked_add<size_t>(total, round_up(n_floats * sizeof(float), kAlignment));
    if (!sum) return fail(ErrorKind::kOutOfMemory, "a step's activations exceed the address space; use fewer rows");
    total = *sum;
  }
  places.n_bytes_ = total;
  places.max_rows_ = layout.max_rows;
  return places;
}

uint64_t ArenaPlaces::n_bytes(const ArenaLayout& layout) {
  uint64_t total = 0;
  for (size_t i = 0; i < layout.slot_cols.size(); ++i) {
    const auto n_rows = static_cast<uint64_t>(layout.slot_is_output[i] ? layout.max_out_rows : layout.max_rows);
    const uint64_t n_floats = n_rows * static_cast<uint64_t>(layout.slot_cols[i]);
    const auto sum = checked_add<uint64_t>(total, round_up(n_floats * sizeof(float), kAlignment));
    if (!sum) return std::numeric_limits<uint64_t>::max();
    total = *sum;
  }
  return total;
}

}  // namespace candor::backend
