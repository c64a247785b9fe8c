#include "backend/cuda/cuda_backend.h"

#include <span>
#include <string>
#include <utility>

#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/weight_memory.h"
#include "backend/cuda/cuda_kv.h"
#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/cuda_weight.h"
#include "backend/cuda/device_limits.h"
#include "kernels/kernels.h"
#include "platform/thread_pool.h"
#include "platform/topology.h"

namespace candor::backend {
namespace cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::unique_ptr<Device> device, const kernels::KernelTable& table,
              std::unique_ptr<platform::ThreadPool> pool)
      : device_(std::move(device)), pool_(std::move(pool)), ops_(*device_, table, *pool_) {
    info_ = {.name = "cuda",
             .description = device_->info().name,
             .n_threads = pool_->n_threads(),
             .default_kv = KvType::kBf16,
             .rows = kKnownRows,
             .device_bytes = device_->info().memory_bytes,
             .free_bytes = device_->info().free_bytes};
  }

  const BackendInfo& info() const override { return info_; }

  Result<std::unique_ptr<Weight>> upload(const TensorView& tensor, WeightRole role) override {
    CANDOR_ASSIGN(std::unique_ptr<Weight> weight, upload_weight(tensor, role, *device_, kept_, *pool_));
    return weight;
  }
  Result<std::unique_ptr<KvStore>> make_kv(const KvLayout& layout, KvSize size) override {
    CANDOR_ASSIGN(std::unique_ptr<KvStore> kv, CudaKv::make(layout, size, *device_));
    return kv;
  }
  Result<void> reserve_arena(const ArenaLayout& layout) override { return ops_.reserve(layout); }
  Result<uint64_t> upload_bytes(const TensorView& tensor, WeightRole role) const override {
    return cpu::upload_bytes(tensor, role);
  }
  uint64_t arena_bytes(const ArenaLayout& layout) const override { return CudaOps::reserve_bytes(layout); }

  Ops& ops() override { return ops_; }
  void begin_step(const StepBatch& batch, KvStore& kv) override {
    pool_->begin_burst();
    ops_.begin(batch, static_cast<CudaKv&>(kv));
  }
  StepTicket end_step() override {
    ops_.end();
    pool_->end_burst();
    return {++last_ticket_};
  }
  LogitsView read_logits(StepTicket ticket) override {
    CANDOR_CHECK(ticket.id == last_ticket_);
    return ops_.logits();
  }
  DeviceLogits* device_logits(StepTicket ticket) override {
    CANDOR_CHECK(ticket.id == last_ticket_);
    return ops_.device_logits();
  }
  RowsView read_rows(Activation x) override { return ops_.rows(x); }
  void write_rows(Activation x, std::span<const float> rows) override { ops_.write_rows(x, rows); }
  double read_bytes_per_s() override { return measure_reads(*device_); }
  DeviceStats device_stats() const override {
    const DeviceCounters& counters = device_->counters();
    const auto taken = [&](MemoryUse use) { return counters.memory_bytes[static_cast<size_t>(use)].load(); };
    return {.name = device_->info().name,
            .memory_bytes = device_->info().memory_bytes,
            .free_bytes = device_->free_bytes(),
            .weight_bytes = taken(MemoryUse::kWeights),
            .kv_bytes = taken(MemoryUse::kKv),
            .work_bytes = taken(MemoryUse::kWork),
            .copied_in_bytes = counters.copied_in_bytes,
            .copied_out_bytes = counters.copied_out_bytes,
            .launches = counters.launches,
            .graph_launches = counters.graph_launches};
  }
  // What a device reports is nobody's request's fault, and may be gone behind a restart.
  Result<void> health() const override {
    for (const Result<void>& part : {device_->status(), ops_.status()}) {
      if (!part) return fail(ErrorKind::kBusy, part.error().message, "device");
    }
    return {};
  }

 private:
  BackendInfo info_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<platform::ThreadPool> pool_;
  cpu::WeightMemory kept_;
  CudaOps ops_;
  int64_t last_ticket_ = 0;
};

}  // namespace
}  // namespace cuda

Result<std::unique_ptr<Backend>> make_cuda_backend(std::unique_ptr<cuda::Device> device, const CudaOptions& options) {
  CANDOR_ASSIGN(const kernels::KernelTable* table, kernels::select_table_from_environment());
  const int32_t n_threads =
      options.n_threads == 0 ? platform::advise_threads(platform::read_topology()).n_threads : options.n_threads;
  CANDOR_ASSIGN(auto pool, platform::ThreadPool::start({.n_threads = n_threads, .spin = false}));
  return std::make_unique<cuda::CudaBackend>(std::move(device), *table, std::move(pool));
}

}  // namespace candor::backend
