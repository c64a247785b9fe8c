#include "backend/wrap/input_watch.h"

#include <cstddef>
#include <variant>

#include "tensor/encode.h"

namespace candor::backend {
namespace {

void add_row(std::span<const float> row, double factor, InputSums& sums) {
  sums.squares.resize(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    const double x = factor * static_cast<double>(row[i]);
    sums.squares[i] += x * x;
  }
  ++sums.n_rows;
}

// Rows that went to any expert.
int32_t n_visits(const Routing& routing) {
  size_t n = 0;
  for (int32_t e = 0; e < routing.n_experts(); ++e) n += routing.visits(e).size();
  return static_cast<int32_t>(n);
}

}  // namespace

void WatchedInputs::note(const Weight& weight, const TensorView& tensor, WeightRole role) {
  names_.emplace(&weight, tensor.name);
  if (role != WeightRole::kVector) return;
  std::vector<float>& values = vectors_[&weight];
  values.resize(static_cast<size_t>(tensor.shape.n_elements()));
  decode_elements(tensor.dtype, tensor.data, tensor.shape.n_elements(), values.data());
}

const float* WatchedInputs::vector(bool is_there, const Weight* weight) const {
  const auto found = vectors_.find(weight);
  return is_there && found != vectors_.end() ? found->second.data() : nullptr;
}

void WatchedInputs::run(const Op& operation) {
  const auto* moe = std::get_if<op::Moe>(&operation);
  if (const auto* linear = std::get_if<op::Linear>(&operation)) watch(*linear);
  if (moe != nullptr) watch_inputs(*moe);
  inner_.run(operation);
  if (moe != nullptr) watch_downs(*moe);
}

void WatchedInputs::watch(const op::Linear& call) {
  if (call.src.n_rows == 0) return;
  const RowsView rows = backend_.read_rows(call.src);
  InputSums seen;
  for (int32_t t = 0; t < rows.n_rows; ++t) add_row(rows.row(t), 1.0, seen);
  for (const LinearTerm& term : call.terms) add(term.weight, 0, seen);
}

void WatchedInputs::watch_inputs(const op::Moe& call) {
  routing_.begin(call.term.spec);
  if (call.src.n_rows == 0) return;
  const RowsView scores = backend_.read_rows(call.term.scores);
  const float* bias = vector(call.term.spec.has_choice_bias, call.term.choice_bias);
  const float* scales = vector(call.term.spec.has_expert_scales, call.term.expert_scales);
  for (int32_t t = 0; t < scores.n_rows; ++t) routing_.add_row(t, scores.row(t), {bias, scales});
  const RowsView rows = backend_.read_rows(call.src);
  for (int32_t e = 0; e < routing_.n_experts(); ++e) {
    InputSums seen;
    for (const Routing::Visit& visit : routing_.visits(e)) {
      add_row(rows.row(visit.row), call.term.spec.weighs_inputs ? static_cast<double>(visit.weight) : 1.0, seen);
    }
    const Expert& expert = call.term.experts[static_cast<size_t>(e)];
    if (expert.gate != nullptr) add(expert.gate, e, seen);
    add(expert.up, e, seen);
  }
}

// The CPU leaves what went into the downs in the room of the gates, expert after expert.
void WatchedInputs::watch_downs(const op::Moe& call) {
  const int32_t n = n_visits(routing_);
  if (n == 0) return;
  const RowsView rows = backend_.read_rows({call.term.gate.slot, n, call.term.gate.n_cols});
  int32_t at = 0;
  for (int32_t e = 0; e < routing_.n_experts(); ++e) {
    InputSums seen;
    for (size_t i = 0; i < routing_.visits(e).size(); ++i) add_row(rows.row(at++), 1.0, seen);
    add(call.term.experts[static_cast<size_t>(e)].down, e, seen);
  }
}

void WatchedInputs::add(const Weight* weight, int32_t expert, const InputSums& seen) {
  const auto name = names_.find(weight);
  if (name == names_.end() || seen.n_rows == 0) return;
  const std::pair key(name->second, expert);
  if (owners_.emplace(key, weight).first->second != weight) return;
  InputSums& sums = sums_[key];
  sums.squares.resize(seen.squares.size());
  for (size_t i = 0; i < seen.squares.size(); ++i) sums.squares[i] += seen.squares[i];
  sums.n_rows += seen.n_rows;
}

Result<std::unique_ptr<Weight>> InputWatch::upload(const TensorView& tensor, WeightRole role) {
  CANDOR_ASSIGN(auto weight, ForwardingBackend::upload(tensor, role));
  ops_.note(*weight, tensor, role);
  return weight;
}

Result<std::unique_ptr<Weight>> InputWatch::upload_split(const TensorView& tensor, WeightRole role,
                                                         const WeightSplit& split) {
  CANDOR_ASSIGN(auto weight, ForwardingBackend::upload_split(tensor, role, split));
  ops_.note(*weight, tensor, role);
  return weight;
}

}  // namespace candor::backend
