#pragma once
// The operations of a model's layers (products, attention, norms and so on) on the CPU's threads. Each call splits its
// rows, weight panels (16 outputs each) or heads over the threads and returns when all are done; what a row's numbers
// are never depends on the split (docs/numerics.md). The engine thread calls; nothing here allocates after the first
// steps have warmed it up.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/adapter_ops.h"
#include "backend/cpu/arena.h"
#include "backend/cpu/attend_work.h"
#include "backend/cpu/cpu_kv.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/rope_tables.h"
#include "backend/cpu/shared_prefixes.h"
#include "backend/encoded_linear.h"
#include "backend/op_list.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/operations.h"
#include "backend/routing.h"
#include "backend/state_specs.h"
#include "backend/step_batch.h"
#include "kernels/attend.h"
#include "kernels/kernels.h"
#include "kernels/packed_weight.h"
#include "platform/huge_buffer.h"
#include "platform/thread_pool.h"

namespace candor::backend::cpu {

// Rows or panels that a thread takes at once should be worth this much.
inline constexpr int64_t kGrainNs = 3000;
// Rough work per element, in elements per nanosecond: they decide only whether an operation is worth sharing.
inline constexpr int64_t kCopySpeed = 3;  // from what another thread wrote
inline constexpr int64_t kEncodeSpeed = 2;

using kernels::kEncodings;
inline constexpr RowKinds kKnownRows{.vectors = true, .groups = true, .axes = true, .adapters = true};

class CpuOps final : public Ops, public EncodedLinear {
 public:
  CpuOps(const kernels::KernelTable& table, platform::ThreadPool& pool);  // both are borrowed

  Result<void> reserve(const ArenaLayout& layout);
  // What reserve() will take.
  static uint64_t reserve_bytes(const ArenaLayout& layout);
  // Working memory for a weight or a K/V layout that steps will use.
  Result<void> reserve_for_weight(int64_t n_in) { return scratch_.reserve(kernels::matmul_scratch_bytes(n_in)); }
  Result<void> reserve_for_kv(int32_t head_dim) { return scratch_.reserve(kernels::attend_scratch_bytes(head_dim)); }

  void begin(const StepBatch& batch, CpuKv& kv);
  LogitsView logits() const { return logits_; }
  float* host_rows(Activation x) { return arena_.data(x); }

  void linear_encoded(std::span<const LinearTerm> terms, int32_t n_rows, const std::byte* rows) override;
  void run(const Op& operation) override;

 private:
  void compute(const op::Embed& call);
  void compute(const op::AddPositions& call);
  void compute(const op::AddTypes& call);
  void compute(const op::AddVectors& call);
  void compute(const op::Norm& call);
  void compute(const op::Linear& call);
  void compute(const op::Adapt& call) { adapter_ops_.adapt(call); }
  void compute(const op::AdaptEmbedding& call) { adapter_ops_.adapt(call); }
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

  // The panels of one matrix, among those of others that are multiplied in the same go.
  struct PanelRun {
    const CpuWeight* weight = nullptr;
    const float* bias = nullptr;             // [out] or nullptr
    const std::byte* activations = nullptr;  // [n_rows], encoded
    int32_t n_rows = 0;
    float* dst = nullptr;  // [n_rows, n_out], of the first n_out outputs
    int64_t n_out = 0, first_unit = 0, end_unit = 0;
  };
  struct ExpertMatrix {
    const Weight* Expert::*weight;
    const Weight* Expert::*bias;
  };
  template <class RowOf>
  void add_table_rows(Activation dst, const Weight& table, RowOf row_of);
  template <class Fn>
  void for_rows(int32_t n_rows, int64_t row_ns, Fn&& fn);
  const float* slopes_of(const AttnSpec& spec);  // of ALiBi, or nullptr
  // Sorts the rows of a mixture by the experts that they go to.
  void route(const MoeTerm& term, int32_t n_rows);
  std::span<const RowVisit> visits_of(int32_t row) const;
  void encode_visits(kernels::Encoding encoding, Activation src, const MoeTerm& term);
  // Adds the runs of one matrix of each expert that is visited.
  void add_runs(kernels::Encoding encoding, std::span<const Expert> experts, ExpertMatrix matrix, Activation dst);
  void add_outputs(Activation dst, Activation outputs, const MoeTerm& term);
  // Channels [begin, end) of every sequence; one head of one.
  void convolve(const ConvTerm& term, const ConvSpec& spec, int64_t begin, int64_t end);
  void run_head(Activation dst, const DeltaTerm& term, const DeltaSpec& spec, const SeqSlice& seq, int32_t head);
  void scan_head(Activation dst, const SsmTerm& term, const SsmSpec& spec, const SeqSlice& seq, int32_t head);
  // fn(slice, head) for every head of every slice. row_ns: rough cost of a row of one.
  template <class Fn>
  void for_heads(int64_t n_heads, int32_t n_rows, int64_t row_ns, Fn&& fn);
  void encode_rows(kernels::Encoding encoding, Activation src);
  void encode_heads(kernels::Encoding encoding, Activation src, int32_t n_heads);
  // Forgets the runs; add_run() adds to them; run_panels() shares all their panels out over the threads.
  void begin_runs() { runs_.clear(); }
  void add_run(PanelRun run);
  void add_term(const LinearTerm& term, int32_t n_rows, const std::byte* rows);
  void run_panels();
  // range: panels of this run.
  void run_some(const PanelRun& run, platform::UnitRange range);

