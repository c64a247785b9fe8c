// Operations of the reference backend against values worked out by hand or by libm. Whole models: tests/golden.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "backend/reference/reference_backend.h"
#include "backend/reference/reference_math.h"

namespace candor::backend {
namespace {

TEST(reference_math, exp_is_within_two_ulp_of_libm) {
  for (double x = -700.0; x < 700.0; x += 0.377) {
    const double truth = std::exp(x);
    EXPECT_NEAR(reference::exp(x), truth, 2.0 * truth * std::numeric_limits<double>::epsilon()) << x;
  }
  EXPECT_EQ(reference::exp(0.0), 1.0);
  EXPECT_EQ(reference::exp(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_TRUE(std::isnan(reference::exp(std::nan(""))));
}

TEST(reference_math, dot_adds_every_element_once) {
  for (const size_t n : {0u, 1u, 7u, 8u, 9u, 31u}) {
    std::vector<double> a(n);
    std::iota(a.begin(), a.end(), 1.0);
    const std::vector<double> ones(n, 1.0);
    EXPECT_EQ(reference::dot(a.data(), ones.data(), n), static_cast<double>(n * (n + 1) / 2));
  }
}

// A step over one sequence, with an activation in slot 0 that starts as rows of a table.
class ReferenceOpsTest : public ::testing::Test {
 protected:
  static constexpr int32_t kCols = 4;

  std::unique_ptr<Weight> upload(const std::vector<float>& values, Shape shape, WeightRole role) {
    TensorView view{"test", DType::kF32, shape, reinterpret_cast<const std::byte*>(values.data()), values.size() * 4};
    auto weight = backend_->upload(view, role);
    EXPECT_TRUE(weight) << weight.error().message;
    return std::move(*weight);
  }

  // table: [n, 4]; row t of slot 0 becomes its row t.
  Activation begin(const std::vector<float>& table) {
    const int32_t n_rows = static_cast<int32_t>(table.size()) / kCols;
    const ArenaLayout layout{{kCols, kCols, kCols, kCols}, {false, false, false, false}, n_rows, n_rows, 64};
    EXPECT_TRUE(backend_->reserve_arena(layout));
    auto kv = backend_->make_kv({1, 1, kCols, KvType::kF32}, 2);
    EXPECT_TRUE(kv);
    kv_ = std::move(*kv);
    rows_.resize(static_cast<size_t>(n_rows));
    std::iota(rows_.begin(), rows_.end(), 0);
    slice_ = {0, n_rows, 0};
    backend_->begin_step({rows_, rows_, std::span(&slice_, 1), blocks_, 2, rows_}, *kv_);
    const auto weight = upload(table, {2, {n_rows, kCols}}, WeightRole::kEmbedding);
    const Activation x{0, n_rows, kCols};
    backend_->ops().run(op::Embed{x, weight.get(), 1.0f});
    return x;
  }

  std::vector<float> end(Activation x) {
    backend_->ops().run(op::Collect{x, {}});
    const LogitsView view = backend_->read_logits(backend_->end_step());
    return {view.data, view.data + view.n_rows * view.n_vocab};
  }

  void expect_near(const std::vector<float>& values, const std::vector<double>& expected) {
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(static_cast<double>(values[i]), expected[i], 1e-6) << i;
  }

  std::unique_ptr<Backend> backend_ = make_reference_backend();
  std::unique_ptr<KvStore> kv_;
  std::vector<int32_t> rows_;
  std::vector<BlockId> blocks_ = {1, 0};
  SeqSlice slice_;
};

TEST_F(ReferenceOpsTest, rms_norm_divides_by_the_root_of_the_mean_square) {
  const Activation x = begin({1, 1, 1, 5});
  const auto gain = upload({1, 2, 1, 1}, {1, {4}}, WeightRole::kVector);
  backend_->ops().run(op::Norm{x, x, *gain, {NormKind::kRms, 2.0f}});
  expect_near(end(x), {1 / 3.0, 2 / 3.0, 1 / 3.0, 5 / 3.0});
}

TEST_F(ReferenceOpsTest, layer_norm_takes_the_mean_off_first) {
  const Activation x = begin({1, 1, 3, 3});
  const auto gain = upload({1, 1, 1, 2}, {1, {4}}, WeightRole::kVector);
  backend_->ops().run(op::Norm{x, x, *gain, {NormKind::kLayer, 3.0f}});
  expect_near(end(x), {-0.5, -0.5, 0.5, 1.0});
}

TEST_F(ReferenceOpsTest, linear_multiplies_by_rows_and_adds_the_bias) {
  const Activation x = begin({1, 2, 3, 4});
  const auto weight = upload({1, 0, 0, 0, 0, 1, 0, 1}, {2, {2, 4}}, WeightRole::kLinear);
  const auto bias = upload({10, 20}, {1, {2}}, WeightRole::kVector);
  const Activation y{1, 1, 2};
  const LinearTerm term{weight.get(), bias.get(), y};
  backend_->ops().run(op::Linear{std::span(&term, 1), x});
  expect_near(end(y), {11, 26});
}

TEST_F(ReferenceOpsTest, rope_turns_neighbours_or_halves) {
  const double c = std::cos(1.0);
  const double s = std::sin(1.0);
  const double small = std::cos(0.01);
  const double smaller = std::sin(0.01);
  RopeSpec spec;
  spec.n_dims = 4;
  Activation x = begin({9, 9, 9, 9, 1, 0, 1, 0});
  backend_->ops().run(op::Rope{x, 1, 4, &spec});
  expect_near(end(x), {9, 9, 9, 9, c, s, small, smaller});
  spec.pairs = RopePairs::kHalves;
  x = begin({9, 9, 9, 9, 1, 1, 0, 0});
  backend_->ops().run(op::Rope{x, 1, 4, &spec});
  expect_near(end(x), {9, 9, 9, 9, c, small, s, smaller});
}

TEST_F(ReferenceOpsTest, rope_leaves_dimensions_past_n_dims_alone) {
  const Activation x = begin({9, 9, 9, 9, 1, 0, 7, 8});
  RopeSpec spec;
  spec.n_dims = 2;
  backend_->ops().run(op::Rope{x, 1, 4, &spec});
  expect_near(end(x), {9, 9, 9, 9, std::cos(1.0), std::sin(1.0), 7, 8});
}

TEST_F(ReferenceOpsTest, attention_weighs_values_by_the_softmax_of_scaled_scores) {
  const Activation x = begin({1, 0, 0, 0, 1, 2, 0, 0});
  AttnSpec spec;
  spec.n_heads = spec.n_kv_heads = 1;
  spec.head_dim = 4;
  spec.scale = 0.5f;
  backend_->ops().run(op::Attend{{1, 2, 4}, {x, x, x}, &spec});
  const double p = 1.0 / (1.0 + std::exp(0.5 * (5.0 - 1.0)));  // of the first position, seen from the second
  expect_near(end({1, 2, 4}), {1, 0, 0, 0, 1, 2 * (1 - p), 0, 0});
}

TEST_F(ReferenceOpsTest, gates_are_silu_and_the_tanh_form_of_gelu) {
  const auto gated = [&](GateKind kind) {
    const Activation x = begin({-2, -0.5, 0, 3});
    const auto ones = upload({2, 2, 2, 2}, {2, {1, 4}}, WeightRole::kEmbedding);
    const Activation up{1, 1, 4};
    backend_->ops().run(op::Embed{up, ones.get(), 1.0f});
    backend_->ops().run(op::Gate{x, x, up, kind});
    return end(x);
  };
  std::vector<double> silu;
  std::vector<double> gelu;
  for (const double v : {-2.0, -0.5, 0.0, 3.0}) {
    silu.push_back(2 * v / (1 + std::exp(-v)));
    gelu.push_back(v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))));
  }
  expect_near(gated(GateKind::kSilu), silu);
  expect_near(gated(GateKind::kGelu), gelu);
}

TEST_F(ReferenceOpsTest, add_and_gather_and_collect_scale) {
  const Activation x = begin({1, 2, 3, 4, 5, 6, 7, 8});
  backend_->ops().run(op::Add{x, x, 0.5f});
  backend_->ops().run(op::Gather{{1, 2, 4}, x});
  expect_near(end({1, 2, 4}), {1.5, 3, 4.5, 6, 7.5, 9, 10.5, 12});
}

TEST(reference_backend, types_that_cannot_hold_weights_are_refused_by_name) {
  const auto backend = make_reference_backend();
  const std::vector<std::byte> bytes(512);
  const TensorView odd{"blk.0.odd", DType::kI32, {1, {32}}, bytes.data(), 128};
  const auto weight = backend->upload(odd, WeightRole::kLinear);
  ASSERT_FALSE(weight);
  EXPECT_NE(weight.error().message.find("\"blk.0.odd\": dtype I32"), std::string::npos) << weight.error().message;
}

TEST(reference_backend, a_pool_that_cannot_be_is_refused_without_allocating_it) {
  const auto backend = make_reference_backend();
  const auto kv = backend->make_kv({1 << 12, 1 << 12, 1 << 12, KvType::kF32}, INT32_MAX);
  ASSERT_FALSE(kv);
  EXPECT_EQ(kv.error().kind, ErrorKind::kOutOfMemory);
}

TEST(rope_frequencies, the_scalings_keep_fast_pairs_and_stretch_slow_ones) {
  RopeSpec spec;
  spec.n_dims = 64;
  spec.factor = 8.0;
  spec.original_positions = 8192;
  const std::vector<double> plain = rope_frequencies(spec);
  EXPECT_EQ(plain[0], 1.0);
  EXPECT_NEAR(plain[16], 0.01, 1e-12);
  for (const RopeScaling scaling : {RopeScaling::kYarn, RopeScaling::kLlama3}) {
    spec.scaling = scaling;
    spec.base = 500000.0;
    const std::vector<double> scaled = rope_frequencies(spec);
    EXPECT_EQ(scaled.front(), 1.0);
    EXPECT_NEAR(scaled.back() * 8.0, std::pow(spec.base, -62.0 / 64.0), 1e-12);
    EXPECT_TRUE(std::is_sorted(scaled.rbegin(), scaled.rend()));
  }
}

}  // namespace
}  // namespace candor::backend
