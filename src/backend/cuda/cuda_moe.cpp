// Mixtures of experts of CudaOps: kernels choose each row's experts, as every backend does (backend/routing.h), and put
// the rows of each expert together; the matrices of all experts are one launch. The host waits for none of it, but
// where adapters of experts want to know which rows go where.

#include <algorithm>
#include <array>
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
  const MoeTerm& term = call.term;
  route(term, call.src.n_rows);
  if (!status_) return;
  const auto visited = [this](Activation x) { return Activation{x.slot, visits_.n, x.n_cols}; };
  const Activation gates = visited(term.gate);
  const Activation outputs = visited(term.outputs);
  const bool is_gated = term.experts.front().gate != nullptr;
  const Activation ups = is_gated ? visited(term.up) : gates;
  const std::array<VisitProduct, 2> inner = {
      {{{&Expert::gate, &Expert::gate_bias}, gates}, {{&Expert::up, &Expert::up_bias}, ups}}};
  multiply_visits(term.experts, std::span(inner).subspan(is_gated ? 0 : 1),
                  [&](Encoding encoding) { encode_visits(encoding, call.src, term); });
  const Activation inputs{outputs.slot, visits_.n, call.src.n_cols};  // where they are weighed
  const Activation src = term.spec.weighs_inputs ? inputs : call.src;
  if (is_gated) adapt_experts(term, ExpertPart::kGate, src, gates);
  adapt_experts(term, ExpertPart::kUp, src, ups);
  gate(arena_.data(gates), arena_.data(gates), is_gated ? arena_.data(ups) : nullptr, term.kind,
       int64_t{visits_.n} * gates.n_cols);
  const VisitProduct down{{&Expert::down, &Expert::down_bias}, outputs};
  multiply_visits(term.experts, {&down, 1}, [&](Encoding encoding) {
    encode(encoding, arena_.data(gates), gates.n_cols, gates.n_cols, nullptr, visits_.n);
  });
  adapt_experts(term, ExpertPart::kDown, gates, outputs);
  launches_.run(kernel::add_experts, launch_over(int64_t{call.dst.n_rows} * call.dst.n_cols),
                AddExpertsArgs{arena_.data(call.dst), arena_.data(outputs), values_of(term.bias), visits_.places,
                               term.spec.weighs_inputs ? nullptr : visits_.weights, call.dst.n_rows, call.dst.n_cols,
                               term.spec.n_used});
}

void CudaOps::route(const MoeTerm& term, int32_t n_rows) {
  CANDOR_DCHECK(term.scores.n_cols == term.spec.n_experts);
  reserve_room(visit_lists_, visits_bytes(term.spec, std::max(n_rows, arena_.max_rows())));
  if (!status_) return;
  visits_ = visits_at(visit_lists_.data(), term.spec, n_rows);
  find_visits(launches_, term.spec,
              {arena_.data(term.scores), values_of(term.choice_bias), values_of(term.expert_scales)}, visits_);
  if (term.adapters.empty() || batch_.uses.empty()) return;
  host_.visits.resize(2 * static_cast<size_t>(visits_.n));
  run_launches();
  device_.copy_out(host_.visits.data(), visits_.experts, host_.visits.size() * sizeof(int32_t));
}

// Where weights multiply inputs, the weighted rows take the room of outputs.
void CudaOps::encode_visits(Encoding encoding, Activation src, const MoeTerm& term) {
  if (!term.spec.weighs_inputs)
    return encode(encoding, arena_.data(src), src.n_cols, src.n_cols, visits_.rows_by_place, visits_.n);
  float* weighed = arena_.data({term.outputs.slot, visits_.n, src.n_cols});
  launches_.run(
      kernel::scale_rows, launch_over(int64_t{visits_.n} * src.n_cols),
      ScaleRowsArgs{weighed, arena_.data(src), visits_.weights_by_place, visits_.rows_by_place, visits_.n, src.n_cols});
  encode(encoding, weighed, src.n_cols, src.n_cols, nullptr, visits_.n);
}

template <class Encode>
void CudaOps::multiply_visits(std::span<const Expert> experts, std::span<const VisitProduct> products,
                              Encode&& encode) {
  for (const Encoding encoding : kernels::kEncodings) {
    bool is_encoded = false;
    for (const VisitProduct& product : products) {
      for (const ExpertMatrices::OfType& type : matrices_of(experts, product.matrix)) {
        if (kernels::encoding_of(type.shape.dtype) != encoding) continue;
        if (!is_encoded) encode(encoding);
        is_encoded = true;
        if (!status_) return;
        ProductArgs args = product_args(type.shape, encoded_.data());
        args.runs = visits_.runs;
        args.matrices = type.matrices;
        args.dst = arena_.data(product.dst);
        args.dst_stride = product.dst.n_cols;
        args.n_out = product.dst.n_cols;
        args.most_rows = std::min(visits_.run_rows, visits_.n_rows);
        run_product(launches_, type.shape.dtype, args, visits_.n_runs);
      }
    }
  }
}

// They are kept with the first expert's weight. Empty where there is no memory for them.
std::span<const ExpertMatrices::OfType> CudaOps::matrices_of(std::span<const Expert> experts, ExpertMatrix matrix) {
  std::unique_ptr<ExpertMatrices>& kept = own(*(experts.front().*matrix.weight)).experts();
  if (kept != nullptr) return kept->types;
  auto made = std::make_unique<ExpertMatrices>();
  for (const Expert& expert : experts) {
    const kernels::WeightShape& shape = own(*(expert.*matrix.weight)).shape();
    const auto has_type = [&](const ExpertMatrices::OfType& type) { return type.shape.dtype == shape.dtype; };
    if (std::ranges::none_of(made->types, has_type)) made->types.push_back({.shape = shape});
  }
  const size_t n = experts.size();
  std::vector<ProductMatrix> lists(made->types.size() * n);
  auto memory = DeviceMemory::make(device_, lists.size() * sizeof(ProductMatrix));
  if (!memory) {
    keep(std::move(memory).error());
    return {};
  }
  made->memory = std::move(*memory);
  for (size_t t = 0; t < made->types.size(); ++t) {
    ExpertMatrices::OfType& type = made->types[t];
    type.matrices = made->memory.as<ProductMatrix>() + t * n;
    for (size_t i = 0; i < n; ++i) {
      const CudaWeight& weight = own(*(experts[i].*matrix.weight));
      if (weight.shape().dtype != type.shape.dtype) continue;
      lists[t * n + i] = {weight.panels(), values_of(experts[i].*matrix.bias)};
    }
  }
  device_.copy_in(made->memory.data(), lists.data(), lists.size() * sizeof(ProductMatrix));
  kept = std::move(made);
  return kept->types;
}

}  // namespace candor::backend::cuda
