#include "backend/cpu/cpu_ops.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"

namespace candor::backend::cpu {
namespace {

using platform::UnitRange;

// Rough work per element, in elements per nanosecond: they decide only whether an operation is worth sharing.
constexpr int64_t kNormSpeed = 3;
constexpr int64_t kGateSpeed = 2;
constexpr int64_t kDecodeNs = 8;  // nanoseconds an element of a packed row, whose lines are shared with 15 others

// The widest encoding is that for bf16 weights.
size_t encoded_bytes(const ArenaLayout& layout) {
  const size_t row = kernels::encoded_row_bytes(kernels::Encoding::kBf16, std::max(1, layout.max_input_cols));
  return row * static_cast<size_t>(std::max(layout.max_rows, layout.max_out_rows));
}

constexpr size_t n_floats(int32_t n) {
  return static_cast<size_t>(n) * sizeof(float);
}

auto gate_function(const kernels::KernelTable& table, GateKind kind) {
  const std::array functions = {table.silu_gate, table.gelu_gate,         table.gelu_erf_gate,
                                table.relu_gate, table.relu_squared_gate, table.clamped_silu_gate,
                                table.sigmoid_gate, table.product_gate};
  static_assert(functions.size() == kGateKinds);
  return functions[static_cast<size_t>(kind)];
}

}  // namespace

CpuOps::CpuOps(const kernels::KernelTable& table, platform::ThreadPool& pool)
    : table_(table), pool_(pool), scratch_(pool.n_threads()), last_runs_(static_cast<size_t>(pool.n_threads())) {}

Result<void> CpuOps::reserve(const ArenaLayout& layout) {
  CANDOR_ASSIGN(arena_, Arena::make(layout));
  CANDOR_TRY(scratch_.reserve(sizeof(float) * static_cast<size_t>(std::max(1, layout.max_input_cols))));
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
  shared_.find(batch);
}

void CpuOps::embed(Activation dst, const Weight& table, float scale) {
  const CpuWeight& weight = own(table);
  for_rows(dst.n_rows, dst.n_cols * kDecodeNs, [&](int32_t i) {
    float* row = arena_.row(dst, i);
    weight.decode_row(batch_.tokens[static_cast<size_t>(i)], row);
    if (scale != 1.0f) table_.scale(row, scale, dst.n_cols, row);
  });
}

void CpuOps::add_positions(Activation dst, const Weight& table) {
  const CpuWeight& weight = own(table);
  const int64_t cost = dst.n_cols * kDecodeNs;
  pool_.parallel_for({.n_units = dst.n_rows, .grain = std::max<int64_t>(1, kGrainNs / cost), .unit_cost = cost},
                     [&](UnitRange range) {
                       float* row = reinterpret_cast<float*>(scratch_.of(range.thread));
                       for (int64_t i = range.begin; i < range.end; ++i) {
                         weight.decode_row(batch_.positions[static_cast<size_t>(i)], row);
                         table_.add(row, dst.n_cols, arena_.row(dst, static_cast<int32_t>(i)));
                       }
                     });
}

void CpuOps::norm(Activation dst, Activation src, NormWeights weights, const NormSpec& spec) {
  const float* gains = weights.gain == nullptr ? nullptr : own(*weights.gain).values();
  const float* biases = weights.bias == nullptr ? nullptr : own(*weights.bias).values();
  const int64_t n_turns = gains == nullptr ? 1 : weights.gain->n_rows() * weights.gain->n_cols() / src.n_cols;
  for_rows(src.n_rows, src.n_cols / kNormSpeed, [&](int32_t i) {
    const float* x = arena_.row(src, i);
    float* y = arena_.row(dst, i);
    const float* gain = gains == nullptr ? nullptr : gains + i % n_turns * src.n_cols;
    if (spec.kind == NormKind::kRms) {
      table_.rms_norm(x, gain, spec.epsilon, src.n_cols, y);
    } else {
      table_.layer_norm(x, gain, biases, spec.epsilon, src.n_cols, y);
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

void CpuOps::temper(Activation x, const TemperSpec& spec) {
  for_rows(x.n_rows, x.n_cols / kNormSpeed, [&](int32_t i) {
    const auto factor = static_cast<float>(temper_factor(spec, batch_.positions[static_cast<size_t>(i)]));
    if (factor != 1.0f) table_.scale(arena_.row(x, i), factor, x.n_cols, arena_.row(x, i));
  });
}

void CpuOps::gate(Activation dst, Activation gate_src, Activation up, GateKind kind) {
  const auto function = gate_function(table_, kind);
  for_rows(dst.n_rows, dst.n_cols / kGateSpeed,
           [&](int32_t i) { function(arena_.row(gate_src, i), arena_.row(up, i), dst.n_cols, arena_.row(dst, i)); });
}

void CpuOps::activate(Activation x, GateKind kind) {
  const auto function = gate_function(table_, kind);
  for_rows(x.n_rows, x.n_cols / kGateSpeed,
           [&](int32_t i) { function(arena_.row(x, i), nullptr, x.n_cols, arena_.row(x, i)); });
}

void CpuOps::add(Activation dst, Activation src, float scale) {
  for_rows(dst.n_rows, dst.n_cols / kCopySpeed,
           [&](int32_t i) { table_.add_scaled(arena_.row(src, i), scale, dst.n_cols, arena_.row(dst, i)); });
}

void CpuOps::scale(Activation x, float factor, const Weight* weight) {
  const float scale = weight == nullptr ? factor : factor * own(*weight).values()[0];
  for_rows(x.n_rows, x.n_cols / kCopySpeed,
           [&](int32_t i) { table_.scale(arena_.row(x, i), scale, x.n_cols, arena_.row(x, i)); });
}

void CpuOps::columns(Activation dst, Activation src, int32_t first) {
  for_rows(dst.n_rows, dst.n_cols / kCopySpeed, [&](int32_t i) {
    std::memcpy(arena_.row(dst, i), arena_.row(src, i) + first, n_floats(dst.n_cols));
  });
}

void CpuOps::unzip(Activation first, Activation second, Activation src, int32_t width) {
  const int32_t n_pieces = first.n_cols / width;
  const int32_t other = second.n_cols / n_pieces;
  for_rows(src.n_rows, src.n_cols / kCopySpeed, [&](int32_t i) {
    const float* x = arena_.row(src, i);
    for (int32_t piece = 0; piece < n_pieces; ++piece, x += width + other) {
      std::memcpy(arena_.row(first, i) + piece * width, x, n_floats(width));
      std::memcpy(arena_.row(second, i) + piece * other, x + width, n_floats(other));
    }
  });
}

void CpuOps::zip(Activation dst, Activation first, Activation second, int32_t width) {
  const int32_t n_pieces = first.n_cols / width;
  const int32_t other = second.n_cols / n_pieces;
  for_rows(dst.n_rows, dst.n_cols / kCopySpeed, [&](int32_t i) {
    float* y = arena_.row(dst, i);
    for (int32_t piece = 0; piece < n_pieces; ++piece, y += width + other) {
      std::memcpy(y, arena_.row(first, i) + piece * width, n_floats(width));
      std::memcpy(y + width, arena_.row(second, i) + piece * other, n_floats(other));
    }
  });
}

void CpuOps::add_gated(Activation dst, Activation src, Activation gate) {
  for_rows(dst.n_rows, dst.n_cols / kCopySpeed, [&](int32_t i) {
    float share = 0.0f;
    table_.sigmoid_gate(arena_.row(gate, i), nullptr, 1, &share);
    table_.add_scaled(arena_.row(src, i), share, dst.n_cols, arena_.row(dst, i));
  });
}

void CpuOps::gather(Activation dst, Activation src) {
  for_rows(dst.n_rows, dst.n_cols / kCopySpeed, [&](int32_t i) {
    std::memcpy(arena_.row(dst, i), arena_.row(src, batch_.out_rows[static_cast<size_t>(i)]),
                static_cast<size_t>(dst.n_cols) * sizeof(float));
  });
}

// The result stays where it is: nothing writes to the slot before the next step.
void CpuOps::collect(Activation logits, const LogitSpec& spec) {
  if (logits.n_rows == 0) return;
  if (spec.scale != 1.0f || spec.softcap != 0.0f) {
    for_rows(logits.n_rows, logits.n_cols / kGateSpeed, [&](int32_t i) {
      float* row = arena_.row(logits, i);
      if (spec.scale != 1.0f) table_.scale(row, spec.scale, logits.n_cols, row);
      if (spec.softcap != 0.0f) table_.soft_cap(row, spec.softcap, logits.n_cols, row);
    });
  }
  logits_ = {arena_.data(logits), logits.n_rows, logits.n_cols};
}

}  // namespace candor::backend::cpu
