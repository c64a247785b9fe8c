// Loading: every tensor bound or refused by name; the fingerprint; scoring.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backend/reference/reference_backend.h"
#include "model/model.h"
#include "model/score.h"
#include "support/tiny_model.h"

namespace candor::model {
namespace {

using testing::make_tiny_model;
using testing::MemoryModelFile;

struct Loaded {
  std::unique_ptr<backend::Backend> backend;
  Result<std::unique_ptr<Model>> model;
};

Loaded load(const MemoryModelFile& file, const LoadOptions& options = {}) {
  std::unique_ptr<backend::Backend> backend = backend::make_reference_backend();
  Result<std::unique_ptr<Model>> model = Model::load(file, *backend, options);
  return {std::move(backend), std::move(model)};
}

std::string load_refusal(const MemoryModelFile& file) {
  const Loaded loaded = load(file);
  return loaded.model ? "" : loaded.model.error().message;
}

std::vector<std::byte> floats(size_t n, float value) {
  const std::vector<float> values(n, value);
  std::vector<std::byte> bytes(n * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(model, a_loaded_model_knows_its_size) {
  const auto file = make_tiny_model({});
  const Loaded loaded = load(*file);
  ASSERT_TRUE(loaded.model) << loaded.model.error().message;
  int64_t n_elements = 0;
  for (const TensorView& tensor : file->tensors()) n_elements += tensor.shape.n_elements();
  EXPECT_EQ((*loaded.model)->n_parameters(), n_elements);
  EXPECT_EQ((*loaded.model)->weight_bytes(), static_cast<size_t>(n_elements) * 4);
  const backend::KvLayout layout = (*loaded.model)->kv_layout(KvType::kF32);
  EXPECT_EQ(layout, (backend::KvLayout{2, 2, 16, KvType::kF32}));
}

TEST(model, progress_rises_to_the_total) {
  uint64_t last = 0;
  uint64_t total = 0;
  const auto progress = [&](uint64_t done_bytes, uint64_t total_bytes) {
    EXPECT_GT(done_bytes, last);
    last = done_bytes;
    total = total_bytes;
  };
  ASSERT_TRUE(load(*make_tiny_model({}), {progress}).model);
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 0u);
}

TEST(model, a_missing_tensor_is_named_with_the_shape_that_it_should_have) {
  for (const char* name : {"output_norm.weight", "blk.1.attn_k.weight", "blk.0.ffn_down.weight"}) {
    const auto file = make_tiny_model({});
    const std::string shape = to_string(file->find(name)->shape);
    file->remove_tensor(name);
    const std::string message = load_refusal(*file);
    EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find(shape), std::string::npos) << message;
  }
}

TEST(model, a_tensor_of_another_shape_is_named_with_both_shapes) {
  const auto file = make_tiny_model({});
  file->remove_tensor("blk.1.attn_k.weight");
  file->add_tensor("blk.1.attn_k.weight", DType::kF32, {2, {64, 32}}, floats(2048, 0.5f));
  const std::string message = load_refusal(*file);
  EXPECT_NE(message.find("tensor \"blk.1.attn_k.weight\": shape [64, 32]; expected [32, 64]"), std::string::npos)
      << message;
}

TEST(model, a_tensor_without_a_place_is_refused_by_name) {
  for (const char* name : {"blk.2.attn_k.weight", "blk.0.attn_sinks.weight", "output.bias"}) {
    const auto file = make_tiny_model({});
    file->add_tensor(name, DType::kF32, {1, {16}}, floats(16, 1.0f));
    EXPECT_NE(load_refusal(*file).find(name), std::string::npos);
  }
}

TEST(model, tensors_that_can_be_computed_are_ignored) {
  const auto file = make_tiny_model({});
  file->add_tensor("blk.1.attn_rot_embd", DType::kF32, {1, {8}}, floats(8, 1.0f));
  EXPECT_EQ(load_refusal(*file), "");
}

TEST(model, norms_and_biases_that_are_not_finite_are_refused_by_name) {
  for (const char* name : {"blk.1.ffn_norm.weight", "blk.0.attn_output.bias"}) {
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const auto file = make_tiny_model({.has_biases = true});
      file->remove_tensor(name);
      file->add_tensor(name, DType::kF32, {1, {64}}, floats(64, value));
      const std::string message = load_refusal(*file);
      EXPECT_NE(message.find(name), std::string::npos) << message;
      EXPECT_NE(message.find("element 0"), std::string::npos) << message;
    }
  }
}

TEST(model, a_norm_in_a_block_format_is_refused) {
  const auto file = make_tiny_model({});
  file->remove_tensor("output_norm.weight");
  file->add_tensor("output_norm.weight", DType::kQ8_0, {1, {64}}, std::vector<std::byte>(68));
  EXPECT_NE(load_refusal(*file).find("\"output_norm.weight\": dtype Q8_0"), std::string::npos);
}

TEST(model, the_fingerprint_depends_on_architecture_and_content) {
  const auto hash = [](const testing::TinyModelOptions& options) {
    const auto file = make_tiny_model(options);
    const Loaded loaded = load(*file);
    EXPECT_TRUE(loaded.model) << loaded.model.error().message;
    return loaded.model ? (*loaded.model)->hash() : 0;
  };
  const uint64_t truth = hash({});
  EXPECT_EQ(hash({}), truth);
  EXPECT_NE(hash({.seed = 2}), truth);
  EXPECT_NE(hash({.rope_base = 20000.0}), truth);
  EXPECT_NE(hash({.dtype = DType::kF16}), truth);
}

TEST(model, a_step_launched_block_by_block_is_the_step) {
  const Loaded loaded = load(*make_tiny_model({}));
  ASSERT_TRUE(loaded.model);
  Model& model = **loaded.model;
  ASSERT_TRUE(model.reserve(3, 1));
  const auto kv = loaded.backend->make_kv(model.kv_layout(KvType::kF32), 1);
  ASSERT_TRUE(kv);
  const std::vector<TokenId> tokens = {5, 90, 17};
  const std::vector<int32_t> positions = {0, 1, 2}, out_rows = {2};
  const std::vector<backend::SeqSlice> slices = {{0, 3, 0}};
  const std::vector<BlockId> table = {0};
  const backend::StepBatch batch{tokens, positions, slices, table, 1, out_rows};
  const auto logits_of = [&](backend::StepTicket ticket) {
    const std::span<const float> row = loaded.backend->read_logits(ticket).row(0);
    return std::vector<float>(row.begin(), row.end());
  };
  const std::vector<float> whole = logits_of(model.launch(batch, **kv));
  for (const int32_t layer : {0, 1}) loaded.backend->read_logits(model.launch_blocks(layer, layer + 1, batch, **kv));
  EXPECT_EQ(logits_of(model.launch_blocks(2, 2, batch, **kv)), whole);
  EXPECT_EQ(loaded.backend->read_logits(model.launch_attention(batch, **kv)).n_rows, 0);
}

TEST(model, the_reference_refuses_other_kv_types_by_name) {
  const Loaded loaded = load(*make_tiny_model({}));
  ASSERT_TRUE(loaded.model);
  const auto kv = loaded.backend->make_kv((*loaded.model)->kv_layout(KvType::kBf16), 1);
  ASSERT_FALSE(kv);
  EXPECT_NE(kv.error().message.find("bf16"), std::string::npos);
}

class Score : public ::testing::Test {
 protected:
  std::unique_ptr<Scorer> scorer(int32_t chunk_rows) {
    auto made = Scorer::make(**loaded_.model, *loaded_.backend,
                             {.max_tokens = 64, .chunk_rows = chunk_rows, .kv_type = KvType::kF32});
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  Loaded loaded_ = load(*make_tiny_model({}));
};

TEST_F(Score, log_probabilities_do_not_depend_on_the_chunk) {
  std::vector<TokenId> tokens;
  for (TokenId i = 0; i < 50; ++i) tokens.push_back(i * 5 % 96);
  const auto whole = scorer(64)->logprobs(tokens);
  const auto chunked = scorer(7)->logprobs(tokens);
  ASSERT_TRUE(whole && chunked);
  EXPECT_EQ(whole->size(), 49u);
  EXPECT_EQ(*whole, *chunked);
  EXPECT_GT(perplexity(*whole), 1.0);
}

TEST_F(Score, tokens_outside_the_vocabulary_and_long_texts_are_refused) {
  const auto made = scorer(8);
  const auto odd = made->logprobs(std::vector<TokenId>{1, 96});
  ASSERT_FALSE(odd);
  EXPECT_NE(odd.error().message.find("token 96 at position 1"), std::string::npos) << odd.error().message;
  EXPECT_FALSE(made->logprobs(std::vector<TokenId>{-1}));
  EXPECT_FALSE(made->logprobs(std::vector<TokenId>(65, 1)));
}

TEST(score, divergence_and_log_probability_are_those_of_the_worked_example) {
  const std::vector<float> even = {0.0f, 0.0f};
  const std::vector<float> skewed = {std::log(3.0f), 0.0f};  // 3/4, 1/4
  EXPECT_NEAR(logprob_of(skewed, 0), std::log(0.75), 1e-7);
  EXPECT_NEAR(kl_divergence(even, skewed), 0.5 * std::log(0.5 / 0.75) + 0.5 * std::log(0.5 / 0.25), 1e-7);
  EXPECT_EQ(kl_divergence(skewed, skewed), 0.0);
  EXPECT_NEAR(perplexity(std::vector<double>{std::log(0.25), std::log(0.25)}), 4.0, 1e-12);
}

}  // namespace
}  // namespace candor::model
