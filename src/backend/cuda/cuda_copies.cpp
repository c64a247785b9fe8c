// Operations of CudaOps that move columns and rows.

#include <cstdint>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/kernels/kernel_list.h"

namespace candor::backend::cuda {
namespace {

void copy_pieces(Launcher& launcher, const CopyPiecesArgs& args) {
  const int64_t n = int64_t{args.n_rows} * args.n_pieces * args.width;
  if (n == 0) return;
  launcher.run(kernel::copy_pieces, launch_over(n), args);
}

}  // namespace

void CudaOps::compute(const op::Columns& call) {
  copy_pieces(launches_, {.dst = arena_.data(call.dst),
                          .src = arena_.data(call.src) + call.first,
                          .dst_stride = call.dst.n_cols,
                          .src_stride = call.src.n_cols,
                          .width = call.dst.n_cols,
                          .n_pieces = 1,
                          .n_rows = call.dst.n_rows});
}

void CudaOps::compute(const op::Gather& call) {
  copy_pieces(launches_, {.dst = arena_.data(call.dst),
                          .src = arena_.data(call.src),
                          .src_rows = out_rows_,
                          .dst_stride = call.dst.n_cols,
                          .src_stride = call.src.n_cols,
                          .width = call.dst.n_cols,
                          .n_pieces = 1,
                          .n_rows = call.dst.n_rows});
}

void CudaOps::compute(const op::Unzip& call) {
  const int32_t n_pieces = call.first.n_cols / call.width;
  const int32_t other = call.second.n_cols / n_pieces;
  CopyPiecesArgs args{.dst = arena_.data(call.first),
                      .src = arena_.data(call.src),
                      .dst_stride = call.first.n_cols,
                      .src_stride = call.src.n_cols,
                      .dst_step = call.width,
                      .src_step = call.width + other,
                      .width = call.width,
                      .n_pieces = n_pieces,
                      .n_rows = call.src.n_rows};
  copy_pieces(launches_, args);
  args.dst = arena_.data(call.second);
  args.src += call.width;
  args.dst_stride = call.second.n_cols;
  args.dst_step = args.width = other;
  copy_pieces(launches_, args);
}

void CudaOps::compute(const op::Zip& call) {
  const int32_t n_pieces = call.first.n_cols / call.width;
  const int32_t other = call.second.n_cols / n_pieces;
  CopyPiecesArgs args{.dst = arena_.data(call.dst),
                      .src = arena_.data(call.first),
                      .dst_stride = call.dst.n_cols,
                      .src_stride = call.first.n_cols,
                      .dst_step = call.width + other,
                      .src_step = call.width,
                      .width = call.width,
                      .n_pieces = n_pieces,
                      .n_rows = call.dst.n_rows};
  copy_pieces(launches_, args);
  args.dst += call.width;
  args.src = arena_.data(call.second);
  args.src_stride = call.second.n_cols;
  args.src_step = args.width = other;
  copy_pieces(launches_, args);
}

}  // namespace candor::backend::cuda
