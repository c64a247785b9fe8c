#include "kernels/kernels.h"

#include "kernels/limits.h"
#include "kernels/test_support.h"
#include "platform/float_mode.h"

namespace candor::kernels::testing {

TEST(select_table, the_fastest_runnable_table_is_the_default) {
  const auto table = select_table("");
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(*table, runnable_tables().back());
}

TEST(select_table, every_runnable_table_is_found_by_its_name) {
  for (const KernelTable* table : runnable_tables()) EXPECT_EQ(select_table(table->name).value(), table);
}

TEST(select_table, a_name_that_cannot_run_here_is_an_error_that_lists_what_can) {
  for (const char* name : {"amx9", "AVX2 ", "portable\nx"}) {
    const auto table = select_table(name);
    ASSERT_FALSE(table.has_value());
    EXPECT_EQ(table.error().kind, ErrorKind::kUnsupported);
    EXPECT_NE(table.error().message.find("portable"), std::string::npos);
    EXPECT_EQ(table.error().message.find('\n'), std::string::npos);
  }
}

TEST(probes, every_table_does_operations_of_each_kind) {
  const platform::ScopedFloatMode mode;
  for (const KernelTable* table : runnable_tables()) {
    for (const auto probe : {table->int8_probe, table->bf16_probe, table->fma_probe}) {
      const int64_t few = probe(10);
      EXPECT_GT(few, 0) << table->name;
      EXPECT_EQ(probe(20), 2 * few) << table->name;
    }
  }
}

TEST(probes, a_limit_is_that_of_the_arithmetic) {
  const MachineLimits limits{.int8_ops = 8, .bf16_flops = 16, .f32_flops = 32};
  EXPECT_EQ(limits.ops(arithmetic_of(DType::kQ4_K)), 8);
  EXPECT_EQ(limits.ops(arithmetic_of(DType::kFP8)), 16);
  EXPECT_EQ(limits.ops(arithmetic_of(DType::kF16)), 32);
}

}  // namespace candor::kernels::testing
