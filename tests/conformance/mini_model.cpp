#include "conformance/mini_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace candor::testing {

using backend::Activation;
using backend::kBlockTokens;
using backend::LinearTerm;
using backend::Weight;
using backend::WeightRole;

namespace {

enum Slot : int32_t { kX, kH, kQ, kK, kV, kHeads, kGate, kUp, kLogits, kSlots };
constexpr int32_t kMaxRows = 2048;

}  // namespace

// A prompt that is being read.
struct MiniModel::Running {
  size_t prompt = 0;
  int32_t n_past = 0;
  std::vector<BlockId> blocks;
  std::vector<float>* logits = nullptr;
};

MiniModel::MiniModel(Rig rig, const MiniShape& shape) : rig_(std::move(rig)), shape_(shape) {
  const int32_t heads = shape.n_heads * shape.head_dim;
  const int32_t kv_heads = shape.n_kv_heads * shape.head_dim;
  const OwnedTensor table = random_tensor("table", shape.dtype, {shape.vocab, shape.dim}, ++seed_, 0.05f);
  table_ = &rig_.upload(table.view(), WeightRole::kEmbeddingAndLinear);
  for (int i = 0; i < 2; ++i) {
    layers_.push_back({&vector(shape.dim), &matrix(heads, shape.dim), &matrix(kv_heads, shape.dim),
                       &matrix(kv_heads, shape.dim), &vector(heads), &matrix(shape.dim, heads), &vector(shape.dim),
                       &matrix(shape.ffn_dim, shape.dim), &matrix(shape.ffn_dim, shape.dim),
                       &matrix(shape.dim, shape.ffn_dim)});
  }
  final_norm_ = &vector(shape.dim);
  reserve_arena(kMaxRows);
}

const Weight& MiniModel::matrix(int64_t n_out, int64_t n_in) {
  const OwnedTensor tensor = random_tensor("w", shape_.dtype, {n_out, n_in}, ++seed_, 0.05f);
  return rig_.upload(tensor.view(), WeightRole::kLinear);
}

const Weight& MiniModel::vector(int64_t n) {
  std::vector<float> values = random_values(static_cast<size_t>(n), ++seed_, 0.1f);
  for (float& value : values) value += 1.0f;
  const OwnedTensor tensor = tensor_of("v", DType::kF32, {n}, values);
  return rig_.upload(tensor.view(), WeightRole::kVector);
}

void MiniModel::reserve_arena(int32_t n_rows) {
  const int32_t heads = shape_.n_heads * shape_.head_dim;
  const int32_t kv_heads = shape_.n_kv_heads * shape_.head_dim;
  backend::ArenaLayout layout;
  layout.slot_cols = {shape_.dim, shape_.dim,     heads,          kv_heads,    kv_heads,
                      heads,      shape_.ffn_dim, shape_.ffn_dim, shape_.vocab};
  layout.slot_is_output.assign(kSlots, false);
  layout.max_rows = n_rows;
  layout.max_out_rows = n_rows;
  layout.max_input_cols = std::max({shape_.dim, heads, shape_.ffn_dim});
  layout.max_positions = n_rows;
  const auto reserved = rig_.backend().reserve_arena(layout);
  if (!reserved) throw std::runtime_error(reserved.error().message);
}

