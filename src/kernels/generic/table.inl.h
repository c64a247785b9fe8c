// The table of an instruction set, and every body but those of products, which its families bring (families.inl.h).
// Each of these uses the ones above it.
// clang-format off
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/rows.inl.h"
#include "kernels/generic/delta.inl.h"
#include "kernels/generic/ssm.inl.h"
#include "kernels/generic/encode.inl.h"
#include "kernels/generic/unpack.inl.h"
#include "kernels/generic/attend_pages.inl.h"
#include "kernels/generic/attend.inl.h"
#include "kernels/generic/probes.inl.h"
// clang-format on

inline void matmul(const MatmulArgs& a) {
  switch (family_of(a.shape.dtype)) {
    case KernelFamily::kFloats:
      return multiply_floats(a);
    case KernelFamily::kBlocks:
      return multiply_blocks(a);
    case KernelFamily::kAffineSuperBlocks:
      return multiply_affine_super_blocks(a);
    case KernelFamily::kSymmetricSuperBlocks:
      return multiply_symmetric_super_blocks(a);
    case KernelFamily::kScaledRows:
      return multiply_scaled_rows(a);
    case KernelFamily::kFloatBlocks:
      return multiply_float_blocks(a);
    case KernelFamily::kGrids:
      return multiply_grids(a);
  }
}

inline KernelTable make_table(std::string_view name, std::string_view description) {
  KernelTable table{};
  table.name = name;
  table.description = description;
  table.encode = encode;
  table.matmul = matmul;
  table.rms_norm = rms_norm;
  table.layer_norm = layer_norm;
  table.rope_interleaved = rope_interleaved;
  table.rope_halves = rope_halves;
  table.add_scaled = add_scaled;
  table.scale = scale_row;
  table.add = add_row;
  table.silu_gate = silu_gate;
  table.gelu_gate = gelu_gate;
  table.gelu_erf_gate = gelu_erf_gate;
  table.relu_gate = relu_gate;
  table.relu_squared_gate = relu_squared_gate;
  table.clamped_silu_gate = clamped_silu_gate;
  table.sigmoid_gate = sigmoid_gate;
  table.product_gate = product_gate;
  table.soft_cap = soft_cap;
  table.causal_conv = causal_conv;
  table.delta_row = delta_row;
  table.ssm_rows = ssm_rows;
  table.max = max_row;
  table.exp_sum = exp_sum;
  table.exp_weights = exp_weights;
  table.store_kv = store_kv;
  table.attend = attend<LaneProducts>;
  table.attend_split = attend_split<LaneProducts>;
  table.attend_combine = attend_combine;
  table.read_probe = read_probe<false>;
  table.far_read_probe = read_probe<true>;
  table.int8_probe = int8_probe;
  table.bf16_probe = float_probe<FmaStep>;  // two chains of f32
  table.fma_probe = float_probe<FmaStep>;
  return table;
}
