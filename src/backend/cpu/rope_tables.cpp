#include "backend/cpu/rope_tables.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/rounded_math.h"

namespace candor::backend::cpu {

RopeTables::Table& RopeTables::find(const RopeSpec& spec) {
  const auto at = std::find_if(tables_.begin(), tables_.end(), [&](const Table& table) { return table.spec == spec; });
  if (at != tables_.end()) return *at;
  Table table;
  table.spec = spec;
  table.frequencies = rope_frequencies(spec);
  tables_.push_back(std::move(table));
  return tables_.back();
}

RopeRows RopeTables::rows(const RopeSpec& spec, const StepBatch& batch, platform::ThreadPool& pool) {
  const size_t n_rows = batch.positions.size();
  Table& table = find(spec);
  const size_t half = table.frequencies.size();
  if (table.step == step_) return {table.cos.data(), table.sin.data()};
  table.step = step_;
  table.cos.resize(std::max(table.cos.size(), n_rows * half));
  table.sin.resize(table.cos.size());
  constexpr int64_t kPairNs = 40;
  pool.parallel_for(
      {.n_units = static_cast<int64_t>(n_rows), .grain = 4, .unit_cost = kPairNs * static_cast<int64_t>(half)},
      [&](platform::UnitRange range) {
        for (size_t row = static_cast<size_t>(range.begin); row < static_cast<size_t>(range.end); ++row) {
          for (size_t i = 0; i < half; ++i) {
            const double angle = batch.position_of(row, spec.axes, i) * table.frequencies[i];
            const SinCos turn = rounded_sincos(angle);
            table.cos[row * half + i] = static_cast<float>(turn.cos * spec.attention_factor);
            table.sin[row * half + i] = static_cast<float>(turn.sin * spec.attention_factor);
          }
        }
      });
  return {table.cos.data(), table.sin.data()};
}

}  // namespace candor::backend::cpu
