#pragma once
// One backend of several ranks, each with an inner backend of its own and its parts of every model. On rank 0 it looks
// like any other: models, scheduler and engine do not know that others compute with it. The others load the same models
// and follow(): they are told of each step, run the same code over the same plan, and choose no token.
//
// Everything here is called by all ranks in the same order. A rank that is lost ends nothing by itself: operations go
// on with numbers that mean nothing, and health() says so.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/ranks/orders.h"
#include "backend/ranks/rank_ops.h"
#include "backend/ranks/rank_weight.h"
#include "backend/split.h"
#include "backend/step_batch.h"
#include "base/ids.h"
#include "comm/communicator.h"
#include "kernels/kernels.h"
#include "tensor/tensor_view.h"

namespace candor::backend {

// The ranks of a model as one of them sees them.
struct RankGroup {
  std::shared_ptr<void> keeper{};  // of what must outlive the communicator: processes
  std::unique_ptr<comm::Communicator> comm{};
};

struct RankOptions {
  int32_t rank = 0;
  int32_t size = 1;
  std::vector<int32_t> here{};  // the ranks of this computer, whose memory is planned for; none: all are
  int32_t n_threads = 0;  // of all ranks; 0: as many each as this one has
  const kernels::KernelTable* table = nullptr;
  // Called once, before the first weight is uploaded: what only plans starts no process.
  std::function<Result<RankGroup>()> gather_group{};
};

class RankBackend final : public Backend {
 public:
  RankBackend(std::unique_ptr<Backend> inner, RankOptions options);
  // Rank 0: the others are told to end.
  ~RankBackend() override;

  const BackendInfo& info() const override { return info_; }
  Result<std::unique_ptr<Weight>> upload(const TensorView& tensor, WeightRole role) override;
  Result<std::unique_ptr<Weight>> upload_split(const TensorView& tensor, WeightRole role,
                                               const WeightSplit& split) override;
  Result<std::unique_ptr<KvStore>> make_kv(const KvLayout& layout, KvSize size) override;
  Result<void> reserve_arena(const ArenaLayout& layout) override;
  Result<uint64_t> upload_bytes(const TensorView& tensor, WeightRole role) const override;
  Result<uint64_t> upload_split_bytes(const TensorView& tensor, WeightRole role,
                                      const WeightSplit& split) const override;
  uint64_t arena_bytes(const ArenaLayout& layout) const override;
  int64_t kv_block_bytes(const KvLayout& layout) const override;
  Result<int32_t> add_model(uint64_t content_hash) override;

  Ops& ops() override { return ops_; }
  void begin_pass(const Pass& pass) override { pass_ = pass; }
  void begin_step(const StepBatch& batch, KvStore& kv) override;
  StepTicket end_step() override;
  LogitsView read_logits(StepTicket ticket) override { return inner_->read_logits(ticket); }
  RowsView read_rows(Activation x) override { return inner_->read_rows(x); }
  Result<void> health() const override;
  RankTraffic rank_traffic() const override;
  DeviceStats device_stats() const override { return inner_->device_stats(); }

  // What a rank that follows runs at each step: launches the pass on its model.
  using RunPass = std::function<void(const Pass& pass, const StepBatch& batch, KvStore& kv)>;
  // Until rank 0 ends this one, or somebody is lost.
  Result<void> follow(const RunPass& run);
  // Tells the others why this rank ends, unless another one is lost already.
  void say_failed(const Error& why);

 private:
  class Store;
  bool is_first() const { return options_.rank == 0; }
  Result<void> meet();
  Result<void> tell();
  KvLayout own_layout(const KvLayout& layout, int32_t rank) const;
  void copy_block(int32_t store, BlockId src, BlockId dst, int32_t n_tokens);
  void drop_kv(int32_t store) noexcept;
  // Of a rank that follows. False at the end.
  Result<bool> obey(OrderReader reader, const RunPass& run);
  Result<void> make_own_kv(OrderReader& reader);

  RankOptions options_;
  std::unique_ptr<Backend> inner_;
  RankGroup group_;
  RankUpload upload_;
  RankOps ops_;
  BackendInfo info_;
  int32_t n_models_ = 0;
  int32_t n_stores_ = 0;
  Pass pass_;
  Bytes order_;
  // Of a rank that follows.
  std::vector<std::unique_ptr<KvStore>> stores_;
  StepOrder step_;
};

}  // namespace candor::backend
