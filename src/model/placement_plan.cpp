#include "model/placement_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace candor::model {
namespace {

using backend::kSides;
using backend::Side;

constexpr std::array kBothSides{Side::kDevice, Side::kHost};
// States that are kept behind a part on a side.
constexpr size_t kMostKept = 4096;

// What is reached behind some parts, the last of them on one side.
struct State {
  uint64_t device_bytes = 0;
  double seconds = 0;
  uint32_t before = 0;  // its place among those behind the part before
  Side side_before = Side::kHost;
};
// Ascending by bytes, each quicker than all before it.
using States = std::vector<State>;
using BySide = std::array<States, kSides>;

const SideSpeed& speed_of(const PlacementCosts& costs, Side side) {
  return side == Side::kDevice ? costs.device : costs.host;
}

// Keeps the quickest of every range of bytes where there are too many.
void thin(States& states, uint64_t free_bytes) {
  if (states.size() <= kMostKept) return;
  const uint64_t range = free_bytes / kMostKept + 1;
  const auto is_in_one_range = [&](const State& a, const State& b) {
    return a.device_bytes / range == b.device_bytes / range;
  };
  const auto kept = std::unique(states.rbegin(), states.rend(), is_in_one_range);
  states.erase(states.begin(), kept.base());
}

void keep_best(States& states, uint64_t free_bytes) {
  std::ranges::sort(states, [](const State& a, const State& b) {
    return a.device_bytes != b.device_bytes ? a.device_bytes < b.device_bytes : a.seconds < b.seconds;
  });
  double quickest = std::numeric_limits<double>::infinity();
  std::erase_if(states, [&](const State& state) {
    const bool is_slower = state.seconds >= quickest;
    quickest = std::min(quickest, state.seconds);
    return is_slower;
  });
  thin(states, free_bytes);
}

States reach(const BySide& before, const PlacedPart& part, Side side, const PlacementCosts& costs,
             uint64_t free_bytes) {
  const SideSpeed& speed = speed_of(costs, side);
  const double part_s = part.read_bytes / speed.bytes_per_s + speed.part_s;
  const uint64_t n_bytes = side == Side::kDevice ? part.device_bytes : 0;
  States states;
  for (const Side from : kBothSides) {
    const States& all = before[static_cast<size_t>(from)];
    for (size_t i = 0; i < all.size(); ++i) {
      if (n_bytes > free_bytes - all[i].device_bytes) break;
      const double seconds = all[i].seconds + part_s + (from == side ? 0.0 : costs.crossing_s);
      states.push_back({all[i].device_bytes + n_bytes, seconds, static_cast<uint32_t>(i), from});
    }
  }
  keep_best(states, free_bytes);
  return states;
}

}  // namespace

PartChoice choose_sides(std::span<const PlacedPart> parts, const PlacementCosts& costs, uint64_t free_bytes) {
  std::vector<BySide> behind(1);
  behind[0][static_cast<size_t>(Side::kHost)].push_back({});
  for (const PlacedPart& part : parts) {
    BySide& next = behind.emplace_back();
    const BySide& before = behind[behind.size() - 2];
    for (const Side side : kBothSides) next[static_cast<size_t>(side)] = reach(before, part, side, costs, free_bytes);
  }
  PartChoice best{.step_s = std::numeric_limits<double>::infinity()};
  State at;
  for (const Side side : kBothSides) {
    const States& all = behind.back()[static_cast<size_t>(side)];
    if (all.empty()) continue;
    const double seconds = all.back().seconds + (side == Side::kHost ? 0.0 : costs.crossing_s);
    if (seconds >= best.step_s) continue;
    best.step_s = seconds;
    best.device_bytes = all.back().device_bytes;
    at = {.before = static_cast<uint32_t>(all.size() - 1), .side_before = side};
  }
  for (size_t i = parts.size(); i > 0; --i) {
    best.sides.push_back(at.side_before);
    at = behind[i][static_cast<size_t>(at.side_before)][at.before];
  }
  std::ranges::reverse(best.sides);
  return best;
}

PlannedPlacement plan_placement(const ArchSpec& spec, const PlacementNeeds& needs, const PlacementCosts& costs,
                                uint64_t free_bytes) {
  const size_t n_blocks = spec.blocks.size();
  std::vector<PlacedPart> parts;
  for (size_t i = 0; i < n_blocks; ++i) {
    const uint64_t own = needs.bytes.blocks[i];
    parts.push_back({own + needs.memory.blocks[i], static_cast<double>(own) + needs.memory.reads[i]});
    const backend::MoeSpec& moe = spec.blocks[i].ffn.moe;
    if (moe.n_experts == 0) continue;
    const uint64_t experts = needs.bytes.experts[i];
    parts.push_back({experts, static_cast<double>(experts) * moe.n_used / moe.n_experts});
  }
  parts.push_back({needs.bytes.output, static_cast<double>(needs.bytes.output)});
  const uint64_t fixed = needs.bytes.vectors + needs.memory.padding;
  const PartChoice choice = choose_sides(parts, costs, free_bytes > fixed ? free_bytes - fixed : 0);
  std::vector<Side> blocks;
  std::vector<Side> experts;
  for (size_t part = 0; blocks.size() < n_blocks; ++part) {
    const bool has_experts = spec.blocks[blocks.size()].ffn.moe.n_experts > 0;
    blocks.push_back(choice.sides[part]);
    if (has_experts) ++part;
    experts.push_back(choice.sides[part]);
  }
  return {place_parts(spec, blocks, experts, choice.sides.back()), choice.device_bytes + fixed, choice.step_s};
}

}  // namespace candor::model
