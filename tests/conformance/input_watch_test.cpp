// What an importance matrix is gathered from: the squares of what comes into each matrix.

#include <gtest/gtest.h>

#include <cmath>

#include "backend/all/make_backend.h"
#include "backend/wrap/input_watch.h"
#include "formats/model_file.h"
#include "support/model_runner.h"
#include "support/shared_data.h"

namespace candor::testing::input_watch {
namespace {

constexpr int32_t kTokens = 24;

using Sums = std::map<std::pair<std::string, int32_t>, backend::InputSums>;

Sums sums_of(const std::string& golden) {
  const auto file = formats::open_model_file(goldens() / golden / "model.gguf");
  EXPECT_TRUE(file) << file.error().message;
  auto cpu = backend::make_backend("cpu", {.n_threads = 2});
  EXPECT_TRUE(cpu) << cpu.error().message;
  auto watch = std::make_unique<backend::InputWatch>(std::move(*cpu));
  const backend::InputWatch& watched = *watch;
  const auto runner = ModelRunner::make(**file, std::move(watch), {.max_rows = kTokens, .n_blocks = 4});
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < kTokens; ++i) tokens.push_back((7 + 13 * i) % runner->model().spec().vocab);
  const size_t sequence = runner->new_sequence();
  runner->step({{sequence, {tokens.begin(), tokens.begin() + 10}}});
  runner->step({{sequence, {tokens.begin() + 10, tokens.end()}}});
  return watched.inputs().sums();
}

const backend::InputSums& at(const Sums& sums, const std::string& name, int32_t expert = 0) {
  static const backend::InputSums none;
  const auto found = sums.find({name, expert});
  EXPECT_NE(found, sums.end()) << name;
  return found == sums.end() ? none : found->second;
}

TEST(input_watch, matrices_with_one_input_have_the_same_sums) {
  const Sums sums = sums_of("llama");
  const backend::InputSums& q = at(sums, "blk.0.attn_q.weight");
  EXPECT_EQ(q.n_rows, kTokens);
  EXPECT_EQ(q.squares, at(sums, "blk.0.attn_k.weight").squares);
  EXPECT_EQ(at(sums, "blk.1.ffn_up.weight").squares, at(sums, "blk.1.ffn_gate.weight").squares);
  EXPECT_NE(q.squares, at(sums, "blk.1.attn_q.weight").squares);
}

// Each row goes to several experts; together they have what the router had, so often.
TEST(input_watch, experts_share_what_their_router_saw) {
  const Sums sums = sums_of("qwen3moe");
  const backend::InputSums& router = at(sums, "blk.0.ffn_gate_inp.weight");
  EXPECT_EQ(router.n_rows, kTokens);
  std::vector<double> together(router.squares.size(), 0.0);
  int64_t n_visits = 0;
  for (const auto& [key, one] : sums) {
    if (key.first != "blk.0.ffn_up_exps.weight") continue;
    n_visits += one.n_rows;
    for (size_t i = 0; i < together.size(); ++i) together[i] += one.squares[i];
    EXPECT_EQ(at(sums, "blk.0.ffn_down_exps.weight", key.second).n_rows, one.n_rows);
  }
  const auto n_used = static_cast<double>(n_visits) / kTokens;
  EXPECT_EQ(n_used, std::floor(n_used));
  EXPECT_GE(n_used, 2.0);
  for (size_t i = 0; i < together.size(); ++i) EXPECT_NEAR(together[i], n_used * router.squares[i], 1e-9 * together[i]);
}

}  // namespace
}  // namespace candor::testing::input_watch
