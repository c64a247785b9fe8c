#pragma once
// The operations of a model's layers on a device: each becomes launches of kernels, which are kept in order and run
// together: at the step's end, and before what needs their results or changes what they read. What the host knows of a
// step (tokens, positions, rotations) is computed here, as the CPU computes it, and copied; all else stays on the
// device. The bits are the CPU's (docs/numerics.md). The engine thread calls.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/rope_tables.h"
#include "backend/cuda/cuda_kv.h"
#include "backend/cuda/cuda_logits.h"
#include "backend/cuda/cuda_weight.h"
#include "backend/cuda/cuda_work.h"
#include "backend/cuda/device.h"
#include "backend/cuda/device_arena.h"
#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/product_args.h"
#include "backend/cuda/kernels/recurrent_args.h"
#include "backend/cuda/kernels/row_args.h"
#include "backend/cuda/launch_list.h"
#include "backend/cuda/route_kernels.h"
#include "backend/op_list.h"
#include "backend/operations.h"
#include "backend/row_uses.h"
#include "backend/step_batch.h"
#include "kernels/kernels.h"
#include "kernels/packed_weight.h"
#include "platform/thread_pool.h"

namespace candor::backend::cuda {

// Of a block that works element by element, or on a row.
inline constexpr uint32_t kThreads = 256;
// A thread for each of n elements. REQUIRES: n > 0.
inline Launch launch_over(int64_t n) {
  return {.x = static_cast<uint32_t>((n + kThreads - 1) / kThreads), .n_threads = kThreads};
}

inline constexpr RowKinds kKnownRows{.vectors = true, .groups = true, .axes = true, .adapters = true};

class CudaOps final : public Ops {
 public:
  // All are borrowed. table: what the host computes with.
  CudaOps(Device& device, const kernels::KernelTable& table, platform::ThreadPool& pool);

  Result<void> reserve(const ArenaLayout& layout);
  // What reserve() will take.
  static uint64_t reserve_bytes(const ArenaLayout& layout);

  void begin(const StepBatch& batch, CudaKv& kv);
  void run(const Op& operation) override;
  // Runs what is kept. It has not finished when this returns.
  void end() { run_launches(); }

  // Of the step's Collect, behind end(); nullptr where there was none.
  DeviceLogits* device_logits();
  // The same, copied from the device.
  LogitsView logits();
  RowsView rows(Activation x);
  void write_rows(Activation x, std::span<const float> rows);
  // The first failure of this object's own: room that there was not.
  const Result<void>& status() const { return status_ ? device_logits_.status() : status_; }

 private:
  void compute(const op::Embed& call);
  void compute(const op::AddPositions& call);
  void compute(const op::AddTypes& call);
  void compute(const op::AddVectors& call);
  void compute(const op::Norm& call);
  void compute(const op::Linear& call);
  void compute(const op::Adapt& call);
  void compute(const op::AdaptEmbedding& call);
  void compute(const op::LinearHeads& call);
  void compute(const op::Rope& call);
  void compute(const op::Temper& call);
  void compute(const op::Attend& call);
  void compute(const op::Gate& call);
  void compute(const op::Activate& call);
  void compute(const op::Clamp& call);
  void compute(const op::Moe& call);
  void compute(const op::CausalConv& call);
  void compute(const op::DeltaRule& call);
  void compute(const op::SsmScan& call);
  void compute(const op::Add& call);
  void compute(const op::AddGated& call);
  void compute(const op::Scale& call);
  void compute(const op::Unzip& call);
  void compute(const op::Zip& call);
  void compute(const op::Columns& call);
  void compute(const op::Gather& call);
  void compute(const op::Collect& call);

