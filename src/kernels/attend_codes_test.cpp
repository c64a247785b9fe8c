// Attention over K and V as codes: what pages keep, and what is made of it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/half.h"
#include "kernels/attend_test_support.h"
#include "kernels/kv_codes.h"

namespace candor::kernels::testing {

namespace {

class attend_codes : public KernelTest {};

// What pages of kQ8 keep of a token's numbers.
std::vector<double> kept_codes(const float* x, size_t dim) {
  std::vector<double> y(x, x + dim);
  for (size_t d = 0; d < dim; d += 32) {
    const size_t end = std::min(d + 32, dim);
    float largest = 0;
    for (size_t i = d; i < end; ++i) largest = std::max(largest, std::abs(x[i]));
    const float scale = f16_to_f32(f32_to_f16(largest / 127.0f));
    for (size_t i = d; i < end; ++i) y[i] = std::nearbyint(x[i] / scale) * static_cast<double>(scale);
  }
  return y;
}

// f64 attention of one query over what pages of kQ8 keep.
std::vector<double> expected_of_codes(const Sequence& s, const float* q, int32_t position) {
  const auto dim = static_cast<size_t>(s.head_dim);
  std::vector<double> out(dim);
  double sum = 0;
  for (size_t t = 0; t <= static_cast<size_t>(position); ++t) {
    const auto k = kept_codes(s.k.data() + t * dim, dim);
    const auto v = kept_codes(s.v.data() + t * dim, dim);
    double score = 0;
    for (size_t d = 0; d < dim; ++d) score += static_cast<double>(q[d]) * k[d];
    const double weight = std::exp(score / std::sqrt(static_cast<double>(dim)));
    sum += weight;
    for (size_t d = 0; d < dim; ++d) out[d] += weight * v[d];
  }
  for (double& x : out) x /= sum;
  return out;
}

// In double: the matrix itself, whose rows are those of i and j with an odd number of bits in common.
std::vector<double> rotated(const std::vector<double>& x, size_t block) {
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t first = i / block * block;
    for (size_t j = first; j < first + block; ++j) {
      y[i] += (std::popcount((i - first) & (j - first)) % 2 == 0 ? 1.0 : -1.0) * x[j];
    }
    y[i] /= std::sqrt(static_cast<double>(block));
  }
  return y;
}

// The nearest level, by trying all.
double nearest_level(double ratio) {
  double nearest = kQ4Levels[0];
  for (const int8_t level : kQ4Levels) {
    if (std::abs(ratio - level) < std::abs(ratio - nearest)) nearest = level;
  }
  return nearest;
}

// What pages of 4 bits keep of a vector, rotated back.
std::vector<double> kept(const float* x, size_t dim, size_t block) {
  std::vector<double> y = rotated({x, x + dim}, block);
  for (size_t d = 0; d < dim; d += 32) {
    const auto end = y.begin() + static_cast<int64_t>(std::min(d + 32, dim));
    double largest = 0;
    for (auto it = y.begin() + static_cast<int64_t>(d); it != end; ++it) largest = std::max(largest, std::abs(*it));
    const double scale = static_cast<double>(f16_to_f32(f32_to_f16(static_cast<float>(largest / 127))));
    for (auto it = y.begin() + static_cast<int64_t>(d); it != end; ++it) *it = scale * nearest_level(*it / scale);
  }
  return rotated(y, block);
}

}  // namespace

// One token: its value, whatever its score.
TEST_F(attend_codes, pages_of_4_bits_keep_the_nearest_levels_of_rotated_heads) {
  for (const auto& [dim, block] : {std::pair{64, 64}, {80, 16}, {96, 32}, {128, 128}, {512, 256}}) {
    for (const KernelTable* table : runnable_tables()) {
      const Sequence s(*table, 1, dim, KvFormat::kQ4);
      EXPECT_EQ(s.pages.rotated_dims, block);
      const auto out = run(*table, s, {});
      const auto want = kept(s.v.data(), static_cast<size_t>(dim), static_cast<size_t>(block));
      // bf16 of each level times its scale, then the rotation of them.
      for (size_t d = 0; d < out.size(); ++d) ASSERT_NEAR(out[d], want[d], 0.01) << table->name << " " << dim;
    }
  }
}

TEST_F(attend_codes, codes_are_multiplied_as_they_are) {
  const KernelTable& table = *tested_tables().back();
  for (const int32_t dim : {16, 64, 80, 128, 40}) {
    const Sequence s(table, 300, dim, KvFormat::kQ8);
    const Query query{270, 30, 2, 0};
    const auto q = queries(s, query);
    const auto out = run(table, s, query);
    for (int32_t i = 0; i < 60; ++i) {
      const auto want = expected_of_codes(s, q.data() + i * dim, 270 + i / 2);
      // Queries and weights have 16 bits below the largest of 32 dims, of 128 tokens: scores of about 2 err by 1e-4.
      for (int32_t d = 0; d < dim; ++d) {
        ASSERT_NEAR(out[static_cast<size_t>(i * dim + d)], want[static_cast<size_t>(d)], 5e-4) << dim << " " << d;
      }
    }
  }
}

TEST_F(attend_codes, a_number_that_int8_cannot_hold_makes_what_sees_it_not_a_number) {
  const KernelTable& table = *runnable_tables().back();
  const Sequence sound(table, 40, 64, KvFormat::kQ8);
  std::vector<float> v = random_row(64, 5);
  v[3] = std::numeric_limits<float>::infinity();
  table.store_kv({sound.pages, sound.k.data(), v.data(), 64, 64, 39, 1});
  for (const KernelTable* isa : tested_tables()) {
    const auto seen = run(*isa, sound, {30, 10, 1, 0});
    for (size_t i = 0; i < seen.size(); ++i) {
      const bool sees_it = i >= 9 * 64 && i < 9 * 64 + 32;  // the last row, the dims of its scale
      EXPECT_EQ(std::isnan(seen[i]), sees_it) << isa->name << " " << i;
    }
  }
}

}  // namespace candor::kernels::testing
