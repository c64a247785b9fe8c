// The experts that kernels choose, their weights and where their rows lie: what backend/routing.h says, bit for bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/emulation/device_test_support.h"
#include "backend/cuda/kernels/route_args.h"
#include "backend/cuda/route_kernels.h"
#include "backend/routing.h"
#include "platform/float_mode.h"
#include "support/random_weights.h"

namespace candor::backend::cuda {
namespace {

using candor::testing::SplitMix;

float between(SplitMix& random, float low, float high) {
  return low + (high - low) * static_cast<float>(random.next() >> 40) * 0x1p-24f;
}

// Any values, few different ones, far apart ones, or with NaN and infinities among them.
std::vector<float> scores_of(SplitMix& random, size_t n) {
  std::vector<float> scores(n);
  const uint64_t kind = random.next() % 5;
  const float special[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -0.0f,
                           1e-42f, -std::numeric_limits<float>::infinity()};
  for (float& score : scores) {
    score = between(random, -4.0f, 4.0f);
    if (kind == 1) score = static_cast<float>(random.next() % 3);
    if (kind == 2) score *= 60.0f;
    if (kind == 3 && random.next() % 4 == 0) score = special[random.next() % std::size(special)];
  }
  return scores;
}

MoeSpec random_spec(SplitMix& random) {
  constexpr int32_t kGroupSizes[] = {1, 2, 3, 8, 40};
  MoeSpec spec;
  spec.n_groups = random.next() % 2 == 0 ? 1 : 1 + static_cast<int32_t>(random.next() % 5);
  const int32_t size = kGroupSizes[random.next() % std::size(kGroupSizes)];
  spec.n_experts = spec.n_groups * size;
  spec.n_groups_used = 1 + static_cast<int32_t>(random.next() % static_cast<uint64_t>(spec.n_groups));
  spec.n_used = 1 + static_cast<int32_t>(random.next() % static_cast<uint64_t>(std::min(spec.n_experts, 9)));
  spec.n_group_best = 1 + static_cast<int32_t>(random.next() % 2);
  spec.renormalise = random.next() % 2 == 0;
  spec.share = random.next() % 2 == 0 ? ExpertShare::kSoftmax : ExpertShare::kSigmoid;
  spec.scale = random.next() % 2 == 0 ? 1.0f : 2.5f;
  spec.has_choice_bias = random.next() % 2 == 0;
  spec.has_expert_scales = random.next() % 3 == 0;
  return spec;
}

std::string text_of(const MoeSpec& spec, int32_t n_rows) {
  return ::testing::PrintToString(std::vector<int32_t>{
      n_rows, spec.n_experts, spec.n_used, spec.n_groups, spec.n_groups_used, spec.n_group_best, spec.renormalise,
      spec.share == ExpertShare::kSigmoid, spec.has_choice_bias, spec.has_expert_scales});
}

bool are_same(float a, float b) {
  return a == b || (a != a && b != b);
}

class RoutingKernels : public ::testing::Test {
 protected:
  template <class T>
  T* upload(const std::vector<T>& values) {
    memory_.push_back(DeviceMemory::make(*device_, values.size() * sizeof(T)).value());
    device_->copy_in(memory_.back().data(), values.data(), values.size() * sizeof(T));
    return memory_.back().as<T>();
  }
  template <class T>
  std::vector<T> download(const T* from, int32_t n) {
    std::vector<T> values(static_cast<size_t>(n));
    device_->copy_out(values.data(), from, values.size() * sizeof(T));
    return values;
  }

  // Of scores [n_rows, E]: all that the device finds is what the host does.
  void expect_same(const MoeSpec& spec, const std::vector<float>& scores, const std::vector<float>& bias,
                   const std::vector<float>& scales) {
    const auto n_experts = static_cast<size_t>(spec.n_experts);
    const auto n_rows = static_cast<int32_t>(scores.size() / n_experts);
    const Visits visits = visits_at(upload(std::vector<std::byte>(visits_bytes(spec, n_rows))), spec, n_rows);
    find_visits(*device_, spec, {upload(scores), upload(bias), upload(scales)}, visits);
    const auto experts = download(visits.experts, visits.n);
    const auto places = download(visits.places, visits.n);
    const auto weights = download(visits.weights, visits.n);
    const auto rows = download(visits.rows_by_place, visits.n);
    const auto place_weights = download(visits.weights_by_place, visits.n);
    ASSERT_TRUE(device_->status()) << device_->status().error().message;
    const platform::ScopedFloatMode mode;
    Routing routing;
    routing.begin(spec);
    for (int32_t row = 0; row < n_rows; ++row) {
      routing.add_row(row, std::span(scores).subspan(static_cast<size_t>(row) * n_experts, n_experts),
                      {spec.has_choice_bias ? bias.data() : nullptr, spec.has_expert_scales ? scales.data() : nullptr});
    }
    std::vector<int32_t> n_placed(static_cast<size_t>(n_rows));
    std::vector<int32_t> owner;  // by place
    for (int32_t expert = 0; expert < spec.n_experts; ++expert) {
      for (const Routing::Visit& visit : routing.visits(expert)) {
        const auto at = static_cast<size_t>(visit.row * spec.n_used + n_placed[static_cast<size_t>(visit.row)]++);
        const size_t place = owner.size();
        owner.push_back(expert);
        ASSERT_EQ(experts[at], expert);
        ASSERT_EQ(places[at], static_cast<int32_t>(place));
        ASSERT_EQ(rows[place], visit.row);
        ASSERT_TRUE(are_same(weights[at], visit.weight)) << weights[at] << " " << visit.weight;
        ASSERT_TRUE(are_same(place_weights[place], visit.weight));
      }
    }
    ASSERT_EQ(static_cast<int32_t>(owner.size()), visits.n);
    expect_runs(download(visits.runs, visits.n_runs), owner, visits.run_rows);
    memory_.clear();
  }

