#include "conformance/rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#include "kernels/kernels.h"

namespace candor::testing {

using backend::Activation;
using backend::KvStore;
using backend::StepBatch;
using backend::Weight;

void BatchBuilder::add(std::span<const TokenId> tokens, int32_t n_past, std::span<const BlockId> blocks) {
  seqs_.push_back({n_rows(), static_cast<int32_t>(tokens.size()), n_past});
  for (size_t i = 0; i < tokens.size(); ++i) {
    out_rows_.push_back(n_rows());
    tokens_.push_back(tokens[i]);
    positions_.push_back(n_past + static_cast<int32_t>(i));
  }
  blocks_.emplace_back(blocks.begin(), blocks.end());
}

void BatchBuilder::add(std::span<const TokenId> tokens, const std::vector<backend::AdapterUse>& uses) {
  add(tokens, 0, std::vector<BlockId>{0});
  seqs_.back().first_use = static_cast<int32_t>(uses_.size());
  seqs_.back().n_uses = static_cast<int32_t>(uses.size());
  uses_.insert(uses_.end(), uses.begin(), uses.end());
}

StepBatch BatchBuilder::view() {
  size_t max_blocks = 0;
  for (const auto& blocks : blocks_) max_blocks = std::max(max_blocks, blocks.size());
  table_.clear();
  for (const auto& blocks : blocks_) {
    table_.insert(table_.end(), blocks.begin(), blocks.end());
    table_.resize(table_.size() + max_blocks - blocks.size(), kNoBlock);
  }
  return {.tokens = tokens_,
          .positions = positions_,
          .seqs = seqs_,
          .block_table = table_,
          .max_blocks = static_cast<int32_t>(max_blocks),
          .out_rows = out_rows_,
          .saves = {},
          .groups = groups_,
          .vector_rows = vector_rows_,
          .vectors = vectors_,
          .uses = uses_};
}

const Weight& Rig::upload(const TensorView& tensor, backend::WeightRole role) {
  auto weight = backend_->upload(tensor, role);
  if (!weight) throw std::runtime_error(weight.error().message);
  weights_.push_back(std::move(*weight));
  return *weights_.back();
}

const Weight& Rig::upload_rows(const std::vector<float>& values, int64_t n_cols) {
  const OwnedTensor tensor =
      tensor_of("input", DType::kF32, {static_cast<int64_t>(values.size()) / n_cols, n_cols}, values);
  return upload(tensor.view(), backend::WeightRole::kEmbedding);
}

void Rig::reserve(int32_t n_slots, int32_t n_cols, int32_t n_rows) {
  backend::ArenaLayout layout;
  layout.slot_cols.assign(static_cast<size_t>(n_slots), n_cols);
  layout.slot_is_output.assign(static_cast<size_t>(n_slots), false);
  layout.max_rows = n_rows;
  layout.max_out_rows = n_rows;
  layout.max_input_cols = n_cols;
  layout.max_positions = 1 << 16;
  const auto reserved = backend_->reserve_arena(layout);
  if (!reserved) throw std::runtime_error(reserved.error().message);
}

KvStore& Rig::kv(int32_t n_layers, int32_t n_kv_heads, int32_t head_dim, int32_t n_blocks, std::optional<KvType> type,
                 int32_t latent_dim) {
  backend::KvLayout layout{n_layers, n_kv_heads, head_dim, type.value_or(backend_->info().default_kv)};
  layout.latent_dim = latent_dim;
  return kv(layout, n_blocks);
}

KvStore& Rig::kv(const backend::KvLayout& layout, int32_t n_blocks) {
  auto kv = backend_->make_kv(layout, n_blocks);
  if (!kv) throw std::runtime_error(kv.error().message);
  kv_ = std::move(*kv);
  return *kv_;
}

KvStore& Rig::states(const backend::StateLayout& layout, int32_t n_states) {
  auto kv = backend_->make_kv({1, 1, 16, backend_->info().default_kv, layout}, {1, n_states});
  if (!kv) throw std::runtime_error(kv.error().message);
  kv_ = std::move(*kv);
  return *kv_;
}

std::vector<float> Rig::run(const StepBatch& batch, const std::function<Activation()>& body) {
  if (!kv_) kv(1, 1, 16, 1);
  backend_->begin_step(batch, *kv_);
  ops().run(op::Collect{body(), {}});
  const backend::LogitsView view = backend_->read_logits(backend_->end_step());
  return {view.data, view.data + static_cast<size_t>(view.n_rows) * static_cast<size_t>(view.n_vocab)};
}

std::vector<float> Rig::run(int32_t n_rows, const std::function<Activation()>& body) {
  std::vector<TokenId> tokens(static_cast<size_t>(n_rows));
  std::iota(tokens.begin(), tokens.end(), 0);
  BatchBuilder builder;
  builder.add(tokens, 0, std::vector<BlockId>{0});
  return run(builder.view(), body);
}

Rig reference_rig() {
  return Rig(backend::make_reference_backend());
}

Rig cpu_rig(int32_t n_threads, const std::string& isa) {
  const kernels::KernelTable* table = isa.empty() ? nullptr : kernels::select_table(isa).value();
  auto made = backend::make_cpu_backend({.n_threads = n_threads, .table = table});
  if (!made) throw std::runtime_error(made.error().message);
  return Rig(std::move(*made));
}

std::vector<std::string> runnable_isas() {
  std::vector<std::string> names;
  for (const kernels::KernelTable* table : kernels::runnable_tables()) names.emplace_back(table->name);
  return names;
}

std::vector<float> random_values(size_t n, uint64_t seed, float amplitude) {
  SplitMix rng(seed);
  std::vector<float> values(n);
  for (float& value : values) value = amplitude * rng.normal();
  return values;
}

std::vector<DType> weight_dtypes() {
  std::vector<DType> dtypes;
  for (const DTypeInfo& info : dtype_table()) {
    if (info.is_weight) dtypes.push_back(info.dtype);
  }
  dtypes.push_back(DType::kQ4_KFast);
  return dtypes;
}

int64_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return static_cast<int64_t>(std::min(a.size(), b.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace candor::testing
