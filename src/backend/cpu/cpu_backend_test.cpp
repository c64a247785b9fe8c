#include "backend/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/arena.h"
#include "backend/cpu/cpu_kv.h"
#include "backend/cpu/cpu_weight.h"
#include "backend/cpu/rope_tables.h"
#include "backend/cpu/weight_check.h"
#include "backend/cpu/weight_memory.h"
#include "base/checked.h"
#include "kernels/kernels.h"
#include "platform/huge_buffer.h"
#include "support/random_weights.h"

namespace candor::backend {
namespace {

using testing::OwnedTensor;
using testing::random_tensor;
using testing::tensor_of;

std::unique_ptr<Backend> backend_of(int32_t n_threads) {
  auto made = make_cpu_backend({.n_threads = n_threads, .table = *kernels::select_table("portable")});
  EXPECT_TRUE(made);
  return std::move(*made);
}

std::string refusal(const TensorView& tensor, WeightRole role) {
  const auto backend = backend_of(2);
  const auto weight = backend->upload(tensor, role);
  return weight ? "accepted" : weight.error().message;
}

TEST(cpu_backend, says_what_it_runs_on) {
  const auto backend = backend_of(2);
  EXPECT_EQ(backend->info().name, "cpu");
  EXPECT_EQ(backend->info().n_threads, 2);
  EXPECT_NE(backend->info().description.find("2 threads"), std::string::npos);
}

TEST(upload, a_type_that_has_no_decoder_is_refused_by_name_with_the_list) {
  OwnedTensor tensor = tensor_of("blk.3.ffn_up.weight", DType::kF32, {2, 256}, std::vector<float>(512, 1.0f));
  TensorView view = tensor.view();
  view.dtype = DType::kNVFP4;
  const std::string message = refusal(view, WeightRole::kLinear);
  EXPECT_NE(message.find("blk.3.ffn_up.weight"), std::string::npos) << message;
  EXPECT_NE(message.find("NVFP4"), std::string::npos) << message;
  EXPECT_NE(message.find("Q4_K"), std::string::npos) << message;
}

TEST(upload, vectors_are_floats_only) {
  const OwnedTensor tensor = random_tensor("norm", DType::kQ8_0, {64}, 1);
  EXPECT_NE(refusal(tensor.view(), WeightRole::kVector).find("expected F32, F16 or BF16"), std::string::npos);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const OwnedTensor good = random_tensor("norm", dtype, {64}, 1);
    EXPECT_EQ(refusal(good.view(), WeightRole::kVector), "accepted");
  }
}

TEST(upload, a_tensor_with_fewer_bytes_than_its_shape_is_refused) {
  const OwnedTensor tensor = random_tensor("w", DType::kQ4_0, {32, 64}, 1);
  TensorView view = tensor.view();
  view.n_bytes -= 1;
  for (const WeightRole role : {WeightRole::kLinear, WeightRole::kEmbedding})
    EXPECT_NE(refusal(view, role).find("needs"), std::string::npos);
}

TEST(upload, values_that_are_not_finite_are_refused_by_name_in_every_float_type) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      std::vector<float> values(100 * 32, 0.5f);
      values[70 * 32 + 5] = bad;
      const OwnedTensor matrix = tensor_of("blk.0.attn_q.weight", dtype, {100, 32}, values);
      for (const WeightRole role : {WeightRole::kLinear, WeightRole::kEmbedding, WeightRole::kEmbeddingAndLinear}) {
        const std::string message = refusal(matrix.view(), role);
        EXPECT_NE(message.find("\"blk.0.attn_q.weight\""), std::string::npos) << message;
        EXPECT_NE(message.find("row 70"), std::string::npos) << message;
      }
      const OwnedTensor vector = tensor_of("norm", dtype, {100 * 32}, values);
      EXPECT_NE(refusal(vector.view(), WeightRole::kVector).find("\"norm\""), std::string::npos);
    }
  }
}

