#include "model/arch_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/known_models.h"
#include "model/model.h"
#include "support/tiny_model.h"

namespace candor::model {
namespace {

ArchCost cost_of_known(std::string_view name) {
  return cost_of(find_known_model(name)->spec(), 16);
}

TEST(arch_cost, known_models_have_as_many_parameters_as_their_makers_say) {
  for (const KnownModel& model : known_models()) {
    EXPECT_NEAR(cost_of(model.spec(), 16).parameters.total() / model.n_parameters, 1.0, 0.003) << model.name;
    EXPECT_EQ(find_known_model(model.name), &model);
  }
  EXPECT_TRUE(std::ranges::is_sorted(known_models(), {}, &KnownModel::n_parameters));
  EXPECT_EQ(find_known_model("llama-9"), nullptr);
}

TEST(arch_cost, of_experts_a_row_uses_those_that_it_is_routed_to) {
  EXPECT_NEAR(cost_of_known("mixtral-8x7b").used_parameters() / 12.9e9, 1.0, 0.02);
  EXPECT_NEAR(cost_of_known("qwen3-30b-a3b").used_parameters() / 3.3e9, 1.0, 0.1);
  EXPECT_NEAR(cost_of_known("deepseek-v3").used_parameters() / 37e9, 1.0, 0.03);
  const ArchCost cost = cost_of_known("mixtral-8x7b");
  const double one = decode_work(cost, 0, 1).read_bytes, two = decode_work(cost, 0, 2).read_bytes;
  EXPECT_NEAR(one, 2 * cost.used_parameters(), 1e6);
  EXPECT_GT(two, 1.5 * one) << "two rows seldom choose the same experts";
  EXPECT_LT(decode_work(cost, 0, 64).read_bytes, cost.bytes.total() * 1.001);
}

TEST(arch_cost, keys_and_values_of_named_models) {
  EXPECT_DOUBLE_EQ(cost_of_known("llama-2-7b").kv_bytes_per_token(), 2.0 * 32 * 32 * 128 * 2);
  EXPECT_DOUBLE_EQ(cost_of_known("llama-3.1-70b").kv_bytes_per_token(), 2.0 * 80 * 8 * 128 * 2);
  EXPECT_DOUBLE_EQ(cost_of_known("deepseek-v3").kv_bytes_per_token(), 61.0 * 576 * 2) << "a latent and a rotated part";
  EXPECT_DOUBLE_EQ(cost_of_known("qwen3-next-80b-a3b").kv_bytes_per_token(), 2.0 * 12 * 2 * 256 * 2)
      << "one block of four attends";
}

TEST(arch_cost, a_block_that_reads_the_keys_of_another_keeps_none) {
  ArchSpec spec = find_known_model("llama-2-7b")->spec();
  const ArchCost own = cost_of(spec, 16);
  spec.blocks.back().kv_block = 0;
  const ArchCost shared = cost_of(spec, 16);
  EXPECT_DOUBLE_EQ(own.kv_bytes_per_token() - shared.kv_bytes_per_token(), 2.0 * 32 * 128 * 2);
  const double key_and_value_weights = 2.0 * 4096 * 4096 * 2;
  EXPECT_DOUBLE_EQ(decode_work(own, 1000, 1).read_bytes - decode_work(shared, 1000, 1).read_bytes,
                   key_and_value_weights)
      << "both read as many positions";
}

TEST(arch_cost, a_step_reads_the_experts_of_its_rows_alone) {
  const ArchCost dense = cost_of_known("llama-2-7b"), sparse = cost_of_known("qwen3-30b-a3b");
  EXPECT_NEAR(dense.read_share(1), dense.read_share(512), 1e-12);
  EXPECT_NEAR(sparse.read_share(1) * sparse.bytes.total(), 2 * sparse.used_parameters(), 1e6);
  EXPECT_GT(sparse.read_share(512), 0.97) << "all experts; never the table of the embedding";
  EXPECT_LT(sparse.read_share(512), 1);
}

TEST(arch_cost, rows_see_all_before_them_or_their_window) {
  EXPECT_DOUBLE_EQ(seen_positions(0, 4, 0), 1 + 2 + 3 + 4);
  EXPECT_DOUBLE_EQ(seen_positions(100, 20, 0), 20 * 100 + 20 * 21 / 2);
  EXPECT_DOUBLE_EQ(seen_positions(0, 5, 2), 1 + 2 + 2 + 2 + 2);
  EXPECT_DOUBLE_EQ(seen_positions(10, 3, 2), 6);
}

TEST(arch_cost, attention_grows_with_the_square_of_the_prompt) {
  const ArchCost cost = cost_of_known("llama-2-7b");
  const Work short_one = prefill_work(cost, 512, 1), long_one = prefill_work(cost, 131072, 1);
  EXPECT_DOUBLE_EQ(short_one.attention_flops, 32.0 * 4 * 4096 * (512.0 * 513 / 2));
  EXPECT_LT(short_one.attention_flops, 0.02 * short_one.matrix_flops);
  EXPECT_GT(long_one.attention_flops, 2 * long_one.matrix_flops) << "at 131 072 tokens it is most of the work";
  const Work windowed = prefill_work(cost_of_known("mistral-7b"), 131072, 1);
  EXPECT_LT(windowed.attention_flops, 0.2 * windowed.matrix_flops);
}

TEST(arch_cost, a_loop_without_a_cache_is_the_sum_of_its_prefills) {
  for (const char* name : {"llama-2-7b", "gpt-oss-20b", "qwen3-next-80b-a3b"}) {
    const ArchCost cost = cost_of_known(name);
    Work sum;
    for (double n = 100; n < 350; ++n) {
      const Work one = prefill_work(cost, n, 3);
      sum.matrix_flops += one.matrix_flops;
      sum.attention_flops += one.attention_flops;
      sum.state_flops += one.state_flops;
    }
    const Work naive = naive_work(cost, 100, 250, 3);
    EXPECT_NEAR(naive.matrix_flops / sum.matrix_flops, 1, 1e-9) << name;
    EXPECT_NEAR(naive.attention_flops / sum.attention_flops, 1, 1e-9) << name;
    EXPECT_NEAR(naive.state_flops, sum.state_flops, 1e-9 * sum.state_flops) << name;
  }
}

TEST(arch_cost, reading_and_arithmetic_bound_a_step_together) {
  const Hardware machine{"", "", 100, 10, "", 0, 50};
  EXPECT_DOUBLE_EQ(work_seconds({.matrix_flops = 100, .attention_flops = 50, .read_bytes = 1}, machine), 2);
  EXPECT_DOUBLE_EQ(work_seconds({.matrix_flops = 100, .read_bytes = 40}, machine), 4);
}

TEST(arch_cost, a_file_and_its_shape_agree) {
  for (const bool is_tied : {false, true}) {
    testing::TinyModelOptions options;
    options.is_tied = is_tied;
    const auto file = testing::make_tiny_model(options);
    const auto spec = read_arch(*file);
    ASSERT_TRUE(spec) << spec.error().message;
    const auto of_file = cost_of(*file, *spec);
    ASSERT_TRUE(of_file) << of_file.error().message;
    const ArchCost of_shape = cost_of(*spec, 32);
    EXPECT_EQ(of_file->parameters.head, of_shape.parameters.head);
    EXPECT_EQ(of_file->parameters.tables, of_shape.parameters.tables);
    const double vectors = of_file->parameters.dense - of_shape.parameters.dense;
    EXPECT_GT(vectors, 0);
    EXPECT_LT(vectors, 10 * spec->dim * static_cast<double>(spec->blocks.size()));
    EXPECT_EQ(of_file->kv_bytes_per_token(), of_shape.kv_bytes_per_token());
  }
}

TEST(arch_cost, the_arithmetic_is_that_of_most_products) {
  for (const auto& [dtype, arithmetic] : {std::pair{DType::kF16, Arithmetic::kF32},
                                          {DType::kBF16, Arithmetic::kBf16},
                                          {DType::kQ8_0, Arithmetic::kInt8}}) {
    const auto file = testing::make_tiny_model({.dtype = dtype});
    const auto spec = read_arch(*file);
    ASSERT_TRUE(spec) << spec.error().message;
    EXPECT_EQ(cost_of(*file, *spec).value().arithmetic, arithmetic) << dtype_info(dtype).name;
  }
  EXPECT_EQ(cost_of(find_known_model("llama-2-7b")->spec(), 4.5).arithmetic, Arithmetic::kInt8);
  EXPECT_EQ(cost_of(find_known_model("llama-2-7b")->spec(), 16).arithmetic, Arithmetic::kBf16);
}

TEST(arch_cost, what_nobody_named_is_taken_from_the_nearest_model) {
  EXPECT_EQ(nearest_dense_model(7e9).name, "llama-2-7b");
  EXPECT_EQ(nearest_dense_model(70e9).name, "llama-3.1-70b");
  EXPECT_EQ(nearest_dense_model(1e3).name, "gpt2");
}

}  // namespace
}  // namespace candor::model
