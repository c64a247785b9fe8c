#include "backend/cuda/launch_graphs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/driver_device.h"
#include "backend/cuda/graph_test_support.h"
#include "backend/cuda/kernels/kernel_list.h"

namespace candor::backend::cuda {
namespace {

constexpr unsigned char kCode[16] = {};
constexpr candor_cuda_image kAllKernels[] = {{"all", kCode, kCode + 16}};

Result<std::unique_ptr<Device>> open_with_graphs(const FakeDriver& fake) {
  return open_driver_device(0, functions_with_graphs(fake), {.images = kAllKernels, .version = 13050});
}

// Launch i has x + i blocks and scale + i; one of another kernel comes last.
struct Step {
  uint32_t x = 1;
  float scale = 0.0f;
  uint32_t n = 5;
  int32_t part = 0;
  uint32_t shared_bytes = 0;
};

LaunchList list_of(const Step& step) {
  LaunchList list;
  list.begin(step.part);
  for (uint32_t i = 0; i + 1 < step.n; ++i) {
    list.run(kernel::add_scaled, {.x = step.x + i, .n_threads = 64, .shared_bytes = step.shared_bytes},
             AddScaledArgs{.scale = step.scale + static_cast<float>(i)});
  }
  list.run(kernel::scale_all, {.x = 9, .n_threads = 32}, ScaleArgs{});
  return list;
}

class LaunchGraphsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_with_graphs(fake_);
    ASSERT_TRUE(opened);
    device_ = std::move(*opened);
  }

  // Runs it, and expects that this is what was launched, in order.
  void run(const Step& step) {
    fake_.launched.clear();
    device_->run_all(list_of(step));
    ASSERT_EQ(fake_.launched.size(), step.n);
    for (uint32_t i = 0; i + 1 < step.n; ++i) {
      EXPECT_EQ(fake_.launched[i].kernel, "add_scaled");
      EXPECT_EQ(fake_.launched[i].x, step.x + i);
      EXPECT_EQ(fake_.launched[i].shared_bytes, step.shared_bytes);
      EXPECT_EQ(fake_.launched[i].scale, step.scale + static_cast<float>(i));
    }
    EXPECT_EQ(fake_.launched.back().kernel, "scale_all");
    EXPECT_EQ(fake_.launched.back().x, 9u);
  }
  int32_t n_single() { return fake_.n_calls["cuLaunchKernel"]; }
  int32_t n_graphs() { return fake_.n_calls["cuGraphInstantiateWithFlags"]; }
  int32_t n_graph_launches() { return fake_.n_calls["cuGraphLaunch"]; }
  int32_t n_updates() { return fake_.n_calls["cuGraphExecKernelNodeSetParams_v2"]; }

  FakeDriver fake_;
  std::unique_ptr<Device> device_;
};

TEST_F(LaunchGraphsTest, a_list_that_comes_again_is_a_graph_and_asks_nothing_more) {
  run({});
  EXPECT_EQ(n_single(), 5);
  EXPECT_EQ(n_graphs(), 0);
  for (int i = 0; i < 3; ++i) run({});
  EXPECT_EQ(n_single(), 5);
  EXPECT_EQ(n_graphs(), 1);
  EXPECT_EQ(n_graph_launches(), 3);
  EXPECT_EQ(device_->counters().graph_launches, 3u);
  EXPECT_EQ(n_updates(), 0);
  device_.reset();
  EXPECT_EQ(fake_.n_live, 0);
  EXPECT_FALSE(fake_.was_outside);
}

TEST_F(LaunchGraphsTest, what_differs_is_set_and_no_more) {
  run({});
  run({});
  LaunchList list = list_of({});
  LaunchList other;
  other.begin(0);
  for (size_t i = 0; i < list.entries().size(); ++i) {
    const LaunchList::Entry& entry = list.entries()[i];
    AddScaledArgs args{.scale = 70.0f};
    other.launch(entry.kernel, entry.launch, i == 2 ? reinterpret_cast<const std::byte*>(&args) : list.args(entry),
                 entry.args_bytes);
  }
  fake_.launched.clear();
  device_->run_all(other);
  EXPECT_EQ(n_updates(), 1);
  EXPECT_EQ(fake_.launched[2].scale, 70.0f);
  EXPECT_EQ(fake_.launched[3].scale, 3.0f);
  run({});  // back again
  EXPECT_EQ(n_updates(), 2);
  run({.scale = 5.0f});
  EXPECT_EQ(n_updates(), 6);
  EXPECT_EQ(n_graphs(), 1);
}

