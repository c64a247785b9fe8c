#include "model/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "backend/reference/reference_backend.h"
#include "model/model.h"
#include "model/placement_plan.h"
#include "support/tiny_model.h"

namespace candor::model {
namespace {

using backend::Placement;
using backend::Side;

constexpr Side kDevice = Side::kDevice;
constexpr Side kHost = Side::kHost;

void attend(BlockSpec& block, int32_t n_heads, int32_t n_kv_heads, int32_t head_dim) {
  block.has_attention = true;
  block.attn.n_heads = n_heads;
  block.attn.n_kv_heads = n_kv_heads;
  block.attn.head_dim = head_dim;
}

// Four blocks, of which the third keeps a state, the fourth reads the second one's keys, and the last two have experts.
ArchSpec mixed_arch() {
  ArchSpec spec;
  spec.blocks.resize(4);
  for (BlockSpec& block : spec.blocks) {
    attend(block, 4, 2, 16);
  }
  spec.blocks[2].has_attention = false;
  spec.blocks[2].ssm = {.n_heads = 2, .head_dim = 8, .n_groups = 1, .state_dim = 4, .n_taps = 4};
  spec.blocks[3].kv_block = 1;
  for (const size_t i : {size_t{2}, size_t{3}}) spec.blocks[i].ffn.moe = {.n_experts = 8, .n_used = 2};
  return spec;
}

TEST(placement, layers_are_counted_from_the_output) {
  const ArchSpec spec = mixed_arch();
  const auto on_device = [&](int32_t n) { return place_layers(spec, {.n_device_layers = n}); };
  EXPECT_EQ(on_device(0).output, kHost);
  EXPECT_EQ(on_device(1).output, kDevice);
  EXPECT_EQ(on_device(1).blocks, (std::vector<Side>{kHost, kHost, kHost, kHost}));
  EXPECT_EQ(on_device(3).blocks, (std::vector<Side>{kHost, kHost, kDevice, kDevice}));
  EXPECT_EQ(on_device(5).blocks, (std::vector<Side>{kDevice, kDevice, kDevice, kDevice}));
  EXPECT_EQ(on_device(5), place_layers(spec, {}));
  EXPECT_EQ(on_device(5).input, kHost);
}

TEST(placement, memory_goes_with_the_block_that_keeps_it) {
  const Placement placement = place_layers(mixed_arch(), {.n_device_layers = 4});  // not the first block
  EXPECT_EQ(placement.kv_layers, (std::vector<Side>{kHost, kDevice}));
  EXPECT_EQ(placement.state_layers, (std::vector<Side>{kDevice}));
}

TEST(placement, experts_of_the_first_blocks_stay_on_the_host) {
  const ArchSpec spec = mixed_arch();
  const Placement placement = place_layers(spec, {.n_host_experts = 3});
  EXPECT_EQ(placement.blocks, (std::vector<Side>{kDevice, kDevice, kDevice, kDevice}));
  EXPECT_EQ(placement.experts, (std::vector<Side>{kHost, kHost, kHost, kDevice}));
  const Placement both = place_layers(spec, {.n_device_layers = 2, .n_host_experts = 3});
  EXPECT_EQ(both.blocks, (std::vector<Side>{kHost, kHost, kHost, kDevice}));
  EXPECT_EQ(both.experts, both.blocks);
}

TEST(placement, every_tensor_belongs_to_one_part_and_vectors_to_both_sides) {
  const auto file = testing::make_tiny_model({.n_layers = 3});
  const auto backend = backend::make_reference_backend();
  const auto plan = plan_model(*file, *backend);
  const auto parts = part_bytes(*file, *backend);
  ASSERT_TRUE(plan && parts);
  uint64_t total = parts->vectors + parts->input + parts->output;
  total = std::accumulate(parts->blocks.begin(), parts->blocks.end(), total);
  EXPECT_EQ(total, plan->weight_bytes);
  EXPECT_EQ(parts->vectors, 4 * 64 * (2 * 3 + 1));
  EXPECT_EQ(parts->output, 4 * 64 * 96);
  for (int32_t n = 0; n <= 4; ++n) {
    const Placement placement = place_layers(plan->spec, {.n_device_layers = n});
    EXPECT_EQ(bytes_on(kDevice, placement, *parts) + bytes_on(kHost, placement, *parts), total + parts->vectors);
    const uint64_t blocks = n > 1 ? parts->blocks[0] * static_cast<uint64_t>(n - 1) : 0;
    EXPECT_EQ(bytes_on(kDevice, placement, *parts), parts->vectors + blocks + (n > 0 ? parts->output : 0));
  }
}

TEST(placement, a_tied_embedding_is_the_output) {
  const auto file = testing::make_tiny_model({.is_tied = true});
  const auto parts = part_bytes(*file, *backend::make_reference_backend());
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->input, 0u);
  EXPECT_EQ(parts->output, 4u * 64 * 96);
}

TEST(placement, memory_is_that_of_a_store) {
  const ArchSpec spec = mixed_arch();
  const backend::KvLayout layout = kv_layout(spec, KvType::kBf16);
  const PartMemory memory = part_memory(spec, KvType::kBf16, {10, 3}, 100);
  const auto n_bytes = static_cast<uint64_t>(10 * kv_block_bytes(layout) + 3 * backend::state_slot_bytes(layout.state));
  EXPECT_EQ(std::accumulate(memory.blocks.begin(), memory.blocks.end(), uint64_t{0}), n_bytes);
  EXPECT_EQ(memory.blocks[3], 0u);
  EXPECT_EQ(memory.reads[1], 100.0 * 2 * 2 * 16 * 2);
  EXPECT_EQ(memory.reads[3], memory.reads[1]);
  EXPECT_LE(10 * static_cast<uint64_t>(kv_pool_block_bytes(layout) - kv_block_bytes(layout)), memory.padding);
}

// The quickest of all subsets that fit.
double best_seconds(const std::vector<PlacedPart>& parts, const PlacementCosts& costs, uint64_t free_bytes) {
  double best = std::numeric_limits<double>::infinity();
  for (uint32_t subset = 0; subset < 1U << parts.size(); ++subset) {
    uint64_t n_bytes = 0;
    double seconds = 0;
    bool was_there = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool is_there = (subset >> i & 1U) != 0;
      const SideSpeed& speed = is_there ? costs.device : costs.host;
      if (is_there) n_bytes += parts[i].device_bytes;
      seconds +=
          parts[i].read_bytes / speed.bytes_per_s + speed.part_s + (is_there != was_there ? costs.crossing_s : 0);
      was_there = is_there;
    }
    if (was_there) seconds += costs.crossing_s;
    if (n_bytes <= free_bytes) best = std::min(best, seconds);
  }
  return best;
}

