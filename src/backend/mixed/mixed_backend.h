#pragma once
// One backend of two: a device with memory of its own, and the host, which computes what the device's memory does not
// hold. Each weight and each layer's memory is on the side that a placement says; rows of activations cross over where
// the side changes. Gives the bits of each backend alone, where these are the same, for any placement.
//
// Owns both backends. One thread, like every Backend, but for health().

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "backend/backend.h"
#include "backend/mixed/mixed_kv.h"
#include "backend/mixed/mixed_ops.h"
#include "backend/placement.h"
#include "backend/split.h"
#include "base/error.h"
#include "tensor/tensor_view.h"

namespace candor::backend {

class MixedBackend final : public Backend {
 public:
  // Everything is placed on the device, until place_next().
  MixedBackend(std::unique_ptr<Backend> device, std::unique_ptr<Backend> host);

  // Of weights that are uploaded, and stores that are made, from now on: of one model, its adapters included.
  void place_next(Placement placement) { placement_ = std::move(placement); }
  const Placement& placement() const { return placement_; }
  // For people: what is where.
  void describe(std::string placed) { info_.description = std::move(placed); }
  Backend& on(Side side) { return *sides_[static_cast<size_t>(side)]; }
  const Backend& on(Side side) const { return *sides_[static_cast<size_t>(side)]; }
  // Memory of one block of K/V there, of one slot of recurrent states.
  int64_t kv_block_bytes_on(Side side, const KvLayout& layout) const;
  int64_t state_slot_bytes_on(Side side, const KvLayout& layout) const;
  const mixed::Crossings& crossings() const { return ops_.crossings(); }

  const BackendInfo& info() const override { return info_; }
  Result<std::unique_ptr<Weight>> upload(const TensorView& tensor, WeightRole role) override {
    return upload_split(tensor, role, {});
  }
  Result<std::unique_ptr<Weight>> upload_split(const TensorView& tensor, WeightRole role,
                                               const WeightSplit& split) override;
  Result<std::unique_ptr<KvStore>> make_kv(const KvLayout& layout, KvSize size) override;
  // Both sides have every slot.
  Result<void> reserve_arena(const ArenaLayout& layout) override;
  Result<uint64_t> upload_bytes(const TensorView& tensor, WeightRole role) const override {
    return upload_split_bytes(tensor, role, {});
  }
  // Of both sides, as all bytes here.
  Result<uint64_t> upload_split_bytes(const TensorView& tensor, WeightRole role,
                                      const WeightSplit& split) const override;
  uint64_t arena_bytes(const ArenaLayout& layout) const override;
  int64_t kv_block_bytes(const KvLayout& layout) const override;

  Ops& ops() override { return ops_; }
  void begin_step(const StepBatch& batch, KvStore& kv) override;
  StepTicket end_step() override;
  LogitsView read_logits(StepTicket ticket) override;
  DeviceLogits* device_logits(StepTicket ticket) override;
  RowsView read_rows(Activation x) override { return ops_.read_rows(x); }
  void write_rows(Activation x, std::span<const float> rows) override { ops_.write_rows(x, rows); }
  Result<void> health() const override;
  DeviceStats device_stats() const override { return on(Side::kDevice).device_stats(); }

 private:
  mixed::MixedKv::Backends backends() const { return {sides_[0].get(), sides_[1].get()}; }

  std::array<std::unique_ptr<Backend>, kSides> sides_;
  BackendInfo info_;
  mixed::MixedOps ops_;
  Placement placement_;
  std::array<StepTicket, kSides> tickets_{};  // of the last step
  int64_t last_ticket_ = 0;
};

}  // namespace candor::backend
