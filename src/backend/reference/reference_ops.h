#pragma once
// K/V storage and operations of the reference backend: slow, scalar, obvious. Numbers: see reference_backend.h.

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/op_list.h"
#include "backend/op_specs.h"
#include "backend/op_terms.h"
#include "backend/operations.h"
#include "backend/routing.h"
#include "backend/state_specs.h"
#include "backend/step_batch.h"
#include "base/ids.h"

namespace candor::backend::reference {

// Every weight type, decoded: [n_rows, n_cols] f32.
class ReferenceWeight final : public Weight {
 public:
  ReferenceWeight(int64_t n_rows, int64_t n_cols, std::vector<float> values)
      : n_rows_(n_rows), n_cols_(n_cols), values_(std::move(values)) {}
  int64_t n_rows() const override { return n_rows_; }
  int64_t n_cols() const override { return n_cols_; }
  size_t n_bytes() const override { return values_.size() * sizeof(float); }
  const float* row(int64_t i) const { return values_.data() + static_cast<size_t>(i * n_cols_); }

 private:
  // Constant after construction.
  int64_t n_rows_;
  int64_t n_cols_;
  std::vector<float> values_;
};

// REQUIRES: a weight that this backend made.
inline const ReferenceWeight& decoded(const Weight& weight) {
  return static_cast<const ReferenceWeight&>(weight);
}

// Pages as [block][layer][K, V, or K alone][position in block][Hk * Dh of the layer] f32.
class ReferenceKv final : public KvStore {
 public:
  ReferenceKv(const KvLayout& layout, KvSize size, std::vector<float> values, std::vector<float> states)
      : layout_(layout), size_(size), values_(std::move(values)), states_(std::move(states)) {}
  const KvLayout& layout() const override { return layout_; }
  int32_t n_blocks() const override { return size_.n_blocks; }
  int32_t n_states() const override { return size_.n_states; }
  size_t n_bytes() const override { return (values_.size() + states_.size()) * sizeof(float); }
  // One layer of a slot (DeltaSpec says what lies where).
  float* state(StateId slot, int32_t layer) {
    return states_.data() + slot * layout_.state.slot_floats() + layer * layout_.state.layer_floats;
  }
  void copy_block(BlockId src, BlockId dst, int32_t n_tokens) override;
  bool read_key(const KeyPlace& place, std::span<float> key) override;

  // [Hk * Dh] of one position. REQUIRES: the block that holds the position is in the table.
  float* key(std::span<const BlockId> blocks, int32_t layer, int32_t position) {
    return at(blocks, layer, 0, position);
  }
  // The beginning of the key where the layout has no values.
  float* value(std::span<const BlockId> blocks, int32_t layer, int32_t position) {
    return at(blocks, layer, layout_.n_planes() - 1, position);
  }

 private:
  float* at(std::span<const BlockId> blocks, int32_t layer, int32_t plane, int32_t position);
  float* page(BlockId block, int32_t layer, int32_t plane);
  size_t row_floats(int32_t layer) const {
    const KvHeads heads = layout_.heads_of(layer);
    return static_cast<size_t>(heads.n_kv_heads) * static_cast<size_t>(heads.head_dim);
  }

  KvLayout layout_;
  KvSize size_;
  std::vector<float> values_;
  std::vector<float> states_;
};

// What rows can be.
inline constexpr RowKinds kKnownRows{.vectors = true, .groups = true, .axes = true, .adapters = true};

class ReferenceOps final : public Ops {
 public:
  void reserve(std::vector<std::vector<float>> slots) { slots_ = std::move(slots); }
  void begin(const StepBatch& batch, ReferenceKv& kv);
  LogitsView logits() const { return {logits_.data(), n_logit_rows_, n_vocab_}; }
  RowsView read_rows(Activation x) { return {row(x, 0), x.n_rows, x.n_cols}; }
  float* host_rows(Activation x) { return row(x, 0); }

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

  struct Place {
    size_t seq;
    int32_t position;
    int32_t last;  // that it sees
  };
  struct Plane {
    int32_t layer;
    int32_t kv_head;
    double slope;         // of ALiBi
    const float* sink;    // or nullptr
    const float* biases;  // [2 * bias_reach + 1], or nullptr
  };

  float* row(Activation x, int32_t i);
  // dst [out]: what the row's use of an adapter makes of it.
  void adapt_row(const AdapterTerm& term, const float* src, float row_scale, float* dst);
  void adapt_token(const op::AdaptEmbedding& call, const AdapterTable& table, int32_t row, float row_scale);
  void adapt_expert(const MoeTerm& term, int32_t expert, ExpertPart part, Activation src, Activation dst);
  void append(Activation k, Activation v, int32_t layer);
  void convolve(const ConvTerm& term, const ConvSpec& spec, const SeqSlice& seq);
  // The matrices of a layer's state, one for each head, behind its convolution.
  struct StateMatrices {
    int32_t layer;
    int32_t n_heads;
    int64_t first;     // floats of the state before them
    int64_t n_floats;  // of one
  };
  using RunRow = std::function<void(int32_t at, int32_t head, float* state)>;
  // run(row, head, state) for every row of every slice, in order, head by head; what is to be saved is.
  void walk_states(const StateMatrices& matrices, const RunRow& run);
  // One row of one head; state: [state_dim, head_dim].
  void run_ssm(Activation dst, const SsmTerm& term, const SsmSpec& spec, int32_t at, int32_t head, float* state);
  // One row of one head; state: [k_dim, v_dim].
  void run_delta(Activation dst, const DeltaTerm& term, const DeltaSpec& spec, int32_t at, int32_t head, float* state);
  // dst: [value_dim], q: [Dh] of one head of one row.
  void attend_head(float* dst, const float* q, Place place, Plane plane, const AttnSpec& spec);

  std::vector<std::vector<float>> slots_;  // the arena; set by reserve()
  StepBatch batch_;                        // borrowed for the step
  ReferenceKv* kv_ = nullptr;              // borrowed for the step
  std::vector<float> logits_;
  int32_t n_logit_rows_ = 0;
  int32_t n_vocab_ = 0;
  // Scratch, kept to spare allocations.
  std::vector<double> inputs_;
  std::vector<double> weight_row_;
  std::vector<double> scores_;
  std::vector<double> sums_;
  Routing routing_;
};

}  // namespace candor::backend::reference