double seconds_of(const PartChoice& choice, const std::vector<PlacedPart>& parts, const PlacementCosts& costs) {
  double seconds = 0;
  Side before = kHost;
  for (size_t i = 0; i < parts.size(); ++i) {
    const SideSpeed& speed = choice.sides[i] == kDevice ? costs.device : costs.host;
    seconds += parts[i].read_bytes / speed.bytes_per_s + speed.part_s;
    if (choice.sides[i] != before) seconds += costs.crossing_s;
    before = choice.sides[i];
  }
  return seconds + (before == kDevice ? costs.crossing_s : 0);
}

TEST(choose_sides, is_as_quick_as_the_best_of_all_choices) {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    std::vector<PlacedPart> parts(1 + random() % 11);
    uint64_t total = 0;
    const bool are_alike = round % 3 == 0;
    for (PlacedPart& part : parts) {
      part.device_bytes = are_alike ? 100 + 400 * (random() % 2) : random() % 1000;
      part.read_bytes = static_cast<double>(part.device_bytes) * (random() % 4 == 0 ? 0.1 : 1.0) + random() % 50;
      total += part.device_bytes;
    }
    const PlacementCosts costs{.device = {1e3, 0.01 * (random() % 3)},
                               .host = {100.0 + random() % 400, 0.005},
                               .crossing_s = 0.2 * (random() % 5)};
    const uint64_t free_bytes = random() % (total + total / 4 + 1);
    const PartChoice choice = choose_sides(parts, costs, free_bytes);
    ASSERT_EQ(choice.sides.size(), parts.size());
    uint64_t taken = 0;
    for (size_t i = 0; i < parts.size(); ++i) taken += choice.sides[i] == kDevice ? parts[i].device_bytes : 0;
    EXPECT_EQ(taken, choice.device_bytes);
    EXPECT_LE(taken, free_bytes);
    EXPECT_NEAR(choice.step_s, seconds_of(choice, parts, costs), 1e-9);
    EXPECT_NEAR(choice.step_s, best_seconds(parts, costs, free_bytes), 1e-9) << round;
  }
}

