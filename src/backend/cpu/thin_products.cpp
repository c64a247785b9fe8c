#include "backend/cpu/thin_products.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/packed_weight.h"

namespace candor::backend::cpu {
namespace {

using kernels::kPanelRows;

constexpr int32_t kRowsAtOnce = 32;
constexpr int64_t kPanelsAtOnce = 32;  // of outputs that stay in a thread's nearest cache
constexpr int64_t kLeastPanels = 4;    // of a unit
constexpr int64_t kUnitsOfThread = 4;  // that even out what others disturb
constexpr int64_t kThinSpeed = 8;      // products per nanosecond

size_t whole_lines(size_t n_bytes) {
  return (n_bytes + kernels::kPackedAlignment - 1) / kernels::kPackedAlignment * kernels::kPackedAlignment;
}

size_t input_bytes(const CpuWeight& weight) {
  return kernels::encoded_row_bytes(kernels::encoding_of(weight.shape().dtype), weight.n_cols());
}

int64_t n_panels(const CpuWeight& weight) {
  return kernels::n_panels(weight.shape());
}

}  // namespace

int64_t ThinProducts::Job::row_cost() const {
  return (down == nullptr ? 0 : down->n_rows() * down->n_cols()) + up().n_rows() * up().n_cols();
}

ThinProducts::Places ThinProducts::places_of(const Job& job, int32_t n_rows) {
  const auto rows = static_cast<size_t>(n_rows);
  const size_t rank = job.down == nullptr ? 0 : static_cast<size_t>(job.down->n_rows());
  constexpr size_t kOutputs = static_cast<size_t>(kPanelsAtOnce * kPanelRows);
  Places places;
  places.middle = whole_lines(rows * input_bytes(job.first()));
  places.codes = places.middle + whole_lines(rows * rank * sizeof(float));
  places.outputs = places.codes + (rank == 0 ? 0 : whole_lines(rows * input_bytes(job.up())));
  places.spare = places.outputs + whole_lines(rows * kOutputs * sizeof(float));
  places.scratch = places.spare + kOutputs * sizeof(float);
  const int64_t widest = std::max(job.first().n_cols(), job.up().n_cols());
  places.end = places.scratch + whole_lines(kernels::matmul_scratch_bytes(widest));
  return places;
}

void ThinProducts::begin() {
  rows_.clear();
  jobs_.clear();
}

void ThinProducts::add_job(Job job, std::span<const Row> rows) {
  if (rows.empty()) return;
  job.first_row = rows_.size();
  rows_.insert(rows_.end(), rows.begin(), rows.end());
  job.end_row = rows_.size();
  jobs_.push_back(job);
}

void ThinProducts::add(const AdapterTerm& term, float scale, std::span<const Row> rows) {
  const CpuWeight* down = term.down == nullptr ? nullptr : &own(*term.down);
  add_job({.term = &term, .down = down, .replaces = down == nullptr, .scale = scale}, rows);
}

void ThinProducts::add_from_middle(const AdapterTerm& term, float scale, std::span<const Row> rows) {
  add_job({.term = &term, .scale = scale}, rows);
}

// Outputs are shared out where there are fewer pieces of rows than threads want: each piece then multiplies by `down`
// anew.
void ThinProducts::make_units() {
  units_.clear();
  int64_t n_pieces = 0;
  for (const Job& job : jobs_) n_pieces += static_cast<int64_t>((job.end_row - job.first_row - 1) / kRowsAtOnce + 1);
  const int64_t wanted = (kUnitsOfThread * pool_.n_threads() + n_pieces - 1) / n_pieces;
  for (const Job& job : jobs_) {
    const int64_t panels = n_panels(job.up());
    const int64_t n_parts = pool_.n_threads() == 1 ? 1 : std::clamp<int64_t>(panels / kLeastPanels, 1, wanted);
    for (size_t row = job.first_row; row < job.end_row; row += kRowsAtOnce) {
      const auto n_rows = static_cast<int32_t>(std::min<size_t>(kRowsAtOnce, job.end_row - row));
      for (int64_t part = 0; part < n_parts; ++part) {
        units_.push_back({&job, row, n_rows, panels * part / n_parts, panels * (part + 1) / n_parts});
      }
    }
  }
}

void ThinProducts::run() {
  if (jobs_.empty()) return;
  make_units();
  size_t n_bytes = 0;
  int64_t cost = 0;
  for (const Unit& unit : units_) {
    n_bytes = std::max(n_bytes, places_of(*unit.job, unit.n_rows).end);
    cost += unit.job->row_cost() * unit.n_rows;
  }
  if (!room_.reserve(n_bytes)) throw std::bad_alloc();
  const auto n_units = static_cast<int64_t>(units_.size());
  pool_.parallel_for({.n_units = n_units, .unit_cost = std::max<int64_t>(1, cost / kThinSpeed / n_units)},
                     [&](platform::UnitRange range) {
                       for (int64_t i = range.begin; i < range.end; ++i) {
                         run_unit(units_[static_cast<size_t>(i)], range.thread);
                       }
                     });
}

void ThinProducts::multiply(const CpuWeight& weight, int64_t first_panel, int64_t n_panels, kernels::MatmulArgs args) {
  args.shape = weight.shape();
  args.shape.n_out = std::min(n_panels * kPanelRows, weight.n_rows() - first_panel * kPanelRows);
  args.weights = weight.panels() + static_cast<size_t>(first_panel) * kernels::panel_bytes(weight.shape());
  args.panel_begin = 0;
  args.panel_end = n_panels;
  table_.matmul(args);
}

// What the outputs are products of.
const std::byte* ThinProducts::encode_inputs(const Unit& unit, const Places& places, std::byte* room) {
  const Job& job = *unit.job;
  const auto encode = [&](const CpuWeight& weight, int32_t i, const float* row, std::byte* to) {
    table_.encode(kernels::encoding_of(weight.shape().dtype), row, weight.n_cols(),
                  to + static_cast<size_t>(i) * input_bytes(weight));
  };
  std::byte* inputs = room + places.inputs;
  for (int32_t i = 0; i < unit.n_rows; ++i) {
    encode(job.first(), i, rows_[unit.first_row + static_cast<size_t>(i)].src, inputs);
  }
  if (job.down == nullptr) return inputs;
  const CpuWeight& down = *job.down;
  auto* middle = reinterpret_cast<float*>(room + places.middle);
  kernels::MatmulArgs args;
  args.activations = inputs;
  args.n_rows = unit.n_rows;
  args.dst = middle;
  args.dst_stride = down.n_rows();
  args.scratch = room + places.scratch;
  multiply(down, 0, n_panels(down), args);
  for (int32_t i = 0; i < unit.n_rows; ++i) encode(job.up(), i, middle + i * down.n_rows(), room + places.codes);
  return room + places.codes;
}

void ThinProducts::run_unit(const Unit& unit, int32_t thread) {
  const CpuWeight& up = unit.job->up();
  const Places places = places_of(*unit.job, unit.n_rows);
  std::byte* room = room_.of(thread);
  const std::byte* inputs = encode_inputs(unit, places, room);
  auto* outputs = reinterpret_cast<float*>(room + places.outputs);
  for (int64_t panel = unit.panel_begin; panel < unit.panel_end; panel += kPanelsAtOnce) {
    const int64_t n = std::min(kPanelsAtOnce, unit.panel_end - panel);
    const int64_t first = panel * kPanelRows;
    const int64_t n_outputs = std::min(n * kPanelRows, up.n_rows() - first);
    kernels::MatmulArgs args;
    args.activations = inputs;
    args.n_rows = unit.n_rows;
    args.dst = outputs;
    args.dst_stride = n_outputs;
    args.scratch = room + places.scratch;
    multiply(up, panel, n, args);
    add_outputs(unit, first, n_outputs, outputs, reinterpret_cast<float*>(room + places.spare));
  }
}

// Outputs [first, first + n) of each row.
void ThinProducts::add_outputs(const Unit& unit, int64_t first, int64_t n, const float* outputs, float* spare) {
  const AdapterTerm& term = *unit.job->term;
  const bool replaces = unit.job->replaces;
  const float scale = unit.job->scale;
  const auto n_bytes = static_cast<size_t>(n) * sizeof(float);
  for (int32_t i = 0; i < unit.n_rows; ++i) {
    const float* y = outputs + i * n;
    float* dst = rows_[unit.first_row + static_cast<size_t>(i)].dst + first;
    if (replaces && scale == 1.0f) {
      std::memcpy(dst, y, n_bytes);
    } else if (replaces) {
      std::memcpy(spare, y, n_bytes);
      table_.add_scaled(dst, -1.0f, n, spare);
      table_.add_scaled(spare, scale, n, dst);
    } else if (term.gains == nullptr) {
      table_.add_scaled(y, term.scale * scale, n, dst);
    } else {
      std::memcpy(spare, dst, n_bytes);
      if (term.bias != nullptr) table_.add_scaled(own(*term.bias).values() + first, -1.0f, n, spare);
      table_.product_gate(spare, own(*term.gains_less_one).values() + first, n, spare);
      table_.add_scaled(spare, scale, n, dst);
      table_.product_gate(y, own(*term.gains).values() + first, n, spare);
      table_.add_scaled(spare, term.scale * scale, n, dst);
    }
  }
}

}  // namespace candor::backend::cpu
