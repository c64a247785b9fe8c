// What holds bit for bit on the reference backend: a row's logits depend on its own sequence up to its own position.

#include <gtest/gtest.h>

#include "backend/reference/reference_backend.h"
#include "support/model_runner.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

std::vector<TokenId> tokens_of(size_t n, uint32_t seed) {
  std::vector<TokenId> tokens;
  for (uint32_t i = 0; i < n; ++i) tokens.push_back(static_cast<TokenId>((seed + i * i * 31u + i * 7u) % 96u));
  return tokens;
}

std::unique_ptr<ModelRunner> make_runner(const TinyModelOptions& options) {
  const auto file = make_tiny_model(options);
  return ModelRunner::make(*file, backend::make_reference_backend(), {});
}

TEST(reference_invariance, a_later_token_never_changes_an_earlier_logit) {
  const auto runner = make_runner({});
  const std::vector<TokenId> tokens = tokens_of(80, 1);
  const std::vector<Logits> truth = runner->run(tokens, tokens.size());
  for (const size_t changed : {1u, 31u, 32u, 33u, 79u}) {
    std::vector<TokenId> other = tokens;
    other[changed] = (other[changed] + 1) % 96;
    const std::vector<Logits> logits = runner->run(other, other.size());
    for (size_t i = 0; i < changed; ++i) EXPECT_EQ(logits[i], truth[i]) << "token " << changed << " changed row " << i;
    EXPECT_NE(logits[changed], truth[changed]);
  }
}

TEST(reference_invariance, chunks_of_any_size_give_the_logits_of_the_whole) {
  for (const int32_t window_tokens : {0, 9}) {
    const auto runner = make_runner({.window_tokens = window_tokens});
    const std::vector<TokenId> tokens = tokens_of(100, 2);
    const std::vector<Logits> truth = runner->run(tokens, tokens.size());
    for (const size_t chunk : {1u, 7u, 32u, 33u, 64u}) EXPECT_EQ(runner->run(tokens, chunk), truth) << chunk;
  }
}

TEST(reference_invariance, sequences_of_one_ragged_step_do_not_see_each_other) {
  const auto runner = make_runner({});
  const std::vector<TokenId> first = tokens_of(40, 3);
  const std::vector<TokenId> second = tokens_of(5, 4);
  const std::vector<Logits> first_alone = runner->run(first, first.size());
  const std::vector<Logits> second_alone = runner->run(second, second.size());
  const size_t a = runner->new_sequence();
  const size_t b = runner->new_sequence();
  runner->step({{a, {first.begin(), first.begin() + 37}}});
  const std::vector<Logits> together = runner->step({{b, second}, {a, {first.begin() + 37, first.end()}}});
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(together[i], second_alone[i]);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(together[5 + i], first_alone[37 + i]);
}

TEST(reference_invariance, a_copied_block_continues_as_its_source) {
  const auto runner = make_runner({});
  const std::vector<TokenId> tokens = tokens_of(50, 5);
  const std::vector<Logits> truth = runner->run(tokens, tokens.size());
  const size_t source = runner->new_sequence();
  runner->step({{source, {tokens.begin(), tokens.begin() + 45}}});
  const size_t copy = runner->fork(source, 45);
  const std::vector<Logits> logits = runner->step({{copy, {tokens.begin() + 45, tokens.end()}}});
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(logits[i], truth[45 + i]);
}

TEST(reference_invariance, positions_past_the_window_are_not_seen) {
  const auto runner = make_runner({.n_layers = 1, .window_tokens = 8});
  std::vector<TokenId> tokens = tokens_of(40, 6);
  const std::vector<Logits> truth = runner->run(tokens, 40);
  tokens[31] = (tokens[31] + 1) % 96;
  const std::vector<Logits> logits = runner->run(tokens, 40);
  EXPECT_NE(logits[38], truth[38]);  // 38 sees 31 to 38
  EXPECT_EQ(logits[39], truth[39]);  // 39 sees 32 to 39
}

TEST(tiny_model, a_written_model_is_read_back_as_it_was_made) {
  const auto file = make_tiny_model({.vocab = 320, .dtype = DType::kQ8_0});
  const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "tiny_model_read_back.gguf";
  const auto written = write_model(*file, path);
  ASSERT_TRUE(written) << written.error().message;
  const auto read = formats::open_model_file(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read) << read.error().message;
  const auto runner = ModelRunner::make(*file, backend::make_reference_backend(), {});
  const auto read_runner = ModelRunner::make(**read, backend::make_reference_backend(), {});
  ASSERT_TRUE(runner && read_runner);
  const std::vector<TokenId> tokens = tokens_of(20, 7);
  EXPECT_EQ(read_runner->run(tokens, 20), runner->run(tokens, 20));
}

}  // namespace
}  // namespace candor::testing