TEST(upload, scales_that_are_not_finite_are_refused_in_every_block_format) {
  for (const DTypeInfo& info : dtype_table()) {
    if (!info.is_weight || info.block_elements == 1) continue;
    const testing::internal::ScaleFields fields = testing::internal::scale_fields(info.dtype);
    for (const int field : {fields.first, fields.second}) {
      if (field < 0) continue;
      OwnedTensor tensor = random_tensor("w", info.dtype, {20, 512}, 3);
      EXPECT_EQ(refusal(tensor.view(), WeightRole::kLinear), "accepted") << info.name;
      const size_t last_block = tensor.view().row_bytes() * 18 - static_cast<size_t>(info.block_bytes);
      testing::internal::put_f16(tensor.bytes() + last_block + field, std::numeric_limits<float>::infinity());
      const std::string message = refusal(tensor.view(), WeightRole::kLinear);
      EXPECT_NE(message.find("scale in row 17"), std::string::npos) << info.name << ": " << message;
    }
  }
}

TEST(upload, a_scale_that_is_spread_over_words_is_refused_where_it_is_not_finite) {
  OwnedTensor tensor = random_tensor("w", DType::kIQ1_M, {20, 512}, 3);
  EXPECT_EQ(refusal(tensor.view(), WeightRole::kLinear), "accepted");
  std::byte* end = tensor.bytes() + 18 * tensor.view().row_bytes();
  end[-1] = (end[-1] & std::byte{15}) | std::byte{0x70};  // the f16's highest nibble, and the next one
  end[-3] = (end[-3] & std::byte{15}) | std::byte{0xc0};
  const std::string message = refusal(tensor.view(), WeightRole::kLinear);
  EXPECT_NE(message.find("scale in row 17"), std::string::npos) << message;
}

TEST(upload, a_row_scale_that_is_not_finite_is_refused) {
  OwnedTensor tensor = random_tensor("w", DType::kW8A8, {20, 512}, 3);
  EXPECT_EQ(refusal(tensor.view(), WeightRole::kLinear), "accepted");
  const float infinite = std::numeric_limits<float>::infinity();
  std::memcpy(tensor.bytes() + 17 * tensor.view().row_bytes(), &infinite, sizeof infinite);
  const std::string message = refusal(tensor.view(), WeightRole::kLinear);
  EXPECT_NE(message.find("scale in row 17"), std::string::npos) << message;
}

TEST(upload, a_code_that_is_no_number_is_refused) {
  OwnedTensor tensor = random_tensor("w", DType::kFP8, {20, 512}, 3);
  EXPECT_EQ(refusal(tensor.view(), WeightRole::kLinear), "accepted");
  std::byte& code = tensor.bytes()[18 * tensor.view().row_bytes() - 1];
  for (const unsigned nan : {0x7fu, 0xffu}) {
    code = static_cast<std::byte>(nan);
    const std::string message = refusal(tensor.view(), WeightRole::kLinear);
    EXPECT_NE(message.find("a value or a block's scale in row 17 is NaN"), std::string::npos) << message;
  }
  code = std::byte{0x7e};
  EXPECT_EQ(refusal(tensor.view(), WeightRole::kLinear), "accepted");
  for (const float scale : {std::numeric_limits<float>::quiet_NaN(), 0x1p101f, -0x1p-101f, 0x1p-140f}) {
    std::memcpy(tensor.bytes() + 17 * tensor.view().row_bytes(), &scale, sizeof scale);
    EXPECT_NE(refusal(tensor.view(), WeightRole::kLinear).find("scale in row 17"), std::string::npos) << scale;
  }
}

