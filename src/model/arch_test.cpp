// Metadata to ArchSpec: what is read, and what is refused, by name.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/arch_text.h"
#include "model/model.h"
#include "support/tiny_model.h"

namespace candor::model {
namespace {

using formats::MetaArray;
using formats::MetaValue;
using testing::MemoryModelFile;
using testing::TinyModelOptions;

std::unique_ptr<MemoryModelFile> tiny() {
  return testing::make_tiny_model(TinyModelOptions{});
}

// The message with which the file is refused; "" if it is accepted.
std::string refusal(const MemoryModelFile& file) {
  const Result<ArchSpec> spec = read_arch(file);
  return spec ? "" : spec.error().message;
}

std::string refusal_with(const std::string& key, MetaValue value) {
  const auto file = tiny();
  file->set(key, std::move(value));
  return refusal(*file);
}

std::string refusal_without(const std::string& key) {
  const auto file = tiny();
  file->erase(key);
  return refusal(*file);
}

// Every part is in the message, which is one line.
::testing::AssertionResult says(const std::string& message, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) {
    if (message.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << "'" << message << "' does not say '" << part << "'";
    }
  }
  if (message.find('\n') != std::string::npos) return ::testing::AssertionFailure() << "two lines: " << message;
  return ::testing::AssertionSuccess();
}

TEST(arch, a_llama_file_becomes_its_spec) {
  const auto spec = read_arch(*tiny());
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->family, "llama");
  EXPECT_EQ(spec->dim, 64);
  EXPECT_EQ(spec->vocab, 96);
  EXPECT_EQ(spec->max_positions, 512);
  ASSERT_EQ(spec->blocks.size(), 2u);
  const BlockSpec& block = spec->blocks[0];
  EXPECT_EQ(block.attn.n_heads, 4);
  EXPECT_EQ(block.attn.n_kv_heads, 2);
  EXPECT_EQ(block.attn.head_dim, 16);
  EXPECT_EQ(block.attn.scale, 0.25f);
  EXPECT_EQ(block.attn.rope.n_dims, 16);
  EXPECT_EQ(block.attn.rope.pairs, backend::RopePairs::kInterleaved);
  EXPECT_EQ(block.ffn.ffn_dim, 96);
  EXPECT_EQ(block.norm.kind, backend::NormKind::kRms);
  EXPECT_EQ(block.norm.epsilon, 1e-5f);
  EXPECT_FALSE(spec->head.tied);
}

TEST(arch, absent_keys_take_the_values_that_the_format_states) {
  const auto file = tiny();
  for (const char* key : {"llama.attention.head_count_kv", "llama.attention.key_length", "llama.attention.value_length",
                          "llama.rope.dimension_count", "llama.rope.freq_base"}) {
    file->erase(key);
  }
  const auto spec = read_arch(*file);
  ASSERT_TRUE(spec) << spec.error().message;
  const backend::AttnSpec& attn = spec->blocks[0].attn;
  EXPECT_EQ(attn.n_kv_heads, 4);
  EXPECT_EQ(attn.head_dim, 16);
  EXPECT_EQ(attn.rope.n_dims, 16);
  EXPECT_EQ(attn.rope.base, 10000.0);
}

TEST(arch, a_missing_head_means_that_the_embedding_serves) {
  const auto spec = read_arch(*testing::make_tiny_model({.is_tied = true}));
  ASSERT_TRUE(spec);
  EXPECT_TRUE(spec->head.tied);
}

TEST(arch, head_counts_may_be_arrays_of_equal_numbers) {
  EXPECT_EQ(refusal_with("llama.attention.head_count_kv", MetaArray(std::vector<int64_t>{2, 2})), "");
  EXPECT_TRUE(says(refusal_with("llama.attention.head_count_kv", MetaArray(std::vector<int64_t>{2, 4})),
                   {"llama.attention.head_count_kv", "2 in block 0", "4 in block 1"}));
  EXPECT_TRUE(says(refusal_with("llama.attention.head_count_kv", MetaArray(std::vector<int64_t>{2})),
                   {"llama.attention.head_count_kv", "1 entries", "expected 2"}));
}

TEST(arch, feed_forward_widths_may_differ_by_block) {
  const auto file = tiny();
  file->set("llama.feed_forward_length", MetaArray(std::vector<int64_t>{96, 128}));
  const auto spec = read_arch(*file);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->blocks[1].ffn.ffn_dim, 128);
}

TEST(arch, rope_scalings_are_read) {
  using backend::RopeScaling;
  const auto scaled = [](std::vector<formats::MetaEntry> keys) {
    const auto spec = read_arch(*testing::make_tiny_model({.extra_keys = std::move(keys)}));
    EXPECT_TRUE(spec) << spec.error().message;
    return spec ? spec->blocks[0].attn.rope : backend::RopeSpec{};
  };
  EXPECT_EQ(scaled({{"llama.rope.scale_linear", 4.0}}).scaling, RopeScaling::kLinear);
  EXPECT_EQ(scaled({{"llama.rope.scale_linear", 4.0}}).factor, 4.0);
  EXPECT_EQ(scaled({{"llama.rope.scaling.type", std::string_view("none")}, {"llama.rope.scaling.factor", 4.0}}).scaling,
            RopeScaling::kNone);
  const backend::RopeSpec yarn =
      scaled({{"llama.rope.scaling.type", std::string_view("yarn")}, {"llama.rope.scaling.factor", 4.0}});
  EXPECT_EQ(yarn.scaling, RopeScaling::kYarn);
  EXPECT_EQ(yarn.original_positions, 512);
  EXPECT_DOUBLE_EQ(yarn.attention_factor, 1.0 + 0.1 * std::log(4.0));
  const backend::RopeSpec llama3 = scaled({{"llama.rope.scaling.type", std::string_view("llama3")},
                                           {"llama.rope.scaling.factor", 8.0},
                                           {"llama.rope.scaling.original_context_length", uint64_t{128}}});
  EXPECT_EQ(llama3.scaling, RopeScaling::kLlama3);
  EXPECT_EQ(llama3.original_positions, 128);
}

