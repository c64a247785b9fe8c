#include "backend/cuda/cuda_ops.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <variant>

#include "backend/cuda/kernels/kernel_list.h"
#include "base/error.h"
#include "platform/float_mode.h"

namespace candor::backend::cuda {
namespace {

int64_t n_elements(const Activation& x) {
  return int64_t{x.n_rows} * x.n_cols;
}

// The widest encoding is that for bf16 weights.
size_t encoded_bytes(const ArenaLayout& layout) {
  const size_t row = kernels::encoded_row_bytes(kernels::Encoding::kBf16, std::max(1, layout.max_input_cols));
  return row * static_cast<size_t>(std::max(layout.max_rows, layout.max_out_rows));
}

void find_places(const StepBatch& batch, std::vector<RowPlace>& places) {
  places.resize(static_cast<size_t>(batch.n_rows()));
  for (size_t seq = 0; seq < batch.seqs.size(); ++seq) {
    const SeqSlice& slice = batch.seqs[seq];
    for (int32_t i = 0; i < slice.n_rows; ++i) {
      const int32_t row = slice.first_row + i;
      const VisibleGroup* group = batch.group_of(row);
      const int32_t end = group == nullptr ? 0 : slice.n_past + group->first_row - slice.first_row + group->n_rows;
      places[static_cast<size_t>(row)] = {static_cast<int32_t>(seq), slice.n_past + i, end};
    }
  }
}

}  // namespace

CudaOps::CudaOps(Device& device, const kernels::KernelTable& table, platform::ThreadPool& pool)
    : device_(device),
      table_(table),
      pool_(pool),
      encoded_(device),
      partials_(device),
      rotated_(device),
      adapted_middle_(device),
      adapted_outputs_(device),
      visit_lists_(device),
      tables_(device),
      device_logits_(device) {}

Result<void> CudaOps::reserve(const ArenaLayout& layout) {
  run_launches();
  CANDOR_ASSIGN(arena_, DeviceArena::make(layout, device_));
  host_slots_.resize(layout.slot_cols.size());
  return encoded_.reserve(encoded_bytes(layout));
}

uint64_t CudaOps::reserve_bytes(const ArenaLayout& layout) {
  return ArenaPlaces::n_bytes(layout) + encoded_bytes(layout);
}

void CudaOps::keep(Result<void> result) {
  if (status_ && !result) status_ = std::move(result);
}

void CudaOps::run_launches() {
  tables_.send();
  if (launches_.is_empty()) return;
  keep(tables_.status());
  if (status_) device_.run_all(launches_);
  launches_.begin(launches_.part() + 1);
}

void CudaOps::reserve_room(DeviceRoom& room, size_t n_bytes) {
  if (n_bytes > room.size()) run_launches();
  keep(room.reserve(n_bytes));
}

void CudaOps::begin(const StepBatch& batch, CudaKv& kv) {
  CANDOR_CHECK(batch.n_rows() <= arena_.max_rows() && batch.positions.size() == batch.tokens.size());
  CANDOR_CHECK(missing_kind(batch.kinds(), kKnownRows).empty());
  run_launches();  // of a step that has no end
  launches_.begin(0);
  batch_ = batch;
  kv_ = &kv;
  has_logits_ = has_begun_logits_ = false;
  rope_tables_.begin_step();
  rotations_.clear();
  tables_.begin();
  n_tile_tables_ = 0;
  for (SlopeTable& table : slope_tables_) table.memory = nullptr;
  std::vector<RowPlace>& places = host_.places;
  find_places(batch, places);
  row_places_ = lone_places_ = tables_.put(std::span<const RowPlace>(places));
  if (!batch.groups.empty()) {
    for (RowPlace& place : places) place.group_end = 0;
    lone_places_ = tables_.put(std::span<const RowPlace>(places));
  }
  block_table_ = tables_.put(batch.block_table);
  out_rows_ = tables_.put(batch.out_rows);
  if (!batch.saves.empty()) put_states();
}

// Nothing is launched behind a failure.
void CudaOps::run(const Op& operation) {
  keep(tables_.status());
  if (!status_) return;
  const platform::ScopedFloatMode mode;
  std::visit([this](const auto& each) { compute(each); }, operation);
}

void CudaOps::compute(const op::Embed& call) {
  const int32_t n_cols = call.dst.n_cols;
  const cpu::CpuWeight* weight = call.table == nullptr ? nullptr : &own(*call.table).host();
  const float* rows = host_rows(call.dst.n_rows, n_cols, [&](int32_t i, float* row) {
    if (const float* vector = batch_.vector_of(i); call.takes_vectors && vector != nullptr) {
      std::memcpy(row, vector, static_cast<size_t>(n_cols) * sizeof(float));
      return;
    }
    weight->decode_row(batch_.token_of(i, call.vector_token), row);
    if (call.scale != 1.0f) table_.scale(row, call.scale, n_cols, row);
  });
  if (!launches_.is_empty()) run_launches();
  device_.copy_in(arena_.data(call.dst), rows, static_cast<size_t>(n_elements(call.dst)) * sizeof(float));
}

// row_of(t): of the table.
template <class RowOf>
void CudaOps::add_table_rows(Activation dst, const Weight& table, RowOf row_of) {
  const cpu::CpuWeight& weight = own(table).host();
  host_rows(dst.n_rows, dst.n_cols,
            [&](int32_t i, float* row) { weight.decode_row(row_of(static_cast<size_t>(i)), row); });
  const float* rows = tables_.put(std::span<const float>(host_floats_));
  if (rows == nullptr) return;
  launches_.run(kernel::add_rows, launch_over(n_elements(dst)),
                AddRowsArgs{arena_.data(dst), rows, nullptr, dst.n_cols, dst.n_rows, dst.n_cols});
}

void CudaOps::compute(const op::AddPositions& call) {
  add_table_rows(call.dst, *call.table, [this](size_t row) { return batch_.positions[row]; });
}

void CudaOps::compute(const op::AddTypes& call) {
  const auto last_type = static_cast<int32_t>(call.table->n_rows() - 1);
  add_table_rows(call.dst, *call.table, [&](size_t row) {
    const auto t = static_cast<int32_t>(row);
    return std::min(StepBatch::type_of(batch_.slice_of(t), t), last_type);
  });
}

void CudaOps::compute(const op::AddVectors& call) {
  if (batch_.vector_rows.empty()) return;
  std::vector<int32_t>& rows = host_.rows;
  rows.assign(static_cast<size_t>(call.dst.n_rows), -1);
  for (size_t i = 0; i < batch_.vector_rows.size(); ++i)
    rows[static_cast<size_t>(batch_.vector_rows[i])] = static_cast<int32_t>(i);
  const int32_t* src_rows = tables_.put(std::span<const int32_t>(rows));
  const float* vectors = tables_.put(batch_.vectors);
  if (src_rows == nullptr || vectors == nullptr) return;
  const auto width = static_cast<int64_t>(batch_.vectors.size() / batch_.vector_rows.size());
  launches_.run(
      kernel::add_rows, launch_over(n_elements(call.dst)),
      AddRowsArgs{arena_.data(call.dst), vectors + call.first, src_rows, width, call.dst.n_rows, call.dst.n_cols});
}

void CudaOps::compute(const op::Norm& call) {
  if (call.src.n_rows == 0) return;
  const Weight* gain = call.weights.gain;
  const int64_t n_gain_rows = gain == nullptr ? 1 : gain->n_rows() * gain->n_cols() / call.src.n_cols;
  const NormArgs args{.dst = arena_.data(call.dst),
                      .src = arena_.data(call.src),
                      .gains = values_of(gain),
                      .bias = values_of(call.weights.bias),
                      .epsilon = call.spec.epsilon,
                      .n_rows = call.src.n_rows,
                      .n_cols = call.src.n_cols,
                      .n_gain_rows = static_cast<int32_t>(n_gain_rows)};
  const Launch launch{
      .x = static_cast<uint32_t>(call.src.n_rows), .n_threads = kThreads, .shared_bytes = 2 * sizeof(float)};
  launches_.run(call.spec.kind == NormKind::kRms ? kernel::rms_norm_rows : kernel::layer_norm_rows, launch, args);
}

// Of the device: the first use in a step brings them there.
cpu::RopeRows CudaOps::rotations(const RopeSpec& spec) {
  const cpu::RopeRows rows = rope_tables_.rows(spec, batch_, pool_);
  const auto known = std::ranges::find(rotations_, rows.cos, &Rotations::host);
  if (known != rotations_.end()) return known->rows;
  const size_t n = batch_.positions.size() * static_cast<size_t>(spec.n_dims / 2);
  const cpu::RopeRows copies{tables_.put(std::span<const float>(rows.cos, n)),
                             tables_.put(std::span<const float>(rows.sin, n))};
  rotations_.push_back({rows.cos, copies});
  return copies;
}

void CudaOps::compute(const op::Rope& call) {
  if (call.spec->n_dims == 0 || call.x.n_rows == 0) return;
  const auto [cos, sin] = rotations(*call.spec);
  if (cos == nullptr || sin == nullptr) return;
  launches_.run(kernel::rope_rows, {.x = static_cast<uint32_t>(call.x.n_rows), .n_threads = kThreads},
                RopeRowsArgs{arena_.data(call.x), cos, sin, call.x.n_rows, call.n_heads, call.head_dim,
                             call.spec->n_dims, call.spec->pairs == RopePairs::kInterleaved});
}

void CudaOps::compute(const op::Temper& call) {
  std::vector<float>& factors = host_.factors;
  factors.resize(static_cast<size_t>(call.x.n_rows));
  for (size_t i = 0; i < factors.size(); ++i)
    factors[i] = static_cast<float>(temper_factor(call.spec, batch_.positions[i]));
  if (std::ranges::all_of(factors, [](float factor) { return factor == 1.0f; })) return;
  const float* scales = tables_.put(std::span<const float>(factors));
  if (scales == nullptr) return;
  float* x = arena_.data(call.x);
  launches_.run(kernel::scale_rows, launch_over(n_elements(call.x)),
                ScaleRowsArgs{x, x, scales, nullptr, call.x.n_rows, call.x.n_cols});
}

void CudaOps::gate(float* dst, const float* gate, const float* up, GateKind kind, int64_t n) {
  if (n == 0) return;
  launches_.run(kernel::gate_all, launch_over(n), GateArgs{dst, gate, up, static_cast<int32_t>(kind), n});
}

void CudaOps::compute(const op::Gate& call) {
  gate(arena_.data(call.dst), arena_.data(call.gate), arena_.data(call.up), call.kind, n_elements(call.dst));
}

void CudaOps::compute(const op::Activate& call) {
  gate(arena_.data(call.x), arena_.data(call.x), nullptr, call.kind, n_elements(call.x));
}

void CudaOps::compute(const op::Clamp& call) {
  const int64_t n = n_elements(call.dst);
  if (n == 0) return;
  launches_.run(kernel::clamp_all, launch_over(n),
                ClampArgs{arena_.data(call.dst), arena_.data(call.src), call.low, call.high, n});
}

void CudaOps::compute(const op::Add& call) {
  const int64_t n = n_elements(call.dst);
  if (n == 0) return;
  launches_.run(kernel::add_scaled, launch_over(n),
                AddScaledArgs{arena_.data(call.dst), arena_.data(call.src), call.scale, n});
}

void CudaOps::scale_all(float* x, float factor, int64_t n) {
  if (n > 0) launches_.run(kernel::scale_all, launch_over(n), ScaleArgs{x, x, factor, n});
}

void CudaOps::compute(const op::Scale& call) {
  const float factor = call.weight == nullptr ? call.factor : call.factor * own(*call.weight).host().values()[0];
  scale_all(arena_.data(call.x), factor, n_elements(call.x));
}

void CudaOps::compute(const op::AddGated& call) {
  const int64_t n = n_elements(call.dst);
  if (n == 0) return;
  launches_.run(kernel::add_gated, launch_over(n),
                AddGatedArgs{arena_.data(call.dst), arena_.data(call.src), arena_.data(call.gate), call.dst.n_rows,
                             call.dst.n_cols});
}

void CudaOps::compute(const op::Collect& call) {
  logits_ = call.logits;
  has_logits_ = call.logits.n_rows > 0;
  if (!has_logits_) return;
  float* logits = arena_.data(call.logits);
  const int64_t n = n_elements(call.logits);
  if (call.spec.scale != 1.0f) scale_all(logits, call.spec.scale, n);
  if (call.spec.softcap == 0.0f) return;
  launches_.run(kernel::cap_all, launch_over(n), SoftCapArgs{logits, logits, call.spec.softcap, n});
}

DeviceLogits* CudaOps::device_logits() {
  if (!has_logits_) return nullptr;
  if (!std::exchange(has_begun_logits_, true)) {
    device_logits_.begin(arena_.data(logits_), logits_.n_rows, logits_.n_cols, launches_.part());
  }
  return &device_logits_;
}

LogitsView CudaOps::logits() {
  if (!has_logits_) return {};
  host_logits_.resize(static_cast<size_t>(n_elements(logits_)));
  run_launches();
  device_.copy_out(host_logits_.data(), arena_.data(logits_), host_logits_.size() * sizeof(float));
  return {host_logits_.data(), logits_.n_rows, logits_.n_cols};
}

RowsView CudaOps::rows(Activation x) {
  std::vector<float>& kept = host_slots_[static_cast<size_t>(x.slot)];
  kept.resize(static_cast<size_t>(n_elements(x)));
  run_launches();
  device_.copy_out(kept.data(), arena_.data(x), kept.size() * sizeof(float));
  return {kept.data(), x.n_rows, x.n_cols};
}

void CudaOps::write_rows(Activation x, std::span<const float> rows) {
  run_launches();
  device_.copy_in(arena_.data(x), rows.data(), rows.size_bytes());
}

}  // namespace candor::backend::cuda
