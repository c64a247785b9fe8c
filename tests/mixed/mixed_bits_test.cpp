// Models whose parts are on two sides give the bits of one side alone, however they are cut.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "families/golden_logits.h"
#include "mixed/two_sides.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "support/model_runner.h"
#include "support/shared_data.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

std::unique_ptr<formats::ModelFile> open_golden(const std::string& name) {
  auto file = model::open_model(goldens() / name);
  EXPECT_TRUE(file) << file.error().message;
  return file ? std::move(*file) : nullptr;
}

std::unique_ptr<ModelRunner> make_runner(const formats::ModelFile& file, std::unique_ptr<backend::Backend> backend) {
  return ModelRunner::make(file, std::move(backend), {.max_rows = 64, .n_blocks = 16});
}

std::vector<Logits> joined(std::vector<Logits> a, const std::vector<Logits>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A prompt at once and in chunks; two sequences in one step, one of them a fork in the middle of a block; single
// tokens.
std::vector<Logits> run_all(ModelRunner& runner) {
  const std::vector<TokenId> prompt = golden_prompt();
  std::vector<Logits> all = runner.run(prompt, prompt.size());
  all = joined(std::move(all), runner.run(prompt, 7));
  const size_t first = runner.new_sequence();
  const auto at = [&](size_t i) { return prompt.begin() + static_cast<std::ptrdiff_t>(i); };
  all = joined(std::move(all), runner.step({{first, {at(0), at(37)}}}));
  const size_t fork = runner.fork(first, 37);
  all = joined(std::move(all), runner.step({{first, {at(37), at(40)}}, {fork, {prompt[5]}}}));
  all = joined(std::move(all), runner.step({{fork, {prompt[6]}}, {first, {prompt[40]}}}));
  return joined(std::move(all), runner.step({{first, {prompt[41]}}}));
}

// What the experts read and the router's scores go to the host, and what they give comes back; before the first block
// the row of the token comes.
TEST(mixed_bits, experts_on_the_host_cost_three_copies_a_block) {
  for (const char* name : {"qwen3moe", "gpt_oss", "qwen2_moe"}) {
    const auto file = open_golden(name);
    ASSERT_NE(file, nullptr);
    const auto spec = model::read_arch(*file);
    ASSERT_TRUE(spec);
    const auto n_blocks = static_cast<int32_t>(spec->blocks.size());
    const auto runner = make_runner(*file, make_two_sides(model::place_layers(*spec, {.n_host_experts = n_blocks})));
    ASSERT_NE(runner, nullptr);
    const size_t sequence = runner->new_sequence();
    runner->step({{sequence, {1, 2, 3}}});
    const auto& crossings = static_cast<backend::MixedBackend&>(runner->backend()).crossings();
    const int64_t before = crossings.n_copies;
    runner->step({{sequence, {4}}});
    EXPECT_EQ(crossings.n_copies - before, 3 * n_blocks + 1) << name;
  }
}

class MixedBits : public ::testing::TestWithParam<const char*> {};

TEST_P(MixedBits, every_cut_gives_the_bits_of_the_cpu_alone) {
  const auto file = open_golden(GetParam());
  ASSERT_NE(file, nullptr);
  const auto spec = model::read_arch(*file);
  ASSERT_TRUE(spec);
  const auto alone = make_runner(*file, make_fast_cpu());
  ASSERT_NE(alone, nullptr);
  const std::vector<Logits> expected = run_all(*alone);
  const std::vector<backend::Placement> placements = placements_of(*spec);
  for (size_t i = 0; i < placements.size(); ++i) {
    const auto runner = make_runner(*file, make_two_sides(placements[i]));
    ASSERT_NE(runner, nullptr);
    EXPECT_EQ(run_all(*runner), expected) << "placement " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(all, MixedBits, ::testing::ValuesIn(kMixedModels),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace candor::testing