TEST_F(LaunchGraphsTest, other_blocks_and_shared_memory_are_set_as_well) {
  run({});
  run({});
  run({.x = 30});
  run({.x = 30, .shared_bytes = 64 << 10});
  EXPECT_EQ(n_graphs(), 1);
  EXPECT_EQ(n_updates(), 8);
  ASSERT_EQ(fake_.attributes.size(), 1u);
  EXPECT_EQ(fake_.attributes[0].second, 64 << 10);
}

TEST_F(LaunchGraphsTest, parts_and_kernels_tell_graphs_apart) {
  for (int i = 0; i < 3; ++i) {
    for (int32_t part = 0; part < 3; ++part) run({.scale = static_cast<float>(part), .part = part});
    run({.n = 6});
  }
  EXPECT_EQ(n_graphs(), 4);
  EXPECT_EQ(n_graph_launches(), 8);
  EXPECT_EQ(n_updates(), 0);
}

TEST_F(LaunchGraphsTest, few_launches_are_no_graph) {
  for (int i = 0; i < 4; ++i) run({.n = LaunchGraphs::kLeastNodes - 1});
  EXPECT_EQ(n_graphs(), 0);
}

TEST(launch_graphs, a_failure_is_kept_and_names_what_failed) {
  struct Case {
    const char* symbol;
    int32_t n_good;
    const char* what;
  };
  const std::vector<Case> cases = {
      {"cuLaunchKernel", 3, "the kernel add_scaled (4 x 1 x 1 blocks"},
      {"cuGraphCreate", 0, "a graph of 5 kernels"},
      {"cuGraphAddKernelNode_v2", 2, "the kernel add_scaled (3 x 1 x 1 blocks"},
      {"cuGraphInstantiateWithFlags", 0, "a graph of 5 kernels"},
      {"cuGraphLaunch", 1, "a graph of 5 kernels"},
      {"cuGraphExecKernelNodeSetParams_v2", 1, "the kernel add_scaled (2 x 1 x 1 blocks"},
  };
  for (const Case& each : cases) {
    FakeDriver fake;
    {
      const auto device = open_with_graphs(fake);
      ASSERT_TRUE(device);
      fake.failures[each.symbol] = {.status = 700, .n_good = each.n_good, .stays_lost = true};
      for (const float scale : {0.0f, 0.0f, 7.0f}) (*device)->run_all(list_of({.scale = scale}));
      const auto status = (*device)->status();
      ASSERT_FALSE(status) << each.symbol;
      const std::string& message = status.error().message;
      EXPECT_EQ(message.find(std::string("GPU 0 (Fake 100): ") + each.what), 0u) << message;
      EXPECT_NE(message.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << message;
    }
    EXPECT_EQ(fake.n_live, 0) << each.symbol;
    EXPECT_EQ(fake.depth, 0) << each.symbol;
  }
}

TEST_F(LaunchGraphsTest, a_card_without_memory_for_a_graph_launches_one_by_one) {
  fake_.failures["cuGraphInstantiateWithFlags"] = {.status = driver::kOutOfMemory};
  for (int i = 0; i < 4; ++i) run({});
  EXPECT_EQ(n_single(), 20);
  EXPECT_EQ(n_graphs(), 1);  // it is not tried again
  EXPECT_TRUE(device_->status());
  device_.reset();
  EXPECT_EQ(fake_.n_live, 0);
}

TEST_F(LaunchGraphsTest, the_graphs_that_were_not_used_for_the_longest_time_go) {
  const DriverFunctions functions = functions_with_graphs(fake_);
  DriverHandle module = nullptr, stream = nullptr, context = nullptr;
  functions.push_context(context);
  LoadedKernels kernels(functions);
  ASSERT_EQ(kernels.load({&module, 1}).status, 0);
  LaunchGraphs graphs(functions, kernels, 10);  // two lists of five
  const auto is_launched = [&](int32_t part) { return graphs.run(list_of({.part = part}), stream).is_launched; };
  for (int32_t part = 0; part < 3; ++part) EXPECT_FALSE(is_launched(part));
  EXPECT_TRUE(is_launched(0));
  EXPECT_TRUE(is_launched(1));
  EXPECT_TRUE(is_launched(0));
  EXPECT_TRUE(is_launched(2));  // 1 goes
  EXPECT_EQ(graphs.n_graphs(), 2u);
  EXPECT_EQ(n_graphs(), 3);
  EXPECT_TRUE(is_launched(0));
  EXPECT_EQ(n_graphs(), 3);
  EXPECT_TRUE(is_launched(1));
  EXPECT_EQ(n_graphs(), 4);
  EXPECT_FALSE(graphs.run(list_of({.n = 11}), stream).is_launched);
  EXPECT_FALSE(graphs.run(list_of({.n = 11}), stream).is_launched);
  graphs.clear();
  functions.pop_context(&context);
  device_.reset();
  EXPECT_EQ(fake_.n_live, 0);
}

}  // namespace
}  // namespace candor::backend::cuda