  void run_launches();
  // Runs what is kept where the room must grow: it loses its content.
  void reserve_room(DeviceRoom& room, size_t n_bytes);
  // fn(row, dst) fills row t of a table on the host; the rows are copied.
  template <class Fn>
  float* host_rows(int32_t n_rows, int32_t n_cols, Fn&& fn);
  template <class RowOf>
  void add_table_rows(Activation dst, const Weight& table, RowOf row_of);
  cpu::RopeRows rotations(const RopeSpec& spec);
  void scale_all(float* x, float factor, int64_t n);
  void gate(float* dst, const float* gate, const float* up, GateKind kind, int64_t n);
  // Rows of n floats into encoded_; src_rows: of the device, or nullptr.
  void encode(kernels::Encoding encoding, const float* src, int64_t stride, int64_t n, const int32_t* src_rows,
              int32_t n_rows);
  void add_product(const LinearTerm& term, int32_t n_rows);
  // Sorts the rows of a mixture by the experts that they go to.
  void route(const MoeTerm& term, int32_t n_rows);
  void encode_visits(kernels::Encoding encoding, Activation src, const MoeTerm& term);
  // encode(encoding) is called before the first product that wants it.
  template <class Encode>
  void multiply_visits(std::span<const Expert> experts, std::span<const VisitProduct> products, Encode&& encode);
  std::span<const ExpertMatrices::OfType> matrices_of(std::span<const Expert> experts, ExpertMatrix matrix);
  const float* multiply_rows(const CudaWeight& weight, const AdaptedRows& rows, DeviceRoom& room);
  void adapt_rows(const AdapterTerm& term, float scale, AdaptedRows rows);
  void add_adapted(const AddAdaptedArgs& args);
  void adapt_embedding(const op::AdaptEmbedding& call, const AdapterTable& table, float scale,
                       std::span<const int32_t> rows);
  void adapt_experts(const MoeTerm& term, ExpertPart part, Activation src, Activation dst);
  const float* slopes_of(const AttnSpec& spec);
  const TileTable& tiles_of(const AttendRowsArgs& shape);
  void put_states();
  StatePlaces states_of(int32_t layer) const;
  void keep(Result<void> result);

  Device& device_;
  const kernels::KernelTable& table_;
  platform::ThreadPool& pool_;
  DeviceArena arena_;
  DeviceRoom encoded_;
  DeviceRoom partials_;
  DeviceRoom rotated_;
  DeviceRoom adapted_middle_;
  DeviceRoom adapted_outputs_;
  DeviceRoom visit_lists_;
  // Copies of tables come before launches that were asked for earlier: nothing else writes there in a step.
  StepTables tables_;
  LaunchList launches_;
  cpu::RopeTables rope_tables_;
  CudaLogits device_logits_;
  Result<void> status_{};

  // Of this step.
  StepBatch batch_;
  CudaKv* kv_ = nullptr;
  const RowPlace* row_places_ = nullptr;   // [T], of the device
  const RowPlace* lone_places_ = nullptr;  // the same without groups
  const int32_t* block_table_ = nullptr;   // [S, max_blocks]
  std::vector<Rotations> rotations_;
  const int32_t* out_rows_ = nullptr;   // [n_out]
  std::vector<TileTable> tile_tables_;  // of which the first n_tile_tables_ are this step's
  size_t n_tile_tables_ = 0;
  std::vector<SlopeTable> slope_tables_;
  StatePlaces states_{};  // what each layer with a state has; of no layer
  Activation logits_{};
  bool has_logits_ = false;
  bool has_begun_logits_ = false;  // device_logits_, of this step

  Visits visits_{};  // of the running mixture

  // Room, kept to spare allocations.
  std::vector<float> host_floats_;
  std::vector<float> host_logits_;
  std::vector<std::vector<float>> host_slots_;  // what rows() has copied, by slot
  RowUses uses_;
  HostRoom host_;
};

template <class Fn>
float* CudaOps::host_rows(int32_t n_rows, int32_t n_cols, Fn&& fn) {
  host_floats_.resize(static_cast<size_t>(n_rows) * static_cast<size_t>(n_cols));
  pool_.parallel_for({.n_units = n_rows, .grain = 4, .unit_cost = 8 * int64_t{n_cols}}, [&](platform::UnitRange range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      fn(static_cast<int32_t>(i), host_floats_.data() + i * n_cols);
    }
  });
  return host_floats_.data();
}

}  // namespace candor::backend::cuda
