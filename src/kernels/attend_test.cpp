#include "kernels/attend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/half.h"
#include "kernels/attend_test_support.h"

namespace candor::kernels::testing {

namespace {

class attend : public KernelTest {};

// f64 attention of one query over bf16 K and V.
std::vector<double> expected(const Sequence& s, const float* q, int32_t position, int32_t window, double cap = 0.0,
                             double slope = 0.0, const float* sink = nullptr) {
  const auto dim = static_cast<size_t>(s.head_dim);
  const auto begin = static_cast<size_t>(window == 0 ? 0 : std::max(0, position - window + 1));
  std::vector<double> weights;
  double sum = sink == nullptr ? 0.0 : std::exp(static_cast<double>(*sink));
  for (size_t t = begin; t <= static_cast<size_t>(position); ++t) {
    double score = 0;
    for (size_t d = 0; d < dim; ++d) score += static_cast<double>(q[d]) * bf16_to_f32(f32_to_bf16(s.k[t * dim + d]));
    score /= std::sqrt(static_cast<double>(dim));
    if (cap != 0.0) score = cap * std::tanh(score / cap);
    weights.push_back(std::exp(score - slope * (position - static_cast<double>(t))));
    sum += weights.back();
  }
  std::vector<double> out(dim);
  for (size_t t = begin; t <= static_cast<size_t>(position); ++t) {
    for (size_t d = 0; d < dim; ++d) {
      out[d] += weights[t - begin] / sum * static_cast<double>(bf16_to_f32(f32_to_bf16(s.v[t * dim + d])));
    }
  }
  return out;
}

// Up to a border all rows at once, listed in another order; then one row after another goes on from its records.
void go_on_alone(KvFormat format) {
  const Sequence s(*runnable_tables().back(), kSplitTokens + 400, 64, format);
  const Query query{kSplitTokens + 380, 9, 4, 0};
  const auto wanted = run(*runnable_tables().back(), s, query);
  const auto q = queries(s, query);
  const std::vector<int32_t> rows = {4, 0, 8, 1, 7, 2, 6, 3, 5};
  const size_t record = attend_partial_bytes(query.heads, s.head_dim);
  for (const KernelTable* table : tested_tables()) {
    for (const int32_t border : {1536, kSplitTokens, kSplitTokens + 256}) {
      std::vector<float> dst;
      AttendArgs shared = args_of(s, query, q, dst);
      shared.q_rows = rows.data();
      shared.first_position = border - 1;
      shared.end_token = border;
      const Buffer scratch(attend_scratch_bytes(s.head_dim));
      const Buffer all(9 * record);
      const Buffer own(9 * 2 * record);  // of each row, two splits
      for (int32_t split = 0; split * kSplitTokens < border; ++split) {
        table->attend_split(shared, split, all.data(), scratch.data());
        for (size_t i = 0; i < 9; ++i) {
          const auto place = static_cast<size_t>(rows[i] * 2 + split);
          std::memcpy(own.data() + place * record, all.data() + i * record, record);
        }
      }
      for (int32_t row = 0; row < 9; ++row) {
        AttendArgs alone = args_of(s, query, q, dst);
        alone.q += row * alone.q_stride;
        alone.n_rows = 1;
        alone.first_position += row;
        alone.resume_token = border;
        std::byte* partials = own.data() + static_cast<size_t>(row * 2) * record;
        for (int32_t split = border / kSplitTokens; split < 2; ++split) {
          table->attend_split(alone, split, partials + static_cast<size_t>(split) * record, scratch.data());
        }
        table->attend_combine(alone, partials, scratch.data());
        const std::vector<float> seen(dst.begin(), dst.begin() + query.heads * s.head_dim);
        const auto first = wanted.begin() + row * query.heads * s.head_dim;
        ASSERT_EQ(first_difference({first, first + std::ssize(seen)}, seen), -1) << table->name << " " << border;
      }
    }
  }
}

}  // namespace

TEST_F(attend, agrees_with_f64_for_every_head_width_and_window) {
  const KernelTable& table = *tested_tables().back();
  for (const int32_t dim : {16, 64, 80, 128, 40}) {
    const Sequence s(table, 300, dim);
    for (const int32_t window : {0, 50, 1}) {
      const Query query{270, 30, 2, window};
      const auto q = queries(s, query);
      const auto out = run(table, s, query);
      for (int32_t i = 0; i < 60; ++i) {
        const auto want = expected(s, q.data() + i * dim, 270 + i / 2, window);
        for (int32_t d = 0; d < dim; ++d) {
          // q and p carry 8 bits: scores of about 2 err by 2^-8, weights by twice that, values are about 1.
          ASSERT_NEAR(out[static_cast<size_t>(i * dim + d)], want[static_cast<size_t>(d)], 0.03)
              << dim << " " << window;
        }
      }
    }
  }
}

TEST_F(attend, scores_are_capped_and_lowered_by_distance) {
  const float slopes[] = {0.25f, 0.0625f};
  for (const KernelTable* table : runnable_tables()) {
    const Sequence s(*table, 300, 64);
    const Query query{270, 30, 2, 0, 1.5f, slopes};
    const auto q = queries(s, query);
    const auto out = run(*table, s, query);
    for (int32_t i = 0; i < 60; ++i) {
      const auto want = expected(s, q.data() + i * 64, 270 + i / 2, 0, 1.5, static_cast<double>(slopes[i % 2]));
      for (int32_t d = 0; d < 64; ++d) {
        ASSERT_NEAR(out[static_cast<size_t>(i * 64 + d)], want[static_cast<size_t>(d)], 0.03) << table->name;
      }
    }
    const auto portable = runnable_tables().front();
    EXPECT_EQ(first_difference(run(*portable, Sequence(*portable, 300, 64), query), out), -1) << table->name;
  }
}

// Below all scores, among them and above them.
TEST_F(attend, a_sink_takes_its_share_in_the_bits_of_portable_at_once_and_in_pieces) {
  const float sinks[] = {-20.0f, 0.7f, 9.0f};
  const KernelTable& portable = *runnable_tables().front();
  for (const int32_t window : {0, 12}) {
    const Query query{2030, 30, 3, window, 0.0f, nullptr, sinks};
    const auto first = run(portable, Sequence(portable, 2060, 64), query);
    for (const KernelTable* table : tested_tables()) {
      const Sequence s(*table, 2060, 64);
      const auto q = queries(s, query);
      const auto out = run(*table, s, query);
      for (int32_t i = 0; i < 90; ++i) {
        const auto want = expected(s, q.data() + i * 64, 2030 + i / 3, window, 0.0, 0.0, sinks + i % 3);
        for (int32_t d = 0; d < 64; ++d) {
          ASSERT_NEAR(out[static_cast<size_t>(i * 64 + d)], want[static_cast<size_t>(d)], 0.03) << table->name;
        }
      }
      EXPECT_EQ(first_difference(first, out), -1) << table->name;
      EXPECT_EQ(first_difference(first, run_in_splits(*table, s, query)), -1) << table->name;
    }
  }
}

// As many as distances of two tokens that stand 5 apart at most; those farther apart have the outermost.
TEST_F(attend, biases_by_distance_have_the_bits_of_portable_at_once_and_in_pieces) {
  constexpr int32_t kReach = 5;
  const std::vector<float> biases = random_row(2 * (2 * kReach + 1), 9, 4.0f);
  const KernelTable& portable = *runnable_tables().front();
  const Query query{.first = 280, .n_rows = 20, .heads = 2, .biases = biases.data(), .bias_reach = kReach};
  Query plain = query;
  plain.biases = nullptr;
  const auto first = run(portable, Sequence(portable, 300, 64), query);
  EXPECT_NE(first_difference(first, run(portable, Sequence(portable, 300, 64), plain)), -1);
  for (const KernelTable* table : tested_tables()) {
    const Sequence s(*table, 300, 64);
    EXPECT_EQ(first_difference(first, run(*table, s, query)), -1) << table->name;
    EXPECT_EQ(first_difference(first, run_in_splits(*table, s, query)), -1) << table->name;
  }
}

TEST_F(attend, every_instruction_set_gives_the_bits_of_portable) {
  const auto tables = tested_tables();
  for (const int32_t dim : {64, 80}) {
    const Sequence first(*tables.front(), 290, dim);
    for (const Query& query : {Query{0, 45, 3, 0}, Query{285, 5, 4, 0}, Query{250, 40, 1, 70}, Query{289, 1, 8, 0}}) {
      const auto want = run(*tables.front(), first, query);
      for (const KernelTable* table : tables) {
        const Sequence s(*table, 290, dim);
        EXPECT_EQ(first_difference(want, run(*table, s, query)), -1) << table->name << " " << query.first;
      }
    }
  }
}

TEST_F(attend, pages_of_every_format_have_the_bits_of_portable_and_are_near_to_bf16_ones) {
  const auto tables = runnable_tables();
  for (const int32_t dim : {64, 80, 40, 9}) {
    for (const Query& query : {Query{250, 40, 3, 70}, Query{289, 1, 8, 0}}) {
      const auto near = run(*tables.front(), Sequence(*tables.front(), 290, dim), query);
      for (const auto& [format, bound] :
           {std::pair{KvFormat::kF32, 0.08f}, {KvFormat::kQ8, 0.08f}, {KvFormat::kQ4, 0.5f}}) {
        const auto want = run(*tables.front(), Sequence(*tables.front(), 290, dim, format), query);
        // int8 errs by 3 / 254 of a number at most, bf16 by 1 / 256, 4 bits by 18 / 127.
        for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(want[i], near[i], bound) << dim << " " << i;
        for (const KernelTable* table : tables) {
          const Sequence s(*table, 290, dim, format);
          EXPECT_EQ(first_difference(want, run(*table, s, query)), -1) << table->name << " " << dim;
          EXPECT_EQ(first_difference(want, run_in_splits(*table, s, query)), -1) << table->name << " " << dim;
        }
      }
    }
  }
}

// Against pages that hold the same numbers as keys and as values.
TEST_F(attend, a_latent_has_the_bits_of_values_that_were_stored) {
  constexpr int32_t kTokens = 300;
  for (const auto& [dim, latent] : {std::pair{80, 64}, {40, 32}, {48, 20}, {576, 512}}) {
    for (const KvFormat format : {KvFormat::kBf16, KvFormat::kF32, KvFormat::kQ8, KvFormat::kQ4}) {
      for (const KernelTable* table : tested_tables()) {
        Sequence s(*table, kTokens, dim, format);
        if (format == KvFormat::kQ4) s.pages.rotated_dims = rotated_dims(dim, latent);
        table->store_kv({s.pages, s.k.data(), s.k.data(), dim, dim, 0, kTokens});
        for (const Query& query : {Query{299, 1, 16}, Query{250, 50, 3}, Query{0, 5, 2}}) {
          const auto whole = run(*table, s, query);
          std::vector<float> wanted;
          for (size_t i = 0; i < whole.size(); i += static_cast<size_t>(dim)) {
            wanted.insert(wanted.end(), whole.begin() + static_cast<int64_t>(i),
                          whole.begin() + static_cast<int64_t>(i) + latent);
          }
          ASSERT_EQ(first_difference(wanted, run_latent(*table, s, query, latent)), -1) << table->name << " " << dim;
        }
      }
    }
  }
}

TEST_F(attend, a_key_that_is_not_a_number_reaches_those_who_see_it_and_nobody_else) {
  constexpr int32_t kBad = 150;
  for (const KernelTable* table : tested_tables()) {
    for (const KvFormat format : {KvFormat::kBf16, KvFormat::kF32}) {
      const Sequence s(*table, 200, 64, format);
      std::vector<float> k = random_row(64, 5);
      k[7] = std::numeric_limits<float>::infinity() - std::numeric_limits<float>::infinity();
      table->store_kv({s.pages, k.data(), s.v.data() + kBad * 64, 64, 64, kBad, 1});
      const Query query{kBad - 20, 40, 2, 0};
      const auto seen = run(*table, s, query);
      for (size_t i = 0; i < seen.size(); ++i) {
        ASSERT_EQ(std::isnan(seen[i]), query.first + static_cast<int32_t>(i) / 128 >= kBad) << table->name << " " << i;
      }
    }
  }
}

TEST_F(attend, a_row_has_the_same_bits_alone_and_in_a_chunk_and_in_pieces) {
  const KernelTable& table = *runnable_tables().back();
  for (const KvFormat format : {KvFormat::kBf16, KvFormat::kQ8, KvFormat::kQ4}) {
    const Sequence s(table, 2 * kSplitTokens + 300, 64, format);
    for (const int32_t window : {0, 500, 3000}) {
      for (const int32_t first : {0, kSplitTokens - 20, 2 * kSplitTokens - 10, 2 * kSplitTokens + 260}) {
        const Query chunk{first, 40, 2, window};
        const auto all = run(table, s, chunk);
        EXPECT_EQ(first_difference(all, run_in_splits(table, s, chunk)), -1) << first;
        for (const int32_t i : {0, 1, 13, 25, 39}) {
          const auto one = run(table, s, {first + i, 1, 2, window});
          const std::vector<float> row(all.begin() + i * 128, all.begin() + (i + 1) * 128);
          ASSERT_EQ(first_difference(row, one), -1) << first << " + " << i << " window " << window;
        }
      }
    }
  }
}

// Tokens behind a row are stored with it in a chunk, and after it when it is computed alone.
TEST_F(attend, a_row_has_the_same_bits_before_what_it_does_not_see_is_stored) {
  for (const KvFormat format : {KvFormat::kBf16, KvFormat::kQ8, KvFormat::kQ4}) {
    for (const KernelTable* table : tested_tables()) {
      const Sequence s(*table, 400, 64, format);
      const auto all = run(*table, s, {300, 40, 3});
      for (const int32_t i : {0, 3, 20, 39}) {
        const Sequence shorter(*table, 301 + i, 64, format);
        // Numbers of a sequence do not depend on its length; queries are made of as many tokens.
        const auto one = run(*table, shorter, {300 + i, 1, 3});
        const std::vector<float> row(all.begin() + i * 192, all.begin() + (i + 1) * 192);
        ASSERT_EQ(first_difference(row, one), -1) << table->name << " " << i;
      }
    }
  }
}

TEST_F(attend, every_instruction_set_gives_the_same_bits_in_pieces) {
  const Sequence s(*runnable_tables().back(), kSplitTokens + 200, 64);
  const Query query{kSplitTokens + 100, 40, 2, 0};
  const auto want = run(*runnable_tables().back(), s, query);
  for (const KernelTable* table : tested_tables()) {
    EXPECT_EQ(first_difference(want, run_in_splits(*table, s, query)), -1) << table->name;
  }
}

TEST_F(attend, rows_that_see_a_beginning_together_go_on_alone_to_the_same_bits) {
  for (const KvFormat format : {KvFormat::kBf16, KvFormat::kQ8, KvFormat::kQ4}) go_on_alone(format);
}

TEST_F(attend, long_contexts_agree_with_f64_across_splits) {
  const KernelTable& table = *tested_tables().back();
  const Sequence s(table, 2 * kSplitTokens + 50, 64);
  const Query query{2 * kSplitTokens + 49, 1, 1, 0};
  const auto q = queries(s, query);
  const auto out = run(table, s, query);
  const auto want = expected(s, q.data(), query.first, 0);
  for (size_t d = 0; d < 64; ++d) EXPECT_NEAR(out[d], want[d], 0.01);
}

}  // namespace candor::kernels::testing
