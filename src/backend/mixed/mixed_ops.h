#pragma once
// Operations on two sides. One that has a matrix, or the memory of a layer, runs on the side that has it. All others
// (norms, rotations, sums) wait for the next one of these, since only then is it known where their rows are wanted: of
// those between two sides the first ones run before the rows cross over, and the others behind, so that little has to
// cross. Before an operation runs, what it reads is brought to its side.
//
// The order of operations stays, and each runs as its backend runs it alone: any placement gives the same bits wherever
// both backends do. The engine thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/mixed/mixed_kv.h"
#include "backend/mixed/side_op.h"
#include "backend/mixed/slot_sides.h"
#include "backend/op_list.h"
#include "backend/op_terms.h"
#include "backend/operations.h"
#include "backend/placement.h"

namespace candor::backend::mixed {

// Copies between sides, since the beginning.
struct Crossings {
  int64_t n_copies = 0;
  uint64_t n_bytes = 0;
};

class MixedOps final : public Ops {
 public:
  // Borrowed.
  explicit MixedOps(const MixedKv::Backends& backends) : backends_(backends) {}

  void reserve(size_t n_slots) { slots_.assign(n_slots, {}); }
  // kv: borrowed for the step, whose backends have begun it.
  void begin(const MixedKv& kv);
  void run(const Op& operation) override;
  // Runs what waits.
  void finish();

  RowsView read_rows(Activation x);
  void write_rows(Activation x, std::span<const float> rows);
  // Where the step's Collect ran.
  Side collected_side() const { return collected_; }
  const Crossings& crossings() const { return crossings_; }
  void forget_experts() { side_op_.forget_experts(); }

 private:
  struct Waiting {
    Op operation;
    Operands operands;
  };
  // Those terms of an operation that are on one side.
  struct Part {
    Side side;
    Op operation;
    Operands operands{};
  };

  void wait(const Op& operation);
  void run_parts();
  void run_on(Side side, const Op& operation, const Operands& operands);
  // Runs what waits, before an operation on that side that reads these.
  void settle(Side next, std::span<const Activation> next_reads);
  // How many of those that wait run on the last side.
  size_t count_behind(Side next, std::span<const Activation> next_reads) const;
  // Of what has to cross, in bytes, where the first n_behind of those that wait run on the last side.
  uint64_t cost_of(size_t n_behind, Side next, std::span<const Activation> next_reads) const;
  void bring(Activation x, Side side);
  SlotSides& slot(Activation x) { return slots_[static_cast<size_t>(x.slot)]; }
  const SlotSides& slot(Activation x) const { return slots_[static_cast<size_t>(x.slot)]; }
  Backend& backend(Side side) const { return *backends_[static_cast<size_t>(side)]; }

  MixedKv::Backends backends_;
  std::vector<SlotSides> slots_;
  Crossings crossings_;
  SideOp side_op_;

  // Of this step.
  const MixedKv* kv_ = nullptr;
  std::optional<Side> last_;  // that an operation ran on because it had to
  Side collected_ = Side::kDevice;
  std::vector<Waiting> waiting_;  // the first n_waiting_; the others are room
  size_t n_waiting_ = 0;

  // Of the running operation, kept to spare allocations.
  std::vector<Part> parts_;
  std::array<std::vector<LinearTerm>, kSides> terms_;
  std::array<std::vector<AdapterTerm>, kSides> adapter_terms_;
  std::vector<float> merged_;
};

}  // namespace candor::backend::mixed
