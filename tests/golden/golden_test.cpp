// The reference backend against reference_llama.py, an independent f32 implementation: every logit within 1e-4 of the
// largest one (numerics.md). Both round f32 activations, in different orders, which costs about 1e-6.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backend/reference/reference_backend.h"
#include "support/model_runner.h"
#include "support/shared_data.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

using nlohmann::json;

constexpr double kBound = 1e-4;

json read_json(const std::string& name) {
  std::ifstream file(project_file("tests/golden/" + name));
  return json::parse(file);
}

// Largest difference between the rows that the golden has and ours, over the largest logit.
double worst_difference(const json& rows, const std::vector<Logits>& logits) {
  double largest = 0.0;
  double difference = 0.0;
  for (const json& row : rows) {
    const Logits& ours = logits.at(row.at("row").get<size_t>());
    const std::vector<double> theirs = row.at("logits").get<std::vector<double>>();
    EXPECT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < theirs.size(); ++i) {
      largest = std::max(largest, std::abs(theirs[i]));
      difference = std::max(difference, std::abs(theirs[i] - static_cast<double>(ours[i])));
    }
  }
  return difference / largest;
}

void set_scaling(TinyModelOptions& options, const json& rope) {
  if (!rope.contains("type")) return;
  const std::string type = rope.at("type");
  const std::string_view name = type == "yarn" ? "yarn" : type == "llama3" ? "llama3" : "linear";
  options.extra_keys.push_back({"llama.rope.scaling.type", name});
  options.extra_keys.push_back({"llama.rope.scaling.factor", rope.at("factor").get<double>()});
  if (rope.contains("original")) {
    options.extra_keys.push_back({"llama.rope.scaling.original_context_length", rope.at("original").get<uint64_t>()});
  }
  if (rope.contains("low")) {
    options.extra_keys.push_back({"llama.rope.scaling.low_freq_factor", rope.at("low").get<double>()});
    options.extra_keys.push_back({"llama.rope.scaling.high_freq_factor", rope.at("high").get<double>()});
  }
}

TinyModelOptions options_of(const json& config) {
  TinyModelOptions options;
  options.dim = config.at("dim");
  options.n_layers = config.at("n_layers");
  options.n_heads = config.at("n_heads");
  options.n_kv_heads = config.at("n_kv_heads");
  options.head_dim = config.at("head_dim");
  options.ffn_dim = config.at("ffn_dim");
  options.vocab = config.at("vocab");
  options.is_tied = config.at("tied");
  options.has_biases = config.at("biases");
  options.window_tokens = config.at("window");
  options.rope_base = config.at("rope_base");
  options.rope_factors = config.at("rope_factors").get<std::vector<float>>();
  options.seed = config.at("seed");
  options.extra_keys.push_back({"llama.rope.dimension_count", config.at("n_rot").get<uint64_t>()});
  set_scaling(options, config.at("rope"));
  return options;
}

TEST(golden, generated_models_give_the_logits_of_the_independent_implementation) {
  const json goldens = read_json("expected_tiny.json").at("models");
  ASSERT_EQ(goldens.size(), 11u);
  for (const json& golden : goldens) {
    const std::string name = golden.at("name");
    const auto file = make_tiny_model(options_of(golden.at("config")));
    const auto runner = ModelRunner::make(*file, backend::make_reference_backend(), {});
    ASSERT_NE(runner, nullptr) << name;
    const double worst = worst_difference(golden.at("rows"), runner->run(golden.at("ids"), 16));
    EXPECT_LE(worst, kBound) << name;
    std::printf("  %-20s %.1e of the largest logit\n", name.c_str(), worst);
  }
}

TEST(golden, generated_weights_are_those_of_the_independent_implementation) {
  const json goldens = read_json("expected_tiny.json").at("models");
  for (const json& golden : goldens) {
    const auto file = make_tiny_model(options_of(golden.at("config")));
    std::vector<float> row(static_cast<size_t>(golden.at("config").at("dim").get<int>()));
    decode_row(*file->find("blk.0.attn_q.weight"), 0, row.data());
    row.resize(4);
    EXPECT_EQ(row, golden.at("first_weights").get<std::vector<float>>()) << golden.at("name");
  }
}

class Stories : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path path = shared_data() / "models" / "stories260K.gguf";
    CANDOR_REQUIRE_DATA(path);
    auto file = formats::open_model_file(path);
    ASSERT_TRUE(file) << file.error().message;
    file_ = std::move(*file);
    runner_ = ModelRunner::make(*file_, backend::make_reference_backend(), {});
    ASSERT_NE(runner_, nullptr);
  }

  std::unique_ptr<formats::ModelFile> file_;
  std::unique_ptr<ModelRunner> runner_;
};

TEST_F(Stories, a_trained_model_gives_the_logits_of_the_independent_implementation) {
  double worst = 0.0;
  int n_prompts = 0;
  const json prompts = read_json("expected_stories.json").at("prompts");
  for (const json& prompt : prompts) {
    if (!prompt.contains("rows")) continue;
    ++n_prompts;
    std::vector<TokenId> tokens = prompt.at("ids");
    for (const json& token : prompt.at("greedy")) tokens.push_back(token);
    worst = std::max(worst, worst_difference(prompt.at("rows"), runner_->run(tokens, tokens.size())));
  }
  EXPECT_EQ(n_prompts, 6);
  EXPECT_LE(worst, kBound);
  std::printf("  stories260K          %.1e of the largest logit\n", worst);
}

TEST_F(Stories, twenty_prompts_continue_as_in_the_independent_implementation) {
  const json prompts = read_json("expected_stories.json").at("prompts");
  ASSERT_GE(prompts.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    const std::vector<TokenId> expected = prompts[i].at("greedy");
    EXPECT_EQ(runner_->greedy(prompts[i].at("ids"), expected.size()), expected) << prompts[i].at("text");
  }
}

}  // namespace
}  // namespace candor::testing
