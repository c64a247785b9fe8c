#include "backend/cpu/cpu_ops.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <variant>

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
  const std::array functions = {table.silu_gate,    table.gelu_gate,         table.gelu_erf_gate,
                                table.relu_gate,    table.relu_squared_gate, table.clamped_silu_gate,
                                table.sigmoid_gate, table.product_gate};
  static_assert(functions.size() == kGateKinds);
  return functions[static_cast<size_t>(kind)];
}

}  // namespace

CpuOps::CpuOps(const kernels::KernelTable& table, platform::ThreadPool& pool)
    : table_(table),
      pool_(pool),
      scratch_(pool.n_threads()),
      last_runs_(static_cast<size_t>(pool.n_threads())),
      adapter_ops_(table, pool, arena_) {}

Result<void> CpuOps::reserve(const ArenaLayout& layout) {
  CANDOR_ASSIGN(arena_, Arena::make(layout));
  CANDOR_TRY(scratch_.reserve(sizeof(float) * static_cast<size_t>(std::max(1, layout.max_input_cols))));
  CANDOR_ASSIGN(encoded_, platform::HugeBuffer::allocate(encoded_bytes(layout), "a step's encoded activations"));
  return {};
}

uint64_t CpuOps::reserve_bytes(const ArenaLayout& layout) {
  return ArenaPlaces::n_bytes(layout) + encoded_bytes(layout);
}

void CpuOps::begin(const StepBatch& batch, CpuKv& kv) {
  CANDOR_CHECK(batch.n_rows() <= arena_.max_rows() && batch.positions.size() == batch.tokens.size());
  CANDOR_CHECK(missing_kind(batch.kinds(), kKnownRows).empty());
  batch_ = batch;
  kv_ = &kv;
  logits_ = {};
  rope_tables_.begin_step();
  shared_.find(batch);
  adapter_ops_.begin(batch_);
}

void CpuOps::run(const Op& operation) {
  std::visit([this](const auto& each) { compute(each); }, operation);
}

void CpuOps::compute(const op::Embed& call) {
  const CpuWeight* weight = call.table == nullptr ? nullptr : &own(*call.table);
  for_rows(call.dst.n_rows, call.dst.n_cols * kDecodeNs, [&](int32_t i) {
    float* row = arena_.row(call.dst, i);
    if (const float* vector = batch_.vector_of(i); call.takes_vectors && vector != nullptr) {
      std::memcpy(row, vector, n_floats(call.dst.n_cols));
      return;
    }
    weight->decode_row(batch_.token_of(i, call.vector_token), row);
    if (call.scale != 1.0f) table_.scale(row, call.scale, call.dst.n_cols, row);
  });
}

// row_of(t): of the table.
template <class RowOf>
void CpuOps::add_table_rows(Activation dst, const Weight& table, RowOf row_of) {
  const CpuWeight& weight = own(table);
  const int64_t cost = dst.n_cols * kDecodeNs;
  pool_.parallel_for({.n_units = dst.n_rows, .grain = std::max<int64_t>(1, kGrainNs / cost), .unit_cost = cost},
                     [&](UnitRange range) {
                       float* row = reinterpret_cast<float*>(scratch_.of(range.thread));
                       for (int64_t i = range.begin; i < range.end; ++i) {
                         weight.decode_row(row_of(static_cast<size_t>(i)), row);
                         table_.add(row, dst.n_cols, arena_.row(dst, static_cast<int32_t>(i)));
                       }
                     });
}

void CpuOps::compute(const op::AddPositions& call) {
  add_table_rows(call.dst, *call.table, [this](size_t row) { return batch_.positions[row]; });
}

void CpuOps::compute(const op::AddTypes& call) {
  const auto last_type = static_cast<int32_t>(call.table->n_rows() - 1);
  add_table_rows(call.dst, *call.table, [&](size_t row) {
    const auto t = static_cast<int32_t>(row);
    const auto behind = std::ranges::upper_bound(batch_.seqs, t, {}, &SeqSlice::first_row);
    return std::min(StepBatch::type_of(*std::prev(behind), t), last_type);
  });
}

