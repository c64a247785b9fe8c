#include "backend/all/make_backend.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace candor::backend {
namespace {

TEST(make_backend, both_backends_open_by_name) {
  for (const char* name : {"cpu", "reference"}) {
    const auto backend = make_backend(name, {.n_threads = 1});
    ASSERT_TRUE(backend) << name;
    EXPECT_EQ((*backend)->info().name, name);
    EXPECT_EQ((*backend)->info().n_threads, 1);
  }
  const auto advised = make_backend("cpu", {});
  ASSERT_TRUE(advised);
  EXPECT_GE((*advised)->info().n_threads, 1);
}

TEST(make_backend, an_unknown_name_is_refused_with_the_list) {
  const auto refused = make_backend("metal", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "backend \"metal\" is unknown, expected one of: cpu, cuda, reference");
}

TEST(make_backend, thread_counts_and_instruction_sets_that_do_not_exist_are_refused) {
  for (const int32_t n : {-1, 100000}) EXPECT_FALSE(make_backend("cpu", {.n_threads = n})) << n;
  ::setenv("CANDOR_ISA", "z80", 1);
  const auto refused = make_backend("cpu", {.n_threads = 1});
  ::unsetenv("CANDOR_ISA");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("z80"), std::string::npos);
}

}  // namespace
}  // namespace candor::backend
