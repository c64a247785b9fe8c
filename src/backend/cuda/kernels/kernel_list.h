#pragma once
// The one list of kernels: a name, which is that of its function, and the struct that it takes. A new kernel is a row
// here and a function in a .cu file of this folder.

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/choose_args.h"
#include "backend/cuda/kernels/limit_args.h"
#include "backend/cuda/kernels/product_args.h"
#include "backend/cuda/kernels/recurrent_args.h"
#include "backend/cuda/kernels/route_args.h"
#include "backend/cuda/kernels/row_args.h"
#include "backend/cuda/kernels/word_args.h"
#include "backend/cuda/launch.h"

// X(name, Args)
// clang-format off
#define CANDOR_CUDA_KERNELS(X) \
  X(try_words, TryWordsArgs) \
  X(add_scaled, AddScaledArgs) \
  X(scale_all, ScaleArgs) \
  X(cap_all, SoftCapArgs) \
  X(clamp_all, ClampArgs) \
  X(gate_all, GateArgs) \
  X(rms_norm_rows, NormArgs) \
  X(layer_norm_rows, NormArgs) \
  X(rope_rows, RopeRowsArgs) \
  X(add_rows, AddRowsArgs) \
  X(scale_rows, ScaleRowsArgs) \
  X(add_gated, AddGatedArgs) \
  X(copy_pieces, CopyPiecesArgs) \
  X(add_experts, AddExpertsArgs) \
  X(add_adapted, AddAdaptedArgs) \
  X(route_rows, RouteRowsArgs) \
  X(sort_visits, SortVisitsArgs) \
  X(read_probe, ReadProbeArgs) \
  X(int8_probe, OpsProbeArgs) \
  X(fma_probe, OpsProbeArgs) \
  X(encode_f32, EncodeArgs) \
  X(encode_bf16, EncodeArgs) \
  X(encode_q8x256, EncodeArgs) \
  X(encode_q8x32, EncodeArgs) \
  X(encode_q8row, EncodeArgs) \
  X(product_f32, ProductArgs) \
  X(product_f16, ProductArgs) \
  X(product_bf16, ProductArgs) \
  X(product_q4_0, ProductArgs) \
  X(product_q4_1, ProductArgs) \
  X(product_q5_0, ProductArgs) \
  X(product_q5_1, ProductArgs) \
  X(product_q8_0, ProductArgs) \
  X(product_q2_k, ProductArgs) \
  X(product_q3_k, ProductArgs) \
  X(product_q4_k, ProductArgs) \
  X(product_q5_k, ProductArgs) \
  X(product_q6_k, ProductArgs) \
  X(product_iq1_s, ProductArgs) \
  X(product_iq1_m, ProductArgs) \
  X(product_iq2_xxs, ProductArgs) \
  X(product_iq2_xs, ProductArgs) \
  X(product_iq2_s, ProductArgs) \
  X(product_iq3_xxs, ProductArgs) \
  X(product_iq3_s, ProductArgs) \
  X(product_iq4_nl, ProductArgs) \
  X(product_iq4_xs, ProductArgs) \
  X(product_tq1_0, ProductArgs) \
  X(product_tq2_0, ProductArgs) \
  X(product_q1_0, ProductArgs) \
  X(product_q2_0, ProductArgs) \
  X(product_mxfp4, ProductArgs) \
  X(product_w8a8, ProductArgs) \
  X(product_fp8, ProductArgs) \
  X(product_fp4, ProductArgs) \
  X(product_q4_k_fast, ProductArgs) \
  X(product_f32_many, ProductArgs) \
  X(product_f16_many, ProductArgs) \
  X(product_bf16_many, ProductArgs) \
  X(product_q4_0_many, ProductArgs) \
  X(product_q4_1_many, ProductArgs) \
  X(product_q5_0_many, ProductArgs) \
  X(product_q5_1_many, ProductArgs) \
  X(product_q8_0_many, ProductArgs) \
  X(product_q2_k_many, ProductArgs) \
  X(product_q3_k_many, ProductArgs) \
  X(product_q4_k_many, ProductArgs) \
  X(product_q5_k_many, ProductArgs) \
  X(product_q6_k_many, ProductArgs) \
  X(product_iq1_s_many, ProductArgs) \
  X(product_iq1_m_many, ProductArgs) \
  X(product_iq2_xxs_many, ProductArgs) \
  X(product_iq2_xs_many, ProductArgs) \
  X(product_iq2_s_many, ProductArgs) \
  X(product_iq3_xxs_many, ProductArgs) \
  X(product_iq3_s_many, ProductArgs) \
  X(product_iq4_nl_many, ProductArgs) \
  X(product_iq4_xs_many, ProductArgs) \
  X(product_tq1_0_many, ProductArgs) \
  X(product_tq2_0_many, ProductArgs) \
  X(product_q1_0_many, ProductArgs) \
  X(product_q2_0_many, ProductArgs) \
  X(product_mxfp4_many, ProductArgs) \
  X(product_w8a8_many, ProductArgs) \
  X(product_fp8_many, ProductArgs) \
  X(product_fp4_many, ProductArgs) \
  X(product_q4_k_fast_many, ProductArgs) \
  X(store_pages, StorePagesArgs) \
  X(attend_few2_bf16, AttendBlocksArgs) \
  X(attend_few2_f32, AttendBlocksArgs) \
  X(rotate_heads, RotateHeadsArgs) \
  X(attend_few2_q8, AttendBlocksArgs) \
  X(attend_few4_bf16, AttendBlocksArgs) \
  X(attend_few4_f32, AttendBlocksArgs) \
  X(attend_few4_q8, AttendBlocksArgs) \
  X(attend_few8_bf16, AttendBlocksArgs) \
  X(attend_few8_f32, AttendBlocksArgs) \
  X(attend_few8_q8, AttendBlocksArgs) \
  X(attend_tiles_bf16, AttendBlocksArgs) \
  X(attend_tiles_f32, AttendBlocksArgs) \
  X(attend_tiles_q8, AttendBlocksArgs) \
  X(attend_combine, AttendBlocksArgs) \
  X(conv_rows, ConvRowsArgs) \
  X(delta_rows, DeltaRowsArgs) \
  X(delta_rows_64, DeltaRowsArgs) \
  X(delta_rows_128, DeltaRowsArgs) \
  X(ssm_rows, SsmRowsArgs) \
  X(scan_logits, ChooseArgs) \
  X(bound_logits, ChooseArgs) \
  X(weigh_logits, ChooseArgs) \
  X(rank_logits, ChooseArgs) \
  X(bucket_weights, ReachArgs) \
  X(find_bucket, ReachArgs) \
  X(gather_bucket, ReachArgs) \
  X(reach_weight, ReachArgs)
// clang-format on

namespace candor::backend::cuda::kernel {
#define CANDOR_CUDA_HANDLE(name, Args) inline constexpr Kernel<Args> name{#name};
CANDOR_CUDA_KERNELS(CANDOR_CUDA_HANDLE)
#undef CANDOR_CUDA_HANDLE
}  // namespace candor::backend::cuda::kernel
