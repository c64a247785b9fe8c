#include "model/arch_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>

#include "backend/op_specs.h"
#include "backend/state_specs.h"
#include "model/families/families.h"
#include "model/model.h"
#include "model/role_traits.h"
#include "model/tensor_roles.h"
#include "model/weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {
namespace {

constexpr double kStateElementBytes = 4;

AttentionShape attention_of(const BlockSpec& block, double kv_element_bytes) {
  const backend::AttnSpec& attn = block.attn;
  const double n_planes = attn.latent_dim > 0 ? 1 : 2;
  const double position_bytes = n_planes * attn.n_kv_heads * attn.head_dim * kv_element_bytes;
  return {.n_blocks = 1,
          .pair_flops = 2.0 * attn.n_heads * (attn.head_dim + attn.value_dim()),
          .position_bytes = position_bytes,
          .kept_bytes = block.shares_kv() ? 0 : position_bytes,
          .window = static_cast<double>(attn.window_tokens)};
}

void add_attention(std::vector<AttentionShape>& shapes, const AttentionShape& added) {
  const auto is_alike = [&added](const AttentionShape& shape) {
    return shape.pair_flops == added.pair_flops && shape.position_bytes == added.position_bytes &&
           shape.kept_bytes == added.kept_bytes && shape.window == added.window;
  };
  const auto found = std::ranges::find_if(shapes, is_alike);
  if (found == shapes.end()) return shapes.push_back(added);
  ++found->n_blocks;
}

double conv_flops(const backend::ConvSpec& conv) {
  return 2.0 * conv.n_taps * conv.n_channels;
}

// Of a row in one recurrent block. A delta rule's state decays (1), is read for the key and corrected (4), and read for
// the query (2); a state space's decays, takes the row in (3), and is read (2).
double state_flops(const BlockSpec& block) {
  double flops = 0;
  const backend::DeltaSpec& delta = block.delta;
  if (block.has_delta())
    flops += 7.0 * delta.n_v_heads * delta.k_dim * delta.v_dim + 2.0 * delta.n_taps * delta.n_channels();
  if (block.has_ssm())
    flops += 5.0 * block.ssm.n_heads * static_cast<double>(block.ssm.head_floats()) + conv_flops(block.ssm.conv());
  if (block.has_gated_conv()) flops += conv_flops(block.gated_conv) + 2.0 * block.gated_conv.n_channels;
  return flops;
}

// All but the weights.
ArchCost work_of(const ArchSpec& spec) {
  ArchCost cost;
  const double kv_element_bytes = usual_kv(spec, KvType::kBf16) == KvType::kF32 ? 4 : 2;
  for (const BlockSpec& block : spec.blocks) {
    if (block.is_recurrent()) {
      cost.state_flops += state_flops(block);
      cost.state_bytes += static_cast<double>(block.state_floats()) * kStateElementBytes;
    }
    if (block.has_attention) add_attention(cost.attention, attention_of(block, kv_element_bytes));
    if (!block.ffn.is_moe()) continue;
    cost.n_experts = block.ffn.moe.n_experts;
    cost.n_used = block.ffn.moe.n_used;
  }
  return cost;
}

std::vector<TensorRole> mixers_of(const BlockSpec& block) {
  using enum TensorRole;
  std::vector<TensorRole> roles;
  const auto add = [&roles](std::initializer_list<TensorRole> more) { roles.insert(roles.end(), more); };
  if (block.has_delta()) add({kDeltaQkv, kDeltaGate, kDeltaAlpha, kDeltaBeta, kDeltaTaps, kDeltaOut});
  if (block.has_gated_conv()) add({kConvB, kConvC, kConvX, kConvOut});
  if (block.has_ssm()) add({kSsmGate, kSsmChannels, kSsmStep, kSsmOut});
  if (!block.has_attention) return roles;
  if (!block.has_latent()) {
    add({kQ, kAttnOut});
    if (!block.shares_kv()) add({kK});
    if (!block.shares_kv() && !block.values_are_keys) add({kV});
    return roles;
  }
  add({kQueryUp, kLatent, kLatentKey, kLatentValue, kAttnOut});
  if (block.latent.query_rank > 0) roles.push_back(kQueryDown);
  return roles;
}

std::vector<TensorRole> matrices_of(const BlockSpec& block) {
  using enum TensorRole;
  std::vector<TensorRole> roles = mixers_of(block);
  if (!block.has_ffn()) return roles;
  if (!block.ffn.is_moe()) {
    roles.insert(roles.end(), {kUp, kDown});
    if (block.ffn.is_gated) roles.push_back(kGate);
    return roles;
  }
  roles.insert(roles.end(), {kRouter, kExpertUp, kExpertDown});
  if (block.ffn.is_gated) roles.push_back(kExpertGate);
  if (block.ffn.shared_dim > 0) roles.insert(roles.end(), {kSharedGate, kSharedUp, kSharedDown});
  if (block.ffn.shared_dim > 0 && block.ffn.is_shared_gated) roles.push_back(kSharedRouter);
  return roles;
}

void add_matrix(WeightSums& sums, const ArchSpec& spec, TensorRole role, int32_t layer) {
  // Without a rank the query is projected from the stream.
  const BlockSpec& block = spec.blocks[static_cast<size_t>(layer)];
  const bool is_unranked = role == TensorRole::kQueryUp && block.latent.query_rank == 0;
  const Shape shape = expected_shape(spec, is_unranked ? TensorRole::kQ : role, layer);
  const double n = static_cast<double>(shape.n_elements());
  if (is_expert(role)) {
    sums.experts += n * block.ffn.moe.n_experts;
  } else {
    sums.dense += n;
  }
}

// To the sum that the tensor's role belongs to.
double& sum_of(WeightSums& sums, const Binding& binding, const ArchSpec& spec) {
  if (binding.role == TensorRole::kEmbedding) {
    return spec.head.tied && !spec.head.is_absent ? sums.head : sums.tables;
  }
  if (binding.role == TensorRole::kPositions || binding.role == TensorRole::kTokenTypes) return sums.tables;
  if (binding.role == TensorRole::kHead || binding.role == TensorRole::kHeadBias) return sums.head;
  return is_expert(binding.role) ? sums.experts : sums.dense;
}

Arithmetic arithmetic_of_bits(double bits_per_weight) {
  constexpr double kMostInt8Bits = 9, kMostBf16Bits = 16;
  if (bits_per_weight <= kMostInt8Bits) return Arithmetic::kInt8;
  return bits_per_weight <= kMostBf16Bits ? Arithmetic::kBf16 : Arithmetic::kF32;
}

// How much of the experts n_rows rows read: each expert that at least one row goes to.
double expert_share(const ArchCost& cost, double n_rows) {
  return 1 - std::pow(1 - cost.n_used / cost.n_experts, n_rows);
}

// seen_positions(0, n) for n = 0, 1, ..., n_last, added up.
double seen_by_all_prefixes(double n_last, double window) {
  const auto whole = [](double n) { return n * (n + 1) * (n + 2) / 6; };
  if (window <= 0 || n_last <= window) return whole(n_last);
  const double beyond = n_last - window;
  return whole(window) + beyond * window * (window + 1) / 2 + window * beyond * (beyond + 1) / 2;
}

}  // namespace