void MiniModel::block(const Layer& layer, int32_t index, int32_t n_rows) {
  backend::Ops& ops = rig_.ops();
  const auto at = [&](Slot slot, int32_t n_cols) { return Activation{slot, n_rows, n_cols}; };
  const Activation x = at(kX, shape_.dim);
  const Activation h = at(kH, shape_.dim);
  const Activation q = at(kQ, shape_.n_heads * shape_.head_dim);
  const Activation k = at(kK, shape_.n_kv_heads * shape_.head_dim);
  const Activation v = at(kV, shape_.n_kv_heads * shape_.head_dim);
  const Activation heads = at(kHeads, shape_.n_heads * shape_.head_dim);
  const Activation gate = at(kGate, shape_.ffn_dim);
  const Activation up = at(kUp, shape_.ffn_dim);
  backend::AttnSpec attn;
  attn.n_heads = shape_.n_heads;
  attn.n_kv_heads = shape_.n_kv_heads;
  attn.head_dim = shape_.head_dim;
  attn.scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
  attn.rope.n_dims = shape_.head_dim;

  ops.run(op::Norm{h, x, *layer.attn_norm, {}});
  const LinearTerm qkv[] = {{layer.q, layer.q_bias, q}, {layer.k, nullptr, k}, {layer.v, nullptr, v}};
  ops.run(op::Linear{qkv, h});
  ops.run(op::Rope{q, attn.n_heads, attn.head_dim, &attn.rope});
  ops.run(op::Rope{k, attn.n_kv_heads, attn.head_dim, &attn.rope});
  ops.run(op::Attend{heads, {q, k, v, index}, &attn});
  const LinearTerm out[] = {{layer.out, nullptr, h}};
  ops.run(op::Linear{out, heads});
  ops.run(op::Add{x, h, 1.0f});
  ops.run(op::Norm{h, x, *layer.ffn_norm, {}});
  const LinearTerm gate_up[] = {{layer.gate, nullptr, gate}, {layer.up, nullptr, up}};
  ops.run(op::Linear{gate_up, h});
  ops.run(op::Gate{gate, gate, up, backend::GateKind::kSilu});
  const LinearTerm down[] = {{layer.down, nullptr, h}};
  ops.run(op::Linear{down, gate});
  ops.run(op::Add{x, h, 1.0f});
}

Activation MiniModel::forward(int32_t n_rows) {
  const Activation x{kX, n_rows, shape_.dim};
  const Activation h{kH, n_rows, shape_.dim};
  const Activation logits{kLogits, n_rows, shape_.vocab};
  rig_.ops().run(op::Embed{x, table_, 1.0f});
  for (size_t i = 0; i < layers_.size(); ++i) block(layers_[i], static_cast<int32_t>(i), n_rows);
  rig_.ops().run(op::Norm{h, x, *final_norm_, {}});
  const LinearTerm head[] = {{table_, nullptr, logits}};
  rig_.ops().run(op::Linear{head, h});
  return logits;
}

// At most `chunk` rows of every prompt that has some left.
void MiniModel::step(const std::vector<std::vector<TokenId>>& prompts, std::vector<Running>& running, int32_t chunk) {
  BatchBuilder builder;
  std::vector<int32_t> counts;
  for (const Running& r : running) {
    const std::vector<TokenId>& prompt = prompts[r.prompt];
    const int32_t left = static_cast<int32_t>(prompt.size()) - r.n_past;
    counts.push_back(std::min(chunk, left));
    if (counts.back() == 0) continue;
    builder.add({prompt.data() + r.n_past, static_cast<size_t>(counts.back())}, r.n_past, r.blocks);
  }
  const std::vector<float> seen = rig_.run(builder.view(), [&] { return forward(builder.n_rows()); });
  int64_t at = 0;
  for (size_t i = 0; i < running.size(); ++i) {
    const int64_t n = int64_t{counts[i]} * shape_.vocab;
    running[i].logits->insert(running[i].logits->end(), seen.begin() + at, seen.begin() + at + n);
    running[i].n_past += counts[i];
    at += n;
  }
}

std::vector<std::vector<float>> MiniModel::logits(const std::vector<std::vector<TokenId>>& prompts, const Plan& plan) {
  std::vector<std::vector<float>> all(prompts.size());
  std::vector<std::vector<Running>> groups;
  BlockId next = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const size_t p = plan.reversed ? prompts.size() - 1 - i : i;
    Running running{p, 0, {}, &all[p]};
    for (size_t at = 0; at < prompts[p].size(); at += kBlockTokens) running.blocks.push_back(next++);
    std::reverse(running.blocks.begin(), running.blocks.end());
    if (!plan.together || groups.empty()) groups.emplace_back();
    groups.back().push_back(std::move(running));
  }
  rig_.kv(2, shape_.n_kv_heads, shape_.head_dim, next);
  for (std::vector<Running>& group : groups) {
    const auto unread = [&](const Running& r) {
      return r.logits->size() < prompts[r.prompt].size() * static_cast<size_t>(shape_.vocab);
    };
    while (std::any_of(group.begin(), group.end(), unread)) step(prompts, group, plan.chunk_rows);
  }
  return all;
}

}  // namespace candor::testing
