// Choices from logits that the emulated device has: what it finds of a row is what sorting finds, and what is chosen
// from that are the CPU's tokens and logprobs, bit for bit.

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "backend/cuda/cuda_logits.h"
#include "backend/cuda/emulation/device_test_support.h"
#include "platform/float_mode.h"
#include "support/choices.h"
#include "support/host_logits.h"

namespace candor::testing {
namespace {

using backend::BestLogit;
using backend::RowQuery;
using backend::RowSummary;

constexpr float kNoLogit = -std::numeric_limits<float>::infinity();
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

// Rows in the memory of a device.
class DeviceRows {
 public:
  DeviceRows(const std::vector<std::vector<float>>& rows) : n_cols_(static_cast<int32_t>(rows.front().size())) {
    for (const auto& row : rows) all_.insert(all_.end(), row.begin(), row.end());
    memory_ = *backend::cuda::DeviceMemory::make(*device_, all_.size() * sizeof(float));
    device_->copy_in(memory_.data(), all_.data(), all_.size() * sizeof(float));
    logits_.begin(memory_.as<float>(), n_rows(), n_cols_, 0);
  }
  ~DeviceRows() {
    EXPECT_TRUE(device_->status()) << device_->status().error().message;
    EXPECT_TRUE(logits_.status());
  }

  int32_t n_rows() const { return static_cast<int32_t>(all_.size()) / n_cols_; }
  int32_t n_cols() const { return n_cols_; }
  const std::vector<float>& on_host() const { return all_; }
  backend::cuda::CudaLogits& logits() { return logits_; }

