// Products of CudaOps: the input is encoded once for each encoding that the weights want.

#include <cstdint>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/product_kernels.h"
#include "backend/cuda/product_shape.h"
#include "kernels/packed_weight.h"

namespace candor::backend::cuda {

using kernels::Encoding;

namespace {

bool wants(const LinearTerm& term, Encoding encoding) {
  return kernels::encoding_of(own(*term.weight).shape().dtype) == encoding;
}

}  // namespace

void CudaOps::encode(Encoding encoding, const float* src, int64_t stride, int64_t n, const int32_t* src_rows,
                     int32_t n_rows) {
  const size_t row_bytes = kernels::encoded_row_bytes(encoding, n);
  reserve_room(encoded_, row_bytes * static_cast<size_t>(n_rows));
  if (!status_) return;
  encode_rows(launches_, encoding,
              {.dst = encoded_.data(),
               .src = src,
               .src_rows = src_rows,
               .stride = stride,
               .n = n,
               .row_bytes = static_cast<int64_t>(row_bytes),
               .sums_at = static_cast<int64_t>(kernels::encoded_sums_offset(encoding, n)),
               .scales_at = static_cast<int64_t>(kernels::encoded_scales_offset(encoding, n)),
               .halves_at = static_cast<int64_t>(kernels::encoded_halves_offset(n)),
               .n_rows = n_rows});
}

void CudaOps::add_product(const LinearTerm& term, int32_t n_rows) {
  const CudaWeight& weight = own(*term.weight);
  ProductArgs args = product_args(weight.shape(), encoded_.data());
  args.one = {weight.panels(), values_of(term.bias)};
  args.dst = arena_.data(term.dst);
  args.dst_stride = term.dst.n_cols;
  args.n_out = term.dst.n_cols;
  args.most_rows = n_rows;
  run_product(launches_, weight.shape().dtype, args, 1);
}

void CudaOps::compute(const op::Linear& call) {
  if (call.src.n_rows == 0) return;
  for (const Encoding encoding : kernels::kEncodings) {
    bool is_encoded = false;
    for (const LinearTerm& term : call.terms) {
      if (!wants(term, encoding)) continue;
      CANDOR_DCHECK(own(*term.weight).n_cols() == call.src.n_cols);
      if (!is_encoded)
        encode(encoding, arena_.data(call.src), call.src.n_cols, call.src.n_cols, nullptr, call.src.n_rows);
      is_encoded = true;
      add_product(term, call.src.n_rows);
    }
  }
}

// Head by head: the rows of the weight that are the head's own.
void CudaOps::compute(const op::LinearHeads& call) {
  if (call.src.n_rows == 0) return;
  const CudaWeight& heads = own(*call.weight);
  const int32_t n_in = call.src.n_cols / call.n_heads;
  const int32_t n_out = call.dst.n_cols / call.n_heads;
  const int64_t n_panels = n_out / kernels::kPanelRows;
  CANDOR_DCHECK(n_panels * kernels::kPanelRows * call.n_heads == call.dst.n_cols);
  ProductArgs args = product_args(heads.shape(), encoded_.data());
  args.dst_stride = call.dst.n_cols;
  args.n_out = n_out;
  args.most_rows = call.src.n_rows;
  for (int32_t head = 0; head < call.n_heads; ++head) {
    encode(kernels::encoding_of(heads.shape().dtype), arena_.data(call.src) + int64_t{head} * n_in, call.src.n_cols,
           n_in, nullptr, call.src.n_rows);
    args.one = {heads.panels() + head * n_panels * args.panel_bytes, nullptr};
    args.dst = arena_.data(call.dst) + int64_t{head} * n_out;
    run_product(launches_, heads.shape().dtype, args, 1);
  }
}

}  // namespace candor::backend::cuda