  struct AlikeRows {
    int32_t end = 0;
    int32_t seen_end = 0;  // as RowGroup
  };
  int32_t unit_heads(const AttnSpec& spec) const;
  AlikeRows alike_rows(const SeqSlice& slice, int32_t first) const;
  void make_row_groups(int32_t unit_heads, bool without_members, bool sees_groups);
  bool every_sequence_is_one_group() const { return groups_.size() == batch_.seqs.size(); }
  kernels::AttendArgs attend_args(const Attention& a, const RowGroup& group, int32_t head_unit);
  kernels::AttendArgs unit_args(const Attention& a, int64_t unit);
  void store(const Attention& a, size_t seq, int32_t kv_head);
  void store_all(const Attention& a);
  void attend_groups(const Attention& a, bool store_first);
  bool plan_splits(const Attention& a);
  void attend_in_splits(const Attention& a);
  bool reserve_partials(size_t n_bytes);
  bool plan_prefixes(const Attention& a);
  kernels::AttendArgs member_args(const Attention& a, const MemberUnit& unit);
  void attend_prefix(const Attention& a, const PrefixUnit& unit, std::byte* scratch);
  void attend_member(const Attention& a, const MemberUnit& unit, std::byte* scratch);
  // All members' rows; false, and nothing done, where nothing is shared or a layer looks back otherwise.
  bool attend_prefixes(const Attention& a, bool stores);

  // Constant after construction.
  const kernels::KernelTable& table_;
  platform::ThreadPool& pool_;

  Arena arena_;
  ThreadScratch scratch_;
  platform::HugeBuffer encoded_;  // the input of linear(), one row after another
  RopeTables rope_tables_;

  // Of this step.
  StepBatch batch_;
  CpuKv* kv_ = nullptr;
  LogitsView logits_;
  SharedPrefixes shared_;

  // Lists of the running operation, kept to spare allocations.
  std::vector<PanelRun> runs_;
  std::vector<const PanelRun*> last_runs_;  // each thread's last of these, or nullptr
  std::vector<RowGroup> groups_;
  std::vector<SplitUnit> splits_;
  std::vector<size_t> first_partial_;
  std::vector<PrefixUnit> prefix_units_;
  std::vector<MemberUnit> member_units_;
  platform::HugeBuffer partials_;
  AdapterOps adapter_ops_;
  std::vector<float> slopes_;
  float slopes_bias_ = 0.0f;  // the max_alibi_bias that slopes_ are of
  Routing routing_;
  std::vector<int32_t> first_visits_;  // [E + 1]: where each expert's rows begin
  std::vector<RowVisit> row_visits_;   // [T, n_used]: where each row stands, in ascending order of the expert
  std::vector<size_t> n_row_visits_;   // [T]
};

// fn(row) for each row, whole rows to a thread. row_ns: rough cost of a row.
template <class Fn>
void CpuOps::for_rows(int32_t n_rows, int64_t row_ns, Fn&& fn) {
  const int64_t cost = std::max<int64_t>(1, row_ns);
  const int64_t grain = std::max<int64_t>(1, kGrainNs / cost);
  pool_.parallel_for({.n_units = n_rows, .grain = grain, .unit_cost = cost}, [&fn](platform::UnitRange range) {
    for (int64_t i = range.begin; i < range.end; ++i) fn(static_cast<int32_t>(i));
  });
}

}  // namespace candor::backend::cpu
