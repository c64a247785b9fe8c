#pragma once
// What conformance tests need around a backend: weights that live long enough, batches, and a way to put values in and
// get them out. The seam has no such way: values go in as rows of an F32 embedding table, and come out by collect().

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "support/random_weights.h"

namespace candor::testing {

namespace op = backend::op;

// A step's arrays. Rows are added sequence by sequence.
class BatchBuilder {
 public:
  // tokens: one for each new row. blocks: the sequence's whole table. Every row's result is wanted.
  void add(std::span<const TokenId> tokens, int32_t n_past, std::span<const BlockId> blocks);
  // The same of one whose rows use adapters.
  void add(std::span<const TokenId> tokens, const std::vector<backend::AdapterUse>& uses);
  // Rows that see one another; ascending.
  void group(int32_t first_row, int32_t n_rows) { groups_.push_back({first_row, n_rows}); }
  // What a row begins with; ascending.
  void vector(int32_t row, std::span<const float> values) {
    vector_rows_.push_back(row);
    vectors_.insert(vectors_.end(), values.begin(), values.end());
  }
  // Valid while this object lives and is not added to.
  backend::StepBatch view();
  int32_t n_rows() const { return static_cast<int32_t>(tokens_.size()); }

 private:
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<backend::SeqSlice> seqs_;
  std::vector<std::vector<BlockId>> blocks_;
  std::vector<BlockId> table_;
  std::vector<int32_t> out_rows_;
  std::vector<backend::VisibleGroup> groups_;
  std::vector<int32_t> vector_rows_;
  std::vector<float> vectors_;
  std::vector<backend::AdapterUse> uses_;
};

class Rig {
 public:
  explicit Rig(std::unique_ptr<backend::Backend> backend) : backend_(std::move(backend)) {}

  backend::Backend& backend() { return *backend_; }
  backend::Ops& ops() { return backend_->ops(); }
  // Keeps the weight; fails the test on an error.
  const backend::Weight& upload(const TensorView& tensor, backend::WeightRole role);
  // An F32 table whose row i is row i of `values` [n_rows, n_cols].
  const backend::Weight& upload_rows(const std::vector<float>& values, int64_t n_cols);
  // n_slots slots of n_cols columns and n_rows rows.
  void reserve(int32_t n_slots, int32_t n_cols, int32_t n_rows);
  // A K/V store of the backend's own type, big enough for every test.
  backend::KvStore& kv(int32_t n_layers, int32_t n_kv_heads, int32_t head_dim, int32_t n_blocks,
                       std::optional<KvType> type = std::nullopt, int32_t latent_dim = 0);
  backend::KvStore& kv(const backend::KvLayout& layout, int32_t n_blocks);

  // The same with slots of recurrent states and next to no K/V.
  backend::KvStore& states(const backend::StateLayout& layout, int32_t n_states);

  // One step over n_rows rows of one sequence, whose tokens are 0, 1, 2, ...; body returns what is to be read.
  std::vector<float> run(int32_t n_rows, const std::function<backend::Activation()>& body);
  std::vector<float> run(const backend::StepBatch& batch, const std::function<backend::Activation()>& body);

 private:
  std::unique_ptr<backend::Backend> backend_;
  std::vector<std::unique_ptr<backend::Weight>> weights_;
  std::unique_ptr<backend::KvStore> kv_;
};

Rig reference_rig();
Rig cpu_rig(int32_t n_threads = 1, const std::string& isa = {});

// Kernel tables that this machine can run.
std::vector<std::string> runnable_isas();

std::vector<float> random_values(size_t n, uint64_t seed, float amplitude = 1.0f);

// Every type that weights may have, rebased Q4_K included.
std::vector<DType> weight_dtypes();

// Index of the first element whose bits differ, or -1. Lengths must agree.
int64_t first_difference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace candor::testing