// 200 parts, each of another size: sums are too many to keep them all.
TEST(choose_sides, of_many_different_parts_fills_the_memory) {
  std::mt19937_64 random(5);
  std::vector<PlacedPart> parts(200);
  uint64_t total = 0;
  for (PlacedPart& part : parts) {
    part.device_bytes = (uint64_t{1} << 28) + random() % (uint64_t{1} << 28);
    part.read_bytes = static_cast<double>(part.device_bytes);
    total += part.device_bytes;
  }
  const PlacementCosts costs{.device = {3e12, 5e-6}, .host = {1e11, 5e-6}, .crossing_s = 2e-5};
  const PartChoice choice = choose_sides(parts, costs, total / 2);
  EXPECT_LE(choice.device_bytes, total / 2);
  EXPECT_GT(choice.device_bytes, total / 2 - total / 2 / 500);
}

ArchSpec experts_arch(int32_t n_blocks) {
  ArchSpec spec;
  spec.blocks.resize(static_cast<size_t>(n_blocks));
  for (BlockSpec& block : spec.blocks) {
    attend(block, 32, 4, 128);
    block.ffn.moe = {.n_experts = 128, .n_used = 8};
  }
  return spec;
}

// 30B of experts at 4.5 bits beside a card of 12 GB: attention and as many experts as fit go there.
TEST(plan_placement, what_every_row_reads_goes_first) {
  const ArchSpec spec = experts_arch(48);
  PlacementNeeds needs;
  needs.bytes = {.vectors = 1 << 20, .input = 170'000'000, .output = 250'000'000, .blocks = {}, .experts = {}};
  needs.bytes.blocks.assign(48, 12'000'000);
  needs.bytes.experts.assign(48, 340'000'000);
  needs.memory = part_memory(spec, KvType::kBf16, {1024, 0}, 8192);
  const PlacementCosts costs{.device = {1e12, 5e-5}, .host = {6e10, 5e-5}, .crossing_s = 2e-5};
  const uint64_t free_bytes = uint64_t{11} << 30;
  const PlannedPlacement planned = plan_placement(spec, needs, costs, free_bytes);
  EXPECT_EQ(planned.placement.output, kDevice);
  EXPECT_EQ(planned.placement.blocks, std::vector<Side>(48, kDevice));
  const auto n_experts = std::ranges::count(planned.placement.experts, kDevice);
  EXPECT_GT(n_experts, 15);
  EXPECT_LE(planned.device_bytes, free_bytes);
  EXPECT_GT(planned.device_bytes + 340'000'000, free_bytes);
  EXPECT_EQ(planned.device_bytes,
            bytes_on(kDevice, planned.placement, needs.bytes) + needs.memory.padding +
                std::accumulate(needs.memory.blocks.begin(), needs.memory.blocks.end(), uint64_t{0}));
  const PlannedPlacement none = plan_placement(spec, needs, costs, 0);
  EXPECT_EQ(none.placement.blocks, std::vector<Side>(48, kHost));
  EXPECT_GT(none.step_s, planned.step_s);
}

}  // namespace
}  // namespace candor::model