  // Runs hold each place once, with its expert.
  static void expect_runs(const std::vector<RowRun>& runs, std::vector<int32_t> owner, int32_t run_rows) {
    for (const RowRun& run : runs) {
      ASSERT_GE(run.n_rows, 0);
      ASSERT_LE(run.n_rows, run_rows);
      for (int32_t place = run.first_row; place < run.first_row + run.n_rows; ++place) {
        ASSERT_EQ(owner.at(static_cast<size_t>(place)), run.matrix);
        owner[static_cast<size_t>(place)] = -1;
      }
    }
    ASSERT_TRUE(std::ranges::all_of(owner, [](int32_t expert) { return expert == -1; }));
  }

  std::unique_ptr<Device> device_ = make_test_device();
  std::vector<DeviceMemory> memory_;
};

TEST_F(RoutingKernels, choose_what_the_host_chooses) {
  constexpr int32_t kRows[] = {1, 2, 5, 33, 150};
  SplitMix random(1);
  for (int i = 0; i < 150; ++i) {
    const MoeSpec spec = random_spec(random);
    const int32_t n_rows = kRows[random.next() % (spec.n_experts > 30 ? 3 : std::size(kRows))];
    const auto n_experts = static_cast<size_t>(spec.n_experts);
    std::vector<float> scores;
    for (int32_t row = 0; row < n_rows; ++row) {
      const auto of_row = scores_of(random, n_experts);
      scores.insert(scores.end(), of_row.begin(), of_row.end());
    }
    std::vector<float> bias(n_experts), scales(n_experts);
    for (float& each : bias) each = between(random, -0.5f, 0.5f);
    for (float& each : scales) each = between(random, -2.0f, 2.0f);
    ASSERT_NO_FATAL_FAILURE(expect_same(spec, scores, bias, scales)) << i << ": " << text_of(spec, n_rows);
  }
}

// More experts than a block has threads; all rows at one expert; more rows of an expert than a run has.
TEST_F(RoutingKernels, take_many_experts_and_rows) {
  MoeSpec many;
  many.n_experts = kMostRouteThreads + 70;
  many.n_used = 3;
  SplitMix random(2);
  std::vector<float> scores(2 * static_cast<size_t>(many.n_experts));
  for (float& score : scores) score = between(random, -3.0f, 3.0f);
  scores[600] = 5.0f;
  ASSERT_NO_FATAL_FAILURE(expect_same(many, scores, {}, {}));
  MoeSpec one;
  one.n_experts = 4;
  one.n_used = 1;
  for (const size_t n_rows : {1u, 40u, 64u, 300u}) {
    std::vector<float> all(4 * n_rows);
    for (size_t i = 2; i < all.size(); i += 4) all[i] = 1.0f;
    ASSERT_NO_FATAL_FAILURE(expect_same(one, all, {}, {})) << n_rows;
  }
}

// Blocks of threads that a launch has: those that work, and few more.
TEST_F(RoutingKernels, launch_few_blocks_for_nothing) {
  MoeSpec spec;
  spec.n_experts = 128;
  spec.n_used = 8;
  const auto n_runs = [&](int32_t n_rows) {
    std::vector<std::byte> memory(visits_bytes(spec, n_rows));
    return visits_at(memory.data(), spec, n_rows).n_runs;
  };
  EXPECT_EQ(n_runs(1), 8);
  EXPECT_EQ(n_runs(16), 128);
  EXPECT_EQ(n_runs(32), 136);
  EXPECT_EQ(n_runs(2048), 384);
}

}  // namespace
}  // namespace candor::backend::cuda
