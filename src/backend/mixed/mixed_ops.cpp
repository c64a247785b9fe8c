#include "backend/mixed/mixed_ops.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "backend/mixed/mixed_weight.h"
#include "base/error.h"

namespace candor::backend::mixed {
namespace {

// A copy between sides takes as long to begin as these take to cross (10 us at 25 GB/s).
constexpr uint64_t kCopyStartBytes = 250'000;

int64_t n_floats(const Activation& x) {
  return int64_t{x.n_rows} * x.n_cols;
}

// Logits are scaled and capped where they are.
void describe_all(const Op& operation, Operands& operands) {
  describe(operation, operands);
  if (const auto* collect = std::get_if<op::Collect>(&operation)) operands.writes = {collect->logits};
}

// Which sides would have the slots that some operations touch. Rows of a slot count as one.
class Trial {
 public:
  explicit Trial(std::span<const SlotSides> slots) : slots_(slots) {}

  // What it costs to have all of them there.
  uint64_t bring(std::span<const Activation> all, Side side) {
    uint64_t cost = 0;
    for (const Activation& x : all) {
      bool& is_there = sides_of(x)[static_cast<size_t>(side)];
      if (!is_there) cost += kCopyStartBytes + static_cast<uint64_t>(n_floats(x)) * sizeof(float);
      is_there = true;
    }
    return cost;
  }
  void write(std::span<const Activation> all, Side side) {
    for (const Activation& x : all) {
      sides_of(x)[static_cast<size_t>(side)] = true;
      sides_of(x)[static_cast<size_t>(other_side(side))] = false;
    }
  }

 private:
  using Sides = std::array<bool, kSides>;
  struct Touched {
    int32_t slot;
    Sides sides;
  };

  Sides& sides_of(const Activation& x) {
    const auto at = std::ranges::find(touched_, x.slot, &Touched::slot);
    if (at != touched_.end()) return at->sides;
    const SlotSides& slot = slots_[static_cast<size_t>(x.slot)];
    const Sides sides{slot.is_current(n_floats(x), Side::kDevice), slot.is_current(n_floats(x), Side::kHost)};
    return touched_.emplace_back(x.slot, sides).sides;
  }

