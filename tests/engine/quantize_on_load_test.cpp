// EngineOptions::quantize: memory is planned with the sizes of the type that was asked for, before a weight is read.

#include <cmath>
#include <cstring>

#include "engine_fixture.h"

namespace candor {
namespace {

class QuantizeOnLoadTest : public testing::TinyModelTest {
 protected:
  // A matrix that cannot be encoded: reading it gives the error.
  std::filesystem::path damaged_path() {
    const auto model = testing::make_tiny_model(tiny_options());
    const TensorView tensor = *model->find("blk.0.ffn_down.weight");
    std::vector<std::byte> bytes(tensor.data, tensor.data + tensor.n_bytes);
    const float odd = std::nanf("");
    std::memcpy(bytes.data(), &odd, sizeof(odd));
    const std::string name(tensor.name);
    const Shape shape = tensor.shape;
    model->remove_tensor(name);
    model->add_tensor(name, DType::kF32, shape, std::move(bytes));
    const auto path = folder_.path() / "damaged.gguf";
    EXPECT_TRUE(testing::write_model(*model, path));
    return path;
  }
};

TEST_F(QuantizeOnLoadTest, a_plan_has_the_sizes_of_the_asked_type_and_reads_no_matrix) {
  EngineOptions options = testing::options_for(damaged_path());
  const auto plain = Engine::plan(options);
  options.quantize = "q8_0";
  const auto quantised = Engine::plan(options);
  ASSERT_TRUE(plain && quantised);
  EXPECT_EQ(plain->copy_bytes, 0u);
  EXPECT_LT(quantised->weight_bytes, plain->weight_bytes / 2);
  constexpr uint64_t kLargest = 320 * 64;  // the embedding
  EXPECT_EQ(quantised->copy_bytes, kLargest / 32 * 34) << "one matrix stands at a time";
  const auto engine = Engine::open(options);
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("'blk.0.ffn_down.weight': row 0 holds NaN"), std::string::npos)
      << engine.error().message;
}

TEST_F(QuantizeOnLoadTest, what_does_not_fit_is_refused_before_a_matrix_is_read) {
  EngineOptions options = testing::options_for(damaged_path());
  options.quantize = "q8_0";
  options.kv_bytes = uint64_t{500} << 30;
  const auto engine = Engine::open(options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().kind, ErrorKind::kOutOfMemory) << engine.error().message;
}

TEST_F(QuantizeOnLoadTest, answers_are_those_of_the_quantised_file) {
  const auto path = tiny_path(tiny_options());
  EngineOptions options = testing::options_for(path);
  options.quantize = "Q8_0";
  const auto on_load = testing::open_or_fail(options);
  const auto from_file = testing::open_or_fail(testing::options_for(quantised_path(path, "q8_0")));
  ASSERT_TRUE(on_load && from_file);
  EXPECT_EQ(on_load->info().weight_bytes, from_file->info().weight_bytes);
  const Request request = testing::sampled(TokenPrompt{1, 10, 11, 12}, 20, 3);
  testing::expect_same(testing::complete(*on_load, request), testing::complete(*from_file, request), "q8_0");
}

}  // namespace
}  // namespace candor
