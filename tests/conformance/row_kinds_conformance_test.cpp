// Rows that are more than tokens behind one another: rows that see all of their group, and rows that begin with a
// vector.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "backend/op_specs.h"
#include "backend/step_batch.h"
#include "conformance/rig.h"

namespace candor::testing {
namespace {

using backend::Activation;
using backend::AttnSpec;
using backend::kBlockTokens;

constexpr int32_t kGroupHeads = 4, kHeadCols = 16;

// A sequence: rows before the group see up to themselves, as do those behind it.
struct Text {
  int32_t n_past = 0;  // of a step before
  int32_t n_before = 0;
  int32_t n_group = 0;
  int32_t n_after = 0;
  int32_t length() const { return n_past + n_before + n_group + n_after; }
};

class GroupRun {
 public:
  // window: to both sides; 0 = none.
  GroupRun(Rig rig, const std::vector<Text>& texts, float max_alibi_bias = 0.0f, int32_t window = 0)
      : rig_(std::move(rig)), texts_(texts) {
    spec_.window_tokens = window;
    spec_.is_two_sided = window > 0;
    spec_.n_heads = kGroupHeads;
    spec_.n_kv_heads = 2;
    spec_.head_dim = kHeadCols;
    spec_.scale = 0.25f;
    spec_.max_alibi_bias = max_alibi_bias;
    int32_t n_blocks = 0;
    for (const Text& text : texts_) {
      std::vector<BlockId> blocks(static_cast<size_t>((text.length() + kBlockTokens - 1) / kBlockTokens));
      std::iota(blocks.rbegin(), blocks.rend(), n_blocks);
      n_blocks += static_cast<int32_t>(blocks.size());
      blocks_.push_back(blocks);
      longest_ = std::max(longest_, text.length());
      n_all_ += text.length();
    }
    // A token's rows depend on its place in its text alone.
    q_ = &table(kGroupHeads * kHeadCols, 31);
    k_ = &table(2 * kHeadCols, 32);
    v_ = &table(2 * kHeadCols, 33);
    rig_.reserve(4, kGroupHeads * kHeadCols, n_all_);
    rig_.kv(1, 2, kHeadCols, n_blocks);
  }

  GroupRun& without_groups() {
    spec_.sees_groups = false;
    return *this;
  }

  // Of the rows of the second step.
  std::vector<float> run() {
    BatchBuilder past, now;
    for (size_t i = 0; i < texts_.size(); ++i) {
      const Text& text = texts_[i];
      if (text.n_past > 0) past.add(tokens(0, text.n_past), 0, blocks_[i]);
    }
    if (past.n_rows() > 0) step(past);
    for (size_t i = 0; i < texts_.size(); ++i) {
      const Text& text = texts_[i];
      const int32_t begin = now.n_rows() + text.n_before;
      if (text.n_group > 0) now.group(begin, text.n_group);
      now.add(tokens(text.n_past, text.length() - text.n_past), text.n_past, blocks_[i]);
    }
    return step(now);
  }

 private:
  const backend::Weight& table(int32_t cols, uint64_t seed) {
    return rig_.upload_rows(random_values(static_cast<size_t>(longest_) * static_cast<size_t>(cols), seed), cols);
  }
  static std::vector<TokenId> tokens(int32_t first, int32_t n) {
    std::vector<TokenId> list(static_cast<size_t>(n));
    std::iota(list.begin(), list.end(), first);
    return list;
  }
  std::vector<float> step(BatchBuilder& builder) {
    const backend::StepBatch batch = builder.view();
    const int32_t t = batch.n_rows();
    const Activation q{0, t, kGroupHeads * kHeadCols}, k{1, t, 2 * kHeadCols}, v{2, t, 2 * kHeadCols};
    const Activation out{3, t, kGroupHeads * kHeadCols};
    return rig_.run(batch, [&] {
      rig_.ops().run(op::Embed{q, q_});
      rig_.ops().run(op::Embed{k, k_});
      rig_.ops().run(op::Embed{v, v_});
      rig_.ops().run(op::Attend{out, {q, k, v, 0}, &spec_});
      return out;
    });
  }