void CpuOps::compute(const op::AddVectors& call) {
  for_rows(call.dst.n_rows, call.dst.n_cols * kDecodeNs, [&](int32_t i) {
    const float* vector = batch_.vector_of(i);
    if (vector == nullptr) return;
    float* row = arena_.row(call.dst, i);
    for (int32_t col = 0; col < call.dst.n_cols; ++col) row[col] += vector[call.first + col];
  });
}

void CpuOps::compute(const op::Norm& call) {
  const float* gains = call.weights.gain == nullptr ? nullptr : own(*call.weights.gain).values();
  const float* biases = call.weights.bias == nullptr ? nullptr : own(*call.weights.bias).values();
  const int64_t n_gain_rows =
      gains == nullptr ? 1 : call.weights.gain->n_rows() * call.weights.gain->n_cols() / call.src.n_cols;
  for_rows(call.src.n_rows, call.src.n_cols / kNormSpeed, [&](int32_t i) {
    const float* x = arena_.row(call.src, i);
    float* y = arena_.row(call.dst, i);
    const float* gain = gains == nullptr ? nullptr : gains + i % n_gain_rows * call.src.n_cols;
    if (call.spec.kind == NormKind::kRms) {
      table_.rms_norm(x, gain, call.spec.epsilon, call.src.n_cols, y);
    } else {
      table_.layer_norm(x, gain, biases, call.spec.epsilon, call.src.n_cols, y);
    }
  });
}

void CpuOps::compute(const op::Rope& call) {
  if (call.spec->n_dims == 0) return;
  const RopeRows rows = rope_tables_.rows(*call.spec, batch_, pool_);
  const auto rotate = call.spec->pairs == RopePairs::kInterleaved ? table_.rope_interleaved : table_.rope_halves;
  const size_t half = static_cast<size_t>(call.spec->n_dims / 2);
  for_rows(call.x.n_rows, call.x.n_cols / kNormSpeed, [&](int32_t i) {
    const size_t at = static_cast<size_t>(i) * half;
    rotate({.x = arena_.row(call.x, i),
            .n_heads = call.n_heads,
            .head_dim = call.head_dim,
            .n_dims = call.spec->n_dims,
            .cos = rows.cos + at,
            .sin = rows.sin + at});
  });
}

void CpuOps::compute(const op::Temper& call) {
  for_rows(call.x.n_rows, call.x.n_cols / kNormSpeed, [&](int32_t i) {
    const auto factor = static_cast<float>(temper_factor(call.spec, batch_.positions[static_cast<size_t>(i)]));
    if (factor != 1.0f) table_.scale(arena_.row(call.x, i), factor, call.x.n_cols, arena_.row(call.x, i));
  });
}

void CpuOps::compute(const op::Gate& call) {
  const auto function = gate_function(table_, call.kind);
  for_rows(call.dst.n_rows, call.dst.n_cols / kGateSpeed, [&](int32_t i) {
    function(arena_.row(call.gate, i), arena_.row(call.up, i), call.dst.n_cols, arena_.row(call.dst, i));
  });
}

void CpuOps::compute(const op::Activate& call) {
  const auto function = gate_function(table_, call.kind);
  for_rows(call.x.n_rows, call.x.n_cols / kGateSpeed,
           [&](int32_t i) { function(arena_.row(call.x, i), nullptr, call.x.n_cols, arena_.row(call.x, i)); });
}

void CpuOps::compute(const op::Clamp& call) {
  for_rows(call.dst.n_rows, call.dst.n_cols / kCopySpeed, [&](int32_t i) {
    const float* x = arena_.row(call.src, i);
    float* y = arena_.row(call.dst, i);
    for (int32_t c = 0; c < call.dst.n_cols; ++c) y[c] = clamped(x[c], call.low, call.high);
  });
}

