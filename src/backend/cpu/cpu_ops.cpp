#include "backend/cpu/cpu_ops.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace candor::backend::cpu {
namespace {

using platform::UnitRange;

// Rough work per element, in elements per nanosecond: they decide only whether an operation is worth sharing.
constexpr int64_t kCopySpeed = 8;
constexpr int64_t kNormSpeed = 4;
constexpr int64_t kGateSpeed = 2;

// Rows that a thread takes at once should be worth this much.
constexpr int64_t kGrainNs = 3000;

const CpuWeight& own(const Weight& weight) {
  return static_cast<const CpuWeight&>(weight);
}

// The widest encoding is that for bf16 weights.
size_t encoded_bytes(const ArenaLayout& layout) {
  const size_t row = kernels::encoded_row_bytes(kernels::Encoding::kBf16, std::max(1, layout.max_input_cols));
  return row * static_cast<size_t>(std::max(layout.max_rows, layout.max_out_rows));
}

}  // namespace

// fn(row) for each row, whole rows to a thread. row_ns: rough cost of a row.
template <class Fn>
void CpuOps::for_rows(int32_t n_rows, int64_t row_ns, Fn&& fn) {
  const int64_t cost = std::max<int64_t>(1, row_ns);
  const int64_t grain = std::max<int64_t>(1, kGrainNs / cost);
  pool_.parallel_for({.n_units = n_rows, .grain = grain, .unit_cost = cost}, [&fn](UnitRange range) {
    for (int64_t i = range.begin; i < range.end; ++i) fn(static_cast<int32_t>(i));
  });
}

CpuOps::CpuOps(const kernels::KernelTable& table, platform::ThreadPool& pool, Fault fault)
    : table_(table), pool_(pool), fault_(fault), scratch_(pool.n_threads()) {}

Expected<void> CpuOps::reserve(const ArenaLayout& layout) {
  CANDOR_ASSIGN(arena_, Arena::make(layout));
  CANDOR_ASSIGN(encoded_, platform::HugeBuffer::allocate(encoded_bytes(layout), "a step's encoded activations"));
  return {};
}

uint64_t CpuOps::reserve_bytes(const ArenaLayout& layout) {
  return Arena::n_bytes(layout) + encoded_bytes(layout);
}

void CpuOps::begin(const StepBatch& batch, CpuKv& kv) {
  CANDOR_CHECK(batch.n_rows() <= arena_.max_rows() && batch.positions.size() == batch.tokens.size());
  batch_ = batch;
  kv_ = &kv;
  logits_ = {};
  rope_tables_.begin_step();
}

void CpuOps::embed(Activation dst, const Weight& table, float scale) {
  const CpuWeight& weight = own(table);
  for_rows(dst.n_rows, dst.n_cols / kNormSpeed, [&](int32_t i) {
    float* row = arena_.row(dst, i);
    weight.decode_row(batch_.tokens[static_cast<size_t>(i)], row);
    if (scale != 1.0f) table_.scale(row, scale, dst.n_cols, row);
  });
}

void CpuOps::norm(Activation dst, Activation src, const Weight& gain, const NormSpec& spec) {
  const float* gains = own(gain).values();
  for_rows(src.n_rows, src.n_cols / kNormSpeed, [&](int32_t i) {
    const float* x = arena_.row(src, i);
    float* y = arena_.row(dst, i);
    if (spec.kind == NormKind::kRms) {
      table_.rms_norm(x, gains, spec.epsilon, src.n_cols, y);
    } else {
      table_.layer_norm(x, gains, nullptr, spec.epsilon, src.n_cols, y);
    }
  });
}

void CpuOps::rope(Activation x, int32_t n_heads, int32_t head_dim, const RopeSpec& spec) {
  if (spec.n_dims == 0) return;
  const RopeRows rows = rope_tables_.rows(spec, batch_.positions, pool_);
  const auto rotate = spec.pairs == RopePairs::kInterleaved ? table_.rope_interleaved : table_.rope_halves;
  const size_t half = static_cast<size_t>(spec.n_dims / 2);
  for_rows(x.n_rows, x.n_cols / kNormSpeed, [&](int32_t i) {
    const size_t at = static_cast<size_t>(i) * half;
    rotate({.x = arena_.row(x, i),
            .n_heads = n_heads,
            .head_dim = head_dim,
            .n_dims = spec.n_dims,
            .cos = rows.cos + at,
            .sin = rows.sin + at});
  });
}

void CpuOps::gate(Activation dst, Activation gate_src, Activation up, GateKind kind) {
  const auto function = kind == GateKind::kSilu ? table_.silu_gate : table_.gelu_gate;
  for_rows(dst.n_rows, dst.n_cols / kGateSpeed,
           [&](int32_t i) { function(arena_.row(gate_src, i), arena_.row(up, i), dst.n_cols, arena_.row(dst, i)); });
}

void CpuOps::add(Activation dst, Activation src, float scale) {
  for_rows(dst.n_rows, dst.n_cols / kCopySpeed,
           [&](int32_t i) { table_.add_scaled(arena_.row(src, i), scale, dst.n_cols, arena_.row(dst, i)); });
}

void CpuOps::gather(Activation dst, Activation src) {
  for_rows(dst.n_rows, dst.n_cols / kCopySpeed, [&](int32_t i) {
    std::memcpy(arena_.row(dst, i), arena_.row(src, batch_.out_rows[static_cast<size_t>(i)]),
                static_cast<size_t>(dst.n_cols) * sizeof(float));
  });
}

// The result stays where it is: nothing writes to the slot before the next step.
void CpuOps::collect(Activation logits, float scale) {
  if (logits.n_rows == 0) return;
  if (scale != 1.0f) {
    for_rows(logits.n_rows, logits.n_cols / kCopySpeed,
             [&](int32_t i) { table_.scale(arena_.row(logits, i), scale, logits.n_cols, arena_.row(logits, i)); });
  }
  logits_ = {arena_.data(logits), logits.n_rows, logits.n_cols};
}

}  // namespace candor::backend::cpu
