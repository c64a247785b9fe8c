#pragma once
// The operations of one rank of several that share a model (tensor parallelism without sums over ranks). Each
// activation slot holds either whole rows, the same on every rank, or this rank's columns of them. Products yield
// columns; operations on single columns or heads continue with them; an operation that reads whole rows gathers them
// first.
//
// A layer of attention and feed-forward has four gathers: the heads before the output projection, its output before it
// is added, and the same two of the feed-forward. Rows of several products that are read whole at the same time share
// one gather (rank_together.cpp). Heads and gated rows, which a product reads next, are sent in that product's encoding
// where all its weights want the same one (encoded_rows.h).
//
// Every column is computed by one rank in the order of a single machine: no number is a sum of ranks' parts. Layers
// that keep a state and latent attention are not divided: every rank computes them. After a failed exchange, products,
// attention and state layers are skipped, so that the step ends at once; its results mean nothing.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/encoded_linear.h"
#include "backend/op_list.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/operations.h"
#include "backend/ranks/encoded_rows.h"
#include "backend/ranks/host_rows.h"
#include "backend/ranks/rank_weight.h"
#include "backend/routing.h"
#include "backend/split.h"
#include "backend/state_specs.h"
#include "backend/step_batch.h"
#include "comm/communicator.h"
#include "kernels/kernels.h"
#include "kernels/packed_weight.h"

namespace candor::backend {

class RankOps final : public Ops {
 public:
  // inner and table are borrowed.
  RankOps(Backend& inner, const kernels::KernelTable& table, int32_t rank, int32_t size);

  // Borrowed; before the first step.
  void use(comm::Communicator& comm) { comm_ = &comm; }
  void reserve(size_t n_slots) { slots_.assign(n_slots, {}); }
  void begin(const StepBatch& batch, const Pass& pass);
  int64_t n_exchanges() const { return n_exchanges_; }  // since it began

  void run(const Op& operation) override;

 private:
  // Each declared with its operands in backend/operations.h.
  void compute(const op::Embed& call);
  void compute(const op::AddPositions& call);
  void compute(const op::AddTypes& call);
  void compute(const op::AddVectors& call);
  void compute(const op::Norm& call);
  void compute(const op::Linear& call);
  void compute(const op::Adapt& call);
  void compute(const op::AdaptEmbedding& call);
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
  void compute(const op::Unzip& call);
  void compute(const op::Zip& call);
  void compute(const op::LinearHeads& call);
  void compute(const op::AddGated& call);
  void compute(const op::Scale& call);
  void compute(const op::Columns& call);
  void compute(const op::Add& call);
  void compute(const op::Gather& call);
  void compute(const op::Collect& call);

  struct Slot {
    bool is_split = false;
    OutputShare share{};  // columns, while it is split
    // While it is split: put together with all others that do, where one of them is read whole. Of so many rows.
    bool goes_along = false;
    int32_t n_rows = 0;
    int32_t n_cols = 0;
  };

  Slot& slot(Activation x) { return slots_[static_cast<size_t>(x.slot)]; }
  // With this rank's columns alone, where it is split.
  Activation local(Activation x);
  // Rows that are whole, or not there at all.
  bool has_none(Activation x) { return slot(x).is_split && slot(x).share.width() == 0; }
  bool is_split_alike(Activation a, Activation b);
  void set_whole(Activation x) { slot(x).is_split = false; }
  void set_split(Activation x, const OutputShare& share);
  // Puts whole rows together where they are split.
  void make_whole(Activation x);
  // How rows can travel as their products want them; nothing where they are whole, or travel as numbers.
  std::optional<kernels::Encoding> encoding_between(std::span<const LinearTerm> terms, Activation src);
  const std::byte* exchange_encoded(kernels::Encoding encoding, Activation src);
  // Leaves the columns of a share.
  void make_split(Activation x, const OutputShare& share);
  // Splits what a product wrote.
  void set_product(Activation x, const RankWeight& weight);
  // All that goes along, and `more` where there are any, by one exchange.
  void exchange_together(const comm::RowSlices& more, uint64_t tag);
  void exchange_packed(uint64_t tag);
  void exchange(float* rows, int32_t n_rows, std::span<const int32_t> bounds, comm::Receivers receivers, uint64_t tag);
  const std::vector<HeadShare>& shares_of(const AttnSpec& spec);
  // Of heads as wide as `width`; into scratch.
  const OutputShare& query_share(const std::vector<HeadShare>& shares, int32_t width);
  const OutputShare& kv_share(const HeadShare& share, int32_t width);

  static AdapterTerm part_of_term(const AdapterTerm& term);
  // What adapters add to one part of an expert; dst: of its visits.
  void adapt_expert(const MoeTerm& term, int32_t expert, ExpertPart part, Activation src, Activation dst);
  void route(const MoeTerm& term);
  Activation gather_visits(Activation src, const MoeTerm& term, std::span<const Routing::Visit> visits);
  void run_gates(Activation src, const MoeTerm& term, int32_t width);
  void run_outputs(Activation dst, const MoeTerm& term, const OutputShare& share);

  // Constant after construction.
  Backend& inner_;
  EncodedLinear* encoded_linear_;  // of inner_; nullptr where it has none
  const kernels::KernelTable& table_;
  int32_t rank_;
  int32_t size_;
  comm::Communicator* comm_ = nullptr;

  std::vector<Slot> slots_;
  std::vector<std::pair<HeadCounts, std::vector<HeadShare>>> head_shares_;

  // Of this step.
  int32_t n_rows_ = 0;
  bool is_attention_ = false;
  uint64_t n_steps_ = 0;  // ever
  bool is_lost_ = false;  // a rank, for ever
  int64_t n_exchanges_ = 0;

  // Of the running operation, kept to spare allocations.
  std::vector<LinearTerm> terms_;
  std::vector<AdapterTerm> adapter_terms_;
  std::vector<AdapterTable> adapter_tables_;
  std::vector<int32_t> visit_rows_;
  OutputShare share_;
  AttnSpec own_spec_;
  EncodedRows encoded_;
  Routing routing_;
  std::vector<float> gated_;  // [visits, F]
  std::vector<comm::RowSlices> together_;
  std::vector<std::pair<HostRows, Activation>> held_;  // the rows of together_, and where they go back to
  std::vector<float> packed_;                          // each rank's columns of all of them, rank by rank
  std::vector<int32_t> packed_bounds_;
};

}  // namespace candor::backend
