#include "kernels/kernels.h"

#include "kernels/test_support.h"

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

}  // namespace candor::kernels::testing
