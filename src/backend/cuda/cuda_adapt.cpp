// What adapters add to products, turn by turn: the first adapter of every row, then the second of those that have one.
// Numbers: docs/numerics.md, "Adapters".

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/kernels/kernel_list.h"
#include "backend/cuda/product_kernels.h"
#include "backend/cuda/product_shape.h"
#include "backend/row_uses.h"

namespace candor::backend::cuda {

// [n_rows, n_out] in `room`.
const float* CudaOps::multiply_rows(const CudaWeight& weight, const AdaptedRows& rows, DeviceRoom& room) {
  const kernels::WeightShape& shape = weight.shape();
  reserve_room(room, static_cast<size_t>(rows.n) * static_cast<size_t>(shape.n_out) * sizeof(float));
  encode(kernels::encoding_of(shape.dtype), rows.src, rows.src_stride, shape.n_in, rows.src_rows, rows.n);
  if (!status_) return nullptr;
  ProductArgs args = product_args(shape, encoded_.data());
  args.one = {weight.panels(), nullptr};
  args.dst = reinterpret_cast<float*>(room.data());
  args.dst_stride = shape.n_out;
  args.n_out = static_cast<int32_t>(shape.n_out);
  args.most_rows = rows.n;
  run_product(launches_, shape.dtype, args, 1);
  return args.dst;
}

void CudaOps::adapt_rows(const AdapterTerm& term, float scale, AdaptedRows rows) {
  if (rows.n == 0 || !status_) return;
  const CudaWeight& up = own(*term.up);
  if (term.down != nullptr) {
    rows.src = multiply_rows(own(*term.down), rows, adapted_middle_);
    rows.src_stride = up.n_cols();
    rows.src_rows = nullptr;
  }
  const float* outputs = status_ ? multiply_rows(up, rows, adapted_outputs_) : nullptr;
  if (!status_) return;
  const auto n_cols = static_cast<int32_t>(up.n_rows());
  add_adapted({.dst = rows.dst,
               .outputs = outputs,
               .dst_rows = rows.dst_rows,
               .gains = values_of(term.gains),
               .gains_less_one = values_of(term.gains_less_one),
               .bias = term.gains == nullptr ? nullptr : values_of(term.bias),
               .dst_stride = rows.dst_stride,
               .scale = scale,
               .factor = term.scale * scale,
               .n_rows = rows.n,
               .n_cols = n_cols,
               .replaces = rows.may_replace && term.down == nullptr});
}

void CudaOps::add_adapted(const AddAdaptedArgs& args) {
  launches_.run(kernel::add_adapted, launch_over(int64_t{args.n_rows} * args.n_cols), args);
}

void CudaOps::compute(const op::Adapt& call) {
  uses_.find(batch_, call.rows);
  for (const RowUses::Group& group : uses_.groups()) {
    const int32_t* rows = tables_.put(group.rows);
    if (rows == nullptr) return;
    for (const AdapterTerm& term : call.terms) {
      if (term.adapter != group.use.adapter) continue;
      adapt_rows(term, group.use.scale,
                 {.src = arena_.data(call.src),
                  .src_stride = call.src.n_cols,
                  .src_rows = rows,
                  .dst = arena_.data(term.dst),
                  .dst_stride = term.dst.n_cols,
                  .dst_rows = rows,
                  .n = static_cast<int32_t>(group.rows.size())});
    }
  }
}

void CudaOps::compute(const op::AdaptEmbedding& call) {
  uses_.find(batch_);
  for (const RowUses::Group& group : uses_.groups()) {
    std::vector<int32_t>& rows = host_.rows;
    rows.clear();
    std::ranges::copy_if(group.rows, std::back_inserter(rows),
                         [this](int32_t row) { return batch_.vector_of(row) == nullptr; });
    if (rows.empty()) continue;
    for (const AdapterTable& table : call.tables) {
      if (table.adapter == group.use.adapter) adapt_embedding(call, table, group.use.scale, rows);
    }
  }
}

// Rows of the table come from the host, which has it.
void CudaOps::adapt_embedding(const op::AdaptEmbedding& call, const AdapterTable& table, float scale,
                              std::span<const int32_t> rows) {
  const cpu::CpuWeight& down = own(*table.down).host();
  const auto n_cols = static_cast<int32_t>(down.n_cols());
  const auto n_rows = static_cast<int32_t>(rows.size());
  host_rows(n_rows, n_cols, [&](int32_t i, float* row) {
    down.decode_row(batch_.tokens[static_cast<size_t>(rows[static_cast<size_t>(i)])], row);
    if (table.up == nullptr) table_.scale(row, call.scale, n_cols, row);
  });
  const float* values = tables_.put(std::span<const float>(host_floats_));
  const int32_t* dst_rows = tables_.put(rows);
  if (values == nullptr || dst_rows == nullptr) return;
  if (table.up == nullptr) {
    return add_adapted({.dst = arena_.data(call.dst),
                        .outputs = values,
                        .dst_rows = dst_rows,
                        .dst_stride = call.dst.n_cols,
                        .scale = scale,
                        .n_rows = n_rows,
                        .n_cols = n_cols,
                        .replaces = true});
  }
  adapt_rows({.up = table.up, .scale = table.scale * call.scale}, scale,
             {.src = values,
              .src_stride = n_cols,
              .dst = arena_.data(call.dst),
              .dst_stride = call.dst.n_cols,
              .dst_rows = dst_rows,
              .n = n_rows,
              .may_replace = false});
}

// One part of the visited experts: rows of dst are places, and so are those of src, of kDown or where inputs are
// weighed.
void CudaOps::adapt_experts(const MoeTerm& term, ExpertPart part, Activation src, Activation dst) {
  if (term.adapters.empty() || batch_.uses.empty()) return;
  const auto n_visits = static_cast<size_t>(visits_.n);
  const std::span<const int32_t> experts = std::span(host_.visits).first(n_visits);
  const std::span<const int32_t> places = std::span(host_.visits).subspan(n_visits);
  const bool is_by_row = part != ExpertPart::kDown && !term.spec.weighs_inputs;
  const auto n_used = static_cast<size_t>(term.spec.n_used);
  uses_.find(batch_);
  for (const RowUses::Group& group : uses_.groups()) {
    for (const ExpertAdapter& each : term.adapters) {
      if (each.part != part || each.term.adapter != group.use.adapter) continue;
      std::vector<int32_t>& src_rows = host_.rows;
      std::vector<int32_t>& dst_rows = host_.more_rows;
      src_rows.clear();
      dst_rows.clear();
      for (const int32_t row : group.rows) {
        for (size_t i = static_cast<size_t>(row) * n_used; i < (static_cast<size_t>(row) + 1) * n_used; ++i) {
          if (experts[i] != each.expert) continue;
          src_rows.push_back(is_by_row ? row : places[i]);
          dst_rows.push_back(places[i]);
        }
      }
      if (dst_rows.empty()) continue;
      adapt_rows(each.term, group.use.scale,
                 {.src = arena_.data(src),
                  .src_stride = src.n_cols,
                  .src_rows = tables_.put(std::span<const int32_t>(src_rows)),
                  .dst = arena_.data(dst),
                  .dst_stride = dst.n_cols,
                  .dst_rows = tables_.put(std::span<const int32_t>(dst_rows)),
                  .n = static_cast<int32_t>(dst_rows.size())});
    }
  }
}

}  // namespace candor::backend::cuda
