// What steps ask of a device: a decode step that is like the ones before allocates nothing, changes no argument of a
// launch, and copies one list of tables, the embeddings and the logits. So does that of a mixture of experts.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/wrap/forwarding_backend.h"
#include "cuda/counting_device.h"
#include "cuda/emulated.h"
#include "formats/model_file.h"
#include "model/hub/hub_folder.h"
#include "support/model_runner.h"
#include "support/shared_data.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

// Counts what is allocated on the host from the beginning of a step to its end.
class LaunchCounter final : public backend::ForwardingBackend {
 public:
  LaunchCounter(std::unique_ptr<backend::Backend> inner, Counts& counts)
      : ForwardingBackend(std::move(inner)), counts_(counts) {}

  void begin_step(const backend::StepBatch& batch, backend::KvStore& kv) override {
    n_before_ = n_allocations();
    ForwardingBackend::begin_step(batch, kv);
  }
  backend::StepTicket end_step() override {
    const backend::StepTicket ticket = ForwardingBackend::end_step();
    counts_.n_on_host += static_cast<int>(n_allocations() - n_before_);
    return ticket;
  }

 private:
  Counts& counts_;
  int64_t n_before_ = 0;
};

// Of the last of `n_steps` steps of a token for each of two sequences.
Counts counts_of(const formats::ModelFile& file, int n_steps) {
  Counts counts;
  auto backend = backend::make_cuda_backend(std::make_unique<CountingDevice>(counts), {.n_threads = 1});
  EXPECT_TRUE(backend);
  auto counter = std::make_unique<LaunchCounter>(std::move(*backend), counts);
  const auto runner = ModelRunner::make(file, std::move(counter), {.max_rows = 64, .n_blocks = 8});
  if (runner == nullptr) return counts;
  const size_t first = runner->new_sequence(), second = runner->new_sequence();
  runner->step({{first, {1, 2, 3}}, {second, {4, 5}}});
  for (TokenId i = 0; i < n_steps; ++i) {
    counts = {};
    runner->step({{first, {i}}, {second, {i + 1}}});
  }
  EXPECT_TRUE(runner->backend().health());
  return counts;
}

TEST(CudaSteps, a_decode_step_is_one_list_that_changes_nothing) {
  const auto file = make_tiny_model(tiny_model_of(DType::kQ4_K, 64, 256));
  const Counts counts = counts_of(*file, 3);
  EXPECT_EQ(counts.n_allocated, 0);
  EXPECT_EQ(counts.n_on_host, 0);
  EXPECT_EQ(counts.n_lists, 1);
  EXPECT_GT(counts.n_launches, 10);
  EXPECT_EQ(counts.n_changed, 0);
  EXPECT_EQ(counts.n_lone_launches, 0);
  EXPECT_EQ(counts.n_copies_in, 2);
  EXPECT_EQ(counts.n_copies_out, 1);
  RecordProperty("n_launches", counts.n_launches);
  RecordProperty("bytes_in", static_cast<int>(counts.bytes_in));
  RecordProperty("bytes_out", static_cast<int>(counts.bytes_out));
}

TEST(CudaSteps, no_step_of_any_family_allocates_once_steps_are_alike) {
  for (const char* family : {"qwen3moe", "gpt_oss", "deepseek_v2", "bloom", "qwen3_next", "gemma2"}) {
    const auto file = model::open_model(goldens() / family);
    ASSERT_TRUE(file) << file.error().message;
    const Counts counts = counts_of(**file, 3);
    EXPECT_EQ(counts.n_allocated, 0) << family;
    EXPECT_EQ(counts.n_on_host, 0) << family;
    EXPECT_EQ(counts.n_lone_launches, 0) << family;
    EXPECT_EQ(counts.n_lists, 1) << family;
    EXPECT_EQ(counts.n_copies_out, 1) << family;
  }
}

// Tokens of which each step has others, so that other experts are visited.
TEST(CudaSteps, a_mixture_is_one_list_that_no_choice_of_experts_changes) {
  for (const char* family : {"qwen3moe", "gpt_oss", "deepseek_v2", "llama4_text", "granitemoe"}) {
    const auto file = model::open_model(goldens() / family);
    ASSERT_TRUE(file) << file.error().message;
    const Counts counts = counts_of(**file, 6);
    EXPECT_EQ(counts.n_lists, 1) << family;
    EXPECT_EQ(counts.n_changed, 0) << family;
    EXPECT_EQ(counts.n_copies_in, 2) << family;
    EXPECT_EQ(counts.n_copies_out, 1) << family;
  }
}

}  // namespace
}  // namespace candor::testing
