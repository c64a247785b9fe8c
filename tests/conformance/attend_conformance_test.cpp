// attend(): cpu against reference on ragged batches over scattered pages, and cpu against itself bit for bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "conformance/rig.h"

namespace candor::testing {
namespace {

using backend::Activation;
using backend::AttnSpec;
using backend::kBlockTokens;

AttnSpec attn_spec(int32_t n_heads, int32_t n_kv_heads, int32_t head_dim, int32_t window = 0) {
  AttnSpec spec;
  spec.n_heads = n_heads;
  spec.n_kv_heads = n_kv_heads;
  spec.head_dim = head_dim;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  spec.window_tokens = window;
  return spec;
}

// Sequences of the given lengths; row r of sequence s has its own random q, k and v (row `first[s] + r` of the tables).
struct Workload {
  AttnSpec spec;
  std::vector<int32_t> lengths;
  std::vector<int32_t> first;
  std::vector<std::vector<BlockId>> blocks;
  int32_t n_rows = 0;
  int32_t n_blocks = 0;

  Workload(const AttnSpec& attn, std::vector<int32_t> n_tokens) : spec(attn), lengths(std::move(n_tokens)) {
    for (const int32_t length : lengths) {
      first.push_back(n_rows);
      n_rows += length;
      n_blocks += (length + kBlockTokens - 1) / kBlockTokens;
    }
    // Pages are dealt out from the back, sequence by sequence, so that no table is in order.
    BlockId next = n_blocks;
    blocks.resize(lengths.size());
    for (size_t s = 0; s < lengths.size(); ++s) {
      for (int32_t i = 0; i < lengths[s]; i += kBlockTokens) blocks[s].push_back(--next);
    }
  }
  int32_t q_cols() const { return spec.n_heads * spec.head_dim; }
  int32_t out_cols() const { return spec.n_heads * spec.value_dim(); }
  int32_t v_cols() const { return spec.latent_dim > 0 ? 0 : kv_cols(); }
  int32_t kv_cols() const { return spec.n_kv_heads * spec.head_dim; }
};

// Rows of one sequence in one step.
struct Piece {
  size_t seq;
  int32_t n_rows;
};
using Plan = std::vector<std::vector<Piece>>;

Plan all_at_once(const Workload& w) {
  Plan plan(1);
  for (size_t s = 0; s < w.lengths.size(); ++s) plan[0].push_back({s, w.lengths[s]});
  return plan;
}

Plan one_by_one(const Workload& w) {
  Plan plan;
  for (size_t s = 0; s < w.lengths.size(); ++s) plan.push_back({{s, w.lengths[s]}});
  return plan;
}

// All sequences together, at most `chunk` rows of each in a step, in the opposite order.
Plan in_chunks(const Workload& w, int32_t chunk) {
  Plan plan;
  std::vector<int32_t> left = w.lengths;
  while (std::any_of(left.begin(), left.end(), [](int32_t n) { return n > 0; })) {
    plan.emplace_back();
    for (size_t s = left.size(); s-- > 0;) {
      const int32_t n = std::min(chunk, left[s]);
      if (n > 0) plan.back().push_back({s, n});
      left[s] -= n;
    }
  }
  return plan;
}

// Attention outputs [n_rows, H * Dh] in the order of the workload, whatever the plan.
std::vector<float> run_plan(Rig rig, const Workload& w, const Plan& plan,
                            std::optional<KvType> kv_type = std::nullopt) {
  const size_t n = static_cast<size_t>(w.n_rows);
  const size_t q_cols = static_cast<size_t>(w.q_cols());
  const auto& q = rig.upload_rows(random_values(n * q_cols, 31), w.q_cols());
  const auto& k = rig.upload_rows(random_values(n * static_cast<size_t>(w.kv_cols()), 32), w.kv_cols());
  const auto& v = rig.upload_rows(random_values(n * static_cast<size_t>(w.kv_cols()), 33), w.kv_cols());
  const backend::Weight* sinks = nullptr;
  if (w.spec.has_sinks) {
    const auto n_heads = static_cast<size_t>(w.spec.n_heads);
    const OwnedTensor scores = tensor_of("sinks", DType::kF32, {w.spec.n_heads}, random_values(n_heads, 34));
    sinks = &rig.upload(scores.view(), backend::WeightRole::kVector);
  }
  const backend::Weight* biases = nullptr;
  if (w.spec.bias_reach > 0) {
    const int32_t n_biases = w.spec.n_heads * (2 * w.spec.bias_reach + 1);
    const OwnedTensor numbers =
        tensor_of("biases", DType::kF32, {n_biases}, random_values(static_cast<size_t>(n_biases), 35));
    biases = &rig.upload(numbers.view(), backend::WeightRole::kVector);
  }
  rig.reserve(4, w.q_cols(), w.n_rows);
  rig.kv(2, w.spec.n_kv_heads, w.spec.head_dim, w.n_blocks, kv_type, w.spec.latent_dim);
  const size_t out_cols = static_cast<size_t>(w.out_cols());
  std::vector<float> all(n * out_cols);
  std::vector<int32_t> past(w.lengths.size(), 0);
  for (const std::vector<Piece>& step : plan) {
    BatchBuilder builder;
    for (const Piece& piece : step) {
      std::vector<TokenId> rows(static_cast<size_t>(piece.n_rows));
      std::iota(rows.begin(), rows.end(), w.first[piece.seq] + past[piece.seq]);
      builder.add(rows, past[piece.seq], w.blocks[piece.seq]);
      past[piece.seq] += piece.n_rows;
    }
    const backend::StepBatch batch = builder.view();
    const int32_t t = batch.n_rows();
    const std::vector<float> seen = rig.run(batch, [&] {
      rig.ops().run(op::Embed{{0, t, w.q_cols()}, &q, 1.0f});
      rig.ops().run(op::Embed{{1, t, w.kv_cols()}, &k, 1.0f});
      rig.ops().run(op::Embed{{2, t, w.kv_cols()}, &v, 1.0f});
      rig.ops().run(op::Attend{{3, t, w.out_cols()},
                               {{0, t, w.q_cols()}, {1, t, w.kv_cols()}, {2, t, w.v_cols()}, 1, sinks, biases},
                               &w.spec});
      return Activation{3, t, w.out_cols()};
    });
    for (size_t i = 0; i < batch.tokens.size(); ++i)
      std::copy_n(seen.begin() + static_cast<int64_t>(i * out_cols), out_cols,
                  all.begin() + static_cast<int64_t>(static_cast<size_t>(batch.tokens[i]) * out_cols));
  }
  return all;
}

AttnSpec with_sinks(AttnSpec spec) {
  spec.has_sinks = true;
  return spec;
}

AttnSpec with_biases(AttnSpec spec, int32_t reach) {
  spec.bias_reach = reach;
  return spec;
}

AttnSpec in_own_chunk(AttnSpec spec, int32_t chunk_tokens) {
  spec.chunk_tokens = chunk_tokens;
  return spec;
}

// One latent for all heads; more heads than a unit of work takes.
AttnSpec over_latent(int32_t n_heads, int32_t latent_dim, int32_t rotated_dim) {
  AttnSpec spec = attn_spec(n_heads, 1, latent_dim + rotated_dim);
  spec.latent_dim = latent_dim;
  return spec;
}

std::vector<Workload> workloads() {
  std::vector<Workload> all;
  all.emplace_back(attn_spec(4, 2, 64), std::vector<int32_t>{1, 40, 3, 131});
  all.emplace_back(attn_spec(4, 4, 80), std::vector<int32_t>{33, 64, 7});
  all.emplace_back(attn_spec(8, 1, 128), std::vector<int32_t>{150, 2});
  all.emplace_back(attn_spec(6, 2, 16, 20), std::vector<int32_t>{5, 200, 90});
  all.emplace_back(attn_spec(2, 1, 8), std::vector<int32_t>{70});
  all.emplace_back(with_sinks(attn_spec(6, 2, 16, 20)), std::vector<int32_t>{5, 200, 90});
  all.emplace_back(with_sinks(attn_spec(8, 1, 64)), std::vector<int32_t>{150, 2});
  all.emplace_back(with_biases(attn_spec(6, 2, 16), 30), std::vector<int32_t>{5, 200, 90});
  all.emplace_back(with_biases(attn_spec(4, 4, 64), 128), std::vector<int32_t>{300, 2});
  all.emplace_back(in_own_chunk(attn_spec(6, 2, 16), 20), std::vector<int32_t>{5, 200, 90});
  all.emplace_back(in_own_chunk(attn_spec(4, 1, 64), 128), std::vector<int32_t>{300, 128});
  all.emplace_back(over_latent(4, 32, 8), std::vector<int32_t>{1, 40, 3, 131});
  all.emplace_back(over_latent(64, 64, 16), std::vector<int32_t>{150, 2});
  return all;
}

// q, k, v and probabilities are rounded to bf16 (2^-9 relative each). With standard normal inputs a score is off by
// about 2^-9 of its terms' root sum of squares, below 0.01, and an output by that share of the values' size (at most
// about 4). Measured: 0.0095 at most, 0.0010 root mean square; bounded at twice that.
TEST(attend, every_shape_agrees_with_the_reference_within_bf16_rounding) {
  for (const Workload& w : workloads()) {
    const std::vector<float> wanted = run_plan(reference_rig(), w, all_at_once(w));
    const std::vector<float> seen = run_plan(cpu_rig(2), w, all_at_once(w));
    double square = 0;
    for (size_t i = 0; i < seen.size(); ++i) {
      ASSERT_NEAR(seen[i], wanted[i], 0.02) << "head width " << w.spec.head_dim << " element " << i;
      square += static_cast<double>(seen[i] - wanted[i]) * static_cast<double>(seen[i] - wanted[i]);
    }
    EXPECT_LT(std::sqrt(square / static_cast<double>(seen.size())), 0.002);
  }
}

TEST(attend, threads_batches_chunks_and_instruction_sets_do_not_change_a_bit) {
  for (const Workload& w : workloads()) {
    const std::vector<float> wanted = run_plan(cpu_rig(1), w, all_at_once(w));
    for (const std::string& isa : runnable_isas()) {
      for (const int32_t n_threads : {1, 2, 3}) {
        for (const Plan& plan : {all_at_once(w), one_by_one(w), in_chunks(w, 1), in_chunks(w, 7), in_chunks(w, 64)}) {
          const std::vector<float> seen = run_plan(cpu_rig(n_threads, isa), w, plan);
          ASSERT_EQ(first_difference(seen, wanted), -1)
              << isa << " " << n_threads << " threads, " << plan.size() << " steps, head width " << w.spec.head_dim;
        }
      }
    }
  }
}

// f32 pages leave the rounding of q and probabilities; int8 pages add half a step, 1 / 254 of the largest of 32 numbers
// (about 0.01), to every key and value; 4 bits a tenth of it.
TEST(attend, pages_of_every_type_agree_with_the_reference_and_keep_their_bits_under_every_plan) {
  for (const Workload& w : workloads()) {
    const std::vector<float> wanted = run_plan(reference_rig(), w, all_at_once(w));
    for (const auto& [type, bound] : {std::pair{KvType::kF32, 0.02f}, {KvType::kQ8_0, 0.06f}, {KvType::kQ4, 0.5f}}) {
      const std::vector<float> seen = run_plan(cpu_rig(2), w, all_at_once(w), type);
      for (size_t i = 0; i < seen.size(); ++i) ASSERT_NEAR(seen[i], wanted[i], bound) << w.spec.head_dim << " " << i;
      for (const std::string& isa : runnable_isas()) {
        for (const Plan& plan : {one_by_one(w), in_chunks(w, 7)}) {
          const auto again = run_plan(cpu_rig(2, isa), w, plan, type);
          ASSERT_EQ(first_difference(again, seen), -1) << isa << " head width " << w.spec.head_dim;
        }
      }
    }
  }
}

// Beyond 2048 tokens the context is cut into splits; one kv head on three threads makes the splits the unit of work.
TEST(attend, a_long_context_gives_the_same_bits_when_threads_share_its_splits) {
  for (const AttnSpec& spec :
       {with_sinks(attn_spec(2, 1, 16)), in_own_chunk(attn_spec(2, 1, 16), 3000), over_latent(3, 16, 8)}) {
    const Workload w(spec, {4200});
    const std::vector<float> wanted = run_plan(cpu_rig(1), w, all_at_once(w));
    const Plan tail = {{{0, 4190}}, {{0, 1}}, {{0, 1}}, {{0, 5}}, {{0, 3}}};
    for (const std::string& isa : runnable_isas()) {
      EXPECT_EQ(first_difference(run_plan(cpu_rig(3, isa), w, tail), wanted), -1) << isa;
    }
  }
}

// A position sees its own chunk alone: what stands before it may be anything.
TEST(attend, a_chunk_hides_all_that_stands_before_it) {
  const Workload w(in_own_chunk(attn_spec(2, 1, 16), 40), {100});
  const Workload alone(attn_spec(2, 1, 16), {100});
  const std::vector<float> chunked = run_plan(cpu_rig(1), w, all_at_once(w));
  const std::vector<float> whole = run_plan(cpu_rig(1), alone, all_at_once(alone));
  const size_t n_cols = static_cast<size_t>(w.out_cols());
  const auto row_differs = [&](size_t row) {
    return !std::equal(chunked.begin() + static_cast<int64_t>(row * n_cols),
                       chunked.begin() + static_cast<int64_t>((row + 1) * n_cols),
                       whole.begin() + static_cast<int64_t>(row * n_cols));
  };
  for (size_t row = 0; row < 40; ++row) EXPECT_FALSE(row_differs(row)) << row;
  for (size_t row = 40; row < 100; ++row) EXPECT_TRUE(row_differs(row)) << row;
}

// Two layers of other heads beside each other, and a third step that reads the first one's rows without writing any.
TEST(attend, layers_of_different_heads_keep_their_own_rows_and_serve_others) {
  constexpr int32_t kTokens = 45;
  const AttnSpec narrow = attn_spec(2, 2, 16);
  const AttnSpec wide = attn_spec(2, 1, 32);
  const auto run = [&](Rig rig, int32_t read_layer, bool stores_wide) {
    const auto& rows = rig.upload_rows(random_values(kTokens * 64, 31), 64);
    rig.reserve(4, 64, kTokens);
    backend::KvLayout layout{2, 2, 16, rig.backend().info().default_kv};
    layout.heads = {{2, 16}, {1, 32}};
    rig.kv(layout, 2);
    std::vector<TokenId> tokens(kTokens);
    std::iota(tokens.begin(), tokens.end(), 0);
    BatchBuilder builder;
    builder.add(tokens, 0, std::vector<BlockId>{1, 0});
    return rig.run(builder.view(), [&] {
      rig.ops().run(op::Embed{{0, kTokens, 64}, &rows, 1.0f});
      const Activation q{1, kTokens, 32}, none{2, kTokens, 0}, out{3, kTokens, read_layer == 0 ? 32 : 64};
      rig.ops().run(op::Columns{q, {0, kTokens, 64}, 0});
      rig.ops().run(op::Columns{{2, kTokens, 32}, {0, kTokens, 64}, 32});
      rig.ops().run(op::Attend{out, {q, {2, kTokens, 32}, {2, kTokens, 32}, 0}, &narrow});
      if (stores_wide) {
        rig.ops().run(op::Attend{{3, kTokens, 64}, {{0, kTokens, 64}, {2, kTokens, 32}, {2, kTokens, 32}, 1}, &wide});
      }
      if (read_layer == 0) rig.ops().run(op::Attend{out, {q, none, none, 0}, &narrow});
      return out;
    });
  };
  const std::vector<float> alone = run(cpu_rig(2), 0, false);
  EXPECT_EQ(first_difference(run(cpu_rig(2), 0, true), alone), -1);
  const std::vector<float> wanted = run(reference_rig(), 0, true);
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(alone[i], wanted[i], 0.02) << i;
  const std::vector<float> wide_wanted = run(reference_rig(), 1, true);
  const std::vector<float> wide_seen = run(cpu_rig(2), 1, true);
  for (size_t i = 0; i < wide_wanted.size(); ++i) ASSERT_NEAR(wide_seen[i], wide_wanted[i], 0.02) << i;
}

TEST(attend, a_copied_block_serves_as_the_original_did) {
  const AttnSpec spec = attn_spec(2, 1, 16);
  Workload w(spec, {45});
  const std::vector<float> wanted = run_plan(cpu_rig(1), w, all_at_once(w));
  Rig rig = cpu_rig(1);
  const auto& rows = rig.upload_rows(random_values(45 * 32, 31), 32);
  const auto& k = rig.upload_rows(random_values(45 * 16, 32), 16);
  const auto& v = rig.upload_rows(random_values(45 * 16, 33), 16);
  rig.reserve(4, 32, 45);
  backend::KvStore& kv = rig.kv(2, 1, 16, 4);
  const auto step = [&](int32_t first, int32_t n, std::vector<BlockId> blocks) {
    std::vector<TokenId> tokens(static_cast<size_t>(n));
    std::iota(tokens.begin(), tokens.end(), first);
    BatchBuilder builder;
    builder.add(tokens, first, blocks);
    return rig.run(builder.view(), [&] {
      rig.ops().run(op::Embed{{0, n, 32}, &rows, 1.0f});
      rig.ops().run(op::Embed{{1, n, 16}, &k, 1.0f});
      rig.ops().run(op::Embed{{2, n, 16}, &v, 1.0f});
      rig.ops().run(op::Attend{{3, n, 32}, {{0, n, 32}, {1, n, 16}, {2, n, 16}, 1}, &spec});
      return Activation{3, n, 32};
    });
  };
  step(0, 44, {0, 1});
  kv.copy_block(1, 3, 44 - kBlockTokens);
  const std::vector<float> last = step(44, 1, {0, 3});
  EXPECT_TRUE(std::equal(last.begin(), last.end(), wanted.end() - 32));
}

}  // namespace
}  // namespace candor::testing
