// The cpu backend within the bounds of numerics.md of the reference, on a trained model that is not the project's own.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "accuracy/comparison.h"
#include "backend/all/make_backend.h"
#include "backend/reference/reference_backend.h"
#include "support/model_runner.h"
#include "support/shared_data.h"

namespace candor::testing {
namespace {

using nlohmann::json;

constexpr TokenId kBos = 1;

class Stories260K : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path path = shared_data() / "models" / "stories260K.gguf";
    CANDOR_REQUIRE_DATA(path);
    auto file = formats::open_model_file(path);
    ASSERT_TRUE(file) << file.error().message;
    file_ = std::move(*file);
  }

  std::unique_ptr<formats::ModelFile> file_;
};

TEST_F(Stories260K, cpu_stays_within_the_bounds_of_the_contract) {
  constexpr int32_t kTokens = 200;
  Subject truth = open_subject(*file_, "reference", kTokens);
  Subject cpu = open_subject(*file_, "cpu", kTokens);
  ASSERT_TRUE(truth.scorer && cpu.scorer);
  std::vector<Text> texts;
  for (uint64_t seed = 0; seed < 16; ++seed) texts.push_back(sample_text(truth, kBos, kTokens, seed));
  expect_within_contract("stories260K F32", compare(truth, cpu, texts));
}

// By how much the reference prefers its own token where two continuations of a prompt part; 0 if they are the same.
float gap_where_they_part(ModelRunner& reference, const Text& prompt, const Text& expected, const Text& ours) {
  const auto [at, other] = std::ranges::mismatch(expected, ours);
  if (at == expected.end()) return 0.0f;
  Text text = prompt;
  text.insert(text.end(), expected.begin(), at);
  const Logits last = reference.run(text, text.size()).back();
  return last[static_cast<size_t>(*at)] - last[static_cast<size_t>(*other)];
}

// K, V, q and probabilities in bf16 (numerics.md, rule 4) move this model's logits by 0.05, so that near ties fall
// either way; NumPy with those four roundings moves them as far. Everywhere else the tokens are the same.
TEST_F(Stories260K, cpu_continues_prompts_with_the_tokens_of_the_reference_except_at_near_ties) {
  constexpr float kNearTie = 0.1f;  // as in "same top token where the gap exceeds 0.1"
  std::ifstream stream(project_file("tests/golden/expected_stories.json"));
  const json prompts = json::parse(stream).at("prompts");
  auto backend = backend::make_backend("cpu", {.n_threads = 2});
  ASSERT_TRUE(backend) << backend.error().message;
  const auto cpu = ModelRunner::make(*file_, std::move(*backend), {});
  const auto reference = ModelRunner::make(*file_, backend::make_reference_backend(), {});
  ASSERT_TRUE(cpu && reference);
  int n_same = 0;
  float widest_gap = 0.0f;
  for (const json& prompt : prompts) {
    const Text expected = prompt.at("greedy");
    const Text ours = cpu->greedy(prompt.at("ids"), expected.size());
    n_same += ours == expected ? 1 : 0;
    const float gap = gap_where_they_part(*reference, prompt.at("ids"), expected, ours);
    EXPECT_LE(gap, kNearTie) << prompt.at("text");
    widest_gap = std::max(widest_gap, gap);
  }
  EXPECT_GE(n_same, 20);
  std::printf("  %d of %zu prompts: the same 64 greedy tokens; the others part at choices of at most %.3f\n", n_same,
              prompts.size(), static_cast<double>(widest_gap));
}

}  // namespace
}  // namespace candor::testing