double ArchCost::kv_bytes_per_token() const {
  double sum = 0;
  for (const AttentionShape& shape : attention) sum += shape.n_blocks * shape.kept_bytes;
  return sum;
}

double ArchCost::read_share(double n_rows) const {
  return bytes.total() > 0 ? weights_read(*this, n_rows) / bytes.total() : 1;
}

ArchCost cost_of(const ArchSpec& spec, double bits_per_weight) {
  ArchCost cost = work_of(spec);
  for (int32_t layer = 0; layer < static_cast<int32_t>(spec.blocks.size()); ++layer) {
    for (const TensorRole role : matrices_of(spec.blocks[static_cast<size_t>(layer)])) {
      add_matrix(cost.parameters, spec, role, layer);
    }
  }
  const double table = static_cast<double>(spec.vocab) * spec.dim;
  if (!spec.head.is_absent) cost.parameters.head = table;
  if (!spec.head.tied || spec.head.is_absent) cost.parameters.tables = table;
  if (spec.embed.has_positions) cost.parameters.tables += static_cast<double>(spec.max_positions) * spec.dim;
  const WeightSums& n = cost.parameters;
  const double bytes = bits_per_weight / 8;
  cost.bytes = {n.dense * bytes, n.head * bytes, n.experts * bytes, n.tables * bytes};
  cost.arithmetic = arithmetic_of_bits(bits_per_weight);
  return cost;
}

