// linear(): the input is encoded once for each encoding that the weights want, then all panels of those weights are
// shared out over the threads in one go.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/op_terms.h"
#include "base/checked.h"
#include "base/error.h"
#include "kernels/packed_weight.h"
#include "platform/thread_pool.h"

namespace candor::backend::cpu {
namespace {

using kernels::Encoding;
using platform::UnitRange;

constexpr int64_t kStreamSpeed = 12;     // bytes of weights per nanosecond
constexpr int64_t kMultiplySpeed = 100;  // products per nanosecond
// The least pieces of a thread's panels: small enough to even out at the end what others disturb, and of a few panels
// where there are enough, since kernels walk panels together.
constexpr int64_t kMostGrains = 32;
constexpr int64_t kLeastGrains = 8;
constexpr int64_t kPanelsTogether = 4;

int64_t panel_ns(const kernels::WeightShape& shape, int32_t n_rows) {
  const int64_t stream = static_cast<int64_t>(kernels::panel_bytes(shape)) / kStreamSpeed;
  const int64_t multiply = kernels::kPanelRows * shape.n_in * n_rows / kMultiplySpeed;
  return std::max({int64_t{1}, stream, multiply});
}

}  // namespace

void CpuOps::compute(const op::Linear& call) {
  if (call.src.n_rows == 0) return;
  for (const Encoding encoding : kEncodings) {
    begin_runs();
    for (const LinearTerm& term : call.terms) {
      const CpuWeight& weight = own(*term.weight);
      if (kernels::encoding_of(weight.shape().dtype) != encoding) continue;
      CANDOR_DCHECK(weight.n_cols() == call.src.n_cols && weight.n_rows() >= term.dst.n_cols);
      add_term(term, call.src.n_rows, encoded_.data());
    }
    if (runs_.empty()) continue;
    encode_rows(encoding, call.src);
    run_panels();
  }
}

void CpuOps::linear_encoded(std::span<const LinearTerm> terms, int32_t n_rows, const std::byte* rows) {
  if (n_rows == 0) return;
  begin_runs();
  for (const LinearTerm& term : terms) add_term(term, n_rows, rows);
  run_panels();
}

void CpuOps::add_term(const LinearTerm& term, int32_t n_rows, const std::byte* rows) {
  add_run({.weight = &own(*term.weight),
           .bias = term.bias == nullptr ? nullptr : own(*term.bias).values(),
           .activations = rows,
           .n_rows = n_rows,
           .dst = arena_.data(term.dst),
           .n_out = term.dst.n_cols});
}

void CpuOps::encode_rows(Encoding encoding, Activation src) {
  const size_t row_bytes = kernels::encoded_row_bytes(encoding, src.n_cols);
  const int64_t cost = std::max<int64_t>(1, src.n_cols / kEncodeSpeed);
  pool_.parallel_for({.n_units = src.n_rows, .grain = std::max<int64_t>(1, kGrainNs / cost), .unit_cost = cost},
                     [&](UnitRange range) {
                       for (int64_t i = range.begin; i < range.end; ++i) {
                         table_.encode(encoding, arena_.row(src, static_cast<int32_t>(i)), src.n_cols,
                                       encoded_.data() + static_cast<size_t>(i) * row_bytes);
                       }
                     });
}

// [head][row]
void CpuOps::encode_heads(Encoding encoding, Activation src, int32_t n_heads) {
  const int32_t n_in = src.n_cols / n_heads;
  const size_t row_bytes = kernels::encoded_row_bytes(encoding, n_in);
  const int64_t n_rows = src.n_rows;
  CANDOR_CHECK(static_cast<size_t>(n_heads * n_rows) * row_bytes <= encoded_.size());
  const int64_t cost = std::max<int64_t>(1, n_in / kEncodeSpeed);
  pool_.parallel_for({.n_units = n_heads * n_rows, .grain = std::max<int64_t>(1, kGrainNs / cost), .unit_cost = cost},
                     [&](UnitRange range) {
                       for (int64_t i = range.begin; i < range.end; ++i) {
                         table_.encode(encoding, arena_.row(src, static_cast<int32_t>(i % n_rows)) + i / n_rows * n_in,
                                       n_in, encoded_.data() + static_cast<size_t>(i) * row_bytes);
                       }
                     });
}

void CpuOps::compute(const op::LinearHeads& call) {
  if (call.src.n_rows == 0) return;
  const CpuWeight& heads = own(*call.weight);
  const Encoding encoding = kernels::encoding_of(heads.shape().dtype);
  const size_t head_bytes =
      kernels::encoded_row_bytes(encoding, call.src.n_cols / call.n_heads) * static_cast<size_t>(call.src.n_rows);
  const int64_t n_panels = call.dst.n_cols / call.n_heads / kernels::kPanelRows;
  CANDOR_DCHECK(n_panels * kernels::kPanelRows * call.n_heads == call.dst.n_cols && heads.n_rows() == call.dst.n_cols);
  encode_heads(encoding, call.src, call.n_heads);
  pool_.parallel_for({.n_units = call.n_heads, .unit_cost = n_panels * panel_ns(heads.shape(), call.src.n_rows)},
                     [&](UnitRange range) {
                       for (int64_t head = range.begin; head < range.end; ++head) {
                         table_.matmul({.shape = heads.shape(),
                                        .weights = heads.panels(),
                                        .activations = encoded_.data() + static_cast<size_t>(head) * head_bytes,
                                        .n_rows = call.src.n_rows,
                                        .dst = arena_.data(call.dst),
                                        .dst_stride = call.dst.n_cols,
                                        .panel_begin = head * n_panels,
                                        .panel_end = (head + 1) * n_panels,
                                        .scratch = scratch_.of(range.thread)});
                       }
                     });
}

void CpuOps::add_run(PanelRun run) {
  run.first_unit = runs_.empty() ? 0 : runs_.back().end_unit;
  run.end_unit = run.first_unit + ceil_div(run.n_out, int64_t{kernels::kPanelRows});
  runs_.push_back(run);
}

void CpuOps::run_panels() {
  const int64_t n_units = runs_.back().end_unit;
  int64_t all_ns = 0;
  for (const PanelRun& run : runs_)
    all_ns += (run.end_unit - run.first_unit) * panel_ns(run.weight->shape(), run.n_rows);
  const int64_t cost = std::max<int64_t>(1, all_ns / n_units);
  const int64_t even = n_units / pool_.n_threads();
  const int64_t together = std::min(kPanelsTogether, even / kLeastGrains);
  const int64_t grain = std::max({int64_t{1}, even / kMostGrains, together, kGrainNs / cost});
  std::ranges::fill(last_runs_, nullptr);
  pool_.parallel_for({.n_units = n_units, .grain = grain, .unit_cost = cost}, [&](UnitRange range) {
    auto run = std::ranges::upper_bound(runs_, range.begin, {}, &PanelRun::end_unit);
    for (; run != runs_.end() && run->first_unit < range.end; ++run) {
      const int64_t begin = std::max(range.begin, run->first_unit);
      const int64_t end = std::min(range.end, run->end_unit);
      run_some(*run, {begin - run->first_unit, end - run->first_unit, range.thread});
    }
  });
}

void CpuOps::run_some(const PanelRun& run, UnitRange range) {
  const kernels::WeightShape& shape = run.weight->shape();
  const PanelRun* last = std::exchange(last_runs_[static_cast<size_t>(range.thread)], &run);
  const bool follows_its_like = last != nullptr && last->weight->shape().dtype == shape.dtype &&
                                last->weight->shape().n_in == shape.n_in && last->activations == run.activations &&
                                last->n_rows == run.n_rows;
  table_.matmul({.shape = shape,
                 .weights = run.weight->panels(),
                 .activations = run.activations,
                 .n_rows = run.n_rows,
                 .dst = run.dst,
                 .dst_stride = run.n_out,
                 .panel_begin = range.begin,
                 .panel_end = range.end,
                 .scratch = scratch_.of(range.thread),
                 .follows_its_like = follows_its_like});
  if (run.bias == nullptr) return;
  const int64_t first = range.begin * kernels::kPanelRows;
  const int64_t count = std::min<int64_t>(range.end * kernels::kPanelRows, run.n_out) - first;
  for (int32_t i = 0; i < run.n_rows; ++i) table_.add(run.bias + first, count, run.dst + i * run.n_out + first);
}

}  // namespace candor::backend::cpu
