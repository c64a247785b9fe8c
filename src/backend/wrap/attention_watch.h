#pragma once
// A backend that shows where rows of a step look: the mean, over all heads and layers that attend, of their softmax
// weights. It computes them in double from another backend's queries and stored keys, so that it works in any step and
// with any cached prefix; the share that a head gives to no token (sinks) is left out. Nothing that is computed
// changes. While no row is looked at, ops() are those of the wrapped backend, and it costs nothing. Owns the wrapped
// backend; one thread, like every Backend.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/op_list.h"
#include "backend/wrap/forwarding_backend.h"

namespace candor::backend {

// One row of a step, and what its heads gave to the positions that it sees, added up.
struct LookedRow {
  int32_t row = 0;
  size_t seq = 0;              // of StepBatch::seqs
  int32_t position = 0;        // in its sequence
  double n_heads = 0;          // of all layers so far
  std::vector<double> sums{};  // [positions]
};

class WatchedAttention final : public Ops {
 public:
  explicit WatchedAttention(Backend& backend) : inner_(backend.ops()), backend_(backend) {}
  void begin(const StepBatch& batch, KvStore& kv, std::span<const int32_t> rows);
  std::vector<LookedRow>& rows() { return rows_; }

  void run(const Op& operation) override;

 private:
  void look(const AttnSpec& spec, const AttnTerm& term, std::span<const float> queries, LookedRow& looked);
  void read_keys(const AttnSpec& spec, const AttnTerm& term, const LookedRow& looked, int32_t kv_head);

  Ops& inner_;
  Backend& backend_;
  StepBatch batch_;
  KvStore* kv_ = nullptr;
  std::vector<LookedRow> rows_;
  int32_t first_ = 0;        // position that the keys begin at
  std::vector<float> keys_;  // [positions from first_, head_dim] of one head
  std::vector<double> scores_;
};

class AttentionWatch final : public ForwardingBackend {
 public:
  explicit AttentionWatch(std::unique_ptr<Backend> inner_backend)
      : ForwardingBackend(std::move(inner_backend)), ops_(inner()) {}

  // Rows of the next step that begins, and of no other. What was seen before is forgotten.
  void look_at(std::span<const int32_t> rows);
  // Of a row of that step: shares of the positions that it sees, [0, its own]; empty where it was not looked at.
  std::vector<double> shares(int32_t row);

  Ops& ops() override {
    if (is_looking_) return ops_;
    return ForwardingBackend::ops();
  }
  void begin_step(const StepBatch& batch, KvStore& kv) override;
  StepTicket end_step() override;

 private:
  WatchedAttention ops_;
  std::vector<int32_t> wanted_;
  bool is_looking_ = false;
};

}  // namespace candor::backend
