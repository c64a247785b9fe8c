#pragma once
// A wrapper of the reference backend that records attention: the softmax weights of one row, for each head of a layer.
// It computes them in double from the step's own queries and keys. It works only for a step of one sequence that begins
// at position 0, where every key is a row of the step. Owns the wrapped backend; one thread, like every Backend.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/op_list.h"
#include "backend/wrap/forwarding_backend.h"

namespace candor::backend {

// Of one layer and one row: each head's shares over the positions up to the row's own.
struct AttentionShares {
  std::vector<std::vector<double>> heads{};  // [H][position + 1]; 0 outside of a window
  std::vector<double> sinks{};               // [H], the share of no token; empty: the layer has none
};

class ProbedOps final : public Ops {
 public:
  explicit ProbedOps(Backend& backend) : inner_(backend.ops()), backend_(backend) {}
  // The row of later steps whose attention is wanted; nothing: none.
  void look_at(std::optional<int32_t> row) { row_ = row; }
  // What the last attention looked at, once.
  std::optional<AttentionShares> take() { return std::exchange(shares_, std::nullopt); }

  void run(const Op& operation) override;

 private:
  void look(const op::Attend& call, int32_t row);

  Ops& inner_;
  Backend& backend_;
  std::optional<int32_t> row_;
  std::optional<AttentionShares> shares_;
};

class AttentionProbe final : public ForwardingBackend {
 public:
  // REQUIRES: inner is the reference backend (its weights are read).
  explicit AttentionProbe(std::unique_ptr<Backend> inner_backend)
      : ForwardingBackend(std::move(inner_backend)), ops_(inner()) {}
  ProbedOps& probe() { return ops_; }

  Ops& ops() override { return ops_; }

 private:
  ProbedOps ops_;
};

}  // namespace candor::backend
