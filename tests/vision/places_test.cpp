// Answers to images on every kernel table that runs here, and over ranks: one answer.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "engine/engine_impl.h"
#include "kernels/kernels.h"
#include "support/thread_ranks.h"
#include "vision_engine.h"

namespace candor::testing {
namespace {

class Places : public ::testing::TestWithParam<const char*> {};

TEST_P(Places, every_instruction_set_gives_one_answer) {
  const auto engine = open(GetParam());
  ASSERT_NE(engine, nullptr);
  const Request request = request_of(long_talk(GetParam(), 2));
  const Answer expected = answer(*engine, request);
  for (const kernels::KernelTable* table : kernels::runnable_tables()) {
    setenv("CANDOR_ISA", std::string(table->name).c_str(), 1);
    const auto other = open(GetParam());
    unsetenv("CANDOR_ISA");
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(answer(*other, request), expected) << table->name;
  }
}

TEST_P(Places, ranks_give_one_answer) {
  const auto engine = open(GetParam());
  ASSERT_NE(engine, nullptr);
  const Request request = request_of(long_talk(GetParam(), 2));
  const Answer expected = answer(*engine, request);
  const auto ranks = engine::open_with_backend(options_of(GetParam()), thread_ranks(2));
  ASSERT_TRUE(ranks) << ranks.error().message;
  EXPECT_EQ(answer(**ranks, request), expected);
  EXPECT_TRUE(engine->info().shows_attention);
  EXPECT_FALSE((*ranks)->info().shows_attention);
  Request looking = request;
  looking.sampling.explain = looking.sampling.attention = true;
  const auto looked = (*ranks)->generate(looking);
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().field, "attention");
  looking.sampling.attention = false;
  EXPECT_TRUE((*ranks)->generate(looking));
}

INSTANTIATE_TEST_SUITE_P(all, Places, ::testing::ValuesIn(kVisionGoldens),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace candor::testing
