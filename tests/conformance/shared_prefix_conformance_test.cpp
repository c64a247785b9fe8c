// attend() for sequences that begin with the same blocks: their bits are those that each has in a step of its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checked.h"
#include "conformance/rig.h"

namespace candor::testing {
namespace {

using backend::Activation;
using backend::AttnSpec;
using backend::kBlockTokens;

struct Tail {
  int32_t n_shared = 0;  // tokens of the common text, whole blocks of it
  int32_t n_own = 0;     // tokens of its own, in the K/V store before the step that is compared
  int32_t n_rows = 1;    // of that step
};

// A text that is stored once, then sequences that go on from it. Rows of the tables are numbered through.
struct Branches {
  AttnSpec spec;
  int32_t n_common = 0;
  std::vector<Tail> tails;
  KvType kv_type = KvType::kBf16;

  int32_t first_row(size_t tail) const {
    int32_t row = n_common;
    for (size_t i = 0; i < tail; ++i) row += tails[i].n_own + tails[i].n_rows;
    return row;
  }
  int32_t n_rows() const { return first_row(tails.size()); }
  int32_t q_cols() const { return spec.n_heads * spec.head_dim; }
  int32_t kv_cols() const { return spec.n_kv_heads * spec.head_dim; }
  int32_t out_cols() const { return spec.n_heads * spec.value_dim(); }
};

// Every tail's blocks: those of the common text, then its own.
std::vector<std::vector<BlockId>> tables_of(const Branches& b) {
  std::vector<std::vector<BlockId>> tables;
  BlockId next = b.n_common / kBlockTokens;
  for (const Tail& tail : b.tails) {
    tables.emplace_back();
    for (BlockId block = 0; block < tail.n_shared / kBlockTokens; ++block) tables.back().push_back(block);
    for (int32_t i = 0; i < tail.n_own + tail.n_rows; i += kBlockTokens) tables.back().push_back(next++);
  }
  return tables;
}

// The outputs of the last step of every tail: all in one step, or each in its own.
std::vector<float> run_branches(Rig rig, const Branches& b, bool together) {
  const auto n = static_cast<size_t>(b.n_rows());
  const auto table = [&](int32_t n_cols, uint64_t seed) -> const backend::Weight& {
    return rig.upload_rows(random_values(n * static_cast<size_t>(n_cols), seed), n_cols);
  };
  const auto& q = table(b.q_cols(), 41);
  const auto& k = table(b.kv_cols(), 42);
  const auto& v = table(b.kv_cols(), 43);
  rig.reserve(4, b.q_cols(), b.n_rows());
  const bool has_values = b.spec.latent_dim == 0;
  const int32_t n_blocks = b.n_rows() / kBlockTokens + checked_cast<int32_t>(2 * b.tails.size());
  rig.kv(2, b.spec.n_kv_heads, b.spec.head_dim, n_blocks, b.kv_type, b.spec.latent_dim);
  const auto step = [&](BatchBuilder& builder) {
    const backend::StepBatch batch = builder.view();
    const int32_t t = batch.n_rows();
    return rig.run(batch, [&] {
      rig.ops().run(op::Embed{{0, t, b.q_cols()}, &q, 1.0f});
      rig.ops().run(op::Embed{{1, t, b.kv_cols()}, &k, 1.0f});
      rig.ops().run(op::Embed{{2, t, b.kv_cols()}, &v, 1.0f});
      const Activation values{2, t, has_values ? b.kv_cols() : 0};
      rig.ops().run(op::Attend{{3, t, b.out_cols()}, {{0, t, b.q_cols()}, {1, t, b.kv_cols()}, values, 1}, &b.spec});
      return Activation{3, t, b.out_cols()};
    });
  };
  const auto add = [&](BatchBuilder& builder, int32_t first, int32_t n_new, int32_t n_past, const auto& blocks) {
    std::vector<TokenId> rows(static_cast<size_t>(n_new));
    std::iota(rows.begin(), rows.end(), first);
    builder.add(rows, n_past, blocks);
  };
  const auto tables = tables_of(b);
  std::vector<BlockId> common(static_cast<size_t>(b.n_common / kBlockTokens));
  std::iota(common.begin(), common.end(), 0);
  BatchBuilder text;
  add(text, 0, b.n_common, 0, common);
  step(text);
  BatchBuilder all;
  std::vector<float> alone;
  for (size_t i = 0; i < b.tails.size(); ++i) {
    const Tail& tail = b.tails[i];
    BatchBuilder own;
    if (tail.n_own > 0) {
      add(own, b.first_row(i), tail.n_own, tail.n_shared, tables[i]);
      step(own);
    }
    BatchBuilder last;
    const auto add_last = [&](BatchBuilder& to) {
      add(to, b.first_row(i) + tail.n_own, tail.n_rows, tail.n_shared + tail.n_own, tables[i]);
    };
    add_last(together ? all : last);
    if (together) continue;
    const std::vector<float> seen = step(last);
    alone.insert(alone.end(), seen.begin(), seen.end());
  }
  return together ? step(all) : alone;
}

AttnSpec branched_spec(int32_t n_heads, int32_t n_kv_heads, int32_t head_dim) {
  AttnSpec spec;
  spec.n_heads = n_heads;
  spec.n_kv_heads = n_kv_heads;
  spec.head_dim = head_dim;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return spec;
}

// Splits are 2048 tokens and key tiles 128: what is shared ends within a tile, a split, and at their borders.
std::vector<Branches> branches() {
  const std::vector<Tail> near_alike = {{2208, 1}, {2208, 0}, {2208, 70, 3}, {2208, 33}};
  const std::vector<Tail> many = {{640, 5}, {512, 100, 8}, {0, 300}, {640, 0}, {640, 200, 40}, {320, 0}, {640, 9, 2}};
  std::vector<Branches> all = {{branched_spec(2, 1, 16), 2208, near_alike},
                               {branched_spec(2, 1, 16), 2208, near_alike, KvType::kQ8_0},
                               {branched_spec(2, 1, 16), 2208, near_alike, KvType::kQ4},
                               {branched_spec(4, 2, 64), 640, many},
                               {branched_spec(4, 1, 40), 640, many, KvType::kF32},
                               {branched_spec(2, 2, 8), 2048, {{2048, 0}, {2048, 3}, {1024, 7}}},
                               {branched_spec(2, 2, 16), 640, many},
                               {branched_spec(4, 1, 40), 640, many}};
  all[5].spec.window_tokens = 300;
  all[6].spec.softcap = 1.5f;
  Branches latent{branched_spec(16, 1, 40), 640, many};
  latent.spec.latent_dim = 32;
  all.push_back(latent);
  return all;
}

TEST(shared_prefixes, rows_that_read_shared_blocks_together_have_the_bits_that_each_has_alone) {
  for (const Branches& b : branches()) {
    const std::vector<float> wanted = run_branches(cpu_rig(1), b, false);
    for (const std::string& isa : runnable_isas()) {
      EXPECT_EQ(first_difference(run_branches(cpu_rig(3, isa), b, true), wanted), -1)
          << isa << ", head width " << b.spec.head_dim << ", common " << b.n_common;
    }
  }
}

}  // namespace
}  // namespace candor::testing