Result<ArchCost> cost_of(const formats::ModelFile& file, const ArchSpec& spec) {
  CANDOR_ASSIGN(const Family* family, family_of(file));
  CANDOR_ASSIGN(const std::vector<Binding> bindings, bind_tensors(file, *family, spec));
  ArchCost cost = work_of(spec);
  std::array<WeightSums, std::size(kArithmetics)> by_arithmetic;
  for (const Binding& binding : bindings) {
    const auto n = static_cast<double>(binding.view.shape.n_elements());
    sum_of(cost.parameters, binding, spec) += n;
    sum_of(by_arithmetic[static_cast<size_t>(arithmetic_of(binding.view.dtype))], binding, spec) += n;
    sum_of(cost.bytes, binding, spec) += static_cast<double>(binding.view.n_bytes);
  }
  cost.arithmetic = *std::ranges::max_element(kArithmetics, {}, [&](Arithmetic arithmetic) {
    return cost.used(by_arithmetic[static_cast<size_t>(arithmetic)]);
  });
  return cost;
}

double weights_read(const ArchCost& cost, double n_rows) {
  return cost.bytes.dense + cost.bytes.head + cost.bytes.experts * expert_share(cost, n_rows);
}

double seen_positions(double n_past, double n_rows, double window) {
  const auto of_prefix = [window](double n) {
    if (window <= 0 || n <= window) return n * (n + 1) / 2;
    return window * (window + 1) / 2 + (n - window) * window;
  };
  return of_prefix(n_past + n_rows) - of_prefix(n_past);
}

Work prefill_work(const ArchCost& cost, double n_prompt, double n_batch) {
  const double n_rows = n_prompt * n_batch;
  const double by_row = cost.used_parameters() - cost.parameters.head;
  Work work{.matrix_flops = 2 * (by_row * n_rows + cost.parameters.head * n_batch),
            .state_flops = cost.state_flops * n_rows,
            .read_bytes = weights_read(cost, n_rows) + 2 * cost.state_bytes * n_batch};
  for (const AttentionShape& shape : cost.attention) {
    work.attention_flops += shape.n_blocks * shape.pair_flops * seen_positions(0, n_prompt, shape.window) * n_batch;
  }
  return work;
}

Work decode_work(const ArchCost& cost, double n_past, double n_batch) {
  Work work{.matrix_flops = 2 * cost.used_parameters() * n_batch,
            .state_flops = cost.state_flops * n_batch,
            .read_bytes = weights_read(cost, n_batch) + 2 * cost.state_bytes * n_batch};
  for (const AttentionShape& shape : cost.attention) {
    const double n_seen = seen_positions(n_past, 1, shape.window) * n_batch * shape.n_blocks;
    work.attention_flops += shape.pair_flops * n_seen;
    work.read_bytes += shape.position_bytes * n_seen;
  }
  return work;
}

Work naive_work(const ArchCost& cost, double n_prompt, double n_new, double n_batch) {
  const double n_rows = (n_prompt * n_new + n_new * (n_new - 1) / 2) * n_batch;
  const double by_row = cost.used_parameters() - cost.parameters.head;
  Work work{.matrix_flops = 2 * (by_row * n_rows + cost.parameters.head * n_new * n_batch),
            .state_flops = cost.state_flops * n_rows,
            .read_bytes = n_new * weights_read(cost, n_prompt * n_batch)};
  for (const AttentionShape& shape : cost.attention) {
    const double n_seen = seen_by_all_prefixes(n_prompt + n_new - 1, shape.window) -
                          seen_by_all_prefixes(n_prompt - 1, shape.window);
    work.attention_flops += shape.n_blocks * shape.pair_flops * n_seen * n_batch;
  }
  return work;
}

double work_seconds(const Work& work, const Hardware& hardware) {
  const double attention_rate = hardware.attention_flops > 0 ? hardware.attention_flops : hardware.flops;
  const double arithmetic =
      (work.matrix_flops + work.state_flops) / hardware.flops + work.attention_flops / attention_rate;
  return std::max(arithmetic, work.read_bytes / hardware.bytes_per_s);
}

}  // namespace candor::model