 private:
  platform::ScopedFloatMode mode_;
  std::unique_ptr<backend::cuda::Device> device_ = backend::cuda::make_test_device();
  int32_t n_cols_;
  std::vector<float> all_;
  backend::cuda::DeviceMemory memory_;
  backend::cuda::CudaLogits logits_{*device_};
};

void expect_same_float(float seen, float wanted, const char* what) {
  EXPECT_EQ(std::bit_cast<uint32_t>(seen), std::bit_cast<uint32_t>(wanted)) << what;
}

// The device may know fewer of the order than were wanted, but at least `least`.
void expect_equal_summary(const RowSummary& seen, const RowSummary& wanted, const RowQuery& query, size_t least) {
  ASSERT_EQ(seen.is_valid, wanted.is_valid);
  if (!wanted.is_valid) return;
  expect_same_float(seen.greatest, wanted.greatest, "greatest");
  EXPECT_EQ(query.is_weighed ? seen.total : 0, wanted.total);
  EXPECT_GE(seen.best.size(), std::min(least, wanted.best.size()));
  EXPECT_LE(seen.best.size(), wanted.best.size());
  EXPECT_LE(seen.is_whole, wanted.is_whole);
  for (size_t i = 0; i < seen.best.size(); ++i) {
    EXPECT_EQ(seen.best[i].token, wanted.best[i].token) << i;
    expect_same_float(seen.best[i].logit, wanted.best[i].logit, "logit");
    expect_same_float(seen.best[i].models, wanted.best[i].models, "the model's logit");
  }
}

// Each row as it is, scaled, and edited under a mask.
void compare_summaries(const std::vector<std::vector<float>>& rows, int32_t n_vocab, int32_t n_best, size_t least) {
  DeviceRows device(rows);
  HostLogits host(device.on_host(), device.n_cols());
  std::vector<uint32_t> mask(static_cast<size_t>(n_vocab + 31) / 32, 0x7ff7dfbfu);
  std::vector<backend::EditedToken> edited;
  std::vector<backend::LogitEdit> edits;
  for (int32_t i = 0; i < std::min(n_vocab, 300); ++i) {
    edited.push_back({static_cast<TokenId>((int64_t{i} * 7919) % n_vocab), static_cast<int32_t>(edits.size())});
    const auto kind = static_cast<backend::EditKind>(i % 7 == 0 ? 2 : i % 2);
    edits.push_back({kind, kind == backend::EditKind::kAdd ? 0.25f * static_cast<float>(i % 40) : 1.3f});
    if (i % 3 != 0) continue;
    edits.back().next = static_cast<int32_t>(edits.size());
    edits.push_back({backend::EditKind::kAdd, -0.75f});
  }
  const bool are_tokens_unique = n_vocab % 7919 != 0;
  ASSERT_TRUE(are_tokens_unique);
  std::vector<RowQuery> queries;
  for (int32_t row = 0; row < device.n_rows(); ++row) {
    const RowQuery plain{.row = row, .n_vocab = n_vocab, .n_best = n_best, .is_weighed = true, .asked = n_vocab - 1};
    RowQuery scaled = plain;
    scaled.is_scaled = true;
    scaled.divisor = 0.7f;
    RowQuery changed = scaled;
    changed.mask = mask;
    changed.edited = edited;
    changed.edits = edits;
    RowQuery greedy{.row = row, .n_vocab = n_vocab, .edited = edited, .edits = edits};
    queries.insert(queries.end(), {plain, scaled, changed, greedy});
  }
  const auto wanted = host.summarize(queries);
  const auto seen = device.logits().summarize(queries);
  ASSERT_EQ(seen.size(), queries.size());
  for (size_t i = 0; i < queries.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "query " << i << " of " << n_vocab << " logits, " << n_best << " best");
    expect_equal_summary(seen[i], wanted[i], queries[i], queries[i].n_best == 1 ? 1 : least);
    if (seen[i].is_valid && queries[i].asked >= 0) {
      expect_same_float(seen[i].asked, rows[static_cast<size_t>(queries[i].row)][static_cast<size_t>(n_vocab) - 1],
                        "asked");
    }
  }
}

TEST(CudaChoices, summaries_are_those_of_sorting) {
  for (const int32_t n : {1, 31, 300, 2048, 2049, 5003}) {
    compare_summaries({model_row(n, 1), model_row(n, 2, 0.5f), model_row(n, 3, 8.0f)}, n, std::min(n, 64),
                      static_cast<size_t>(std::min(n, 64)));
  }
  compare_summaries({model_row(40001, 4), model_row(40001, 5)}, 39990, 256, 256);
}

TEST(CudaChoices, more_than_half_of_the_chunks_are_not_promised) {
  compare_summaries({model_row(2500, 1), model_row(2500, 2)}, 2500, 1000, 256);
}

TEST(CudaChoices, ties_and_what_is_no_number_are_summarized_as_by_sorting) {
  std::vector<float> few(3000, kNoLogit), nan = model_row(3000, 2), infinite = model_row(3000, 3);
  few[1234] = 1.0f;
  few[77] = -0.0f;
  few[2999] = 0.0f;
  nan[2500] = kNoNumber;
  infinite[3] = -kNoLogit;
  std::vector<float> signs(3000, 0.0f);
  for (size_t i = 0; i < signs.size(); i += 2) signs[i] = -0.0f;
  compare_summaries({few, nan, infinite, std::vector<float>(3000, kNoLogit), model_row(3000, 4, 2.0f, 500)}, 3000, 20,
                    3);
  compare_summaries({std::vector<float>(3000, 1.5f), signs}, 3000, 20, 0);
}

TEST(CudaChoices, of_every_kind_are_those_of_the_cpu) {
  std::vector<float> broken = model_row(5003, 9);
  broken[17] = kNoNumber;
  DeviceRows device({model_row(5003, 7), model_row(5003, 8, 0.6f), broken, std::vector<float>(5003, kNoLogit)});
  ChoiceComparison comparison(5000);
  comparison.compare(device.on_host(), device.n_rows(), device.n_cols(), device.logits());
  EXPECT_GT(comparison.n_finished(), comparison.n_asked() / 4);
}

TEST(CudaChoices, sixty_four_rows_of_a_small_vocabulary_at_once) {
  std::vector<std::vector<float>> rows;
  for (uint64_t i = 0; i < 64; ++i) rows.push_back(model_row(259, i, 1.5f));
  DeviceRows device(rows);
  ChoiceComparison comparison(259);
  comparison.compare(device.on_host(), device.n_rows(), device.n_cols(), device.logits(), 11);
  EXPECT_GT(comparison.n_finished(), comparison.n_asked() * 3 / 4);
}

TEST(CudaChoices, rows_come_when_they_are_asked_for) {
  DeviceRows device({model_row(300, 1), model_row(300, 2), model_row(300, 3)});
  const auto row_of = [&](size_t i) {
    return std::vector<float>(device.on_host().begin() + static_cast<ptrdiff_t>(i) * 300,
                              device.on_host().begin() + static_cast<ptrdiff_t>(i + 1) * 300);
  };
  for (const int32_t i : {2, 0, 2}) {
    const auto row = device.logits().row(i);
    EXPECT_EQ(std::vector<float>(row.begin(), row.end()), row_of(static_cast<size_t>(i)));
  }
  device.logits().bring(0, 3);
  const auto row = device.logits().row(1);
  EXPECT_EQ(std::vector<float>(row.begin(), row.end()), row_of(1));
}

}  // namespace
}  // namespace candor::testing
