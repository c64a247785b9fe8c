#include <algorithm>
#include <cmath>
#include <limits>

#include "base/exact_math.h"
#include "kernels/test_support.h"

namespace candor::kernels::testing {

namespace {

class rows : public KernelTest {};

constexpr int64_t kLengths[] = {1, 15, 16, 17, 64, 333, 2048};

}  // namespace

TEST_F(rows, norms_and_gates_have_the_bits_of_portable_at_every_length) {
  const auto tables = runnable_tables();
  for (const int64_t n : kLengths) {
    const auto x = random_row(n, 1, 3.0f);
    const auto y = random_row(n, 2);
    const auto size = static_cast<size_t>(n);
    std::vector<std::vector<float>> first;
    for (const KernelTable* t : tables) {
      std::vector<std::vector<float>> results(8, std::vector<float>(size));
      t->rms_norm(x.data(), y.data(), 1e-5f, n, results[0].data());
      t->layer_norm(x.data(), y.data(), x.data(), 1e-5f, n, results[1].data());
      t->silu_gate(x.data(), y.data(), n, results[2].data());
      t->gelu_gate(x.data(), y.data(), n, results[3].data());
      results[4] = y;
      t->add_scaled(x.data(), 0.37f, n, results[4].data());
      const float largest = t->max(x.data(), n);
      results[5].push_back(largest);
      results[5].push_back(t->exp_sum(x.data(), largest, n, results[5].data()));
      t->scale(x.data(), 1.7f, n, results[6].data());
      results[7] = y;
      t->add(x.data(), n, results[7].data());
      if (first.empty()) first = results;
      for (size_t i = 0; i < results.size(); ++i) {
        EXPECT_EQ(first_difference(first[i], results[i]), -1) << t->name << " result " << i << " n " << n;
      }
    }
  }
}

TEST_F(rows, exp_and_silu_are_those_of_base_bit_for_bit) {
  std::vector<float> x;
  for (float v = -120.0f; v < 120.0f; v += 0.0137f) x.push_back(v);
  for (const float v : {0.0f, -0.0f, 88.0f, -87.0f, -87.00001f, 1e-30f, std::numeric_limits<float>::infinity(),
                        -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    x.push_back(v);
  }
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> exps(x.size());
  std::vector<float> silus(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    exps[i] = exp_f32(x[i]);
    silus[i] = silu_f32(x[i]);
  }
  const std::vector<float> ones(x.size(), 1.0f);
  std::vector<float> result(x.size());
  for (const KernelTable* t : runnable_tables()) {
    t->exp_sum(x.data(), 0.0f, n, result.data());
    EXPECT_EQ(first_difference(exps, result), -1) << t->name;
    t->silu_gate(x.data(), ones.data(), n, result.data());
    EXPECT_EQ(first_difference(silus, result), -1) << t->name;
  }
}

TEST_F(rows, weights_are_exponentials_rounded_to_integers_and_summed_exactly) {
  for (const int64_t n : {int64_t{1}, int64_t{17}, int64_t{333}, int64_t{40000}}) {
    auto x = random_row(n, 3, 20.0f);
    const float largest = *std::ranges::max_element(x);
    x.back() = -std::numeric_limits<float>::infinity();
    std::vector<float> exps(x.size());
    uint64_t total = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      exps[i] = exp_f32(x[i] - largest);
      total += static_cast<uint64_t>(std::nearbyint(static_cast<double>(exps[i]) * 0x1p40));
    }
    std::vector<float> result(x.size());
    for (const KernelTable* t : runnable_tables()) {
      EXPECT_EQ(t->exp_weights(x.data(), largest, n, result.data()), total) << t->name << " n " << n;
      EXPECT_EQ(first_difference(exps, result), -1) << t->name << " n " << n;
    }
  }
}

TEST_F(rows, gelu_by_erf_and_the_soft_cap_agree_with_libm_and_have_the_bits_of_portable) {
  std::vector<float> x;
  for (float v = -12.0f; v < 12.0f; v += 0.00137f) x.push_back(v);
  for (float v = 13.0f; v < 1e9f; v *= 1.7f) x.insert(x.end(), {v, -v});
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> first[2];
  for (const KernelTable* t : runnable_tables()) {
    std::vector<float> gelu(x.size());
    std::vector<float> capped(x.size());
    t->gelu_erf_gate(x.data(), nullptr, n, gelu.data());
    t->soft_cap(x.data(), 2.5f, n, capped.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i];
      const double want = 0.5 * v * std::erfc(-v / std::sqrt(2.0));
      // Below -9 erfc's argument is capped.
      ASSERT_NEAR(gelu[i], want, v > -9.0 ? 2e-5 * std::fabs(want) + 1e-30 : 1e-19 * std::fabs(v)) << v;
      ASSERT_NEAR(capped[i], 2.5 * std::tanh(v / 2.5), 4e-7 * std::fabs(v)) << v;
    }
    if (first[0].empty()) first[0] = gelu;
    if (first[1].empty()) first[1] = capped;
    EXPECT_EQ(first_difference(first[0], gelu), -1) << t->name;
    EXPECT_EQ(first_difference(first[1], capped), -1) << t->name;
  }
}