void CpuOps::compute(const op::Add& call) {
  for_rows(call.dst.n_rows, call.dst.n_cols / kCopySpeed, [&](int32_t i) {
    table_.add_scaled(arena_.row(call.src, i), call.scale, call.dst.n_cols, arena_.row(call.dst, i));
  });
}

void CpuOps::compute(const op::Scale& call) {
  const float scale = call.weight == nullptr ? call.factor : call.factor * own(*call.weight).values()[0];
  for_rows(call.x.n_rows, call.x.n_cols / kCopySpeed,
           [&](int32_t i) { table_.scale(arena_.row(call.x, i), scale, call.x.n_cols, arena_.row(call.x, i)); });
}

void CpuOps::compute(const op::Columns& call) {
  for_rows(call.dst.n_rows, call.dst.n_cols / kCopySpeed, [&](int32_t i) {
    std::memcpy(arena_.row(call.dst, i), arena_.row(call.src, i) + call.first, n_floats(call.dst.n_cols));
  });
}

void CpuOps::compute(const op::Unzip& call) {
  const int32_t n_pieces = call.first.n_cols / call.width;
  const int32_t other = call.second.n_cols / n_pieces;
  for_rows(call.src.n_rows, call.src.n_cols / kCopySpeed, [&](int32_t i) {
    const float* x = arena_.row(call.src, i);
    for (int32_t piece = 0; piece < n_pieces; ++piece, x += call.width + other) {
      std::memcpy(arena_.row(call.first, i) + piece * call.width, x, n_floats(call.width));
      std::memcpy(arena_.row(call.second, i) + piece * other, x + call.width, n_floats(other));
    }
  });
}

void CpuOps::compute(const op::Zip& call) {
  const int32_t n_pieces = call.first.n_cols / call.width;
  const int32_t other = call.second.n_cols / n_pieces;
  for_rows(call.dst.n_rows, call.dst.n_cols / kCopySpeed, [&](int32_t i) {
    float* y = arena_.row(call.dst, i);
    for (int32_t piece = 0; piece < n_pieces; ++piece, y += call.width + other) {
      std::memcpy(y, arena_.row(call.first, i) + piece * call.width, n_floats(call.width));
      std::memcpy(y + call.width, arena_.row(call.second, i) + piece * other, n_floats(other));
    }
  });
}

void CpuOps::compute(const op::AddGated& call) {
  for_rows(call.dst.n_rows, call.dst.n_cols / kCopySpeed, [&](int32_t i) {
    float share = 0.0f;
    table_.sigmoid_gate(arena_.row(call.gate, i), nullptr, 1, &share);
    table_.add_scaled(arena_.row(call.src, i), share, call.dst.n_cols, arena_.row(call.dst, i));
  });
}

void CpuOps::compute(const op::Gather& call) {
  for_rows(call.dst.n_rows, call.dst.n_cols / kCopySpeed, [&](int32_t i) {
    std::memcpy(arena_.row(call.dst, i), arena_.row(call.src, batch_.out_rows[static_cast<size_t>(i)]),
                static_cast<size_t>(call.dst.n_cols) * sizeof(float));
  });
}

// The result stays where it is: nothing writes to the slot before the next step.
void CpuOps::compute(const op::Collect& call) {
  if (call.logits.n_rows == 0) return;
  if (call.spec.scale != 1.0f || call.spec.softcap != 0.0f) {
    for_rows(call.logits.n_rows, call.logits.n_cols / kGateSpeed, [&](int32_t i) {
      float* row = arena_.row(call.logits, i);
      if (call.spec.scale != 1.0f) table_.scale(row, call.spec.scale, call.logits.n_cols, row);
      if (call.spec.softcap != 0.0f) table_.soft_cap(row, call.spec.softcap, call.logits.n_cols, row);
    });
  }
  logits_ = {arena_.data(call.logits), call.logits.n_rows, call.logits.n_cols};
}

}  // namespace candor::backend::cpu
