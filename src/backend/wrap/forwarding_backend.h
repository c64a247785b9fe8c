#pragma once
// A Backend that passes every call to another one: the base class of decorators that override a few methods. Owns the
// other backend; one thread, like every Backend.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/split.h"
#include "backend/step_batch.h"

namespace candor::backend {

class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  const BackendInfo& info() const override { return inner_->info(); }
  Result<std::unique_ptr<Weight>> upload(const TensorView& tensor, WeightRole role) override {
    return inner_->upload(tensor, role);
  }
  Result<std::unique_ptr<KvStore>> make_kv(const KvLayout& layout, KvSize size) override {
    return inner_->make_kv(layout, size);
  }
  Result<void> reserve_arena(const ArenaLayout& layout) override { return inner_->reserve_arena(layout); }
  Result<uint64_t> upload_bytes(const TensorView& tensor, WeightRole role) const override {
    return inner_->upload_bytes(tensor, role);
  }
  uint64_t arena_bytes(const ArenaLayout& layout) const override { return inner_->arena_bytes(layout); }
  Ops& ops() override { return inner_->ops(); }
  void begin_step(const StepBatch& batch, KvStore& kv) override { inner_->begin_step(batch, kv); }
  StepTicket end_step() override { return inner_->end_step(); }
  LogitsView read_logits(StepTicket ticket) override { return inner_->read_logits(ticket); }
  DeviceLogits* device_logits(StepTicket ticket) override { return inner_->device_logits(ticket); }
  RowsView read_rows(Activation x) override { return inner_->read_rows(x); }
  void write_rows(Activation x, std::span<const float> rows) override { inner_->write_rows(x, rows); }

  Result<std::unique_ptr<Weight>> upload_split(const TensorView& tensor, WeightRole role,
                                               const WeightSplit& split) override {
    return inner_->upload_split(tensor, role, split);
  }
  Result<uint64_t> upload_split_bytes(const TensorView& tensor, WeightRole role,
                                      const WeightSplit& split) const override {
    return inner_->upload_split_bytes(tensor, role, split);
  }
  int64_t kv_block_bytes(const KvLayout& layout) const override { return inner_->kv_block_bytes(layout); }
  Result<int32_t> add_model(uint64_t content_hash) override { return inner_->add_model(content_hash); }
  void begin_pass(const Pass& pass) override { inner_->begin_pass(pass); }
  Result<void> health() const override { return inner_->health(); }
  RankTraffic rank_traffic() const override { return inner_->rank_traffic(); }
  DeviceStats device_stats() const override { return inner_->device_stats(); }
  float* host_rows(Activation x) override { return inner_->host_rows(x); }

 protected:
  Backend& inner() { return *inner_; }

 private:
  std::unique_ptr<Backend> inner_;
};

}  // namespace candor::backend
