// Adapters of models on two sides go where the weights are that they change, and give the bits of one side.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "adapters/adapted_model.h"
#include "mixed/two_sides.h"

namespace candor::testing {
namespace {

class AdapterOnTwoSides : public ::testing::TestWithParam<const char*> {};

TEST_P(AdapterOnTwoSides, gives_the_bits_of_the_cpu_alone_at_every_cut) {
  const std::string name = GetParam();
  const std::filesystem::path path = model_path(base_of(name));
  const std::vector<backend::AdapterUse> uses = {{0, 0.75f}};
  AdaptedModel alone(path, make_fast_cpu());
  ASSERT_TRUE(alone.add(adapter_path(name)));
  const std::vector<Logits> expected = alone.logits(uses);
  const auto file = model::open_model(path);
  ASSERT_TRUE(file);
  const auto spec = model::read_arch(**file);
  ASSERT_TRUE(spec);
  for (const backend::Placement& placement : placements_of(*spec)) {
    AdaptedModel both(path, make_two_sides(placement));
    ASSERT_TRUE(both.add(adapter_path(name)));
    EXPECT_EQ(both.logits(uses, 5), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(all, AdapterOnTwoSides, ::testing::ValuesIn(kAdapters),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace candor::testing