TEST_F(rows, relu_its_square_and_the_clamped_gate_agree_with_libm_and_have_the_bits_of_portable) {
  std::vector<float> x;
  for (float v = -12.0f; v < 12.0f; v += 0.0137f) x.push_back(v);
  x.push_back(std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> up(x.rbegin(), x.rend());
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> first[3];
  for (const KernelTable* t : runnable_tables()) {
    std::vector<float> seen[3];
    for (std::vector<float>& row : seen) row.resize(x.size());
    t->relu_gate(x.data(), nullptr, n, seen[0].data());
    t->relu_squared_gate(x.data(), up.data(), n, seen[1].data());
    t->clamped_silu_gate(x.data(), up.data(), n, seen[2].data());
    for (size_t i = 0; i < x.size(); ++i) {
      const bool is_broken = std::isnan(x[i]) || std::isnan(up[i]);
      ASSERT_EQ(std::isnan(seen[0][i]), std::isnan(x[i]));
      ASSERT_EQ(std::isnan(seen[1][i]), is_broken);
      ASSERT_EQ(std::isnan(seen[2][i]), is_broken);
      if (is_broken) continue;
      const double positive = std::max(x[i], 0.0f);
      ASSERT_EQ(seen[0][i], static_cast<float>(positive));
      const double square = positive * positive * up[i];
      ASSERT_NEAR(seen[1][i], square, 3e-7 * std::fabs(square));
      const double gate = std::min(x[i], 7.0f);
      const double want = gate / (1.0 + std::exp(-1.702 * gate)) * (std::clamp(up[i], -7.0f, 7.0f) + 1.0);
      ASSERT_NEAR(seen[2][i], want, 4e-6 * std::fabs(want) + 1e-9) << x[i];
    }
    for (int i = 0; i < 3; ++i) {
      seen[i].back() = 0.0f;
      seen[i].front() = 0.0f;
      if (first[i].empty()) first[i] = seen[i];
      EXPECT_EQ(first_difference(first[i], seen[i]), -1) << t->name;
    }
  }
}

TEST_F(rows, norms_agree_with_f64) {
  const int64_t n = 2048;
  const auto x = random_row(n, 5, 2.0f);
  const std::vector<float> gain(static_cast<size_t>(n), 1.5f);
  std::vector<float> y(static_cast<size_t>(n));
  double squares = 0;
  for (const float v : x) squares += static_cast<double>(v) * v;
  const double r = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
  runnable_tables().front()->rms_norm(x.data(), gain.data(), 1e-5f, n, y.data());
  // 128 additions of a lane, the tree and a handful of operations: well below 64 ulp.
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], x[i] * r * 1.5, 4e-6 * std::fabs(x[i] * r * 1.5) + 1e-12);
}

TEST_F(rows, rotations_have_the_bits_of_portable_and_keep_what_is_not_rotated) {
  for (const int32_t n_dims : {2, 20, 64, 80}) {
    const auto x = random_row(3 * 80, 1);
    std::vector<float> cos;
    std::vector<float> sin;
    for (int i = 0; i < n_dims / 2; ++i) {
      cos.push_back(static_cast<float>(std::cos(0.3 * i + 1)));
      sin.push_back(static_cast<float>(std::sin(0.3 * i + 1)));
    }
    std::vector<float> first[2];
    for (const KernelTable* t : runnable_tables()) {
      for (int kind = 0; kind < 2; ++kind) {
        std::vector<float> y = x;
        (kind == 0 ? t->rope_interleaved : t->rope_halves)({y.data(), 3, 80, n_dims, cos.data(), sin.data()});
        if (first[kind].empty()) first[kind] = y;
        EXPECT_EQ(first_difference(first[kind], y), -1) << t->name;
        for (size_t i = static_cast<size_t>(n_dims); i < 80; ++i) EXPECT_EQ(y[i], x[i]);
        const size_t partner = kind == 0 ? 1 : static_cast<size_t>(n_dims / 2);
        EXPECT_NEAR(y[0], x[0] * cos[0] - x[partner] * sin[0], 1e-6f);
        EXPECT_NEAR(y[partner], x[0] * sin[0] + x[partner] * cos[0], 1e-6f);
      }
    }
  }
}

}  // namespace candor::kernels::testing