TEST(upload, one_packed_copy_serves_a_tied_embedding) {
  const auto pool = platform::ThreadPool::start({.n_threads = 2});
  const OwnedTensor tensor = random_tensor("table", DType::kQ6_K, {50, 512}, 4);
  cpu::WeightMemory memory;
  const auto tied = cpu::upload_weight(tensor.view(), WeightRole::kEmbeddingAndLinear, memory, **pool);
  ASSERT_TRUE(tied);
  EXPECT_EQ((*tied)->n_bytes(), kernels::packed_bytes((*tied)->shape()));
  std::vector<float> wanted(512);
  std::vector<float> seen(512);
  for (int64_t row = 0; row < 50; ++row) {
    decode_row(tensor.view(), row, wanted.data());
    (*tied)->decode_row(row, seen.data());
    EXPECT_EQ(seen, wanted) << row;
  }
}

TEST(upload, small_weights_stand_one_after_another_in_huge_pages) {
  const auto pool = platform::ThreadPool::start({.n_threads = 2});
  cpu::WeightMemory memory;
  std::vector<std::unique_ptr<cpu::CpuWeight>> experts;
  for (uint32_t i = 0; i < 3; ++i) {
    const OwnedTensor tensor = random_tensor("expert", DType::kQ4_K, {50, 512}, i);
    auto expert = cpu::upload_weight(tensor.view(), WeightRole::kLinear, memory, **pool);
    ASSERT_TRUE(expert);
    experts.push_back(std::move(*expert));
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(experts[0]->panels()) % (size_t{2} << 20), 0u);
  const auto apart = static_cast<ptrdiff_t>(round_up(experts[0]->n_bytes(), size_t{64}));
  EXPECT_EQ(experts[1]->panels() - experts[0]->panels(), apart);
  EXPECT_EQ(experts[2]->panels() - experts[1]->panels(), apart);
}

TEST(upload, memory_of_weights_goes_back_with_the_last_of_them) {
  cpu::WeightMemory memory;
  std::weak_ptr<platform::HugeBuffer> first;
  {
    const auto small = memory.take(100, "a weight");
    ASSERT_TRUE(small);
    first = small->buffer;
    const auto large = memory.take(size_t{40} << 20, "a weight");
    ASSERT_TRUE(large);
    EXPECT_NE(large->buffer, small->buffer);
    EXPECT_FALSE(first.expired());
  }
  EXPECT_TRUE(first.expired());
  const auto next = memory.take(100, "a weight");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->data[99], std::byte{0});
}

TEST(kv, a_number_takes_the_bytes_of_its_type) {
  const auto backend = backend_of(1);
  const size_t numbers = size_t{4} * 2 * 32 * 64;
  EXPECT_EQ((*backend->make_kv({1, 1, 64, KvType::kF32}, 4))->n_bytes(), 4 * numbers);
  EXPECT_EQ((*backend->make_kv({1, 1, 64, KvType::kBf16}, 4))->n_bytes(), 2 * numbers);
  EXPECT_EQ((*backend->make_kv({1, 1, 64, KvType::kQ8_0}, 4))->n_bytes(), numbers / 32 * 34);
  EXPECT_EQ((*backend->make_kv({1, 1, 64, KvType::kQ4}, 4))->n_bytes(), numbers / 32 * 18);
}

TEST(kv, sizes_that_are_not_offered_are_refused) {
  const auto backend = backend_of(1);
  EXPECT_FALSE(backend->make_kv({1, 1, 64, KvType::kBf16}, 0));
  EXPECT_FALSE(backend->make_kv({1, 0, 64, KvType::kBf16}, 4));
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const auto huge = backend->make_kv({1 << 20, kMost, 1 << 20, KvType::kBf16}, kMost);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().kind, ErrorKind::kOutOfMemory);
}