TEST(arch, other_scalings_are_refused_by_name) {
  EXPECT_TRUE(says(refusal_with("llama.rope.scaling.type", std::string_view("longrope\n")),
                   {"llama.rope.scaling.type", "longrope", "linear, yarn, llama3"}));
}

TEST(arch, an_unknown_architecture_is_refused_with_the_list_of_known_ones) {
  EXPECT_TRUE(says(refusal_with("general.architecture", std::string_view("lynx")), {"'lynx'", "supported: llama"}));
  EXPECT_TRUE(says(refusal_without("general.architecture"), {"general.architecture", "absent"}));
}

TEST(arch, what_changes_the_arithmetic_is_refused_by_name) {
  EXPECT_TRUE(says(refusal_with("llama.expert_count", uint64_t{8}), {"llama.expert_used_count"}));
  EXPECT_EQ(refusal_with("llama.expert_count", uint64_t{0}), "");
  EXPECT_TRUE(says(refusal_with("llama.attention.value_length", uint64_t{8}), {"attention.value_length", "8", "16"}));
}

TEST(arch, contradictions_are_refused_by_name) {
  EXPECT_TRUE(says(refusal_with("llama.attention.head_count_kv", uint64_t{3}), {"head_count_kv", "3", "4"}));
  EXPECT_TRUE(says(refusal_with("llama.attention.head_count_kv", uint64_t{8}), {"head_count_kv", "8"}));
  EXPECT_TRUE(says(refusal_with("llama.rope.dimension_count", uint64_t{7}), {"rope.dimension_count", "7", "even"}));
  EXPECT_TRUE(says(refusal_with("llama.rope.dimension_count", uint64_t{18}), {"rope.dimension_count", "18", "16"}));
  EXPECT_TRUE(says(refusal_with("llama.vocab_size", uint64_t{97}), {"token_embd.weight", "96", "97"}));
  const auto file = tiny();
  file->erase("llama.attention.key_length");
  file->set("llama.attention.head_count", uint64_t{5});
  file->set("llama.attention.head_count_kv", uint64_t{5});
  EXPECT_TRUE(says(refusal(*file), {"attention.head_count", "5", "64"}));
}

TEST(arch, numbers_outside_their_range_are_refused_by_name) {
  for (const char* key :
       {"llama.block_count", "llama.embedding_length", "llama.context_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.head_count_kv", "llama.attention.key_length"}) {
    for (const uint64_t value : {uint64_t{0}, uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX}) {
      EXPECT_TRUE(says(refusal_with(key, value), {key})) << value;
    }
    EXPECT_TRUE(says(refusal_with(key, int64_t{-1}), {key}));
    EXPECT_TRUE(says(refusal_with(key, std::string_view("4")), {key}));
  }
}

TEST(arch, floats_that_are_not_positive_and_finite_are_refused_by_name) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const char* key : {"llama.attention.layer_norm_rms_epsilon", "llama.rope.freq_base", "llama.rope.scale_linear",
                          "llama.rope.scaling.factor", "llama.attention.scale"}) {
    for (const double value : {0.0, -1.0, kNan, kInfinity}) {
      EXPECT_TRUE(says(refusal_with(key, value), {key})) << value;
    }
  }
}

TEST(arch, required_keys_are_missed_by_name) {
  for (const char* key :
       {"llama.block_count", "llama.embedding_length", "llama.context_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"}) {
    EXPECT_TRUE(says(refusal_without(key), {key}));
  }
  const auto file = tiny();
  file->remove_tensor("token_embd.weight");
  EXPECT_TRUE(says(refusal(*file), {"token_embd.weight", "missing"}));
}

TEST(arch, frequency_factors_are_checked) {
  EXPECT_EQ(refusal(*testing::make_tiny_model({.rope_factors = std::vector<float>(8, 2.0f)})), "");
  EXPECT_TRUE(says(refusal(*testing::make_tiny_model({.rope_factors = std::vector<float>(7, 2.0f)})),
                   {"rope_freqs.weight", "[7]", "[8]"}));
  EXPECT_TRUE(says(refusal(*testing::make_tiny_model({.rope_factors = std::vector<float>(8, 0.0f)})),
                   {"rope_freqs.weight", "0"}));
}

TEST(arch, equal_blocks_are_shown_once) {
  const auto spec = read_arch(*tiny());
  ASSERT_TRUE(spec);
  const std::string text = to_text(*spec);
  EXPECT_NE(text.find("blocks 0 to 1:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("4 heads, 2 K/V heads, width 16"), std::string::npos) << text;
}

}  // namespace
}  // namespace candor::model
