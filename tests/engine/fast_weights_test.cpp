// EngineOptions::fast_weights: what is read so, what it takes, and that it is a model of its own.

#include "engine_fixture.h"

namespace candor {
namespace {

class FastWeightsTest : public testing::TinyModelTest {
 protected:
  static EngineOptions fast(const std::filesystem::path& path) {
    EngineOptions options = testing::options_for(path);
    options.fast_weights = true;
    return options;
  }

  static testing::TinyModelOptions model_of(DType dtype) { return testing::tiny_model_of(dtype, 64, 256); }
};

TEST_F(FastWeightsTest, every_q4_k_matrix_is_read_so_and_the_plan_is_what_is_taken) {
  const auto path = tiny_path(model_of(DType::kQ4_K));
  const auto exact = testing::open_or_fail(testing::options_for(path));
  const auto plan = Engine::plan(fast(path));
  const auto engine = testing::open_or_fail(fast(path));
  ASSERT_TRUE(exact && plan && engine);
  EXPECT_EQ(exact->info().n_fast_matrices, 0);
  EXPECT_GE(engine->info().n_fast_matrices, 2 * 7);
  EXPECT_EQ(plan->weight_bytes, engine->info().weight_bytes);
  EXPECT_EQ(plan->copy_bytes, 0u);
  EXPECT_GT(engine->info().weight_bytes, exact->info().weight_bytes);
  EXPECT_LT(engine->info().weight_bytes, exact->info().weight_bytes / 100 * 104);
}

TEST_F(FastWeightsTest, they_are_another_model_to_whoever_keeps_what_it_computed) {
  const auto path = tiny_path(model_of(DType::kQ4_K));
  const auto exact = testing::open_or_fail(testing::options_for(path));
  const auto engine = testing::open_or_fail(fast(path));
  ASSERT_TRUE(exact && engine);
  EXPECT_NE(engine->info().hash, exact->info().hash);
  const Request request = testing::sampled(TokenPrompt{1, 10, 11, 12}, 8, 3);
  EXPECT_FALSE(testing::complete(*engine, request).logprobs == testing::complete(*exact, request).logprobs);
}

TEST_F(FastWeightsTest, what_is_encoded_while_loading_is_read_so_as_well) {
  const auto path = tiny_path(model_of(DType::kF32));
  EngineOptions options = fast(path);
  options.quantize = "q4_k_m";
  const auto on_load = testing::open_or_fail(options);
  const auto from_file = testing::open_or_fail(fast(quantised_path(path, "q4_k_m")));
  ASSERT_TRUE(on_load && from_file);
  EXPECT_EQ(on_load->info().n_fast_matrices, from_file->info().n_fast_matrices);
  const Request request = testing::sampled(TokenPrompt{1, 10, 11, 12}, 20, 3);
  testing::expect_same(testing::complete(*on_load, request), testing::complete(*from_file, request), "q4_k_m");
}

TEST_F(FastWeightsTest, a_model_without_q4_k_is_refused_with_its_types) {
  const auto path = tiny_path(model_of(DType::kQ5_K));
  const auto engine = Engine::open(fast(path));
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().kind, ErrorKind::kInvalidInput) << engine.error().message;
  EXPECT_NE(engine.error().message.find("the types here are F32, Q5_K"), std::string::npos) << engine.error().message;
}

}  // namespace
}  // namespace candor