TEST(kv, pages_of_all_layers_and_heads_are_apart) {
  const auto kv = cpu::CpuKv::make({3, 2, 64, KvType::kBf16}, 4);
  ASSERT_TRUE(kv);
  const size_t page = kernels::kv_page_bytes(64);
  EXPECT_EQ((*kv)->n_bytes(), page * 2 * (3 * 2 + 1) * 4);
  EXPECT_EQ((*kv)->n_bytes(), static_cast<size_t>(kv_pool_block_bytes((*kv)->layout()) * 4));
  const std::vector<BlockId> blocks{0};
  std::vector<bool> taken(12, false);
  for (int32_t layer = 0; layer < 3; ++layer) {
    for (int32_t head = 0; head < 2; ++head) {
      const kernels::KvPages pages = (*kv)->pages(blocks, layer, head);
      for (const size_t offset : {pages.k_offset, pages.v_offset}) {
        ASSERT_EQ(offset % page, 0u);
        EXPECT_FALSE(taken[offset / page]);
        taken[offset / page] = true;
      }
    }
  }
}

TEST(arena, slots_do_not_overlap_and_start_aligned) {
  ArenaLayout layout;
  layout.slot_cols = {33, 7, 512};
  layout.slot_is_output = {false, false, true};
  layout.max_rows = 5;
  layout.max_out_rows = 2;
  auto arena = cpu::Arena::make(layout);
  ASSERT_TRUE(arena);
  EXPECT_EQ(ArenaPlaces::n_bytes(layout), 768u + 256u + 4096u);
  const Activation slots[] = {{0, 5, 33}, {1, 5, 7}, {2, 2, 512}};
  for (int i = 0; i < 3; ++i) {
    float* data = arena->data(slots[i]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    for (int32_t k = 0; k < slots[i].n_rows * slots[i].n_cols; ++k) data[k] = static_cast<float>(i);
  }
  for (int i = 0; i < 3; ++i) {
    for (int32_t k = 0; k < slots[i].n_rows * slots[i].n_cols; ++k) ASSERT_EQ(arena->data(slots[i])[k], i);
  }
  layout.slot_cols[1] = -1;
  EXPECT_FALSE(cpu::Arena::make(layout));
}

TEST(rope_tables, rows_depend_on_their_position_alone) {
  const auto pool = platform::ThreadPool::start({.n_threads = 2});
  RopeSpec spec;
  spec.n_dims = 64;
  cpu::RopeTables tables;
  std::vector<int32_t> positions(100);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(7 * i);
  tables.begin_step();
  StepBatch batch{};
  batch.positions = positions;
  const cpu::RopeRows all = tables.rows(spec, batch, **pool);
  const std::vector<float> wanted(all.sin + 40 * 32, all.sin + 41 * 32);
  EXPECT_EQ(tables.rows(spec, batch, **pool).sin, all.sin);
  tables.begin_step();
  const std::vector<int32_t> one{positions[40]};
  batch.positions = one;
  const cpu::RopeRows alone = tables.rows(spec, batch, **pool);
  EXPECT_EQ(std::memcmp(alone.sin, wanted.data(), 32 * sizeof(float)), 0);
}

TEST(rope_tables, each_pair_turns_by_the_position_of_its_axis) {
  const auto pool = platform::ThreadPool::start({.n_threads = 1});
  RopeSpec spec;
  spec.n_dims = 8;
  cpu::RopeTables tables;
  const std::vector<int32_t> positions = {11, 5, 9};
  StepBatch batch{};
  batch.positions = positions;
  tables.begin_step();
  const cpu::RopeRows plain = tables.rows(spec, batch, **pool);
  const std::vector<float> wanted(plain.cos, plain.cos + 12);
  spec.axes = {0, 2, 1, 0};
  const std::vector<int32_t> axes = {11, 9, 5};
  tables.begin_step();
  const std::vector<int32_t> one = {3};
  batch.positions = one;
  batch.axes = axes;
  batch.n_axes = 3;
  const cpu::RopeRows row = tables.rows(spec, batch, **pool);
  EXPECT_EQ(row.cos[0], wanted[0]);
  EXPECT_EQ(row.cos[1], wanted[4 + 1]);
  EXPECT_EQ(row.cos[2], wanted[8 + 2]);
  EXPECT_EQ(row.cos[3], wanted[3]);
}

}  // namespace
}  // namespace candor::backend
