// Mixtures of experts of CudaOps: the host chooses each row's experts, as every backend does (backend/routing.h); the
// rows of each expert then lie together, and the matrices of all visited experts are one launch.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/kernels/kernel_list.h"
#include "backend/cuda/product_kernels.h"
#include "backend/cuda/product_shape.h"
#include "kernels/packed_weight.h"

namespace candor::backend::cuda {

using kernels::Encoding;

void CudaOps::compute(const op::Moe& call) {
  if (call.src.n_rows == 0) return;
  route(call.term, call.src.n_rows);
  if (!status_) return;
  const int32_t n_visits = first_visits_.back();
  const auto visited = [&](Activation x) { return Activation{x.slot, n_visits, x.n_cols}; };
  const Activation gates = visited(call.term.gate);
  const Activation ups = visited(call.term.up);
  const Activation outputs = visited(call.term.outputs);
  const bool is_gated = call.term.experts.front().gate != nullptr;
  for (const Encoding encoding : kernels::kEncodings) {
    runs_.clear();
    if (is_gated) add_runs(encoding, call.term.experts, {&Expert::gate, &Expert::gate_bias}, gates);
    add_runs(encoding, call.term.experts, {&Expert::up, &Expert::up_bias}, is_gated ? ups : gates);
    if (runs_.empty()) continue;
    encode_visits(encoding, call.src, call.term);
    launch_runs();
  }
  const Activation inputs{call.term.outputs.slot, n_visits, call.src.n_cols};  // where they are weighed
  const Activation src = call.term.spec.weighs_inputs ? inputs : call.src;
  if (is_gated) adapt_experts(call.term, ExpertPart::kGate, src, gates);
  adapt_experts(call.term, ExpertPart::kUp, src, is_gated ? ups : gates);
  gate(arena_.data(gates), arena_.data(gates), is_gated ? arena_.data(ups) : nullptr, call.term.kind,
       int64_t{n_visits} * gates.n_cols);
  for (const Encoding encoding : kernels::kEncodings) {
    runs_.clear();
    add_runs(encoding, call.term.experts, {&Expert::down, &Expert::down_bias}, outputs);
    if (runs_.empty()) continue;
    encode(encoding, arena_.data(gates), gates.n_cols, gates.n_cols, nullptr, n_visits);
    launch_runs();
  }
  adapt_experts(call.term, ExpertPart::kDown, gates, outputs);
  launches_.run(kernel::add_experts, launch_over(int64_t{call.dst.n_rows} * call.dst.n_cols),
                AddExpertsArgs{arena_.data(call.dst), arena_.data(outputs), values_of(call.term.bias), visit_places_,
                               visit_weights_, call.dst.n_rows, call.dst.n_cols, call.term.spec.n_used});
}

void CudaOps::route(const MoeTerm& term, int32_t n_rows) {
  const auto n_used = static_cast<size_t>(term.spec.n_used);
  const size_t n_visits = static_cast<size_t>(n_rows) * n_used;
  const RowsView scores = rows({term.scores.slot, n_rows, term.scores.n_cols});
  routing_.begin(term.spec);
  const float* bias = term.spec.has_choice_bias ? own(*term.choice_bias).host().values() : nullptr;
  const float* scales = term.spec.has_expert_scales ? own(*term.expert_scales).host().values() : nullptr;
  for (int32_t i = 0; i < n_rows; ++i) routing_.add_row(i, scores.row(i), {bias, scales});
  std::vector<int32_t>& places = host_places_;
  places.resize(n_visits);
  std::vector<int32_t>& sources = host_.rows;
  std::vector<float>& weights = host_.factors;
  std::vector<float>& place_weights = host_.more_factors;
  std::vector<int32_t>& n_placed = host_.counts;
  sources.clear();
  weights.resize(n_visits);
  place_weights.clear();
  n_placed.assign(static_cast<size_t>(n_rows), 0);
  first_visits_.assign(1, 0);
  for (int32_t expert = 0; expert < routing_.n_experts(); ++expert) {
    for (const Routing::Visit& visit : routing_.visits(expert)) {
      const auto row = static_cast<size_t>(visit.row);
      const size_t at = row * n_used + static_cast<size_t>(n_placed[row]++);
      places[at] = static_cast<int32_t>(sources.size());
      weights[at] = term.spec.weighs_inputs ? 1.0f : visit.weight;
      sources.push_back(visit.row);
      place_weights.push_back(visit.weight);
    }
    first_visits_.push_back(static_cast<int32_t>(sources.size()));
  }
  visit_places_ = tables_.put(std::span<const int32_t>(places));
  visit_weights_ = tables_.put(std::span<const float>(weights));
  rows_by_place_ = tables_.put(std::span<const int32_t>(sources));
  weights_by_place_ = tables_.put(std::span<const float>(place_weights));
  keep(tables_.status());
}

// Where weights multiply inputs, the weighted rows take the room of outputs.
void CudaOps::encode_visits(Encoding encoding, Activation src, const MoeTerm& term) {
  const int32_t n_visits = first_visits_.back();
  if (!term.spec.weighs_inputs)
    return encode(encoding, arena_.data(src), src.n_cols, src.n_cols, rows_by_place_, n_visits);
  float* weighed = arena_.data({term.outputs.slot, n_visits, src.n_cols});
  launches_.run(kernel::scale_rows, launch_over(int64_t{n_visits} * src.n_cols),
                ScaleRowsArgs{weighed, arena_.data(src), weights_by_place_, rows_by_place_, n_visits, src.n_cols});
  encode(encoding, weighed, src.n_cols, src.n_cols, nullptr, n_visits);
}

void CudaOps::add_runs(Encoding encoding, std::span<const Expert> experts, ExpertMatrix matrix, Activation dst) {
  for (size_t i = 0; i < experts.size(); ++i) {
    const int32_t first = first_visits_[i];
    const int32_t n_rows = first_visits_[i + 1] - first;
    const CudaWeight& weight = own(*(experts[i].*matrix.weight));
    if (n_rows == 0 || kernels::encoding_of(weight.shape().dtype) != encoding) continue;
    runs_.push_back({weight.shape(), dst, {weight.panels(), values_of(experts[i].*matrix.bias), first, n_rows}});
  }
}

// Matrices of one type and one result at a time.
void CudaOps::launch_runs() {
  while (!runs_.empty() && status_) {
    const ExpertRun like = runs_.front();
    const auto is_alike = [&](const ExpertRun& run) {
      return run.shape.dtype == like.shape.dtype && run.dst.slot == like.dst.slot;
    };
    groups_.clear();
    ProductArgs args = product_args(like.shape, encoded_.data());
    for (const ExpertRun& run : runs_) {
      if (!is_alike(run)) continue;
      groups_.push_back(run.group);
      args.most_rows = std::max(args.most_rows, run.group.n_rows);
    }
    std::erase_if(runs_, is_alike);
    args.groups = tables_.put(std::span<const ProductGroup>(groups_));
    keep(tables_.status());
    if (!status_) return;
    args.dst = arena_.data(like.dst);
    args.n_out = like.dst.n_cols;
    args.dst_stride = like.dst.n_cols;
    run_product(launches_, like.shape.dtype, args, static_cast<int32_t>(groups_.size()));
  }
}

}  // namespace candor::backend::cuda
