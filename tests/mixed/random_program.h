#pragma once
// Random programs of operations, without a model: a few slots, rows of any number, weights on any side.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "mixed/two_sides.h"
#include "support/random_weights.h"

namespace candor::testing::mixed {

using backend::Activation;
using backend::Backend;
using backend::LinearTerm;
using backend::MixedBackend;
using backend::ModelPart;
using backend::Side;
using backend::Weight;
using backend::WeightRole;
namespace op = backend::op;

inline constexpr int32_t kRows = 6;
inline constexpr int32_t kCols = 32;
inline constexpr int32_t kSlots = 5;

// A backend within a step of kRows tokens, with slots of random numbers.
class Bench {
 public:
  explicit Bench(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {
    backend::ArenaLayout arena{.slot_cols = std::vector<int32_t>(kSlots, 2 * kCols),
                               .slot_is_output = std::vector<bool>(kSlots, false),
                               .max_rows = kRows,
                               .max_out_rows = kRows,
                               .max_input_cols = 2 * kCols,
                               .max_positions = 64};
    EXPECT_TRUE(backend_->reserve_arena(arena));
    auto kv = backend_->make_kv({1, 1, 32, KvType::kBf16}, {2});
    EXPECT_TRUE(kv);
    kv_ = std::move(*kv);
    begin();
    SplitMix random(3);
    for (int32_t slot = 0; slot < kSlots; ++slot) {
      std::vector<float> rows(static_cast<size_t>(kRows * 2 * kCols));
      for (float& x : rows) x = random.normal();
      write({slot, kRows, 2 * kCols}, rows);
    }
  }

  // Block b of the model that the weight is said to be of is on the device where b is even.
  const Weight* upload(const std::string& name, WeightRole role, int32_t rows, int32_t block) {
    const OwnedTensor tensor = role == WeightRole::kVector ? random_tensor(name, DType::kF32, {kCols}, 1)
                                                           : random_tensor(name, DType::kF32, {rows, kCols}, 2);
    auto weight = backend_->upload_split(tensor.view(), role, {.place = {ModelPart::kBlock, block}});
    EXPECT_TRUE(weight);
    return weights_.emplace_back(std::move(*weight)).get();
  }
  void begin() {
    batch_.tokens = tokens_;
    batch_.positions = positions_;
    batch_.seqs = seqs_;
    batch_.block_table = blocks_;
    batch_.max_blocks = 1;
    backend_->begin_step(batch_, *kv_);
  }
  void run(const backend::Op& operation) { backend_->ops().run(operation); }
  void write(Activation x, const std::vector<float>& rows) { backend_->write_rows(x, rows); }
  std::vector<float> read(Activation x) {
    const backend::RowsView view = backend_->read_rows(x);
    return {view.data, view.data + static_cast<size_t>(x.n_rows) * static_cast<size_t>(x.n_cols)};
  }
  Backend& backend() { return *backend_; }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<backend::KvStore> kv_;
  std::vector<std::unique_ptr<Weight>> weights_;
  std::array<TokenId, kRows> tokens_{1, 2, 3, 4, 5, 6};
  std::array<int32_t, kRows> positions_{0, 1, 2, 3, 4, 5};
  std::array<backend::SeqSlice, 1> seqs_{{{0, kRows, 0}}};
  std::array<BlockId, 1> blocks_{0};
  backend::StepBatch batch_;
};

// Even blocks on the device, odd ones on the host.
inline backend::Placement in_turn() {
  backend::Placement placement;
  placement.blocks = {Side::kDevice, Side::kHost};
  return placement;
}

struct Weights {
  std::array<const Weight*, 2> square;  // [kCols, kCols], one on each side
  std::array<const Weight*, 2> wide;    // [2 * kCols, kCols]
  std::array<const Weight*, 2> table;   // [64, kCols]
  const Weight* gain;
};

inline Weights upload_all(Bench& bench, bool has_products) {
  Weights weights{};
  for (size_t i = 0; i < 2; ++i) {
    const auto block = static_cast<int32_t>(i);
    const std::string name = std::to_string(i);
    weights.table[i] = bench.upload("table" + name, WeightRole::kEmbedding, 64, block);
    if (!has_products) continue;
    weights.square[i] = bench.upload("square" + name, WeightRole::kLinear, kCols, block);
    weights.wide[i] = bench.upload("wide" + name, WeightRole::kLinear, 2 * kCols, block);
  }
  weights.gain = bench.upload("gain", WeightRole::kVector, 1, 0);
  return weights;
}

void expect_same_slots(Bench& a, Bench& b, const std::string& where);

// Random programs of 40 operations, on the CPU alone and with that device beside it. has_products: else operations on
// rows alone, and tables.
void expect_same_bits(std::unique_ptr<Backend> device, bool has_products, uint64_t n_programs);

}  // namespace candor::testing::mixed
