#include "backend/cpu/cpu_backend.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "backend/cpu/cpu_kv.h"
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/weight_memory.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/step_batch.h"
#include "base/error.h"
#include "kernels/kernels.h"
#include "platform/huge_buffer.h"
#include "platform/thread_pool.h"
#include "platform/topology.h"
#include "tensor/tensor_view.h"

namespace candor::backend {
namespace cpu {
namespace {

// All threads, once over memory that no cache holds.
double measure_reads(const kernels::KernelTable& table, platform::ThreadPool& pool) {
  constexpr size_t kPiece = size_t{1} << 20;
  constexpr int64_t kPieces = 96;
  auto memory = platform::HugeBuffer::allocate(kPiece * kPieces, "a measurement of memory");
  if (!memory) return 0.0;
  std::memset(memory->data(), 1, memory->size());
  std::atomic<uint64_t> sink = 0;
  const auto begin = std::chrono::steady_clock::now();
  pool.parallel_for({.n_units = kPieces, .unit_cost = 100'000}, [&](platform::UnitRange range) {
    for (int64_t i = range.begin; i < range.end; ++i)
      sink += table.read_probe(memory->data() + static_cast<size_t>(i) * kPiece, kPiece);
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(memory->size()) / seconds.count();
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(const kernels::KernelTable& table, std::unique_ptr<platform::ThreadPool> pool, std::string note)
      : table_(table), pool_(std::move(pool)), ops_(table, *pool_) {
    const int32_t n_threads = pool_->n_threads();
    info_ = {.name = "cpu",
             .description = std::string(table.description) + ", " + std::to_string(n_threads) +
                            (n_threads == 1 ? " thread" : " threads"),
             .n_threads = n_threads,
             .default_kv = KvType::kBf16,
             .rows = kKnownRows,
             .note = std::move(note)};
  }

  const BackendInfo& info() const override { return info_; }

  Result<std::unique_ptr<Weight>> upload(const TensorView& tensor, WeightRole role) override {
    CANDOR_ASSIGN(std::unique_ptr<CpuWeight> weight, upload_weight(tensor, role, weight_memory_, *pool_));
    CANDOR_TRY(ops_.reserve_for_weight(weight->n_cols()));
    return weight;
  }

  Result<std::unique_ptr<KvStore>> make_kv(const KvLayout& layout, KvSize size) override {
    CANDOR_ASSIGN(std::unique_ptr<CpuKv> kv, CpuKv::make(layout, size));
    CANDOR_TRY(ops_.reserve_for_kv(layout.max_head_dim()));
    return kv;
  }

  Result<void> reserve_arena(const ArenaLayout& layout) override { return ops_.reserve(layout); }
  Result<uint64_t> upload_bytes(const TensorView& tensor, WeightRole role) const override {
    return cpu::upload_bytes(tensor, role);
  }
  uint64_t arena_bytes(const ArenaLayout& layout) const override { return CpuOps::reserve_bytes(layout); }

  Ops& ops() override { return ops_; }

  void begin_step(const StepBatch& batch, KvStore& kv) override {
    pool_->begin_burst();
    ops_.begin(batch, static_cast<CpuKv&>(kv));
  }
  StepTicket end_step() override {
    pool_->end_burst();
    return {++last_ticket_};
  }
  LogitsView read_logits(StepTicket ticket) override {
    CANDOR_CHECK(ticket.id == last_ticket_);
    return ops_.logits();
  }
  RowsView read_rows(Activation x) override { return {ops_.host_rows(x), x.n_rows, x.n_cols}; }
  double read_bytes_per_s() override { return measure_reads(table_, *pool_); }
  float* host_rows(Activation x) override { return ops_.host_rows(x); }

 private:
  const kernels::KernelTable& table_;
  BackendInfo info_;
  std::unique_ptr<platform::ThreadPool> pool_;
  WeightMemory weight_memory_;
  CpuOps ops_;
  int64_t last_ticket_ = 0;
};

// Spinning pays only while every thread has a processor of its own.
bool may_spin(const platform::Topology& topology, int32_t n_threads) {
  return n_threads <= topology.n_allowed() && (!topology.quota_cpus || n_threads <= *topology.quota_cpus);
}

}  // namespace

}  // namespace cpu

Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options) {
  const kernels::KernelTable* table = options.table;
  if (table == nullptr) {
    CANDOR_ASSIGN(table, kernels::select_table_from_environment());
  }
  const platform::Topology topology = platform::read_topology();
  const int32_t n_threads = options.n_threads == 0 ? platform::advise_threads(topology).n_threads : options.n_threads;
  CANDOR_ASSIGN(auto pool, platform::ThreadPool::start({.n_threads = n_threads,
                                                        .spin = cpu::may_spin(topology, n_threads),
                                                        .places = platform::place_threads(topology, n_threads)}));
  return std::make_unique<cpu::CpuBackend>(*table, std::move(pool), options.note);
}

}  // namespace candor::backend
