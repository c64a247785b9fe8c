// What steps ask of a device: a decode step that is like the ones before allocates nothing, changes no argument of a
// launch, and copies one list of tables, the embeddings and the logits. So does that of a mixture of experts.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cuda/emulated.h"
#include "formats/model_file.h"
#include "model/hub/hub_folder.h"
#include "support/model_runner.h"
#include "support/shared_data.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

using backend::cuda::Device;
using backend::cuda::DeviceInfo;
using backend::cuda::Launch;
using backend::cuda::LaunchList;

struct Counts {
  int n_allocated = 0, n_lists = 0, n_launches = 0, n_changed = 0, n_lone_launches = 0;
  int n_copies_in = 0, n_copies_out = 0;
  size_t bytes_in = 0, bytes_out = 0;
};

// An emulated device that counts. n_changed: launches that are not what they were in the list of the same part before.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(Counts& counts) : counts_(counts) {}

  const DeviceInfo& info() const override { return device_->info(); }
  Result<std::byte*> allocate(size_t n_bytes) override {
    ++counts_.n_allocated;
    return device_->allocate(n_bytes);
  }
  void release(std::byte* memory) override { device_->release(memory); }
  void copy_in(void* dst, const void* src, size_t n_bytes) override {
    ++counts_.n_copies_in;
    counts_.bytes_in += n_bytes;
    device_->copy_in(dst, src, n_bytes);
  }
  void copy_out(void* dst, const void* src, size_t n_bytes) override {
    ++counts_.n_copies_out;
    counts_.bytes_out += n_bytes;
    device_->copy_out(dst, src, n_bytes);
  }
  void copy(void* dst, const void* src, size_t n_bytes) override { device_->copy(dst, src, n_bytes); }
  void clear(void* dst, size_t n_bytes) override { device_->clear(dst, n_bytes); }
  void wait() override { device_->wait(); }
  void launch(const char* kernel, const Launch& launch, const void* args, size_t n_bytes) override {
    ++counts_.n_lone_launches;
    device_->launch(kernel, launch, args, n_bytes);
  }
  void run_all(const LaunchList& launches) override {
    ++counts_.n_lists;
    counts_.n_launches += static_cast<int>(launches.entries().size());
    const auto part = static_cast<size_t>(launches.part());
    if (part >= last_.size()) last_.resize(part + 1);
    counts_.n_changed += count_changed(last_[part], launches);
    last_[part] = launches;
    device_->run_all(launches);
  }
  uint64_t free_bytes() const override { return device_->free_bytes(); }
  Result<void> status() const override { return device_->status(); }

 private:
  static int count_changed(const LaunchList& before, const LaunchList& now) {
    int n = 0;
    for (size_t i = 0; i < now.entries().size(); ++i) {
      const LaunchList::Entry& entry = now.entries()[i];
      const LaunchList::Entry* old = i < before.entries().size() ? &before.entries()[i] : nullptr;
      const bool is_same = old != nullptr && old->kernel == entry.kernel && old->launch == entry.launch &&
                           std::memcmp(before.args(*old), now.args(entry), entry.args_bytes) == 0;
      n += is_same ? 0 : 1;
    }
    return n;
  }

  Counts& counts_;
  std::unique_ptr<Device> device_ = backend::cuda::make_emulated_device();
  std::vector<LaunchList> last_;
};

// Of the last of `n_steps` steps of a token for each of two sequences.
Counts counts_of(const formats::ModelFile& file, int n_steps) {
  Counts counts;
  auto backend = backend::make_cuda_backend(std::make_unique<CountingDevice>(counts), {.n_threads = 1});
  EXPECT_TRUE(backend);
  const auto runner = ModelRunner::make(file, std::move(*backend), {.max_rows = 64, .n_blocks = 8});
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
