#include "backend/wrap/attention_probe.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "backend/reference/reference_backend.h"

namespace candor::backend {
namespace {

constexpr int32_t kRows = 5, kHeads = 2, kDim = 8;

AttnSpec spec_of(int32_t window, float alibi) {
  AttnSpec spec;
  spec.n_heads = kHeads;
  spec.n_kv_heads = 1;
  spec.head_dim = kDim;
  spec.scale = 0.5f;
  spec.window_tokens = window;
  spec.max_alibi_bias = alibi;
  return spec;
}

// Attention of one step over values that are the rows' own numbers, so that the output is the shares' mean of them.
class Watching : public ::testing::Test {
 protected:
  void SetUp() override {
    backend_ = std::make_unique<AttentionProbe>(make_reference_backend());
    ArenaLayout layout;
    layout.slot_cols = {kHeads * kDim, kDim, kDim, kHeads * kDim};
    layout.slot_is_output.assign(4, false);
    layout.max_rows = kRows;
    layout.max_out_rows = 1;
    layout.max_input_cols = kHeads * kDim;
    layout.max_positions = kRows;
    ASSERT_TRUE(backend_->reserve_arena(layout));
    auto kv = backend_->make_kv({1, 1, kDim, KvType::kF32}, {1});
    ASSERT_TRUE(kv);
    kv_ = std::move(*kv);
    tokens_.assign(kRows, 0);
    positions_.resize(kRows);
    std::iota(positions_.begin(), positions_.end(), 0);
  }

  // The reference's rows are the arena itself.
  void fill(Activation x, float step) {
    const RowsView rows = backend_->read_rows(x);
    float* data = const_cast<float*>(rows.data);
    for (int32_t i = 0; i < x.n_rows * x.n_cols; ++i) data[i] = static_cast<float>((i * 7) % 11) * step - 0.4f;
  }

  void expect_shares_explain_the_output(const AttnSpec& spec) {
    const Activation q{0, kRows, kHeads * kDim}, k{1, kRows, kDim}, v{2, kRows, kDim}, out{3, kRows, kHeads * kDim};
    const SeqSlice slice{0, kRows, 0};
    const BlockId block = 0;
    const StepBatch batch{.tokens = tokens_,
                          .positions = positions_,
                          .seqs = std::span(&slice, 1),
                          .block_table = std::span(&block, 1),
                          .max_blocks = 1};
    backend_->begin_step(batch, *kv_);
    fill(q, 0.3f);
    fill(k, 0.2f);
    fill(v, 0.1f);
    const RowsView values = backend_->read_rows(v);
    const std::vector<float> kept(values.data, values.data + kRows * kDim);
    backend_->probe().look_at(kRows - 1);
    backend_->ops().run(op::Attend{out, {q, k, v, 0, nullptr}, &spec});
    backend_->read_logits(backend_->end_step());
    const auto shares = backend_->probe().take();
    ASSERT_TRUE(shares);
    EXPECT_FALSE(backend_->probe().take()) << "told once";
    for (int32_t head = 0; head < kHeads; ++head) {
      const std::vector<double>& of_head = shares->heads[static_cast<size_t>(head)];
      ASSERT_EQ(of_head.size(), static_cast<size_t>(kRows));
      EXPECT_NEAR(std::accumulate(of_head.begin(), of_head.end(), 0.0), 1.0, 1e-12);
      for (int32_t i = 0; i < kDim; ++i) {
        double mean = 0;
        for (int32_t p = 0; p < kRows; ++p)
          mean += of_head[static_cast<size_t>(p)] * static_cast<double>(kept[static_cast<size_t>(p * kDim + i)]);
        const auto row = backend_->read_rows(out).row(kRows - 1);
        EXPECT_NEAR(row[static_cast<size_t>(head * kDim + i)], mean, 1e-6);  // f32 of a mean below 1
      }
    }
  }

  std::unique_ptr<AttentionProbe> backend_;
  std::unique_ptr<KvStore> kv_;
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
};

TEST_F(Watching, the_shares_of_attention_are_those_that_the_output_was_made_of) {
  expect_shares_explain_the_output(spec_of(0, 0.0f));
  expect_shares_explain_the_output(spec_of(3, 0.0f));
  expect_shares_explain_the_output(spec_of(0, 8.0f));
  AttnSpec capped = spec_of(0, 0.0f);
  capped.softcap = 2.0f;
  expect_shares_explain_the_output(capped);
}

TEST_F(Watching, nothing_is_told_where_nobody_watches) {
  backend_->probe().look_at(std::nullopt);
  EXPECT_FALSE(backend_->probe().take());
}

}  // namespace
}  // namespace candor::backend