  std::span<const SlotSides> slots_;
  std::vector<Touched> touched_;
};

// fn(side, terms) for the terms of each side, that of the first term first.
template <class Term, class Fn>
void for_sides(std::span<const Term> all, const Weight* Term::*matrix, std::array<std::vector<Term>, kSides>& by_side,
               Fn&& fn) {
  if (all.empty()) return;
  const auto side_of = [&](const Term& term) { return mixed_weight(*(term.*matrix)).side(); };
  for (std::vector<Term>& terms : by_side) terms.clear();
  for (const Term& term : all) by_side[static_cast<size_t>(side_of(term))].push_back(term);
  const Side first = side_of(all.front());
  for (const Side side : {first, other_side(first)}) {
    const std::vector<Term>& terms = by_side[static_cast<size_t>(side)];
    if (!terms.empty()) fn(side, std::span<const Term>(terms));
  }
}

}  // namespace

void MixedOps::begin(const MixedKv& kv) {
  CANDOR_CHECK(n_waiting_ == 0);
  kv_ = &kv;
  last_.reset();
}

void MixedOps::run(const Op& operation) {
  parts_.clear();
  if (const auto* linear = std::get_if<op::Linear>(&operation)) {
    for_sides(linear->terms, &LinearTerm::weight, terms_, [&](Side side, std::span<const LinearTerm> terms) {
      parts_.push_back({side, op::Linear{terms, linear->src}});
    });
  } else if (const auto* adapt = std::get_if<op::Adapt>(&operation)) {
    for_sides(adapt->terms, &AdapterTerm::up, adapter_terms_, [&](Side side, std::span<const AdapterTerm> terms) {
      parts_.push_back({side, op::Adapt{terms, adapt->src, adapt->rows}});
    });
  } else if (const std::optional<Side> side = home_of(operation, *kv_)) {
    parts_.push_back({*side, operation});
  } else {
    return wait(operation);
  }
  run_parts();
}

void MixedOps::wait(const Op& operation) {
  if (n_waiting_ == waiting_.size()) waiting_.emplace_back();
  Waiting& waiting = waiting_[n_waiting_++];
  waiting.operation = operation;
  describe_all(operation, waiting.operands);
}

// A part may overwrite what another one reads: all that is read is brought first.
void MixedOps::run_parts() {
  if (parts_.empty()) return;
  for (Part& part : parts_) describe_all(part.operation, part.operands);
  settle(parts_.front().side, parts_.front().operands.reads);
  for (const Part& part : parts_) {
    for (const Activation& x : part.operands.reads) bring(x, part.side);
  }
  for (const Part& part : parts_) {
    backend(part.side).ops().run(side_op_.translate(part.operation, part.side, *kv_));
  }
  for (const Part& part : parts_) {
    for (const Activation& x : part.operands.writes) slot(x).note_written(n_floats(x), part.side);
  }
  last_ = parts_.front().side;
}

void MixedOps::run_on(Side side, const Op& operation, const Operands& operands) {
  for (const Activation& x : operands.reads) bring(x, side);
  backend(side).ops().run(side_op_.translate(operation, side, *kv_));
  for (const Activation& x : operands.writes) slot(x).note_written(n_floats(x), side);
  if (std::holds_alternative<op::Collect>(operation)) collected_ = side;
}

void MixedOps::finish() {
  settle(last_.value_or(Side::kDevice), {});
}

void MixedOps::settle(Side next, std::span<const Activation> next_reads) {
  const size_t n_behind = count_behind(next, next_reads);
  for (size_t i = 0; i < n_waiting_; ++i) {
    run_on(i < n_behind ? *last_ : next, waiting_[i].operation, waiting_[i].operands);
  }
  n_waiting_ = 0;
}

size_t MixedOps::count_behind(Side next, std::span<const Activation> next_reads) const {
  if (n_waiting_ == 0 || !last_ || *last_ == next) return 0;
  size_t best = 0;
  uint64_t least = cost_of(0, next, next_reads);
  for (size_t n = 1; n <= n_waiting_; ++n) {
    const uint64_t cost = cost_of(n, next, next_reads);
    if (cost >= least) continue;
    least = cost;
    best = n;
  }
  return best;
}

uint64_t MixedOps::cost_of(size_t n_behind, Side next, std::span<const Activation> next_reads) const {
  Trial trial(slots_);
  uint64_t cost = 0;
  for (size_t i = 0; i < n_waiting_; ++i) {
    const Side side = i < n_behind ? *last_ : next;
    cost += trial.bring(waiting_[i].operands.reads, side);
    trial.write(waiting_[i].operands.writes, side);
  }
  return cost + trial.bring(next_reads, next);
}

void MixedOps::bring(Activation x, Side side) {
  const int64_t n = n_floats(x);
  if (slot(x).is_current(n, side)) return;
  Backend& to = backend(side);
  Backend& from = backend(other_side(side));
  if (slot(x).is_current(n, other_side(side))) {
    to.write_rows(x, {from.read_rows(x).data, static_cast<size_t>(n)});
  } else {
    const float* own = to.read_rows(x).data;
    merged_.assign(own, own + n);
    const float* current = from.read_rows(x).data;
    slot(x).for_stale(n, side, [&](int64_t begin, int64_t end) {
      std::copy(current + begin, current + end, merged_.begin() + begin);
    });
    to.write_rows(x, merged_);
  }
  slot(x).note_copied(n, side);
  ++crossings_.n_copies;
  crossings_.n_bytes += static_cast<uint64_t>(n) * sizeof(float);
}

RowsView MixedOps::read_rows(Activation x) {
  finish();
  const bool is_only_there =
      slot(x).is_current(n_floats(x), Side::kDevice) && !slot(x).is_current(n_floats(x), Side::kHost);
  if (is_only_there) return backend(Side::kDevice).read_rows(x);
  bring(x, Side::kHost);
  return backend(Side::kHost).read_rows(x);
}

void MixedOps::write_rows(Activation x, std::span<const float> rows) {
  finish();
  backend(Side::kHost).write_rows(x, rows);
  slot(x).note_written(n_floats(x), Side::kHost);
}

}  // namespace candor::backend::mixed
