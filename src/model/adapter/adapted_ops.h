#pragma once
// Operations of a step some of whose rows use adapters: behind each product, embedding and mixture of experts comes
// what the adapters add to it. The engine thread's.

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/op_list.h"
#include "backend/step_batch.h"
#include "base/ids.h"
#include "model/adapter/adapter.h"

namespace candor::model {

// By their numbers; a number that is free is nullptr.
using Adapters = std::vector<std::shared_ptr<const Adapter>>;

class AdaptedOps final : public backend::Ops {
 public:
  // Of a step. All are borrowed.
  void begin(backend::Ops& inner, const backend::StepBatch& batch, const Adapters& adapters);
  void run(const backend::Op& operation) override;

 private:
  struct Used {
    AdapterId id;
    const Adapter* adapter;
  };
  void adapt(const backend::op::Linear& call);
  void adapt(const backend::op::Embed& call);
  backend::op::Moe with_adapters(const backend::op::Moe& call);

  backend::Ops* inner_ = nullptr;
  backend::StepBatch batch_;
  std::vector<Used> used_;
  int32_t gathered_slot_ = -1;  // holds the rows with logits alone
  // Of the running operation, kept to spare allocations.
  std::vector<backend::AdapterTerm> terms_;
  std::vector<backend::AdapterTable> tables_;
  std::vector<backend::ExpertAdapter> experts_;
};

}  // namespace candor::model