  Rig rig_;
  std::vector<Text> texts_;
  std::vector<std::vector<BlockId>> blocks_;
  int32_t longest_ = 0;
  int32_t n_all_ = 0;
  AttnSpec spec_;
  const backend::Weight *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;
};

const std::vector<Text> kTexts = {{10, 20, 50, 30}, {0, 0, 200, 0}, {0, 1, 0, 0}, {40, 0, 7, 0}};

TEST(row_kinds, rows_of_a_group_see_one_another_as_the_reference_says) {
  for (const float alibi : {0.0f, 8.0f}) {
    const std::vector<float> wanted = GroupRun(reference_rig(), kTexts, alibi).run();
    const std::vector<float> seen = GroupRun(cpu_rig(2), kTexts, alibi).run();
    ASSERT_EQ(seen.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(seen[i], wanted[i], 0.02) << i;
    std::vector<Text> causal = kTexts;
    for (Text& text : causal) text = {text.n_past, text.n_before + text.n_group + text.n_after, 0, 0};
    EXPECT_NE(first_difference(GroupRun(cpu_rig(2), causal, alibi).run(), seen), -1) << "groups change nothing";
  }
}

TEST(row_kinds, layers_that_see_no_groups_read_their_rows_in_order) {
  std::vector<Text> causal = kTexts;
  for (Text& text : causal) text = {text.n_past, text.n_before + text.n_group + text.n_after, 0, 0};
  for (const bool is_cpu : {false, true}) {
    const auto run = [&](const std::vector<Text>& texts) {
      return GroupRun(is_cpu ? cpu_rig(2) : reference_rig(), texts).without_groups().run();
    };
    EXPECT_EQ(first_difference(run(kTexts), run(causal)), -1);
  }
}

TEST(row_kinds, groups_give_the_same_bits_whatever_threads_instruction_sets_and_neighbours) {
  const std::vector<float> wanted = GroupRun(cpu_rig(1), kTexts).run();
  for (const std::string& isa : runnable_isas()) {
    for (const int32_t n_threads : {1, 3})
      EXPECT_EQ(first_difference(GroupRun(cpu_rig(n_threads, isa), kTexts).run(), wanted), -1) << isa;
  }
  std::vector<float> one_by_one;
  for (const Text& text : kTexts) {
    const std::vector<float> alone = GroupRun(cpu_rig(2), {text}).run();
    one_by_one.insert(one_by_one.end(), alone.begin(), alone.end());
  }
  EXPECT_EQ(first_difference(one_by_one, wanted), -1);
}

TEST(row_kinds, a_window_of_two_sides_is_as_the_reference_says_and_the_same_everywhere) {
  const std::vector<Text> texts = {{0, 0, 300, 0}, {0, 0, 5, 0}, {0, 0, 129, 0}, {7, 3, 150, 6}};
  for (const int32_t window : {1, 2, 33, 128, 400}) {
    const std::vector<float> wanted = GroupRun(reference_rig(), texts, 0.0f, window).run();
    const std::vector<float> seen = GroupRun(cpu_rig(2), texts, 0.0f, window).run();
    ASSERT_EQ(seen.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(seen[i], wanted[i], 0.02) << window << " " << i;
    for (const std::string& isa : runnable_isas()) {
      EXPECT_EQ(first_difference(GroupRun(cpu_rig(1, isa), texts, 0.0f, window).run(), seen), -1) << isa << window;
    }
  }
  const std::vector<float> wide = GroupRun(cpu_rig(2), texts, 0.0f, 400).run();
  EXPECT_EQ(first_difference(GroupRun(cpu_rig(2), texts).run(), wide), -1);
  const std::vector<Text> longer = {{0, 0, 2500, 0}};
  EXPECT_EQ(
      first_difference(GroupRun(cpu_rig(3), longer, 0.0f, 2100).run(), GroupRun(cpu_rig(1), longer, 0.0f, 2100).run()),
      -1);
}

TEST(row_kinds, tokens_of_a_second_text_are_of_another_type) {
  for (const bool is_cpu : {false, true}) {
    for (const int32_t n_types : {1, 2}) {
      Rig rig = is_cpu ? cpu_rig(2) : reference_rig();
      const std::vector<float> values = random_values(3 * 32, 5);
      const std::vector<float> types = random_values(static_cast<size_t>(n_types) * 32, 6);
      const auto& table = rig.upload_rows(values, 32);
      const auto& type_table = rig.upload_rows(types, 32);
      rig.reserve(1, 32, 3);
      rig.kv(1, 1, 16, 1);
      BatchBuilder builder;
      builder.add(std::vector<TokenId>{0, 1, 2}, 0, std::vector<BlockId>{0});
      backend::StepBatch batch = builder.view();
      std::vector<backend::SeqSlice> seqs(batch.seqs.begin(), batch.seqs.end());
      seqs[0].second_text = 2;
      batch.seqs = seqs;
      const std::vector<float> seen = rig.run(batch, [&] {
        rig.ops().run(op::Embed{{0, 3, 32}, &table});
        rig.ops().run(op::AddTypes{{0, 3, 32}, &type_table});
        return Activation{0, 3, 32};
      });
      for (size_t i = 0; i < values.size(); ++i) {
        const size_t type = i / 32 < 2 || n_types == 1 ? 0 : 1;
        EXPECT_EQ(seen[i], values[i] + types[type * 32 + i % 32]) << i;
      }
    }
  }
}

TEST(row_kinds, a_group_longer_than_a_split_gives_the_same_bits) {
  const std::vector<Text> texts = {{3, 2, 2500, 4}};
  EXPECT_EQ(first_difference(GroupRun(cpu_rig(3), texts).run(), GroupRun(cpu_rig(1), texts).run()), -1);
}

TEST(row_kinds, a_row_begins_with_its_vector_where_one_is_wanted) {
  for (const bool is_cpu : {false, true}) {
    Rig rig = is_cpu ? cpu_rig(2) : reference_rig();
    const std::vector<float> values = random_values(3 * 32, 5), vector = random_values(32, 6);
    const auto& table = rig.upload_rows(values, 32);
    rig.reserve(1, 32, 3);
    rig.kv(1, 1, 16, 1);
    for (const bool takes : {true, false}) {
      BatchBuilder builder;
      builder.vector(1, vector);
      builder.add(std::vector<TokenId>{0, 1, 2}, 0, std::vector<BlockId>{0});
      const std::vector<float> seen = rig.run(builder.view(), [&] {
        rig.ops().run(op::Embed{{0, 3, 32}, &table, 1.0f, takes});
        return Activation{0, 3, 32};
      });
      std::vector<float> wanted = values;
      if (takes) std::copy(vector.begin(), vector.end(), wanted.begin() + 32);
      EXPECT_EQ(seen, wanted);
    }
  }
}

TEST(row_kinds, rows_with_a_vector_take_another_tokens_row_where_one_is_named) {
  for (const bool is_cpu : {false, true}) {
    Rig rig = is_cpu ? cpu_rig(2) : reference_rig();
    const std::vector<float> values = random_values(3 * 32, 5);
    const auto& table = rig.upload_rows(values, 32);
    rig.reserve(1, 32, 3);
    rig.kv(1, 1, 16, 1);
    BatchBuilder builder;
    builder.vector(1, random_values(32, 6));
    builder.add(std::vector<TokenId>{0, 1, 2}, 0, std::vector<BlockId>{0});
    const std::vector<float> seen = rig.run(builder.view(), [&] {
      rig.ops().run(op::Embed{.dst = {0, 3, 32}, .table = &table, .vector_token = 2});
      return Activation{0, 3, 32};
    });
    std::vector<float> wanted = values;
    std::copy(values.begin() + 64, values.end(), wanted.begin() + 32);
    EXPECT_EQ(seen, wanted);
  }
}

TEST(row_kinds, what_a_backend_does_not_know_has_a_name) {
  const backend::RowKinds known = cpu_rig().backend().info().rows;
  EXPECT_EQ(backend::missing_kind({.vectors = true, .groups = true, .axes = true, .adapters = true}, known), "");
  EXPECT_EQ(backend::missing_kind({.axes = true}, {}), "rows at several positions");
  EXPECT_EQ(backend::missing_kind({.adapters = true}, {}), "adapters");
}

}  // namespace
}  // namespace candor::testing
